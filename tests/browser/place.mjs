// SPDX-License-Identifier: MIT
// A directory with a database, a configuration, and the programs that work on it.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const TIMEOUT = 60_000;

export class Place {
	constructor(binary) {
		this.binary = binary;
		this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'outbox-browser.'));
		this.children = [];
		this.mended = path.join(this.dir, 'mended');
	}

	// `monitor` is what stands in that mapping; `relays` have names.
	configure({ monitor = '', relays = ['orders'], file = 'outbox.yaml' } = {}) {
		this.relays = relays;
		const handler = `${process.execPath} ${path.join(HERE, 'handler.mjs')} ${this.mended}`;
		const relay = (name) => `  - { name: ${name}, store: main, sink: ${name === 'audit' ? 'archive' : 'receiver'}, on_dead: hold, idle_backoff_ms: 50, ` +
			'retry: { base_delay: 1h, max_backoff: 2h, max_attempts: 5 } }\n';
		fs.writeFileSync(path.join(this.dir, file), `stores: { main: { url: "sqlite:${this.dir}/shop.db" } }\n` +
			`sinks:\n  receiver: { type: exec, command: "${handler}", stderr: keep }\n  archive: { type: file, path: "${this.dir}/archive.ndjson", fsync: false }\n` +
			`relays:\n${relays.map(relay).join('')}monitor: { ${monitor} }\n`, { mode: 0o600 });
	}

	outbox(...words) {
		const input = typeof words.at(-1) === 'object' ? words.pop().input : '';
		return execFileSync(this.binary, words, { cwd: this.dir, input, encoding: 'utf8', timeout: TIMEOUT, maxBuffer: 64 << 20,
			stdio: ['pipe', 'pipe', 'pipe'] });
	}

	push(messages) {
		const lines = messages.map((m) => m.line ?? JSON.stringify({ aggregate_type: 'order', payload: {}, ...m }));
		return this.outbox('push', '--json', '-', { input: lines.join('\n') }).trim().split('\n').map((line) => JSON.parse(line).id);
	}

	// Deliver what is due once; failures are what some places want.
	work() {
		try {
			this.outbox('work', '--once', '--silent');
		} catch (error) {
			if (error.status !== 1) throw error;
		}
	}

	start(...words) {
		const child = spawn(this.binary, words, { cwd: this.dir, stdio: ['ignore', 'pipe', 'pipe'] });
		child.said = '';
		child.stderr.on('data', (text) => { child.said += text; });
		this.children.push(child);
		return child;
	}

	// The address that the monitor prints when it serves.
	monitor(file = 'outbox.yaml') {
		const child = this.start('-c', file, 'monitor', '--listen', '127.0.0.1:0');
		return new Promise((done, failed) => {
			let out = '';
			child.stdout.on('data', (text) => {
				out += text;
				const found = out.match(/monitor at (http\S+)/);
				if (found) done(found[1].endsWith('/') ? found[1] : `${found[1]}/`);
			});
			child.on('exit', (code) => failed(new Error(`outbox monitor ended with ${code}: ${child.said}`)));
		});
	}

	async until(what, ask) {
		for (let i = 0; i < 800; i++) {
			if (await ask()) return;
			await new Promise((done) => setTimeout(done, 50));
		}
		throw new Error(`never: ${what}`);
	}

	// Until every relay has nothing left to do.
	settled() {
		return this.until('the relays are done', () => {
			const { readers } = JSON.parse(this.outbox('status', '--json'));
			return readers.length === this.relays.length && readers.every((r) => r.pending === 0 && r.lag === 0);
		});
	}

	async close() {
		await Promise.all(this.children.map((child) => new Promise((done) => {
			if (child.exitCode !== null || child.signalCode) return done();
			child.on('exit', done);
			child.kill('SIGTERM');
		})));
		fs.rmSync(this.dir, { recursive: true, force: true });
	}
}

// A shop on a bad day: two causes that fail, one that is dead and holds keys, and more that go well.
export function badDay(place, { published = 400, failing = 120, timeouts = 7, dead = 3 } = {}) {
	const order = (n) => ({ aggregate_id: `${n}`, correlation_id: `c-${n % 20}`, payload: { order: n, total: n * 1.5 },
		headers: { tenant: 'acme' } });
	const good = (i) => ({ ...order(1000 + i), event_type: i % 2 ? 'OrderPlaced' : 'CustomerMoved' });
	const bad = [];
	for (let i = 0; i < failing; i++) bad.push([{ ...order(5000 + i), event_type: 'OrderPaid' }]);
	for (let i = 0; i < timeouts; i++) bad.push([{ ...order(7000 + i), event_type: 'InvoiceSent' }]);
	for (let i = 0; i < dead; i++) bad.push([{ ...order(9000 + i), event_type: 'OrderShipped' }, ...Array(4).fill({ ...order(9000 + i),
		event_type: 'OrderPlaced' })]);
	const every = Math.floor(published / bad.length);
	// Mixed: were most to fail in a row, the relay would take the receiver for down.
	const list = [];
	for (let i = 0; i < published; i++) list.push(good(i), ...(i % every ? [] : bad.pop() || []));
	return place.push(list);
}
