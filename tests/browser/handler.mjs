// SPDX-License-Identifier: MIT
// A receiver for the exec sink that refuses what its name asks for, until the file of argv[2] exists.
import fs from 'node:fs';
import readline from 'node:readline';

const ANSWERS = {
	OrderPaid: ['retry', (n) => `HTTP 422 {"code":${n},"field":"vat"}: the receiver refused it`],
	InvoiceSent: ['retry', (n) => `timeout after ${n} ms at https://billing.example/v1/invoices`],
	OrderShipped: ['reject', () => 'WRONGTYPE Operation against a key holding the wrong kind of value'],
	Hostile: ['reject', () => '<img src=x onerror="hacked=1"><script>hacked=1</script>'],
};
let n = 1000;
for await (const line of readline.createInterface({ input: process.stdin })) {
	const message = JSON.parse(line);
	const [answer, why] = ANSWERS[message.event_type] ?? [];
	if (answer && !fs.existsSync(process.argv[2])) console.log(`${answer} ${message.id} ${why(n++)}`);
	else console.log(`ok ${message.id}`);
}
