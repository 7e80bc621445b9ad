/* SPDX-License-Identifier: MIT */
/* The MySQL store on a real server: lost connections, locks, stopped workers, hostile settings. */
#include "mysql_fixture.h"
#include "run.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- sessions -------------------------------------------------------- */

static void run_once(const char *user)
{
	struct worker w;

	worker_begin(&w, user, 1);
	struct ob_store *producer = fixture_store(user);
	put(producer, "a", "k");
	put(producer, "b", "K");  /* keys differ by case */
	put(producer, "c", "k "); /* ... and by a blank at the end */
	put(producer, "d", "it's \\ \"quoted\"");
	ok(worker_read(&w, 10));
	ck_assert_uint_eq(w.batch.count, 4);
	int64_t now = ob_clock_real_us(&ob_clock_system);
	ck_assert_int_lt(llabs(w.batch.messages[0].created_at_us - now), 60000000);
	ok(worker_settle(&w, OB_OUTCOME_RETRY));
	ck_assert_uint_eq(w.lost, 0);
	ck_assert_int_eq(number(admin, "SELECT COUNT(DISTINCT queue) FROM outbox_exceptions"), 4);
	ck_assert_int_eq(
		number(admin, "SELECT COUNT(*) FROM outbox_messages WHERE state = 'failed'"), 4);
	ob_store_free(producer);
	worker_end(&w);
}

OB_TEST(hostile_settings_of_the_server_do_not_matter)
{
	const char *const modes[] = { "", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
				      server.mariadb ? "ORACLE" : "ANSI" };

	for (size_t i = 0; i < 3; i++) {
		fixture_begin(4);
		make_user("hostile", NULL);
		sql(admin, "GRANT ALL ON %s.* TO hostile@localhost", database);
		sql(admin,
		    "SET GLOBAL sql_mode = '%s', time_zone = '-11:30', "
		    "init_connect = 'SET autocommit = 0, completion_type = 2, sql_safe_updates = "
		    "1, "
		    "sql_select_limit = 1'",
		    modes[i]);
		sql(admin, "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE");
		run_once("hostile");
		fixture_end();
	}
}
OB_TEST_END

OB_TEST(a_killed_connection_is_made_anew)
{
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root", 1);
	put(w.store, "a", "k");
	sql(admin, "KILL %lld",
	    number(admin,
		   "SELECT MAX(id) FROM information_schema.PROCESSLIST WHERE id <> "
		   "CONNECTION_ID()"));
	int r = worker_read(&w, 10);
	ck_assert_int_eq(r, OUTBOX_ESTORE);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	worker_expect(&w, "a");
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

/* ---- locks ----------------------------------------------------------- */

OB_TEST(a_lock_that_lasts_is_busy_and_changes_nothing)
{
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root", 1);
	put(w.store, "a", "k");
	ok(worker_read(&w, 10));
	/* The number that it would insert, by someone who does not commit. */
	sql(admin, "START TRANSACTION");
	sql(admin,
	    "INSERT INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos) "
	    "VALUES ('main', 0, 2, 1, REPEAT('x', 16), UTC_TIMESTAMP(6), 0)");
	ck_assert_int_lt(worker_settle(&w, OB_OUTCOME_PUBLISHED), 0);
	ck_assert_msg(w.err.status == OUTBOX_EBUSY, "%s", w.err.msg);
	ck_assert_int_eq(w.err.kind, OB_ERR_DOWN);
	sql(admin, "ROLLBACK");
	ck_assert_int_eq(number(admin, "SELECT MAX(pos) FROM outbox_batches"), 0);
	ok(worker_settle(&w, OB_OUTCOME_PUBLISHED));
	ck_assert_uint_eq(w.lost, 0);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_settle_waits_for_a_takeover_and_then_changes_nothing)
{
	struct worker w;
	pthread_t thread;

	fixture_begin(1);
	worker_begin(&w, "root", 1);
	put(w.store, "a", "k");
	ok(worker_read(&w, 10));
	sql(admin, "START TRANSACTION");
	sql(admin,
	    "INSERT INTO outbox_batches (reader, partition_no, batch, epoch, owner, at, pos) "
	    "SELECT 'main', partition_no, 2, 2, REPEAT('x', 16), UTC_TIMESTAMP(6), 0 FROM "
	    "outbox_batches WHERE batch = 1");
	ck_assert_int_eq(pthread_create(&thread, NULL, settle_in_thread, &w), 0);
	wait_for_a_waiter();
	sql(admin, "COMMIT");
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(w.result == 0, "%s", w.err.msg);
	ck_assert_uint_eq(w.lost, w.part_count);
	ck_assert_int_eq(number(admin, "SELECT MAX(pos) FROM outbox_batches"), 0);
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

OB_TEST(a_commit_after_a_deadlock_is_an_error_and_not_a_loss)
{
	const struct outbox_message first = { GOOD, .id = "01890a5d-ac96-774b-bcce-b302099a8058" };
	struct worker w;
	pthread_t thread;
	size_t index;

	fixture_begin(1);
	worker_begin(&w, "root", 1);
	sql(admin, "CREATE TABLE load_of_work (n INT) ENGINE=InnoDB");
	ok(ob_store_tx_begin(w.store, &fault));
	ok(ob_store_tx_push(w.store, &first, 1, NULL, &index, &fault));
	sql(admin, "START TRANSACTION");
	sql(admin, "INSERT INTO load_of_work SELECT seq FROM " NUMBERS_TO_D, 1000);
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

/* Nothing that a worker does waits for a row that is not committed. */
OB_TEST(a_lease_that_someone_has_locked_is_passed_over)
{
	struct ob_lease *leases;
	struct worker w;
	size_t count;

	fixture_begin(4);
	worker_begin(&w, "root", 1);
	ok(ob_store_leave(w.store, "main", &w.id, &fault));
	MYSQL *other = fixture_connect("root");
	sql(other, "START TRANSACTION");
	sql(other,
	    "UPDATE outbox_leases SET lease_epoch = lease_epoch + 1 WHERE reader = 'main' "
	    "AND partition_no = 0");
	ok(ob_store_take(w.store, "main", &w.id, 2, 60000, &w.arena, &leases, &count, &fault));
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(leases[0].partition, 1);
	ck_assert_uint_eq(leases[1].partition, 2);
	mysql_close(other);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

OB_TEST(an_open_producer_holds_up_nobody)
{
	const struct ob_retain retain = { .published_ms = 0, .dead_ms = 0, .limit = 100 };
	struct ob_retained done;
	struct worker w;

	fixture_begin(1);
	worker_begin(&w, "root", 1);
	put(w.store, "a", "k");
	MYSQL *slow = fixture_connect("root");
	sql(slow, "START TRANSACTION");
	sql(slow, "CALL outbox_push('order', '1', 'late', '{}', NULL, NULL)");
	put(w.store, "b", "k");
	worker_expect(&w, "a b");
	ok(ob_store_retain(w.store, &retain, &w.arena, &done, &fault));
	ck_assert_uint_eq(done.rows, 2);
	sql(slow, "COMMIT");
	worker_expect(&w, "late");
	ok(ob_store_retain(w.store, &retain, &w.arena, &done, &fault));
	ck_assert_uint_eq(done.rows, 1);
	mysql_close(slow);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- workers that stop ----------------------------------------------- */

/* A process that is frozen holds no transaction: every call is one packet. Its locks would keep
 * others from its partitions. */
OB_TEST(a_worker_is_inside_no_transaction_between_its_calls)
{
	const struct ob_worker me = { .id = { { 1 } },
				      .reader = OB_STR("main"),
				      .hostname = OB_STR("h") };
	struct worker w;
	uint32_t gone;

	fixture_begin(2);
	worker_begin(&w, "root", 1);
	put(w.store, "a", "k");
	ok(worker_read(&w, 10));
	ok(worker_settle(&w, OB_OUTCOME_RETRY));
	ok(ob_store_beat(w.store, &me, 1000, &fault));
	ok(ob_store_reap(w.store, "main", &me.id, &gone, &fault));
	/* That table is renewed only when nobody has read it for a tenth of a second. */
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + 10000000;
	while (number(admin, "SELECT COUNT(*) FROM information_schema.INNODB_TRX") > 0) {
		ck_assert_int_lt(ob_clock_boot_us(&ob_clock_system), end);
		(void)poll(NULL, 0, 150);
	}
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* One that was frozen inside a transaction all the same: as it holds its own leases and its next
 * number, another takes over and records. */
OB_TEST(a_frozen_transaction_does_not_stop_a_takeover)
{
	struct worker first, second;

	fixture_begin(2);
	worker_begin(&first, "root", 1);
	put(first.store, "a", "k");
	ok(worker_read(&first, 10));
	/* The frozen one holds all of its lease rows and its worker's row. */
	MYSQL *frozen = fixture_connect("root");
	if (server.mariadb)
		sql(frozen, "SET SESSION idle_transaction_timeout = 2");
	sql(frozen, "START TRANSACTION");
	sql(frozen, "UPDATE outbox_leases SET updated_at = UTC_TIMESTAMP(6)");
	/* Nothing to take while it does; nobody waits either. */
	struct ob_lease *leases;
	size_t count;
	int64_t begun = ob_clock_boot_us(&ob_clock_system);
	struct ob_store *other = fixture_store("root");
	ok(ob_store_take(other, "main", &(struct ob_uuid){ { 9 } }, 2, 60000, &first.arena, &leases,
			 &count, &fault));
	ck_assert_uint_eq(count, 0);
	ck_assert_int_lt(ob_clock_boot_us(&ob_clock_system) - begun, 900000);
	ob_store_free(other);
	/* The server ends it, as it does with ours after ten seconds. MySQL has no such limit. */
	if (!server.mariadb)
		sql(admin, "KILL %lu", mysql_thread_id(frozen));
	char gone[128];
	(void)snprintf(gone, sizeof(gone),
		       "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %lu",
		       mysql_thread_id(frozen));
	while (number(admin, gone) > 0)
		(void)poll(NULL, 0, 20);
	ok(ob_store_free_leases(first.store, "main", NULL, 0, &fault));
	worker_begin(&second, "root", 2);
	worker_expect(&second, "a");
	ok(worker_settle(&first, OB_OUTCOME_PUBLISHED));
	ck_assert_uint_eq(first.lost, first.part_count);
	mysql_close(frozen);
	worker_end(&first);
	worker_end(&second);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_worker_whose_connection_is_gone_is_reaped_at_once)
{
	const struct ob_worker dead = { .id = { { 1 } },
					.reader = OB_STR("main"),
					.hostname = OB_STR("h") };
	const struct ob_uuid self = { { 2 } };
	struct worker w;
	uint32_t gone = 99;

	fixture_begin(2);
	worker_begin(&w, "root", 1);
	struct ob_store *control = fixture_store("root"), *other = fixture_store("root");
	ok(ob_store_beat(control, &dead, 3600000, &fault));
	ok(ob_store_beat(control, &dead, 3600000, &fault));
	ok(ob_store_reap(other, "main", &self, &gone, &fault));
	ck_assert_uint_eq(gone, 0);
	ob_store_free(control);
	/* The server notices the closed connection in its own time. */
	while (gone == 0)
		ok(ob_store_reap(other, "main", &self, &gone, &fault));
	ck_assert_uint_eq(gone, 1);
	ck_assert_int_eq(number(admin, "SELECT COUNT(*) FROM outbox_workers"), 0);
	ob_store_free(other);
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
	worker_begin(&w, "root", 1);
	ok(worker_read(&w, 10));
	ck_assert_str_eq(worker_labels(&w), "Placed Paid");
	ck_assert_str_eq(w.batch.messages[0].payload.p, "{\"total\": 1}");
	ck_assert_str_eq(w.batch.messages[0].key.p, "order:7");
	ck_assert_uint_eq(w.batch.messages[0].partition, w.batch.messages[1].partition);
	ck_assert_int_eq(ob_uuid_version(&w.batch.messages[1].id), 7);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

MYSQL_SUITE("MySQL store", hostile_settings_of_the_server_do_not_matter,
	    a_killed_connection_is_made_anew,
	    a_connection_killed_inside_a_transaction_loses_it_whole,
	    a_lock_that_lasts_is_busy_and_changes_nothing,
	    a_settle_waits_for_a_takeover_and_then_changes_nothing,
	    a_commit_after_a_deadlock_is_an_error_and_not_a_loss,
	    a_lease_that_someone_has_locked_is_passed_over, an_open_producer_holds_up_nobody,
	    a_worker_is_inside_no_transaction_between_its_calls,
	    a_frozen_transaction_does_not_stop_a_takeover,
	    a_worker_whose_connection_is_gone_is_reaped_at_once, the_mariadb_client_writes_messages)
