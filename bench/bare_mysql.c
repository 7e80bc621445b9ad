/* SPDX-License-Identifier: MIT */
/* MariaDB for the bare loop: plain statements, the settled numbers in one IN list. */
#include "base/uuid.h"
#include "bench/bare_parts.h"
#include "bench/fatal.h"
#include "bench/sql_mysql.h"

#include <inttypes.h>
#include <stdlib.h>

struct source {
	MYSQL *db;
	MYSQL_RES *result; /* what the rows are borrowed from */
	struct ob_buf sql;
	const char *settle;
	char ids[BARE_BATCH][OB_UUID_TEXT_SIZE];
};

/* By the index that the relay reads, in an order that keeps keys in order. */
static const char fetch_sql[] =
	"SELECT seq, id, aggregate_type, aggregate_id, event_type, ordering_key, occurred_at, "
	"revision, payload FROM outbox WHERE target = 'default' AND status = 0 "
	"ORDER BY partition_no, priority DESC, seq LIMIT 1000";

static void *mysql_open(const char *url, bool delete_rows)
{
	struct source *s = bench_need(calloc(1, sizeof(*s)));

	s->db = bench_mysql_connect(url);
	s->sql = OB_BUF_INIT(1 << 20);
	s->settle = delete_rows ? "DELETE FROM outbox WHERE seq IN ("
				: "UPDATE outbox SET status = 1, published_at = UTC_TIMESTAMP(6) "
				  "WHERE seq IN (";
	bench_mysql_do(s->db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	return s;
}

static size_t mysql_fetch(void *source, struct bare_row *rows)
{
	struct source *s = source;
	size_t count = 0;
	MYSQL_ROW row;

	if (s->result)
		mysql_free_result(s->result);
	if (mysql_real_query(s->db, fetch_sql, sizeof(fetch_sql) - 1) != 0)
		bench_mysql_fail(s->db);
	s->result = mysql_store_result(s->db);
	if (!s->result)
		bench_mysql_fail(s->db);
	for (; (row = mysql_fetch_row(s->result)); count++) {
		const unsigned long *sizes = mysql_fetch_lengths(s->result);
		struct ob_uuid id;

		memcpy(id.b, row[1], sizeof(id.b));
		ob_uuid_format(&id, s->ids[count]);
		rows[count] = (struct bare_row){
			.seq = strtoll(row[0], NULL, 10),
			.id = { s->ids[count], OB_UUID_TEXT },
			.aggregate_type = { row[2], sizes[2] },
			.aggregate_id = { row[3], sizes[3] },
			.event_type = { row[4], sizes[4] },
			.key = { row[5], sizes[5] },
			.occurred_at = { row[6], sizes[6] },
			.revision = { row[7], sizes[7] },
			.payload = { row[8], sizes[8] },
		};
	}
	return count;
}

static void mysql_settle(void *source, const struct bare_row *rows, size_t count)
{
	struct source *s = source;

	ob_buf_clear(&s->sql);
	ob_buf_adds(&s->sql, s->settle);
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&s->sql, i ? ",%" PRId64 : "%" PRId64, rows[i].seq);
	ob_buf_addc(&s->sql, ')');
	if (mysql_real_query(s->db, s->sql.data, s->sql.len) != 0)
		bench_mysql_fail(s->db);
}

const struct bare_source_ops bare_mysql = { "mysql", mysql_open, mysql_fetch, mysql_settle };
