/* SPDX-License-Identifier: MIT */
/* The MySQL store on a real server: lost connections, locks, hostile settings. */
#include "mysql_fixture.h"
#include "run.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- sessions -------------------------------------------------------- */

static void run_once(const char *user)
{
	struct worker w;

	worker_begin(&w, user);
	struct ob_store *producer = fixture_store(user);
	put(producer, "a", "k");
	put(producer, "b", "K");  /* keys differ by case */
	put(producer, "c", "k "); /* ... and by a blank at the end */
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 3);
	int64_t now = ob_clock_real_us(&ob_clock_system);
	ck_assert_int_lt(llabs(w.batch.messages[0].created_at_us - now), 60000000);
	ok(worker_settle(&w, OB_OUTCOME_RETRY));
	ck_assert_uint_eq(w.settled.applied, 3);
	ck_assert_int_eq(number(admin, "SELECT COUNT(DISTINCT outbox_held_key) FROM outbox"), 3);
	ob_store_free(producer);
	worker_end(&w);
}

OB_TEST(hostile_settings_of_the_server_do_not_matter)
{
	static const char *const modes[] = { "", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ORACLE" };

	for (size_t i = 0; i < 3; i++) {
		fixture_begin(4);
		sql(admin, "CREATE OR REPLACE USER hostile@localhost");
		sql(admin, "GRANT ALL ON %s.* TO hostile@localhost", database);
		sql(admin,
		    "SET GLOBAL sql_mode = '%s', time_zone = '-11:30', tx_isolation = "
		    "'SERIALIZABLE', "
		    "init_connect = 'SET autocommit = 0, completion_type = 2, sql_safe_updates = "
		    "1, "
		    "sql_select_limit = 1'",
		    modes[i]);
		run_once("hostile");
		fixture_end();
	}
}
OB_TEST_END

OB_TEST(a_killed_connection_is_made_anew)
{
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root");
	put(w.store, "a", "k");
	sql(admin, "KILL %lld",
	    number(admin,
		   "SELECT MAX(id) FROM information_schema.PROCESSLIST WHERE id <> "
		   "CONNECTION_ID()"));
	int r = worker_fetch(&w, 10);
	ck_assert_int_eq(r, OUTBOX_ESTORE);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 1);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_connection_killed_inside_a_transaction_loses_it_whole)
{
	const struct outbox_message message = { GOOD };
	size_t index;

	fixture_begin(1);
	struct ob_store *store = fixture_store("root");
	ok(ob_store_tx_begin(store, &fault));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &fault));
	sql(admin, "KILL %lld",
	    number(admin,
		   "SELECT MAX(id) FROM information_schema.PROCESSLIST WHERE id <> "
		   "CONNECTION_ID()"));
	ck_assert_int_lt(ob_store_tx_end(store, true, &fault), 0);
	ck_assert_int_eq(fault.kind, OB_ERR_DOWN);
	ok(ob_store_tx_end(store, false, &fault));
	put(store, "again", NULL);
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM outbox"), 1);
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_killed_server_loses_nothing_and_hands_out_no_number_twice)
{
	static const char *const durable[] = { "--innodb-flush-log-at-trx-commit=1", NULL };
	struct mysql_server shared = server;
	struct worker w;

	/* One of its own: the others' stays up. */
	ck_assert_msg(mysql_server_start(&server, durable), "%s", server.reason);
	fixture_begin(1);
	worker_begin(&w, "root");
	for (int i = 0; i < 5; i++)
		put(w.store, "a", "k");
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 5);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	sql(admin, "DELETE FROM outbox");
	mysql_close(admin);
	ck_assert(mysql_server_crash(&server));
	ck_assert_int_lt(worker_fetch(&w, 10), 0);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	ck_assert_int_lt(worker_fetch(&w, 10), 0);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	ck_assert(mysql_server_again(&server));
	put(w.store, "b", "k");
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 1);
	ck_assert_int_eq(w.batch.messages[0].seq, 6);
	worker_end(&w);
	mysql_server_stop(&server);
	server = shared;
}
OB_TEST_END

/* ---- locks ----------------------------------------------------------- */

OB_TEST(a_lock_that_lasts_is_busy_and_changes_nothing)
{
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root");
	put(w.store, "a", "k");
	put(w.store, "b", "k");
	ok(worker_fetch(&w, 10));
	sql(admin, "START TRANSACTION");
	sql(admin, "UPDATE outbox SET priority = 1 WHERE event_type = 'b'");
	ck_assert_int_lt(worker_settle(&w, OB_OUTCOME_PUBLISHED), 0);
	ck_assert_msg(w.err.status == OUTBOX_EBUSY, "%s", w.err.msg);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	sql(admin, "ROLLBACK");
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM outbox WHERE status = 0"), 2);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	ck_assert_uint_eq(w.settled.applied, 2);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_deadlock_is_run_again_and_reaches_nobody)
{
	struct worker w;
	pthread_t thread;

	fixture_begin(1);
	worker_begin(&w, "root");
	put(w.store, "a", "k");
	put(w.store, "b", "k");
	ok(worker_fetch(&w, 10));
	sql(admin, "CREATE TABLE load_of_work (n INT) ENGINE=InnoDB");
	sql(admin, "START TRANSACTION");
	/* The server rolls back whoever changed less: that must be us. */
	sql(admin, "INSERT INTO load_of_work SELECT seq FROM seq_1_to_1000");
	sql(admin, "UPDATE outbox SET priority = 1 WHERE seq = %lld",
	    (long long)w.batch.messages[1].seq);
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_in_thread, &w), 0);
	wait_for_a_waiter();
	/* It holds the first row and waits for the second: this closes the circle. */
	sql(admin, "UPDATE outbox SET priority = 1 WHERE seq = %lld",
	    (long long)w.batch.messages[0].seq);
	sql(admin, "COMMIT");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(w.result == 0, "%s", w.err.msg);
	ck_assert_uint_eq(w.settled.applied, 2);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* A push on a thread of its own, since it waits. */
static void *push_in_thread(void *arg)
{
	struct worker *w = arg;
	const struct outbox_message message = { GOOD,
						.id = "01890a5d-ac96-774b-bcce-b302099a8057" };
	size_t index;

	w->result = ob_store_tx_push(w->store, &message, 1, NULL, &index, &w->err);
	return NULL;
}

OB_TEST(a_commit_behind_a_deadlock_is_an_error_and_not_a_loss)
{
	const struct outbox_message first = { GOOD, .id = "01890a5d-ac96-774b-bcce-b302099a8058" };
	struct worker w;
	pthread_t thread;
	size_t index;

	fixture_begin(1);
	worker_begin(&w, "root");
	sql(admin, "CREATE TABLE load_of_work (n INT) ENGINE=InnoDB");
	ok(ob_store_tx_begin(w.store, &fault));
	ok(ob_store_tx_push(w.store, &first, 1, NULL, &index, &fault));
	sql(admin, "START TRANSACTION");
	sql(admin, "INSERT INTO load_of_work SELECT seq FROM seq_1_to_1000");
	sql(admin,
	    "INSERT INTO outbox (id, aggregate_type, event_type, payload) VALUES "
	    "(UNHEX('01890a5dac96774bbcceb302099a8057'), 'a', 'b', '{}')");
	ck_assert_int_eq(pthread_create(&thread, NULL, push_in_thread, &w), 0);
	wait_for_a_waiter();
	sql(admin,
	    "INSERT INTO outbox (id, aggregate_type, event_type, payload) VALUES "
	    "(UNHEX('01890a5dac96774bbcceb302099a8058'), 'a', 'b', '{}')");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(w.result, OUTBOX_EBUSY);
	ck_assert_int_lt(ob_store_tx_end(w.store, true, &fault), 0);
	ck_assert_int_eq(fault.kind, OB_ERR_DOWN);
	ck_assert_str_eq(fault.msg, "the transaction was rolled back after an error");
	sql(admin, "ROLLBACK");
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM outbox"), 0);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* A lock of a settle that waits covers no gap into which producers insert. */
OB_TEST(a_settle_that_waits_blocks_no_producer)
{
	struct worker w;
	pthread_t thread;

	fixture_begin(1);
	worker_begin(&w, "root");
	put(w.store, "a", "k");
	put(w.store, "b", "k");
	struct ob_store *producer = fixture_store("root");
	ok(worker_fetch(&w, 10));
	sql(admin, "START TRANSACTION");
	sql(admin, "SELECT seq FROM outbox WHERE seq = %lld FOR UPDATE",
	    (long long)w.batch.messages[1].seq);
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_in_thread, &w), 0);
	wait_for_a_waiter();
	put(producer, "c", "k"); /* would wait for the settle, whose wait lasts until we end */
	sql(admin, "ROLLBACK");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(w.result == 0, "%s", w.err.msg);
	ob_store_free(producer);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* More than one statement takes; a row of the second is not as it was. */
OB_TEST(a_row_that_changed_in_flight_vanishes_and_the_others_are_settled)
{
	struct worker w;

	fixture_begin(4);
	worker_begin(&w, "root");
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, event_type, payload) "
	    "SELECT 'order', 'e', '{}' FROM seq_1_to_700");
	ok(worker_fetch(&w, 700));
	ck_assert_uint_eq(w.batch.count, 700);
	long long other = w.batch.messages[600].seq;
	/* A database that lost its tail hands numbers out again. */
	sql(admin, "UPDATE outbox SET id = UNHEX(MD5('another')) WHERE seq = %lld", other);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	ck_assert_uint_eq(w.settled.applied, 699);
	ck_assert_uint_eq(w.settled.vanished, 1);
	ck_assert_int_eq(number(admin, "SELECT seq FROM outbox WHERE status = 0"), other);
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM outbox WHERE status = 1"), 699);
	ck_assert_int_eq(number(admin, "SELECT SUM(published) FROM outbox_throughput"), 699);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_settle_waits_for_a_takeover_and_then_changes_nothing)
{
	struct worker w;
	pthread_t thread;

	fixture_begin(1);
	worker_begin(&w, "root");
	put(w.store, "a", "k");
	ok(worker_fetch(&w, 10));
	sql(admin, "START TRANSACTION");
	sql(admin,
	    "UPDATE outbox_partitions SET lease_owner = REPEAT('x', 16), "
	    "lease_epoch = lease_epoch + 1");
	sql(admin, "UPDATE outbox SET priority = 7");
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_in_thread, &w), 0);
	wait_for_a_waiter();
	sql(admin, "COMMIT");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(w.result == 0, "%s", w.err.msg);
	ck_assert_uint_eq(w.settled.lost, 1);
	ck_assert_int_eq(number(admin, "SELECT status FROM outbox"), 0);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_row_that_commits_late_is_not_missed)
{
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root");
	MYSQL *slow = fixture_connect("root");
	sql(slow, "START TRANSACTION");
	sql(slow, "CALL outbox_push('order', '1', 'late', '{}', NULL, NULL)");
	put(w.store, "early", "k");
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 1);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	sql(slow, "COMMIT");
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 1);
	ck_assert_str_eq(w.batch.messages[0].event_type.p, "late");
	mysql_close(slow);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(an_open_producer_blocks_neither_settling_nor_claiming)
{
	struct ob_claim claim = { .target = "default",
				  .token = worker_id,
				  .worker = "w",
				  .limit = 10,
				  .max_bytes = 1 << 20,
				  .ttl_ms = 1000 };
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root");
	put(w.store, "a", "k");
	put(w.store, "b", "k");
	MYSQL *slow = fixture_connect("root");
	sql(slow, "START TRANSACTION");
	sql(slow,
	    "INSERT INTO outbox (aggregate_type, event_type, payload, partition_key) VALUES "
	    "('order', 'c', '{}', 'k')");
	ok(worker_fetch(&w, 1));
	ok(worker_settle(&w, OB_OUTCOME_RETRY));
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM outbox WHERE status = 3"), 1);
	sql(admin, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	sql(admin, "UPDATE outbox SET status = 0, available_at = '1970-01-01' WHERE seq <= %lld",
	    (long long)w.batch.messages[0].seq + 1);
	ok(ob_store_claim(w.store, &claim, &w.batch, &fault));
	ck_assert_uint_eq(w.batch.count, 2);
	/* ... and a claim blocks no producer, not even with fewer rows than it asked for. */
	put(w.store, "d", "k");
	mysql_close(slow);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- from any language ----------------------------------------------- */

OB_TEST(the_mariadb_client_writes_messages)
{
	char path[128], socket[144];
	struct worker w;

	fixture_begin(4);
	(void)snprintf(socket, sizeof(socket), "--socket=%s", mysql_server_socket(&server, path));
	const char *const argv[] = { "/usr/bin/mariadb", "--no-defaults",
				     "-uroot",           socket,
				     database,           NULL };
	struct ob_run run = {
		.argv = argv,
		.in = "START TRANSACTION;\n"
		      "CALL outbox_push('order', '7', 'Placed', '{\"total\": 1}', '{\"h\": "
		      "\"é\"}', "
		      "NULL);\n"
		      "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
		      "VALUES "
		      "('order', '7', 'Paid', '{}');\n"
		      "COMMIT;\n"
		      "START TRANSACTION;\n"
		      "CALL outbox_push('order', '7', 'Ghost', '{}', NULL, NULL);\n"
		      "ROLLBACK;\n",
	};
	ob_run(&run);
	ck_assert_msg(run.code == 0, "%s", run.err);
	ob_run_done(&run);
	worker_begin(&w, "root");
	ok(worker_fetch(&w, 10));
	ck_assert_uint_eq(w.batch.count, 2);
	ck_assert_str_eq(w.batch.messages[0].event_type.p, "Placed");
	ck_assert_str_eq(w.batch.messages[0].payload.p, "{\"total\": 1}");
	ck_assert_str_eq(w.batch.messages[0].key.p, "order:7");
	ck_assert_str_eq(w.batch.messages[1].event_type.p, "Paid");
	ck_assert_uint_eq(w.batch.messages[0].partition, w.batch.messages[1].partition);
	ck_assert_int_eq(ob_uuid_version(&w.batch.messages[1].id), 7);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL store", hostile_settings_of_the_server_do_not_matter,
	    a_killed_connection_is_made_anew,
	    a_connection_killed_inside_a_transaction_loses_it_whole,
	    a_killed_server_loses_nothing_and_hands_out_no_number_twice,
	    a_lock_that_lasts_is_busy_and_changes_nothing,
	    a_deadlock_is_run_again_and_reaches_nobody,
	    a_commit_behind_a_deadlock_is_an_error_and_not_a_loss,
	    a_settle_that_waits_blocks_no_producer,
	    a_row_that_changed_in_flight_vanishes_and_the_others_are_settled,
	    a_settle_waits_for_a_takeover_and_then_changes_nothing,
	    a_row_that_commits_late_is_not_missed,
	    an_open_producer_blocks_neither_settling_nor_claiming,
	    the_mariadb_client_writes_messages)
