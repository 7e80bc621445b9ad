/* SPDX-License-Identifier: MIT */
/* The SQLite store: what a read and a settle cost, and that it depends on nothing but what they
 * return. */
#include "store/sqlite/stmt.h"
#include "store_sqlite_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HASHES = 16, NUMBERS = HASHES * OB_LANES, LIMIT = 1000, FEW = 20 * LIMIT };

/* OUTBOX_TEST_ROWS=1000000 for the size at which it matters. */
static int rows_wanted(void)
{
	const char *text = getenv("OUTBOX_TEST_ROWS");
	long rows = text ? strtol(text, NULL, 10) : 0;

	return rows > 0 ? (int)rows : 20000;
}

/* Rows of which a key each has ten. */
static void load(const char *name, int rows, const char *target)
{
	char text[640];

	(void)snprintf(
		text, sizeof(text),
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
		"INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, "
		"target) "
		"SELECT randomblob(16), 'order', i / 10, 'e', printf('{\"n\": \"%%300d\"}', i), "
		"'%s' FROM n",
		rows, target);
	sql_on(name, text);
}

/* ---- a worker that goes on from where it was -------------------------- */

static const struct ob_uuid owner = { { 1 } };
static struct ob_owned owned[NUMBERS];
static struct ob_read_part parts[NUMBERS];

static void take_over(struct ob_store *store)
{
	const struct ob_reader reader = { .name = OB_STR("r"), .target = OB_STR("default") };
	const struct ob_place place = { .start = OB_START_BEGINNING };
	bool made;

	ok(ob_store_reader_make(store, &reader, &place, &made, &err));
	for (uint32_t p = 0; p < NUMBERS; p++)
		owned[p] = (struct ob_owned){ .partition = p, .epoch = 1 };
	ok(ob_store_take_over(store, "r", &owner, owned, NUMBERS, &err));
	for (uint32_t p = 0; p < NUMBERS; p++)
		parts[p] = (struct ob_read_part){ .partition = p, .from = owned[p].progress };
}

static struct ob_read_done read_next(struct ob_store *store, struct ob_batch *batch)
{
	struct ob_read wish = {
		.reader = "r",
		.target = "default",
		.parts = parts,
		.part_count = NUMBERS,
		.limit = LIMIT,
		.max_bytes = 1 << 24,
		.exception_limit = LIMIT,
	};
	struct ob_read_done done;

	ok(ob_store_read(store, &wish, batch, &done, &err));
	return done;
}

static void settle_read(struct ob_store *store)
{
	struct ob_settle_part settled[NUMBERS];
	struct ob_settle wish = {
		.reader = "r", .owner = owner, .parts = settled, .part_count = NUMBERS
	};

	for (uint32_t p = 0; p < NUMBERS; p++)
		settled[p] = (struct ob_settle_part){ .partition = p,
						      .epoch = 1,
						      .batch = ++owned[p].batch,
						      .progress = parts[p].after };
	ok(ob_store_settle(store, &wish, &err));
	for (uint32_t p = 0; p < NUMBERS; p++) {
		ck_assert_int_eq(settled[p].settled, OB_SETTLED);
		parts[p].from = parts[p].after;
	}
}

/* ---- what a read costs ------------------------------------------------ */

/* Steps of SQLite's machine in the walk, and pages that were looked at in all. */
struct cost {
	int steps, pages;
};

static int pages_read(struct ob_store *store)
{
	int hits = 0, misses = 0, high;

	(void)sqlite3_db_status(lite(store)->db, SQLITE_DBSTATUS_CACHE_HIT, &hits, &high, 0);
	(void)sqlite3_db_status(lite(store)->db, SQLITE_DBSTATUS_CACHE_MISS, &misses, &high, 0);
	return hits + misses;
}

static struct cost read_cost(struct ob_store *store, struct ob_batch *batch)
{
	sqlite3_stmt *stmt;

	(void)read_next(store, batch); /* the second time all is prepared */
	ok(lite_bind(lite(store), LITE_walk, OB_NO_ARGS, &err));
	stmt = lite(store)->stmt[LITE_walk];
	(void)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
	(void)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
	int pages = pages_read(store);
	ck_assert(read_next(store, batch).more);
	ck_assert_uint_eq(batch->count, LIMIT);
	ck_assert_int_eq(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1), 0);
	return (struct cost){
		.steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1),
		.pages = pages_read(store) - pages,
	};
}

/* Of a log that holds nothing but rows to be sent: it cannot be less. */
static struct cost least_cost(struct ob_batch *batch)
{
	struct ob_store *store = new_store("few.db", NULL);

	load("few.db", FEW, "default");
	take_over(store);
	struct cost cost = read_cost(store, batch);
	ob_store_free(store);
	return cost;
}

/* A store on many rows that were delivered, and some that wait. */
static struct ob_store *begin(struct ob_batch *batch)
{
	struct ob_store *store = new_store("a.db", NULL);

	load("a.db", rows_wanted(), "default");
	take_over(store);
	while (read_next(store, batch).more)
		settle_read(store);
	settle_read(store);
	load("a.db", FEW, "default");
	return store;
}

OB_TEST(a_read_costs_what_it_returns)
{
	struct ob_batch batch;

	ob_batch_init(&batch);
	struct ob_store *store = begin(&batch);
	struct cost cost = read_cost(store, &batch), least = least_cost(&batch);
	(void)printf(
		"# %d delivered: %d steps and %d pages for %d messages; with nothing delivered %d "
		"and "
		"%d\n",
		rows_wanted(), cost.steps, cost.pages, LIMIT, least.steps, least.pages);
	ck_assert_int_le(cost.steps, least.steps + 10);
	ck_assert_int_le(cost.pages, least.pages + 10);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* Dead messages stay for months. They must not make every row ask for an exception of its own. */
OB_TEST(dead_messages_cost_a_read_nothing)
{
	struct ob_batch batch;

	ob_batch_init(&batch);
	struct ob_store *store = begin(&batch);
	struct cost before = read_cost(store, &batch);
	sql_on("a.db",
	       "INSERT INTO outbox_exceptions (reader, partition_no, seq, state, since) "
	       "SELECT 'r', partition_no, seq, 3, 1 FROM outbox WHERE seq % 10 = 0 AND seq <= "
	       "20000");
	struct cost after = read_cost(store, &batch);
	(void)printf("# %d pages with 2000 dead, %d without\n", after.pages, before.pages);
	/* A few for each partition. */
	ck_assert_int_le(after.pages, before.pages + 20 * NUMBERS);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* Rows of other targets are walked over: in parts, so that no read takes long. */
OB_TEST(other_targets_are_walked_over_in_parts)
{
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_batch batch;
	int reads = 1;

	ob_batch_init(&batch);
	load("a.db", 1000, "other");
	sql_on("a.db", "UPDATE sqlite_sequence SET seq = 1000000 WHERE name = 'outbox'");
	load("a.db", 3, "default");
	take_over(store);
	while (read_next(store, &batch).more) {
		ck_assert_int_lt(reads++, 10);
		settle_read(store);
	}
	ck_assert_uint_eq(batch.count, 3);
	ck_assert_int_eq(batch.messages[2].seq, 1000003);
	ck_assert_int_gt(reads, 1);
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

/* ---- what retention costs --------------------------------------------- */

/* What stays (a dead message, a target that nobody reads) is walked over once a pass, and every
 * call is short. */
OB_TEST(retention_goes_on_after_what_stays)
{
	const struct ob_retain wish = { .published_ms = 0, .dead_ms = OB_NEVER_MS, .limit = 100 };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_store *store = new_store("a.db", NULL);
	struct ob_retained done = { .more = true };
	uint64_t removed = 0;
	struct ob_batch batch;
	int calls = 0;

	ob_batch_init(&batch);
	load("a.db", 1000, "default");
	load("a.db", 500, "nobody");
	load("a.db", 500, "default");
	take_over(store);
	while (read_next(store, &batch).more)
		settle_read(store);
	settle_read(store);
	sql_on("a.db",
	       "INSERT INTO outbox_exceptions (reader, partition_no, seq, state, since) "
	       "SELECT 'r', partition_no, seq, 3, 1 FROM outbox WHERE seq <= 300");
	for (; done.more; calls++) {
		ok(ob_store_retain(store, &wish, &arena, &done, &err));
		ck_assert_uint_le(done.rows, 100);
		removed += done.rows;
	}
	ck_assert_uint_eq(removed, 1200);
	ck_assert_int_eq(calls, 20);
	ck_assert_int_eq(number_on("a.db", "SELECT count(*) FROM outbox WHERE target = 'nobody'"),
			 500);
	/* The next pass begins anew. */
	sql_on("a.db", "DELETE FROM outbox_exceptions");
	ok(ob_store_retain(store, &wish, &arena, &done, &err));
	ck_assert_uint_eq(done.rows, 100);
	ob_batch_done(&batch);
	ob_arena_done(&arena);
	ob_store_free(store);
}
OB_TEST_END

static int64_t cpu_us(void)
{
	struct timespec used;

	ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
	return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* For people: microseconds of processor time per message. */
OB_TEST(reading_and_settling_a_backlog)
{
	struct ob_store *store = new_store("a.db", NULL);
	int64_t reading = 0, settling = 0, rows = 0;
	struct ob_batch batch;
	bool more = true;

	ob_batch_init(&batch);
	load("a.db", rows_wanted(), "default");
	take_over(store);
	while (more) {
		int64_t start = cpu_us();
		more = read_next(store, &batch).more;
		int64_t middle = cpu_us();
		settle_read(store);
		reading += middle - start;
		settling += cpu_us() - middle;
		rows += batch.count;
	}
	(void)printf("# %lld messages: read %.2f us, settle %.2f us each\n", (long long)rows,
		     (double)reading / (double)rows, (double)settling / (double)rows);
	ck_assert_int_eq(rows, rows_wanted());
	ob_batch_done(&batch);
	ob_store_free(store);
}
OB_TEST_END

LITE_SUITE("store_sqlite_reads", a_read_costs_what_it_returns, dead_messages_cost_a_read_nothing,
	   other_targets_are_walked_over_in_parts, retention_goes_on_after_what_stays,
	   reading_and_settling_a_backlog)
