/* SPDX-License-Identifier: MIT */
/* The MySQL store: a fetch that goes on behind what is in flight passes over nothing. */
#include "mysql_fixture.h"
#include "store/mysql.h"
#include "store/share.h"

#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 4, LIMIT = 100, ROOM = 8000, LATE = 3 };

static const uint32_t all[PARTITIONS] = { 0, 1, 2, 3 };

/* A worker that fetches and does not settle. */
static struct worker w;
static int64_t in_flight[ROOM];
static struct ob_fetch fetch;

static void insert(MYSQL *db, int rows, const char *key, const char *event_type)
{
	sql(db,
	    "INSERT INTO outbox (aggregate_type, partition_key, event_type, payload) "
	    "SELECT 'order', %s, '%s', '{}' FROM seq_1_to_%d",
	    key, event_type, rows);
}

static void begin(int rows)
{
	fixture_begin(PARTITIONS);
	if (rows)
		insert(admin, rows, "seq", "e");
	worker_begin(&w, "root");
	fetch = (struct ob_fetch){
		.target = "default",
		.partitions = all,
		.partition_count = PARTITIONS,
		.exclude = in_flight,
		.limit = LIMIT,
		.max_bytes = 1 << 24,
	};
}

static void end(void)
{
	worker_end(&w);
	fixture_end();
}

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void keep_in_flight(void)
{
	ck_assert_uint_le(fetch.exclude_count + w.batch.count, ROOM);
	for (uint32_t i = 0; i < w.batch.count; i++)
		in_flight[fetch.exclude_count++] = w.batch.messages[i].seq;
	if (fetch.exclude_count)
		qsort(in_flight, fetch.exclude_count, sizeof(*in_flight), by_number);
}

static void fetch_more(void)
{
	ok(ob_store_fetch(w.store, &fetch, &w.batch, &fault));
	keep_in_flight();
}

/* Until there is nothing more, so that the positions stand at the end. */
static void fetch_all(void)
{
	do
		fetch_more();
	while (w.batch.count > 0);
	ck_assert_uint_gt(fetch.exclude_count, 64);
}

/* The event types of the batch, in its order. */
static const char *batch_text(void)
{
	static char out[1024];
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < w.batch.count; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s", i ? " " : "",
				      (int)w.batch.messages[i].event_type.n,
				      w.batch.messages[i].event_type.p);
	return out;
}

static long long of_session(struct ob_store *store, const char *name)
{
	char query[256];

	(void)snprintf(query, sizeof(query),
		       "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS "
		       "WHERE VARIABLE_NAME = '%s'",
		       name);
	return number(((struct my_store *)store)->db, query);
}

static long long pages_read(void)
{
	return number(admin,
		      "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
		      "WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_READ_REQUESTS'");
}

/* ---- nothing is passed over ------------------------------------------ */

OB_TEST(a_row_that_commits_late_comes_before_what_was_inserted_behind_it)
{
	begin(0);
	MYSQL *late = fixture_connect("root");
	sql(late, "START TRANSACTION");
	insert(late, 1, "'k'", "first");
	insert(admin, 3 * LIMIT, "seq", "e");
	fetch_all();
	sql(late, "COMMIT");
	insert(admin, 1, "'k'", "second");
	fetch_more();
	ck_assert_str_eq(batch_text(), "first second");
	mysql_close(late);
	end();
}
OB_TEST_END

/* Between two fetches, by one who drew its number long ago. */
OB_TEST(a_low_number_that_is_inserted_late_comes_before_a_higher_one)
{
	begin(0);
	sql(admin, "ALTER TABLE outbox AUTO_INCREMENT = 10");
	insert(admin, 3 * LIMIT, "seq", "e");
	fetch_all();
	sql(admin,
	    "INSERT INTO outbox (seq, aggregate_type, partition_key, event_type, payload) "
	    "VALUES (5, 'order', 'k', 'first', '{}')");
	insert(admin, 1, "'k'", "second");
	fetch_more();
	ck_assert_str_eq(batch_text(), "first second");
	end();
}
OB_TEST_END

OB_TEST(an_uncommitted_row_holds_up_nobody_and_is_not_returned)
{
	begin(0);
	MYSQL *late = fixture_connect("root");
	sql(late, "START TRANSACTION");
	insert(late, 1, "'k'", "first");
	insert(admin, 3 * LIMIT, "seq", "e");
	fetch_all();
	for (int i = 0; i < 40; i++) {
		insert(admin, 1, "'k'", "other");
		fetch_more();
		ck_assert_str_eq(batch_text(), "other");
	}
	sql(late, "COMMIT");
	fetch_more();
	ck_assert_str_eq(batch_text(), "first");
	mysql_close(late);
	end();
}
OB_TEST_END

OB_TEST(a_higher_priority_goes_first)
{
	begin(4 * LIMIT);
	fetch_more();
	fetch_more();
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, event_type, payload, priority) "
	    "VALUES ('order', 'urgent', '{}', 9)");
	fetch_more();
	const struct ob_message *urgent = NULL;
	for (uint32_t i = 0; i < w.batch.count && !urgent; i++) {
		if (ob_str_eq(w.batch.messages[i].event_type, OB_STR("urgent")))
			urgent = &w.batch.messages[i];
	}
	ck_assert_ptr_nonnull(urgent);
	if (urgent > w.batch.messages)
		ck_assert_uint_ne(urgent[-1].partition, urgent->partition);
	/* What is lower comes last, and the position is in it then. */
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, partition_key, event_type, payload, priority) "
	    "SELECT 'order', seq, 'low', '{}', -9 FROM seq_1_to_100");
	fetch_all();
	insert(admin, 1, "'k'", "usual");
	fetch_more();
	ck_assert_str_eq(batch_text(), "usual");
	end();
}
OB_TEST_END

OB_TEST(a_row_that_becomes_due_is_fetched)
{
	begin(0);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, event_type, payload, available_at) "
	    "VALUES ('order', 'delayed', '{}', '2100-01-01')");
	insert(admin, 3 * LIMIT, "seq", "e");
	fetch_all();
	sql(admin, "UPDATE outbox SET available_at = '1970-01-01' WHERE event_type = 'delayed'");
	fetch_more();
	ck_assert_str_eq(batch_text(), "delayed");
	end();
}
OB_TEST_END

OB_TEST(what_was_given_back_is_fetched_again)
{
	begin(3 * LIMIT);
	fetch_all();
	int64_t back = in_flight[7];
	fetch.exclude_count--;
	memmove(in_flight + 7, in_flight + 8, (fetch.exclude_count - 7) * sizeof(*in_flight));
	fetch_more();
	ck_assert_uint_eq(w.batch.count, 1);
	ck_assert_int_eq(w.batch.messages[0].seq, back);
	end();
}
OB_TEST_END

/* A table that was emptied counts from the start. */
OB_TEST(numbers_that_begin_anew_are_fetched)
{
	begin(3 * LIMIT);
	fetch_all();
	sql(admin, "TRUNCATE TABLE outbox");
	insert(admin, LIMIT / 2, "seq", "e");
	/* What was in flight meanwhile had higher numbers. */
	fetch.exclude_count -= LIMIT;
	memmove(in_flight, in_flight + LIMIT, fetch.exclude_count * sizeof(*in_flight));
	fetch_more();
	ck_assert_uint_eq(w.batch.count, LIMIT / 2);
	end();
}
OB_TEST_END

/* ---- the same as without a memory ------------------------------------ */

static struct ob_store *plain;
static MYSQL *late[LATE];
static bool open[LATE];
static unsigned seed;

static unsigned any(unsigned below)
{
	return (unsigned)rand_r(&seed) % below;
}

static void turn_late(void)
{
	unsigned i = any(LATE);

	if (!open[i])
		sql(late[i], "START TRANSACTION");
	if (!open[i] || any(2))
		insert(late[i], 3, "seq", "late");
	else
		sql(late[i], any(4) ? "COMMIT" : "ROLLBACK");
	open[i] = number(late[i], "SELECT @@in_transaction");
}

/* What is published is still in flight for a while: its settle has not ended. */
static void drop_oldest(bool publish)
{
	size_t count = fetch.exclude_count / 2;

	for (size_t i = 0; publish && i < count; i++)
		sql(admin, "UPDATE outbox SET status = 1 WHERE seq = %lld",
		    (long long)in_flight[i]);
	if (publish && any(2))
		return;
	fetch.exclude_count -= count;
	memmove(in_flight, in_flight + count, fetch.exclude_count * sizeof(*in_flight));
}

/* By a plain read: an UPDATE would wait for the late ones. */
static void delay_some(void)
{
	for (int i = 0; i < 5; i++) {
		long long seq = number(admin,
				       "SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM outbox "
				       "WHERE status = 0 ORDER BY RAND() LIMIT 1) AS one");

		sql(admin,
		    "UPDATE outbox SET available_at = IF(available_at > '2000-01-01', "
		    "'1970-01-01', "
		    "'2100-01-01') WHERE seq = %lld",
		    seq);
	}
}

static void turn(void)
{
	switch (any(8)) {
	case 0:
		sql(admin,
		    "INSERT INTO outbox (aggregate_type, partition_key, event_type, payload, "
		    "priority) SELECT 'order', seq, 'p', '{}', %d FROM seq_1_to_5",
		    (int)any(3) - 1);
		break;
	case 1:
		drop_oldest(true);
		break;
	case 2:
		if (any(4) == 0)
			drop_oldest(false);
		break;
	case 3:
		delay_some();
		break;
	case 4:
	case 5:
		turn_late();
		break;
	default:
		insert(admin, 40, "seq", "e");
		break;
	}
}

/* The first rows of each lane, and of each its share. */
static void expect_beginnings(const struct ob_batch *of)
{
	uint32_t begin_of[PARTITIONS] = { 0 }, count_of[PARTITIONS] = { 0 },
		 got[PARTITIONS] = { 0 };

	for (uint32_t i = 0; i < of->count; i++) {
		uint32_t lane = of->messages[i].partition;

		if (count_of[lane]++ == 0)
			begin_of[lane] = i;
	}
	for (uint32_t i = 0; i < w.batch.count; i++) {
		uint32_t lane = w.batch.messages[i].partition;

		ck_assert_uint_lt(got[lane], count_of[lane]);
		ck_assert_int_eq(w.batch.messages[i].seq,
				 of->messages[begin_of[lane] + got[lane]++].seq);
	}
	for (uint32_t lane = 0; lane < PARTITIONS; lane++) {
		uint32_t share = fetch.limit / PARTITIONS;

		ck_assert_uint_ge(got[lane], count_of[lane] < share ? count_of[lane] : share);
	}
	ck_assert_uint_eq(w.batch.count, of->count < fetch.limit ? of->count : fetch.limit);
}

static void expect_the_same(void)
{
	struct my_store *other = (struct my_store *)plain;
	struct ob_fetch everything = fetch;
	struct ob_batch batch;

	everything.limit = 100000;
	memset(other->lanes, 0, sizeof(other->lanes));
	ob_batch_init(&batch);
	ok(ob_store_fetch(plain, &everything, &batch, &fault));
	ok(ob_store_fetch(w.store, &fetch, &w.batch, &fault));
	expect_beginnings(&batch);
	ob_batch_done(&batch);
}

OB_TEST(whatever_happens_it_returns_what_a_fetch_from_the_front_would)
{
	begin(3 * LIMIT);
	plain = fixture_store("root");
	for (int i = 0; i < LATE; i++)
		late[i] = fixture_connect("root");
	for (unsigned run = 1; run <= 3; run++) {
		seed = run;
		for (int step = 0; step < 200; step++) {
			turn();
			fetch.limit = any(3) ? LIMIT : 8;
			expect_the_same();
			keep_in_flight();
			if (fetch.exclude_count > 20 * LIMIT)
				drop_oldest(true);
		}
	}
	for (int i = 0; i < LATE; i++)
		mysql_close(late[i]);
	ob_store_free(plain);
	end();
}
OB_TEST_END

/* ---- what it costs --------------------------------------------------- */

/* As a settler does meanwhile: then InnoDB looks at the row behind each entry of those pages. */
OB_TEST(rows_in_flight_are_not_looked_at_while_they_are_settled)
{
	enum { BATCHES = 8, MANY = 1000 };

	begin((BATCHES + 4) * MANY);
	fetch.limit = MANY;
	long long pages = pages_read();
	fetch_more();
	const long long fresh = pages_read() - pages;
	for (int i = 1; i < BATCHES; i++)
		fetch_more();
	ck_assert_uint_eq(fetch.exclude_count, BATCHES * MANY);
	MYSQL *settler = fixture_connect("root");
	sql(settler, "START TRANSACTION");
	sql(settler, "UPDATE outbox SET status = 1 WHERE seq <= %lld",
	    (long long)in_flight[fetch.exclude_count / 2]);
	pages = pages_read();
	fetch.exclude_count = BATCHES * MANY;
	ok(ob_store_fetch(w.store, &fetch, &w.batch, &fault));
	pages = pages_read() - pages;
	ck_assert_uint_eq(w.batch.count, MANY);
	(void)printf("# %zu in flight: %lld pages, %lld without\n", fetch.exclude_count, pages,
		     fresh);
	/* Each of the new ones may be looked at once more. */
	ck_assert_int_le(pages, fresh + 4 * MANY);
	mysql_close(settler);
	end();
}
OB_TEST_END

/* MariaDB forgets that the index is enough when other statements used the table in between. */
OB_TEST(the_index_is_enough_also_the_tenth_time)
{
	begin(12 * LIMIT);
	long long looked = of_session(w.store, "HANDLER_ICP_ATTEMPTS");
	for (int i = 0; i < 10; i++) {
		fetch_more();
		ck_assert_uint_eq(w.batch.count, LIMIT);
	}
	ck_assert_int_eq(of_session(w.store, "HANDLER_ICP_ATTEMPTS"), looked);
	end();
}
OB_TEST_END

MYSQL_SUITE("MySQL, behind what is in flight",
	    a_row_that_commits_late_comes_before_what_was_inserted_behind_it,
	    a_low_number_that_is_inserted_late_comes_before_a_higher_one,
	    an_uncommitted_row_holds_up_nobody_and_is_not_returned, a_higher_priority_goes_first,
	    a_row_that_becomes_due_is_fetched, what_was_given_back_is_fetched_again,
	    numbers_that_begin_anew_are_fetched,
	    whatever_happens_it_returns_what_a_fetch_from_the_front_would,
	    rows_in_flight_are_not_looked_at_while_they_are_settled,
	    the_index_is_enough_also_the_tenth_time)
