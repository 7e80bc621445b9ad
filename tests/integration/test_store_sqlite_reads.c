/* SPDX-License-Identifier: MIT */
/* The SQLite store: what a fetch reads, and who gets a row that many want. */
#include "claimers.h"
#include "store_sqlite_fixture.h"

#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 16, LIMIT = 60 * PARTITIONS, FEW = 20 * LIMIT };

/* OUTBOX_TEST_ROWS=1000000 for the size at which it matters. */
static int rows_wanted(void)
{
	const char *text = getenv("OUTBOX_TEST_ROWS");
	long rows = text ? strtol(text, NULL, 10) : 0;

	return rows > 0 ? (int)rows : 20000;
}

/* Rows of which a key each has ten. */
static void load(const char *name, int rows, int status)
{
	char text[640];

	(void)snprintf(
		text, sizeof(text),
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
		"INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, "
		"status, published_at) SELECT randomblob(16), 'order', i / 10, 'e', "
		"'{\"n\": 1}', %d, CASE WHEN %d = 1 THEN 1 END FROM n",
		rows, status, status);
	sql_on(name, text);
}

/* ---- what a fetch reads ---------------------------------------------- */

/* Steps of SQLite's machine that look for rows, and pages that were looked at in all. */
struct cost {
	int steps, pages;
};

static int64_t in_flight[8 * LIMIT];
static size_t in_flight_count;

static int pages_read(struct ob_store *store)
{
	int hits = 0, misses = 0, high;

	(void)sqlite3_db_status(lite(store)->db, SQLITE_DBSTATUS_CACHE_HIT, &hits, &high, 0);
	(void)sqlite3_db_status(lite(store)->db, SQLITE_DBSTATUS_CACHE_MISS, &misses, &high, 0);
	return hits + misses;
}

static struct cost fetch_cost(struct ob_store *store, struct ob_batch *batch)
{
	uint32_t partitions[PARTITIONS];
	const struct ob_fetch wish = {
		.target = "default",
		.partitions = partitions,
		.partition_count = PARTITIONS,
		.exclude = in_flight,
		.exclude_count = in_flight_count,
		.limit = LIMIT,
		.max_bytes = 1 << 24,
	};
	sqlite3_stmt *stmt;

	for (uint32_t i = 0; i < PARTITIONS; i++)
		partitions[i] = i;
	ok(ob_store_fetch(store, &wish, batch, &err)); /* the second time all is prepared */
	ok(lite_prepare(lite(store), LITE_candidates, &stmt, &err));
	(void)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
	(void)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
	int pages = pages_read(store);
	ok(ob_store_fetch(store, &wish, batch, &err));
	ck_assert_uint_eq(batch->count, LIMIT);
	ck_assert_int_eq(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1), 0);
	return (struct cost){
		.steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1),
		.pages = pages_read(store) - pages,
	};
}

/* Of a table that holds nothing but rows to be sent: it cannot be less. */
static struct cost least_cost(struct ob_batch *batch)
{
	struct ob_store *store = new_store("few.db", NULL);

	load("few.db", FEW, 0);
	struct cost cost = fetch_cost(store, batch);
	ob_store_free(store);
	return cost;
}

/* A store on many rows that are published and a tenth as many that wait. */
static struct ob_store *begin(void)
{
	struct ob_store *store = new_store("a.db", NULL);

	load("a.db", rows_wanted(), 1);
	load("a.db", rows_wanted() / 10 + FEW, 0);
	return store;
}

OB_TEST(the_plan_of_a_fetch_is_the_ready_index)
{
	struct ob_store *store = begin();
	struct ob_buf explain = OB_BUF_INIT(1 << 16);
	struct ob_batch batch;
	sqlite3_stmt *plan;
	int ready = 0, other = 0;

	ob_batch_init(&batch);
	sql_on("a.db", "ANALYZE"); /* where it knows how many there are, it must not choose worse */
	ob_store_free(store);
	store = open_store("a.db", NULL);
	(void)fetch_cost(store, &batch);
	ob_buf_addf(&explain, "EXPLAIN QUERY PLAN %s",
		    sqlite3_sql(lite(store)->stmt[LITE_candidates]));
	ck_assert_int_eq(sqlite3_prepare_v2(lite(store)->db, ob_buf_str(&explain), -1, &plan, NULL),
			 SQLITE_OK);
	while (sqlite3_step(plan) == SQLITE_ROW) {
		const char *detail = (const char *)sqlite3_column_text(plan, 3);

		ck_assert_msg(strncmp(detail, "SCAN", 4) != 0, "%s", detail);
		if (strncmp(detail, "SEARCH m ", 9) != 0)
			continue;
		bool is_ready = strstr(detail, "INDEX outbox_ready (target=? AND partition_no=?");
		ready += is_ready;
		other += !is_ready;
		/* Rows in trouble have an index of their own. */
		ck_assert_msg(is_ready || strstr(detail, "INDEX outbox_exceptions ("), "%s",
			      detail);
	}
	ck_assert_int_eq(ready, 1);
	ck_assert_int_eq(other, 1);
	(void)sqlite3_finalize(plan);
	ob_buf_done(&explain);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(a_fetch_reads_no_more_than_it_returns)
{
	struct ob_store *store = begin();
	struct ob_batch batch;

	ob_batch_init(&batch);
	struct cost cost = fetch_cost(store, &batch), least = least_cost(&batch);
	(void)printf(
		"# %d published, %d pending: %d steps and %d pages for %d messages; "
		"with nothing published %d and %d\n",
		rows_wanted(), rows_wanted() / 10 + FEW, cost.steps, cost.pages, LIMIT, least.steps,
		least.pages);
	ck_assert_int_eq(cost.steps, least.steps);
	/* A larger tree is deeper by a page or two. */
	ck_assert_int_le(cost.pages, least.pages + 2 * LIMIT + 2 * PARTITIONS);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* Deleted, published or given up, even while a reader from before sees them waiting. */
OB_TEST(what_was_just_finished_costs_nothing)
{
	struct ob_store *store = begin();
	struct ob_batch batch;
	int finished = 0;

	ob_batch_init(&batch);
	struct cost before = fetch_cost(store, &batch);
	sqlite3 *reader = sql_open("a.db");
	sql(reader, "BEGIN; SELECT count(*) FROM outbox WHERE status = 0");
	/* Half of them: then every partition still has its share. */
	for (; finished < rows_wanted() / 20; finished += LIMIT) {
		enum ob_outcome_kind kind =
			finished / LIMIT % 3 == 1 ? OB_OUTCOME_DEAD : OB_OUTCOME_PUBLISHED;

		settle_deletes = finished / LIMIT % 3 == 0;
		ck_assert_uint_eq(settle(store, &batch, kind), LIMIT);
		(void)fetch_cost(store, &batch);
	}
	struct cost after = fetch_cost(store, &batch);
	(void)printf("# %d finished: %d steps and %d pages; before %d and %d\n", finished,
		     after.steps, after.pages, before.steps, before.pages);
	/* The dead stand in the index of rows in trouble: each partition looks there and finds
	 * none that it wants. */
	ck_assert_int_le(after.steps, before.steps + 20 * PARTITIONS);
	ck_assert_int_le(after.pages, before.pages + LIMIT);
	(void)sqlite3_close(reader);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* As a worker that fetches ahead: what is in flight stands before what is wanted. */
OB_TEST(what_is_in_flight_is_read_once)
{
	struct ob_store *store = begin();
	struct ob_batch batch;

	ob_batch_init(&batch);
	struct cost none = fetch_cost(store, &batch);
	for (int round = 2; round <= 8; round++) {
		for (uint32_t i = 0; i < batch.count; i++)
			in_flight[in_flight_count++] = batch.messages[i].seq;
		qsort(in_flight, in_flight_count, sizeof(*in_flight), by_number);
		ck_assert_int_le(fetch_cost(store, &batch).steps, round * none.steps);
	}
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* ---- claims ---------------------------------------------------------- */

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	/* The test's own time limit is the deadline, and not how long one may wait. */
	const struct ob_opt_value options[] = { { "busy_timeout", "10m" } };
	struct ob_store_conf conf = { .options = options, .option_count = 1 };
	struct ob_store *stores[CLAIMERS];
	char url[160];

	ob_store_free(new_store("a.db", NULL));
	(void)snprintf(url, sizeof(url), "sqlite:%s", file("a.db"));
	conf.url = url;
	for (int i = 0; i < CLAIMERS; i++)
		ok(ob_store_connect(&conf, &stores[i], &err));
	load("a.db", CLAIM_ROWS, 0);
	claimers_run(stores);
}
OB_TEST_END

LITE_SUITE("store_sqlite_reads", the_plan_of_a_fetch_is_the_ready_index,
	   a_fetch_reads_no_more_than_it_returns, what_was_just_finished_costs_nothing,
	   what_is_in_flight_is_read_once, eight_workers_claim_twenty_thousand_rows_once_each)
