/* SPDX-License-Identifier: MIT */
/* SQLite for the bare loop: two prepared statements. */
#include "base/arena.h"
#include "base/uuid.h"
#include "bench/bare/parts.h"
#include "bench/fatal.h"
#include "bench/store/sql_sqlite.h"

#include <stdlib.h>

enum { TEXT_MAX = 512 << 20 };

struct source {
	sqlite3 *db;
	sqlite3_stmt *read, *store;
	struct ob_arena text; /* what the rows are borrowed from */
};

static const char read_sql[] =
	"SELECT seq, id, aggregate_type, aggregate_id, event_type, ordering_key, occurred_at, "
	"revision, payload FROM outbox WHERE target = 'default' AND seq > ?1 "
	"ORDER BY seq LIMIT 1000";

static void *sqlite_open(const char *url)
{
	struct source *s = bench_need(calloc(1, sizeof(*s)));

	s->db = bench_sqlite_connect(url);
	s->text = OB_ARENA_INIT(TEXT_MAX);
	s->read = bench_sqlite_prepare(s->db, read_sql);
	s->store = bench_sqlite_prepare(s->db, "UPDATE bench_position SET seq = ?1");
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
	return keep(s, sqlite3_column_text(s->read, column),
		    (size_t)sqlite3_column_bytes(s->read, column));
}

static struct ob_str id_text(struct source *s, int column)
{
	char id[OB_UUID_TEXT_SIZE];
	struct ob_uuid uuid;

	memcpy(uuid.b, sqlite3_column_blob(s->read, column), sizeof(uuid.b));
	ob_uuid_format(&uuid, id);
	return keep(s, id, OB_UUID_TEXT);
}

static size_t sqlite_read(void *source, int64_t after, struct bare_row *rows)
{
	struct source *s = source;
	size_t count = 0;
	int r;

	ob_arena_reset(&s->text, TEXT_MAX);
	(void)sqlite3_bind_int64(s->read, 1, after);
	while ((r = sqlite3_step(s->read)) == SQLITE_ROW) {
		rows[count++] = (struct bare_row){
			.seq = sqlite3_column_int64(s->read, 0),
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
	(void)sqlite3_reset(s->read);
	return count;
}

static void sqlite_store(void *source, int64_t position)
{
	struct source *s = source;

	(void)sqlite3_bind_int64(s->store, 1, position);
	(void)bench_sqlite_step(s->db, s->store);
}

const struct bare_source_ops bare_sqlite = { "sqlite", sqlite_open, sqlite_read, sqlite_store };
