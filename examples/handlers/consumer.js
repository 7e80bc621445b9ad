// A consumer behind `outbox consume`, in Node: each message is counted once.
//
//     consumers:
//       - name: billing
//         source: { type: redis, url: "redis://localhost:6379", stream: orders }
//         exec: { command: "node consumer.js" }
//
// One JSON message per line in, one answer per line out: ok ID | retry ID reason | reject ID reason.
// PGHOST, PGDATABASE and so on say where the database is. The table:
// CREATE TABLE paid (order_id text NOT NULL, payload text NOT NULL)
const readline = require("readline");
const { Client } = require("pg");

const db = new Client();

async function handle(message) {
  await db.query("BEGIN");
  try {
    const { rows } = await db.query("SELECT outbox_inbox('billing', $1) AS fresh", [message.id]);
    if (rows[0].fresh)
      await db.query("INSERT INTO paid VALUES ($1, $2)", [message.aggregate_id, JSON.stringify(message.payload)]);
    await db.query("COMMIT");
  } catch (error) {
    await db.query("ROLLBACK");
    throw error;
  }
}

(async () => {
  await db.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    try {
      await handle(message);
      console.log(`ok ${message.id}`);
    } catch (error) {
      console.log(`retry ${message.id} ${error.message.replace(/\s+/g, " ")}`);
    }
  }
  await db.end();
})();
