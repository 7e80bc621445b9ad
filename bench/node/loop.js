// SPDX-License-Identifier: MIT
// A relay as one writes it by hand: take 1,000 rows, publish them pipelined, delete them, again. No
// leases, no retry, no order between two of these; it stops at the first error.
'use strict';

const { Client } = require('pg');
const { createClient } = require('redis');

const [url, socket] = process.argv.slice(2);

// The text of the payload goes out as it is: parsing it here and writing it again would be slower.
const take = {
  name: 'take',
  text: 'SELECT id, topic, key, payload::text AS payload FROM node_outbox ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED',
};

async function drain(db, redis) {
  for (;;) {
    await db.query('BEGIN');
    const { rows } = await db.query(take);
    if (rows.length === 0) {
      await db.query('COMMIT');
      return;
    }
    await Promise.all(
      rows.map((row) => redis.xAdd(row.topic, '*', { id: row.id, key: row.key, payload: row.payload })),
    );
    await db.query({
      name: 'delete',
      text: 'DELETE FROM node_outbox WHERE id = ANY ($1)',
      values: [rows.map((row) => row.id)],
    });
    await db.query('COMMIT');
  }
}

async function main() {
  const db = new Client({ connectionString: url });
  const redis = createClient({ socket: { path: socket } });

  await db.connect();
  await redis.connect();
  await drain(db, redis);
  // Alive until it was looked at, as the relay is.
  setInterval(() => {}, 1000);
}

process.on('SIGTERM', () => process.exit(0));
main().catch((err) => {
  console.error(err.message);
  process.exit(1);
});
