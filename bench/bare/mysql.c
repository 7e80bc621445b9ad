/* SPDX-License-Identifier: MIT */
/* MariaDB for the bare loop: two plain statements. */
#include "base/uuid.h"
#include "bench/bare/parts.h"
#include "bench/fatal.h"
#include "bench/store/sql_mysql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct source {
	MYSQL *db;
	MYSQL_RES *result; /* what the rows are borrowed from */
	char ids[BARE_BATCH][OB_UUID_TEXT_SIZE];
};

static const char read_sql[] =
	"SELECT seq, id, aggregate_type, aggregate_id, event_type, ordering_key, occurred_at, "
	"revision, payload FROM outbox WHERE target = 'default' AND seq > %" PRId64
	" ORDER BY seq LIMIT 1000";

static void *mysql_open(const char *url)
{
	struct source *s = bench_need(calloc(1, sizeof(*s)));

	s->db = bench_mysql_connect(url);
	bench_mysql_do(s->db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	return s;
}

static size_t mysql_read(void *source, int64_t after, struct bare_row *rows)
{
	struct source *s = source;
	size_t count = 0;
	char sql[512];
	MYSQL_ROW row;

	(void)snprintf(sql, sizeof(sql), read_sql, after);
	if (s->result)
		mysql_free_result(s->result);
	if (mysql_query(s->db, sql) != 0)
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

static void mysql_store(void *source, int64_t position)
{
	struct source *s = source;
	char sql[96];

	(void)snprintf(sql, sizeof(sql), "UPDATE bench_position SET seq = %" PRId64, position);
	bench_mysql_do(s->db, sql);
}

const struct bare_source_ops bare_mysql = { "mysql", mysql_open, mysql_read, mysql_store };
