/* SPDX-License-Identifier: MIT */
/*
 * Numbers that are missing when a reader passes them: transactions that commit late or never,
 * statements that hold numbers, servers that come back, tables that are emptied.
 */
#include "mysql_fixture.h"
#include "store/mysql/proof.h"
#include "store/mysql/sql.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A producer's connection, inside a transaction. */
static MYSQL *begin_tx(void)
{
	MYSQL *db = fixture_connect("root");

	sql(db, "START TRANSACTION");
	return db;
}

static void insert(MYSQL *db, const char *event_type, const char *key)
{
	sql(db,
	    "INSERT INTO outbox (aggregate_type, event_type, payload, partition_key) "
	    "VALUES ('order', '%s', '{}', '%s')",
	    event_type, key);
}

/* Read until the reader has no gap any more; nothing may come. */
static void expect_no_gaps_soon(struct worker *w)
{
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 20000000;

	do {
		ck_assert_msg(ob_clock_boot_us(&ob_clock_system) < end, "gaps: %s", worker_gaps(w));
		worker_expect(w, "");
		(void)poll(NULL, 0, 10);
	} while (worker_gaps(w)[0]);
}

/* Read for long enough that a proof is tried several times. */
static void read_for_a_while(struct worker *w, const char *gaps)
{
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 500000;

	while (ob_clock_boot_us(&ob_clock_system) < end) {
		worker_expect(w, "");
		ck_assert_str_eq(worker_gaps(w), gaps);
		(void)poll(NULL, 0, 10);
	}
}

/* ---- late and rolled back -------------------------------------------- */

OB_TEST(a_row_that_commits_late_comes_before_what_was_inserted_after_it)
{
	struct worker w;

	fixture_begin(4);
	worker_begin(&w, "root", 1);
	MYSQL *slow = begin_tx();
	insert(slow, "a1", "a");
	put(w.store, "b1", "b");
	worker_expect(&w, "b1");
	ck_assert_str_eq(worker_gaps(&w), "1");
	read_for_a_while(&w, "1");
	sql(slow, "COMMIT");
	put(w.store, "a2", "a");
	worker_expect(&w, "a1 a2");
	ck_assert_str_eq(worker_gaps(&w), "");
	mysql_close(slow);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_number_that_was_rolled_back_is_forgotten)
{
	struct worker w;

	fixture_begin(2);
	worker_begin(&w, "root", 1);
	MYSQL *slow = begin_tx();
	for (int i = 0; i < 10; i++)
		insert(slow, "a", "a");
	put(w.store, "b1", "b");
	worker_expect(&w, "b1");
	ck_assert_str_eq(worker_gaps(&w), "1-10");
	sql(slow, "ROLLBACK");
	expect_no_gaps_soon(&w);
	ck_assert_int_eq(number(admin,
				"SELECT COUNT(*) FROM outbox_batches AS b WHERE seen IS NOT NULL "
				"AND NOT EXISTS (SELECT 1 FROM outbox_batches AS c WHERE "
				"c.partition_no = b.partition_no AND c.batch > b.batch)"),
			 0);
	mysql_close(slow);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(late_rows_that_do_not_fit_into_a_read_come_with_the_next_ones)
{
	struct worker w;

	fixture_begin(4);
	worker_begin(&w, "root", 1);
	MYSQL *slow = begin_tx();
	for (int i = 0; i < 7; i++)
		insert(slow, "a", "a");
	put(w.store, "b1", "b");
	worker_expect(&w, "b1");
	sql(slow, "COMMIT");
	put(w.store, "a2", "a");
	for (int i = 0; i < 3; i++) {
		ok(worker_read(&w, 2));
		ck_assert_str_eq(worker_labels(&w), "a a");
		ck_assert(w.done.more);
		ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	}
	worker_expect(&w, "a a2");
	mysql_close(slow);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(gaps_are_in_the_journal_and_survive_the_server)
{
	static const char *const durable[] = { "--innodb-flush-log-at-trx-commit=1", NULL };
	struct mysql_server shared = server;
	struct worker w, next;

	ck_assert_msg(mysql_server_start(&server, durable), "%s", server.reason);
	fixture_begin(2);
	worker_begin(&w, "root", 1);
	MYSQL *prepared = fixture_connect("root");
	sql(prepared, "XA START 'x'");
	insert(prepared, "a1", "a");
	sql(prepared, "XA END 'x'");
	sql(prepared, "XA PREPARE 'x'");
	MYSQL *open = begin_tx();
	insert(open, "ghost", "a");
	put(w.store, "b1", "b");
	worker_expect(&w, "b1");
	ck_assert_str_eq(worker_gaps(&w), "1-2");
	mysql_close(admin);
	ck_assert(mysql_server_crash(&server));
	ck_assert_int_lt(worker_read(&w, 10), 0);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	ck_assert(mysql_server_again(&server));
	/* Another worker goes on from what is recorded. */
	admin = fixture_connect("root");
	ok(ob_store_free_leases(w.store, "main", NULL, 0, &fault));
	worker_begin(&next, "root", 2);
	put(next.store, "a2", "a");
	worker_expect(&next, "a2");
	sql(admin, "XA COMMIT 'x'");
	/* It was inserted before a2, but it committed after: there is no order between them. */
	worker_expect(&next, "a1");
	expect_no_gaps_soon(&next);
	mysql_close(prepared);
	mysql_close(open);
	worker_end(&w);
	worker_end(&next);
	mysql_server_stop(&server);
	server = shared;
}
OB_TEST_END

/* ---- statements that hold numbers ------------------------------------ */

static void *insert_slowly(void *arg)
{
	MYSQL *db = arg;

	/* Numbers are drawn for all three rows when it begins. */
	sql(db,
	    "INSERT INTO outbox (aggregate_type, event_type, payload, partition_key) VALUES "
	    "('order', 'a1', '{}', 'a'), ('order', IF(SLEEP(3) = 0, 'a2', ''), '{}', 'a'), "
	    "('order', 'a3', '{}', 'a')");
	return NULL;
}

static void wait_for_a_sleeper(void)
{
	while (number(admin,
		      "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = "
		      "'User sleep'") == 0)
		(void)poll(NULL, 0, 5);
}

static void check_slow_statement(const char *user)
{
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 20000000;
	char read[64] = "";
	struct worker w;
	pthread_t thread;

	worker_begin(&w, user, 1);
	MYSQL *slow = fixture_connect("root");
	ck_assert_int_eq(pthread_create(&thread, NULL, insert_slowly, slow), 0);
	wait_for_a_sleeper();
	for (int i = 0; i < 3; i++) {
		char label[8];

		(void)snprintf(label, sizeof(label), "b%d", i);
		put(w.store, label, "b");
		worker_expect(&w, label);
	}
	/* Neither a snapshot nor READ UNCOMMITTED shows the second and third, and a proof by the
	 * probe alone would drop them. */
	ck_assert_str_eq(worker_gaps(&w), "1-3");
	while (strcmp(read, "a1 a2 a3") != 0) {
		ck_assert_msg(ob_clock_boot_us(&ob_clock_system) < end, "read: %s", read);
		ok(worker_read(&w, 10));
		if (w.batch.count)
			(void)snprintf(read, sizeof(read), "%s", worker_labels(&w));
		else
			ck_assert_str_eq(worker_gaps(&w), "1-3");
		ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
		(void)poll(NULL, 0, 10);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_str_eq(worker_gaps(&w), "");
	mysql_close(slow);
	worker_end(&w);
}

OB_TEST(numbers_that_a_running_statement_holds_are_kept)
{
	fixture_begin(4);
	check_slow_statement("root");
	fixture_end();
}
OB_TEST_END

OB_TEST(without_the_right_to_see_statements_numbers_are_kept_too)
{
	fixture_begin(4);
	make_user("blind", NULL);
	sql(admin, "GRANT ALL ON %s.* TO blind@localhost", database);
	check_slow_statement("blind");
	fixture_end();
}
OB_TEST_END

static void *call_slowly(void *arg)
{
	sql(arg, "SELECT hold_it()");
	return NULL;
}

/* Another statement keeps the table open all the time, so that only the list of statements can
 * tell. One that is inside a function runs statements of its own: it has not ended. */
OB_TEST(a_statement_inside_a_function_has_not_ended)
{
	struct worker w;
	pthread_t thread;

	fixture_begin(4);
	sql(admin,
	    "CREATE FUNCTION hold_it() RETURNS INT BEGIN DECLARE n INT; DECLARE i INT DEFAULT 0; "
	    "WHILE i < 60 DO SELECT SLEEP(0.05) INTO n; SET i = i + 1; END WHILE; "
	    "INSERT INTO outbox (aggregate_type, event_type, payload, partition_key) "
	    "VALUES ('order', 'last', '{}', 'k'); RETURN 1; END");
	worker_begin(&w, "root", 1);
	MYSQL *slow = fixture_connect("root"), *open = begin_tx();
	insert(open, "ghost", "a");
	put(w.store, "b1", "b");
	ck_assert_int_eq(pthread_create(&thread, NULL, call_slowly, slow), 0);
	wait_for_a_sleeper();
	worker_expect(&w, "b1");
	sql(open, "ROLLBACK");
	read_for_a_while(&w, "1");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	worker_expect(&w, "last");
	expect_no_gaps_soon(&w);
	mysql_close(slow);
	mysql_close(open);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* A statement on another table is no reason to keep anything; nor is one that began later. */
OB_TEST(a_statement_that_does_not_use_the_log_keeps_nothing)
{
	struct worker w;
	pthread_t thread;

	fixture_begin(2);
	sql(admin, "CREATE FUNCTION hold_it() RETURNS INT RETURN SLEEP(4)");
	worker_begin(&w, "root", 1);
	MYSQL *slow = fixture_connect("root"), *open = begin_tx();
	ck_assert_int_eq(pthread_create(&thread, NULL, call_slowly, slow), 0);
	wait_for_a_sleeper();
	insert(open, "ghost", "a");
	put(w.store, "b1", "b");
	worker_expect(&w, "b1");
	sql(open, "ROLLBACK");
	expect_no_gaps_soon(&w);
	ck_assert_int_eq(number(admin,
				"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE "
				"STATE = 'User sleep'"),
			 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	mysql_close(slow);
	mysql_close(open);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- takeovers ------------------------------------------------------- */

/* Partitions with different progress are read in one walk: none is read twice, none is missed. */
OB_TEST(partitions_that_differ_are_read_together)
{
	enum { PUTS = 60 };
	struct worker first, second;
	char seen[PUTS + 1] = "";

	fixture_begin(4);
	worker_begin(&first, "root", 1);
	MYSQL *slow = begin_tx();
	for (int i = 0; i < PUTS; i++) {
		char key[8];

		(void)snprintf(key, sizeof(key), "k%d", i % 10);
		if (i % 6 == 5)
			insert(slow, "late", key);
		else
			put(first.store, "x", key);
		/* Half of the partitions are recorded, now and then. */
		if (i % 20 != 19)
			continue;
		ok(worker_read(&first, 1000));
		for (uint32_t k = 0; k < first.batch.count; k++)
			if (first.batch.messages[k].partition < 2)
				seen[first.batch.messages[k].seq - 1]++;
		for (size_t k = 0; k < first.part_count; k++) {
			if (first.parts[k].partition % 4 >= 2)
				ob_progress_set(&first.parts[k].after, &first.parts[k].from);
		}
		ok(worker_settle(&first, OB_OUTCOME_PUBLISHED));
	}
	ok(ob_store_free_leases(first.store, "main", NULL, 0, &fault));
	worker_begin(&second, "root", 2);
	for (int round = 0; round < 2; round++) {
		ok(worker_read(&second, 1000));
		for (uint32_t k = 0; k < second.batch.count; k++)
			seen[second.batch.messages[k].seq - 1]++;
		ok(worker_settle(&second, OB_OUTCOME_PUBLISHED));
		if (round == 0)
			sql(slow, "COMMIT");
	}
	for (int i = 0; i < PUTS; i++)
		ck_assert_msg(seen[i] == 1, "number %d was read %d times", i + 1, seen[i]);
	mysql_close(slow);
	worker_end(&first);
	worker_end(&second);
	fixture_end();
}
OB_TEST_END

/* ---- numbers that come again ----------------------------------------- */

OB_TEST(rows_of_a_table_that_was_emptied_are_read)
{
	struct worker w;

	fixture_begin(2);
	worker_begin(&w, "root", 1);
	for (int i = 0; i < 20; i++)
		put(w.store, "a", "k");
	ok(worker_read(&w, 100));
	ck_assert_uint_eq(w.batch.count, 20);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	sql(admin, "TRUNCATE TABLE outbox");
	put(w.store, "new1", "k");
	put(w.store, "new2", "k");
	/* The counter is compared once a second at most. */
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 10000000;
	do {
		ck_assert_int_lt(ob_clock_boot_us(&ob_clock_system), end);
		ok(worker_read(&w, 100));
		ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
		(void)poll(NULL, 0, 20);
	} while (w.batch.count == 0);
	ck_assert_str_eq(worker_labels(&w), "new1 new2");
	for (int i = 0; i < 30; i++)
		put(w.store, "more", "k");
	ok(worker_read(&w, 100));
	ck_assert_uint_eq(w.batch.count, 30);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* A server that comes back without its last transactions hands their numbers out again. What the
 * worker read of them is in its memory only. */
OB_TEST(numbers_of_rows_that_a_server_has_lost_are_read_again)
{
	struct worker w;

	fixture_begin(2);
	worker_begin(&w, "root", 1);
	put(w.store, "a", "k");
	worker_expect(&w, "a");
	for (int i = 0; i < 5; i++)
		put(w.store, "lost", "k");
	ok(worker_read(&w, 10));
	ck_assert_uint_eq(w.batch.count, 5);
	for (size_t i = 0; i < w.part_count; i++) /* read, and not recorded */
		ob_progress_set(&w.parts[i].from, &w.parts[i].after);
	sql(admin, "DELETE FROM outbox WHERE event_type = 'lost'");
	sql(admin, "ALTER TABLE outbox AUTO_INCREMENT = 2");
	for (int i = 0; i < 8; i++)
		sql(admin, "CALL outbox_push('order', 'k', 'new', '{}', NULL, NULL)");
	ck_assert_int_eq(number(admin, "SELECT MIN(seq) FROM outbox WHERE event_type = 'new'"), 2);
	sql(admin, "KILL %lld",
	    number(admin,
		   "SELECT MAX(id) FROM information_schema.PROCESSLIST WHERE id <> "
		   "CONNECTION_ID()"));
	ck_assert_int_lt(worker_read(&w, 10), 0);
	worker_expect(&w, "new new new new new new new new");
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- many ------------------------------------------------------------ */

enum { WRITERS = 6, KEYS = 4 };

static struct writer {
	MYSQL *db;
	long committed[KEYS];
	int transactions, number;
} writers[WRITERS];

/* Transactions of one to five rows of own keys, of which a fifth is rolled back. */
static void *write_some(void *arg)
{
	struct writer *w = arg;
	unsigned seed = (unsigned)w->number + 1;

	for (int t = 0; t < w->transactions; t++) {
		long next[KEYS];

		memcpy(next, w->committed, sizeof(next));
		sql(w->db, "START TRANSACTION");
		for (int i = rand_r(&seed) % 5; i >= 0; i--) {
			int key = rand_r(&seed) % KEYS;

			sql(w->db,
			    "INSERT INTO outbox (aggregate_type, event_type, payload, "
			    "partition_key) VALUES ('order', 'e', '%ld', 'k%d')",
			    next[key]++, w->number * KEYS + key);
		}
		bool commit = rand_r(&seed) % 5 > 0;
		sql(w->db, commit ? "COMMIT" : "ROLLBACK");
		if (commit)
			memcpy(w->committed, next, sizeof(next));
	}
	return NULL;
}

/* OUTBOX_TEST_ROWS=1000000 for the size at which it matters. */
static int transactions_wanted(void)
{
	const char *text = getenv("OUTBOX_TEST_ROWS");
	long rows = text ? strtol(text, NULL, 10) : 30000;

	return (int)(rows / 3 / WRITERS);
}

/* A key's messages carry 0, 1, 2 ...; a transaction that was rolled back took none. */
static void check_batch(const struct worker *w, long *expected)
{
	for (uint32_t i = 0; i < w->batch.count; i++) {
		const struct ob_message *m = &w->batch.messages[i];
		long key = strtol(m->key.p + 1, NULL, 10);

		ck_assert_int_eq(strtol(m->payload.p, NULL, 10), expected[key]);
		expected[key]++;
	}
}

OB_TEST(a_fifth_rolled_back_breaks_no_order_and_leaves_no_list)
{
	long expected[WRITERS * KEYS] = { 0 }, total = 0;
	size_t longest = 0;
	pthread_t threads[WRITERS];
	struct worker w;
	int idle = 0;

	fixture_begin(4);
	worker_begin(&w, "root", 1);
	for (int i = 0; i < WRITERS; i++) {
		writers[i].db = fixture_connect("root");
		writers[i].number = i;
		writers[i].transactions = transactions_wanted();
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_some, &writers[i]), 0);
	}
	while (idle < 2) {
		ok(worker_read(&w, 500));
		check_batch(&w, expected);
		total += w.batch.count;
		if (strlen(worker_gaps(&w)) > longest)
			longest = strlen(worker_gaps(&w));
		ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
		bool none = w.batch.count == 0 && !w.done.more;
		if (none && number(admin,
				   "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
				   "WHERE COMMAND NOT IN ('Sleep', 'Daemon')") == 1)
			idle++;
		else
			idle = 0;
		if (none)
			(void)poll(NULL, 0, 20);
	}
	for (int i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (;;) {
		ok(worker_read(&w, 500));
		check_batch(&w, expected);
		total += w.batch.count;
		ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
		if (w.batch.count == 0)
			break;
	}
	for (int i = 0; i < WRITERS * KEYS; i++)
		ck_assert_int_eq(expected[i], writers[i / KEYS].committed[i % KEYS]);
	(void)printf("# %ld messages, longest gap list %zu bytes\n", total, longest);
	ck_assert_uint_lt(longest, 16384);
	expect_no_gaps_soon(&w);
	for (int i = 0; i < WRITERS; i++)
		mysql_close(writers[i].db);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL gaps", a_row_that_commits_late_comes_before_what_was_inserted_after_it,
	    a_number_that_was_rolled_back_is_forgotten,
	    late_rows_that_do_not_fit_into_a_read_come_with_the_next_ones,
	    gaps_are_in_the_journal_and_survive_the_server,
	    numbers_that_a_running_statement_holds_are_kept,
	    without_the_right_to_see_statements_numbers_are_kept_too,
	    a_statement_inside_a_function_has_not_ended,
	    a_statement_that_does_not_use_the_log_keeps_nothing,
	    partitions_that_differ_are_read_together, rows_of_a_table_that_was_emptied_are_read,
	    numbers_of_rows_that_a_server_has_lost_are_read_again,
	    a_fifth_rolled_back_breaks_no_order_and_leaves_no_list)
