#!/bin/sh
# A consumer behind `outbox consume`, in shell: each message is counted once.
#
#     consumers:
#       - name: billing
#         source: { type: redis, url: "redis://localhost:6379", stream: orders }
#         exec: { command: "sh consumer.sh shop.db" }
#
# One JSON message per line in, one answer per line out: ok ID | retry ID reason | reject ID reason.
# The table: CREATE TABLE paid (order_id TEXT NOT NULL, payload TEXT NOT NULL)
db=${1:?usage: consumer.sh DATABASE}

while IFS= read -r line; do
	# "id" always comes first in a line, so no JSON parser is needed to find it
	id=${line#'{"id":"'}
	id=${id%%'"'*}
	# the whole line goes into SQL: a quote in it is doubled
	json=$(printf '%s' "$line" | sed "s/'/''/g")

	# the inbox and the work in one transaction: a copy changes nothing
	if sqlite3 -bail -cmd '.timeout 60000' "$db" >/dev/null <<SQL
BEGIN IMMEDIATE;
INSERT OR IGNORE INTO outbox_inbox (consumer, id) VALUES ('billing', '$id');
INSERT INTO paid SELECT json_extract('$json', '$.aggregate_id'), json_extract('$json', '$.payload') WHERE changes() = 1;
COMMIT;
SQL
	then
		printf 'ok %s\n' "$id"
	else
		printf 'retry %s the database refuses\n' "$id"
	fi
done
