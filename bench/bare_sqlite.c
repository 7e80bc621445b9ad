/* SPDX-License-Identifier: MIT */
/* SQLite for the bare loop. There is no round trip to save: one small statement settles each row.
 */
#include "base/arena.h"
#include "base/uuid.h"
#include "bench/bare_parts.h"
#include "bench/fatal.h"
#include "bench/sql_sqlite.h"

#include <stdlib.h>

enum { TEXT_MAX = 512 << 20 };

struct source {
	sqlite3 *db;
	sqlite3_stmt *fetch, *settle;
	struct ob_arena text; /* what the rows are borrowed from */
};

/* By the index that the relay reads, in an order that keeps keys in order. */
static const char fetch_sql[] =
	"SELECT seq, id, aggregate_type, aggregate_id, event_type, ordering_key, occurred_at, "
	"revision, payload FROM outbox WHERE target = 'default' AND status = 0 "
	"ORDER BY partition_no, priority DESC, seq LIMIT 1000";
static const char update_sql[] =
	"UPDATE outbox SET status = 1, published_at = unixepoch() * 1000000 WHERE seq = ?1";
static const char delete_sql[] = "DELETE FROM outbox WHERE seq = ?1";

static void *sqlite_open(const char *url, bool delete_rows)
{
	struct source *s = bench_need(calloc(1, sizeof(*s)));

	s->db = bench_sqlite_connect(url);
	s->text = OB_ARENA_INIT(TEXT_MAX);
	s->fetch = bench_sqlite_prepare(s->db, fetch_sql);
	s->settle = bench_sqlite_prepare(s->db, delete_rows ? delete_sql : update_sql);
	return s;
}

static struct ob_str keep(struct source *s, const void *bytes, size_t size)
{
	struct ob_str copy;

	if (!ob_arena_copy(&s->text, (struct ob_str){ bytes, size }, &copy))
		bench_fatal("out of memory");
	return copy;
}

static struct ob_str text(struct source *s, int column)
{
	return keep(s, sqlite3_column_text(s->fetch, column),
		    (size_t)sqlite3_column_bytes(s->fetch, column));
}

static struct ob_str id_text(struct source *s, int column)
{
	char id[OB_UUID_TEXT_SIZE];
	struct ob_uuid uuid;

	memcpy(uuid.b, sqlite3_column_blob(s->fetch, column), sizeof(uuid.b));
	ob_uuid_format(&uuid, id);
	return keep(s, id, OB_UUID_TEXT);
}

static size_t sqlite_fetch(void *source, struct bare_row *rows)
{
	struct source *s = source;
	size_t count = 0;
	int r;

	ob_arena_reset(&s->text, TEXT_MAX);
	while ((r = sqlite3_step(s->fetch)) == SQLITE_ROW) {
		rows[count++] = (struct bare_row){
			.seq = sqlite3_column_int64(s->fetch, 0),
			.id = id_text(s, 1),
			.aggregate_type = text(s, 2),
			.aggregate_id = text(s, 3),
			.event_type = text(s, 4),
			.key = text(s, 5),
			.occurred_at = text(s, 6),
			.revision = text(s, 7),
			.payload = text(s, 8),
		};
	}
	if (r != SQLITE_DONE)
		bench_sqlite_fail(s->db);
	(void)sqlite3_reset(s->fetch);
	return count;
}

static void sqlite_settle(void *source, const struct bare_row *rows, size_t count)
{
	struct source *s = source;

	bench_sqlite_do(s->db, "BEGIN IMMEDIATE");
	for (size_t i = 0; i < count; i++) {
		(void)sqlite3_bind_int64(s->settle, 1, rows[i].seq);
		(void)bench_sqlite_step(s->db, s->settle);
	}
	bench_sqlite_do(s->db, "COMMIT");
}

const struct bare_source_ops bare_sqlite = { "sqlite", sqlite_open, sqlite_fetch, sqlite_settle };
