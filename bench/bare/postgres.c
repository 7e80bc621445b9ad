/* SPDX-License-Identifier: MIT */
/* PostgreSQL for the bare loop: two prepared statements. */
#include "bench/bare/parts.h"
#include "bench/fatal.h"
#include "bench/store/sql_postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct source {
	PGconn *conn;
	PGresult *result; /* what the rows are borrowed from */
};

static const char read_sql[] =
	"SELECT seq, id, aggregate_type, aggregate_id, event_type, ordering_key, occurred_at, "
	"revision, payload FROM outbox WHERE target = 'default' AND seq > $1::bigint "
	"ORDER BY seq LIMIT 1000";
static const char store_sql[] = "UPDATE bench_position SET seq = $1::bigint";

static void *postgres_open(const char *url)
{
	struct source *s = bench_need(calloc(1, sizeof(*s)));

	s->conn = bench_pg_connect(url);
	bench_pg_do(s->conn, "SET synchronous_commit = on; SET jit = off");
	PQclear(bench_pg_check(s->conn, PQprepare(s->conn, "read", read_sql, 0, NULL)));
	PQclear(bench_pg_check(s->conn, PQprepare(s->conn, "store", store_sql, 0, NULL)));
	return s;
}

static PGresult *run_with(struct source *s, const char *name, int64_t number)
{
	char text[24];
	const char *values[] = { text };

	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	return bench_pg_check(s->conn, PQexecPrepared(s->conn, name, 1, values, NULL, NULL, 0));
}

static struct ob_str value(const struct source *s, int row, int column)
{
	return (struct ob_str){ PQgetvalue(s->result, row, column),
				(size_t)PQgetlength(s->result, row, column) };
}

static size_t postgres_read(void *source, int64_t after, struct bare_row *rows)
{
	struct source *s = source;

	PQclear(s->result);
	s->result = run_with(s, "read", after);
	int count = PQntuples(s->result);
	for (int i = 0; i < count; i++) {
		rows[i] = (struct bare_row){
			.seq = strtoll(PQgetvalue(s->result, i, 0), NULL, 10),
			.id = value(s, i, 1),
			.aggregate_type = value(s, i, 2),
			.aggregate_id = value(s, i, 3),
			.event_type = value(s, i, 4),
			.key = value(s, i, 5),
			.occurred_at = value(s, i, 6),
			.revision = value(s, i, 7),
			.payload = value(s, i, 8),
		};
	}
	return (size_t)count;
}

static void postgres_store(void *source, int64_t position)
{
	PQclear(run_with(source, "store", position));
}

const struct bare_source_ops bare_postgres = { "postgres", postgres_open, postgres_read,
					       postgres_store };
