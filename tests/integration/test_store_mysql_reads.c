/* SPDX-License-Identifier: MIT */
/* The MySQL store: what a fetch reads, and who gets a row that many want. */
#include "claimers.h"
#include "mysql_fixture.h"
#include "store/mysql.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	PARTITIONS = 4,
	LIMIT = 1000,
	TO_BEGIN = 3 /* reads of a partition, to find its first row */
};

/* OUTBOX_TEST_ROWS=1000000 for the size at which it matters. */
static int rows_wanted(void)
{
	const char *text = getenv("OUTBOX_TEST_ROWS");
	long rows = text ? strtol(text, NULL, 10) : 0;

	return rows > 0 ? (int)rows : 20000;
}

/* Rows of which a key each has ten. */
static void load(int rows, int status)
{
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, status, "
	    "published_at) SELECT 'order', seq DIV 10, 'e', '{\"n\": 1}', %d, "
	    "IF(%d = 1, UTC_TIMESTAMP(6), NULL) FROM seq_1_to_%d",
	    status, status, rows);
}

/* Of all statements of the store's connection so far. */
static long long rows_read(struct ob_store *store)
{
	return number(((struct my_store *)store)->db,
		      "SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS "
		      "WHERE VARIABLE_NAME LIKE 'HANDLER\\_READ\\_%' "
		      "AND VARIABLE_NAME NOT LIKE '%DELETED'");
}

static long long pages_read(void)
{
	return number(admin,
		      "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
		      "WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_READ_REQUESTS'");
}

struct cost {
	long long rows, pages;
};

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* ---- what a fetch reads ---------------------------------------------- */

/* One fetch, counted; what counting itself costs is taken off. */
static struct cost fetch_cost(struct worker *w)
{
	long long first = rows_read(w->store), own = rows_read(w->store) - first;
	long long pages = pages_read();

	ok(worker_fetch(w, LIMIT));
	struct cost cost = { .pages = pages_read() - pages };
	cost.rows = rows_read(w->store) - first - 2 * own;
	ck_assert_uint_eq(w->batch.count, LIMIT);
	return cost;
}

/* Until what was finished is out of the indexes. */
static void wait_for_purge(void)
{
	while (number(admin,
		      "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
		      "WHERE VARIABLE_NAME = 'INNODB_HISTORY_LIST_LENGTH'") > 0)
		(void)poll(NULL, 0, 5);
}

/* A worker on a table of many rows that are published and a tenth as many that wait. */
static void begin(struct worker *w)
{
	fixture_begin(PARTITIONS);
	load(rows_wanted(), 1);
	load(rows_wanted() / 10 + 8 * LIMIT, 0);
	sql(admin, "ANALYZE TABLE outbox");
	wait_for_purge();
	worker_begin(w, "root");
	ok(worker_fetch(w, LIMIT)); /* prepares the statements */
}

/* EXPLAIN what the server was sent: no step but by the named indexes, each with a range. */
static int expect_plan(const char *statement)
{
	struct ob_buf explain = OB_BUF_INIT(1 << 20);
	int ready = 0;
	MYSQL_ROW row;

	ob_buf_addf(&explain, "EXPLAIN %s", statement);
	ck_assert_msg(mysql_query(admin, ob_buf_str(&explain)) == 0, "%s", mysql_error(admin));
	MYSQL_RES *plan = mysql_store_result(admin);
	ck_assert_ptr_nonnull(plan);
	while ((row = mysql_fetch_row(plan))) {
		const char *table = row[2] ? row[2] : "", *key = row[5] ? row[5] : "none";
		bool by_number = strcmp(key, "PRIMARY") == 0,
		     by_ready = !strcmp(key, "outbox_ready");

		if (table[0] == '<' || table[0] == '\0') /* the UNION itself; nothing to read */
			continue;
		ck_assert_msg(by_number || by_ready, "index %s: %s", key, statement);
		ck_assert_msg(strcmp(row[3], "range") == 0 || strcmp(row[3], "ref") == 0,
			      "%s of index %s: %s", row[3], key, statement);
		ck_assert_msg(!row[9] || !strstr(row[9], "filesort"), "%s: %s", row[9], statement);
		ready += by_ready;
	}
	mysql_free_result(plan);
	ob_buf_done(&explain);
	return ready;
}

OB_TEST(the_plan_of_a_fetch_is_the_ready_index)
{
	struct worker w;
	int ready = 0;
	MYSQL_ROW row;

	begin(&w);
	sql(admin, "SET GLOBAL log_output = 'TABLE', general_log = 1");
	sql(admin, "TRUNCATE TABLE mysql.general_log");
	/* What was prepared before is logged without its values. */
	ob_store_free(w.store);
	w.store = fixture_store("root");
	ok(worker_fetch(&w, LIMIT));
	ck_assert_uint_eq(w.batch.count, LIMIT);
	sql(admin, "SET GLOBAL general_log = 0");
	ck_assert_int_eq(mysql_query(admin,
				     "SELECT argument FROM mysql.general_log "
				     "WHERE command_type = 'Execute'"),
			 0);
	MYSQL_RES *sent = mysql_store_result(admin);
	ck_assert_ptr_nonnull(sent);
	while ((row = mysql_fetch_row(sent)))
		ready += expect_plan(row[0]);
	mysql_free_result(sent);
	ck_assert_int_eq(ready, PARTITIONS + 1); /* one asks whether anything is held */
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_fetch_reads_no_more_than_it_returns)
{
	struct worker w;

	begin(&w);
	struct cost cost = fetch_cost(&w);
	(void)printf("# %d published, %d pending: %lld rows and %lld pages read for %d messages\n",
		     rows_wanted(), rows_wanted() / 10 + 8 * LIMIT, cost.rows, cost.pages, LIMIT);
	/* Each once in the index and once by its number. */
	ck_assert_int_le(cost.rows, 2 * LIMIT + TO_BEGIN * PARTITIONS);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* As a worker that fetches ahead: what is in flight stands before what is wanted. */
OB_TEST(what_is_in_flight_is_read_once_and_not_by_every_partition)
{
	enum { ROUNDS = 4 };
	int64_t in_flight[ROUNDS * LIMIT];
	const uint32_t all[PARTITIONS] = { 0, 1, 2, 3 };
	struct ob_fetch fetch = {
		.target = "default",
		.partitions = all,
		.partition_count = PARTITIONS,
		.exclude = in_flight,
		.limit = LIMIT,
		.max_bytes = 1 << 24,
	};
	struct worker w;

	begin(&w);
	for (size_t round = 0; round < ROUNDS; round++) {
		long long first = rows_read(w.store), own = rows_read(w.store) - first;

		ok(ob_store_fetch(w.store, &fetch, &w.batch, &fault));
		ck_assert_uint_eq(w.batch.count, LIMIT);
		long long rows = rows_read(w.store) - first - 2 * own;
		ck_assert_msg(rows <= (long long)fetch.exclude_count + 2 * LIMIT +
					      TO_BEGIN * PARTITIONS,
			      "%zu in flight: %lld rows read", fetch.exclude_count, rows);
		for (uint32_t i = 0; i < w.batch.count; i++)
			in_flight[fetch.exclude_count++] = w.batch.messages[i].seq;
		qsort(in_flight, fetch.exclude_count, sizeof(*in_flight), by_number);
		for (size_t i = 1; i < fetch.exclude_count; i++)
			ck_assert_int_lt(in_flight[i - 1], in_flight[i]);
	}
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_settle_of_what_was_published_reads_each_row_once)
{
	struct worker w;

	begin(&w);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED)); /* prepares the statements */
	ok(worker_fetch(&w, LIMIT));
	long long first = rows_read(w.store), own = rows_read(w.store) - first;
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	ck_assert_uint_eq(w.settled.applied, LIMIT);
	/* And the leases; and the throughput of this minute. */
	ck_assert_int_le(rows_read(w.store) - first - 2 * own, LIMIT + 2 * PARTITIONS + 2);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/*
 * A reader from before keeps the server from purging what was deleted, published or given up since:
 * those entries are stepped over inside the pages of the index, without a look at their rows.
 */
OB_TEST(what_was_just_finished_costs_pages_of_the_index_until_it_is_purged)
{
	struct worker w;
	int finished = 0;

	begin(&w);
	struct cost fresh = fetch_cost(&w);
	MYSQL *reader = fixture_connect("root");
	sql(reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
	for (; finished < rows_wanted() / 10; finished += LIMIT) {
		ok(worker_fetch(&w, LIMIT));
		w.delete_published = finished / LIMIT % 3 == 0;
		ok(worker_settle(&w, finished / LIMIT % 3 == 1 ? OB_OUTCOME_DEAD
							       : OB_OUTCOME_PUBLISHED));
		ck_assert_uint_eq(w.settled.applied, LIMIT);
	}
	struct cost unpurged = fetch_cost(&w);
	mysql_close(reader);
	wait_for_purge();
	struct cost purged = fetch_cost(&w);
	(void)printf("# %d finished: %lld pages, %lld until they are purged, %lld before\n",
		     finished, purged.pages, unpurged.pages, fresh.pages);
	ck_assert_int_le(unpurged.rows, 2 * LIMIT + TO_BEGIN * PARTITIONS);
	ck_assert_int_le(purged.rows, 2 * LIMIT + TO_BEGIN * PARTITIONS);
	ck_assert_int_le(unpurged.pages, fresh.pages + finished / 20 + LIMIT);
	ck_assert_int_le(purged.pages, fresh.pages + LIMIT);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- claims ---------------------------------------------------------- */

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	struct ob_store *stores[CLAIMERS];

	fixture_begin(16);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq %% 500, 'e', '{}' FROM seq_1_to_%d",
	    CLAIM_ROWS);
	for (int i = 0; i < CLAIMERS; i++)
		stores[i] = fixture_store("root");
	claimers_run(stores);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL reads", the_plan_of_a_fetch_is_the_ready_index,
	    a_fetch_reads_no_more_than_it_returns,
	    what_is_in_flight_is_read_once_and_not_by_every_partition,
	    a_settle_of_what_was_published_reads_each_row_once,
	    what_was_just_finished_costs_pages_of_the_index_until_it_is_purged,
	    eight_workers_claim_twenty_thousand_rows_once_each)
