/* SPDX-License-Identifier: MIT */
/* PostgreSQL for the bare loop: two prepared statements. */
#include "bench/bare_parts.h"
#include "bench/fatal.h"
#include "bench/sql_postgres.h"

#include <inttypes.h>
#include <stdlib.h>

struct source {
	PGconn *conn;
	PGresult *result; /* what the rows are borrowed from */
	struct ob_buf seqs;
};

/* By the index that the relay reads, in an order that keeps keys in order. */
static const char fetch_sql[] =
	"SELECT seq, id, aggregate_type, aggregate_id, event_type, ordering_key, occurred_at, "
	"revision, payload FROM outbox WHERE target = 'default' AND status = 0 "
	"ORDER BY partition_no, priority DESC, seq LIMIT 1000";
static const char update_sql[] =
	"UPDATE outbox SET status = 1, published_at = now() WHERE seq = ANY ($1::bigint[])";
static const char delete_sql[] = "DELETE FROM outbox WHERE seq = ANY ($1::bigint[])";

static void *postgres_open(const char *url, bool delete_rows)
{
	struct source *s = bench_need(calloc(1, sizeof(*s)));

	s->conn = bench_pg_connect(url);
	s->seqs = OB_BUF_INIT(1 << 20);
	bench_pg_do(s->conn,
		    "SET synchronous_commit = on; SET enable_seqscan = off; SET jit = off");
	PQclear(bench_pg_check(s->conn, PQprepare(s->conn, "fetch", fetch_sql, 0, NULL)));
	PQclear(bench_pg_check(s->conn, PQprepare(s->conn, "settle",
						  delete_rows ? delete_sql : update_sql, 0, NULL)));
	return s;
}

static struct ob_str value(const struct source *s, int row, int column)
{
	return (struct ob_str){ PQgetvalue(s->result, row, column),
				(size_t)PQgetlength(s->result, row, column) };
}

static size_t postgres_fetch(void *source, struct bare_row *rows)
{
	struct source *s = source;

	PQclear(s->result);
	s->result =
		bench_pg_check(s->conn, PQexecPrepared(s->conn, "fetch", 0, NULL, NULL, NULL, 0));
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

static void postgres_settle(void *source, const struct bare_row *rows, size_t count)
{
	struct source *s = source;

	ob_buf_clear(&s->seqs);
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&s->seqs, "%c%" PRId64, i ? ',' : '{', rows[i].seq);
	ob_buf_addc(&s->seqs, '}');
	const char *values[] = { ob_buf_str(&s->seqs) };
	PQclear(bench_pg_check(s->conn,
			       PQexecPrepared(s->conn, "settle", 1, values, NULL, NULL, 0)));
}

const struct bare_source_ops bare_postgres = { "postgres", postgres_open, postgres_fetch,
					       postgres_settle };
