/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store on a real server: what its contract does not cover. */
#include "pg_fixture.h"
#include "server.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- hostile settings ------------------------------------------------ */

OB_TEST(hostile_session_defaults_change_nothing)
{
	static const char *const settings[] = {
		"DateStyle = 'German, DMY'",
		"TimeZone = 'Asia/Kathmandu'",
		"IntervalStyle = sql_standard",
		"default_transaction_isolation = serializable",
		"default_transaction_read_only = on",
		"standard_conforming_strings = off",
		"client_encoding = 'LATIN1'",
		"bytea_output = escape",
		"transform_null_equals = on",
		"search_path = evil, public, pg_catalog",
		"enable_indexscan = off",
		"synchronous_commit = off",
		"lc_messages = 'C'",
	};
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	char name[64];

	ob_store_free(store);
	(void)snprintf(name, sizeof(name), "%s", text(app, "SELECT current_database()"));
	/* Someone's functions under names that we use. */
	exec(app,
	     "CREATE SCHEMA evil;"
	     "CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT "
	     "timestamptz ''epoch''';"
	     "CREATE FUNCTION evil.pg_backend_pid() RETURNS int LANGUAGE sql AS 'SELECT 1/0'");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		exec(app, "ALTER DATABASE %s SET %s", name, settings[i]);
	store = store_open();
	ok(ob_store_check(store, &err));
	put(store, "k\xC3\xA4se", "k");
	struct ob_settle settle = hold(store, 1, 60000);
	ck_assert_str_eq(fetched(store), "k\xC3\xA4se");
	ck_assert_int_gt(batch.messages[0].created_at_us, INT64_C(1600000000) * 1000000);
	ck_assert_uint_eq(publish(store, settle).applied, 1);
	ck_assert_int_eq(number(app,
				"SELECT count(*) FROM outbox WHERE status = 1 AND published_at > "
				"now() - interval '1 minute'"),
			 1);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(tables_live_in_the_schema_of_the_layout)
{
	struct ob_layout layout;
	struct ob_store *store = NULL;

	fixture_new();
	PGconn *app = app_open();
	ob_layout_default(&layout);
	ok(ob_layout_set_table(&layout, "Shop.Events$1", &err));
	ok(ob_layout_set_column(&layout, "event_type", "select", &err));
	ok(ob_layout_set_column(&layout, "headers", NULL, &err));
	ok(ob_layout_set_column(&layout, "partition_key", NULL, &err));
	ok(ob_layout_set_column(&layout, "sequence_number", NULL, &err));
	ok(ob_layout_set_column(&layout, "occurred_at", NULL, &err));
	layout.string_id = layout.binary_payload = true;
	const struct ob_store_conf conf = { .url = url, .layout = &layout };
	ok(ob_store_connect(&conf, &store, &err));
	ck_assert_int_eq(store_setup(store, 4), OUTBOX_ESCHEMA);
	ck_assert_ptr_nonnull(strstr(err.msg, "create the schema"));
	exec(app, "CREATE SCHEMA \"Shop\"");
	ok(store_setup(store, 4));
	ok(ob_store_check(store, &err));
	const struct outbox_message message = {
		.aggregate_type = "t", .event_type = "a", .payload = "\x00\xff", .payload_size = 2
	};
	size_t index;
	ok(ob_store_tx_begin(store, &err));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &err));
	ok(ob_store_tx_end(store, true, &err));
	exec(app, "SELECT \"Shop\".\"Events$1_push\"('t', NULL, 'b', '\\x01')");
	struct ob_settle settle = hold(store, 1, 60000);
	(void)fetched(store);
	ck_assert_uint_eq(batch.count, 2);
	ck_assert_uint_eq(publish(store, settle).applied, 2);
	ck_assert_int_eq(number(app,
				"SELECT count(*) FROM \"Shop\".\"Events$1\" WHERE status = 1 AND "
				"length(id) = 36"),
			 2);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* ---- order and visibility -------------------------------------------- */

OB_TEST(a_row_that_commits_late_is_not_lost)
{
	fixture_new();
	PGconn *first = app_open(), *second = app_open();
	struct ob_store *store = store_new(4);

	exec(first,
	     "BEGIN; INSERT INTO outbox (aggregate_type, event_type, payload) VALUES ('t', "
	     "'early', '1')");
	exec(second,
	     "INSERT INTO outbox (aggregate_type, event_type, payload) VALUES ('t', 'late', "
	     "'1')");
	struct ob_settle settle = hold(store, 1, 60000);
	ck_assert_str_eq(fetched(store), "late");
	ck_assert_uint_eq(publish(store, settle).applied, 1);
	exec(first, "COMMIT");
	ck_assert_str_eq(fetched(store), "early");
	ob_store_free(store);
	PQfinish(first);
	PQfinish(second);
}
OB_TEST_END

OB_TEST(producers_that_waited_for_a_lock_keep_their_order)
{
	fixture_new();
	PGconn *one = app_open(), *two = app_open(), *three = app_open();
	struct ob_store *store = store_new(4);

	exec(one, "CREATE TABLE aggregate (id int, n int); INSERT INTO aggregate VALUES (1, 0)");
	/* The second has the lower transaction id, and a third one stays open. */
	exec(two, "BEGIN; SELECT txid_current()");
	exec(three, "BEGIN; SELECT txid_current()");
	exec(one,
	     "BEGIN; UPDATE aggregate SET n = 1; SELECT outbox_push('a', '1', 'first', '{}'); "
	     "COMMIT");
	exec(two,
	     "UPDATE aggregate SET n = 2; SELECT outbox_push('a', '1', 'second', '{}'); COMMIT");
	ck_assert_str_eq(fetched(store), "first second");
	exec(three, "ROLLBACK");
	ob_store_free(store);
	PQfinish(one);
	PQfinish(two);
	PQfinish(three);
}
OB_TEST_END

/* ---- fencing --------------------------------------------------------- */

/* The new owner's takeover is not committed yet when the old one settles: it waits, and loses. */
OB_TEST(a_zombie_changes_nothing_after_a_takeover)
{
	const struct ob_opt_value options[] = { { "lock_timeout", "200ms" }, { NULL, NULL } };

	fixture_new();
	PGconn *other = app_open();
	struct ob_store *zombie = store_new(1);
	put(zombie, "a", "k");
	struct ob_settle old = hold(zombie, 1, 60000);
	ck_assert_str_eq(fetched(zombie), "a");
	exec(other,
	     "BEGIN; UPDATE outbox_partitions SET lease_owner = gen_random_uuid(), lease_epoch = "
	     "lease_epoch + 1");

	/* While it is open nothing can be decided: not ours to write. */
	struct ob_store *hasty = store_open_with(options);
	struct ob_outcome outcome = { .message = &batch.messages[0], .kind = OB_OUTCOME_DEAD };
	struct ob_settle settle = old;
	struct ob_settled settled;
	settle.outcomes = &outcome;
	settle.outcome_count = 1;
	ck_assert_int_eq(ob_store_settle(hasty, &settle, NULL, &settled, &err), OUTBOX_EBUSY);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(err.native, "55P03");
	outcome.kind = OB_OUTCOME_PUBLISHED;
	ck_assert_int_eq(ob_store_settle(hasty, &settle, NULL, &settled, &err), OUTBOX_EBUSY);
	exec(other, "UPDATE outbox SET locked_by = 'the new owner'; COMMIT");

	bool lost = false;
	ok(ob_store_settle(hasty, &settle, &lost, &settled, &err));
	ck_assert(lost);
	ck_assert_uint_eq(settled.lost, 1);
	outcome.kind = OB_OUTCOME_DEAD;
	ok(ob_store_settle(hasty, &settle, &lost, &settled, &err));
	ck_assert_uint_eq(settled.lost, 1);
	ck_assert_str_eq(text(other, "SELECT status || ' ' || locked_by FROM outbox"),
			 "0 the new owner");
	ob_store_free(hasty);
	ob_store_free(zombie);
	PQfinish(other);
}
OB_TEST_END

/* ---- lost connections ------------------------------------------------ */

OB_TEST(a_killed_connection_is_down_once_and_then_made_again)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	const uint32_t first = 0;
	const struct ob_fetch fetch = {
		.target = "default", .partitions = &first, .partition_count = 1, .limit = 1
	};

	for (int i = 0; i < 3; i++) {
		exec(app,
		     "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE "
		     "application_name = 'outbox' AND datname = current_database()");
		ck_assert_int_lt(ob_store_fetch(store, &fetch, &batch, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
		ok(ob_store_fetch(store, &fetch, &batch, &err));
	}
	/* In a transaction: it is undone, and says so. */
	const struct outbox_message message = { .aggregate_type = "t",
						.event_type = "a",
						.payload = "1" };
	size_t index;
	ok(ob_store_tx_begin(store, &err));
	ok(ob_store_tx_push(store, &message, 1, NULL, &index, &err));
	exec(app,
	     "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name "
	     "= "
	     "'outbox' AND datname = current_database()");
	ck_assert_int_lt(ob_store_tx_push(store, &message, 1, NULL, &index, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_int_lt(ob_store_tx_end(store, true, &err), 0);
	ck_assert_int_eq(ob_store_tx_end(store, false, &err), 0);
	put(store, "b", NULL);
	ck_assert_str_eq(fetched(store), "b");
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(a_statement_that_takes_too_long_is_ended_by_the_server)
{
	const struct ob_opt_value options[] = { { "timeout", "150ms" }, { NULL, NULL } };

	fixture_new();
	PGconn *app = app_open();
	ob_store_free(store_new(4));
	struct ob_store *store = store_open_with(options);
	exec(app, "BEGIN; LOCK TABLE outbox_meta");
	uint32_t count;
	ck_assert_int_eq(ob_store_seed(store, "default", &count, &err), OUTBOX_EBUSY);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(err.native, "57014");
	exec(app, "ROLLBACK");
	ok(ob_store_seed(store, "default", &count, &err));
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* Its own server: the others need theirs. */
OB_TEST(a_crash_of_the_server_is_survived)
{
	struct pg_server shared = server;

	ck_assert(pg_server_start(&server, NULL));
	fixture_new();
	struct ob_store *store = store_new(4);
	put(store, "a", "k");
	struct ob_settle settle = hold(store, 1, 60000);
	ck_assert_str_eq(fetched(store), "a");
	struct ob_outcome outcome = { .message = &batch.messages[0] };
	struct ob_settled settled;
	settle.outcomes = &outcome;
	settle.outcome_count = 1;

	ck_assert(pg_server_crash(&server, false));
	for (int i = 0; i < 2; i++) {
		ck_assert_int_lt(ob_store_settle(store, &settle, NULL, &settled, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	}
	ck_assert(pg_server_again(&server));
	ok(ob_store_settle(store, &settle, NULL, &settled, &err));
	ck_assert_uint_eq(settled.applied, 1);
	ob_store_free(store);
	ob_batch_done(&batch);
	pg_server_stop(&server);
	server = shared;
}
OB_TEST_END

/* ---- waking ---------------------------------------------------------- */

OB_TEST(a_commit_wakes_a_waiting_store)
{
	bool news = true;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	struct pollfd fd = { .fd = ob_store_wake_fd(store), .events = POLLIN };
	ck_assert_int_ge(fd.fd, 0);
	ok(ob_store_wake_check(store, &news, &err));
	ck_assert(!news);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	exec(app, "SELECT outbox_push('t', '1', 'a', '{}')");
	ck_assert_int_eq(poll(&fd, 1, 5000), 1);
	ok(ob_store_wake_check(store, &news, &err));
	ck_assert(news);
	ok(ob_store_wake_check(store, &news, &err));
	ck_assert(!news);
	/* What arrives while a statement runs is news too. */
	exec(app, "SELECT outbox_push('t', '1', 'b', '{}')");
	ck_assert_str_eq(fetched(store), "a b");
	(void)poll(&fd, 1, 100);
	ok(ob_store_wake_check(store, &news, &err));
	ck_assert(news);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(without_notify_there_is_no_trigger_and_nothing_to_wait_on)
{
	const struct ob_opt_value options[] = { { "notify", "off" }, { NULL, NULL } };
	bool news = true;

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_open_with(options);
	ok(store_setup(store, 4));
	ck_assert_int_eq(number(app, "SELECT count(*) FROM pg_trigger"), 0);
	ck_assert_int_eq(ob_store_wake_fd(store), -1);
	ok(ob_store_wake_check(store, &news, &err));
	ck_assert(!news);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* ---- between us and the server --------------------------------------- */

/* A pooler in transaction mode, ended with this process; false: there is none. */
static bool start_pooler(int port, pid_t *ret_pid)
{
	char path[128], config[512];
	const char *const argv[] = { "/usr/sbin/pgbouncer", path, NULL };

	if (access(argv[0], X_OK) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/pgbouncer.ini", server.dir);
	(void)snprintf(config, sizeof(config),
		       "[databases]\n* = host=%s port=%d "
		       "user=postgres\n[pgbouncer]\nlisten_addr=127.0.0.1\n"
		       "listen_port=%d\nauth_type=any\npool_mode=transaction\n"
		       "default_pool_size=3\nunix_socket_dir=\n",
		       server.dir, server.port, port);

	FILE *file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	(void)fputs(config, file);
	ck_assert_int_eq(fclose(file), 0);
	*ret_pid = pg_server_run(&server, argv);
	return *ret_pid > 0;
}

OB_TEST(a_pooler_in_transaction_mode_changes_nothing_but_the_waking)
{
	struct ob_store *direct, *pooled[4];
	int port = server_free_port();
	char through[256];
	pid_t pooler = 0;

	fixture_new();
	direct = store_new(4);
	if (!start_pooler(port, &pooler)) {
		(void)printf("# SKIP no pgbouncer is installed (package pgbouncer)\n");
		ob_store_free(direct);
		return;
	}
	PGconn *app = app_open();
	(void)snprintf(through, sizeof(through), "postgresql://postgres@127.0.0.1:%d/%s", port,
		       text(app, "SELECT current_database()"));
	const struct ob_opt_value listen[] = { { "listen_url", url } };
	struct ob_store_conf conf = { .url = through };
	/* More stores than the pooler has connections: each transaction may get another. */
	for (int i = 0; i < 4; i++) {
		conf.options = i == 3 ? listen : NULL;
		conf.option_count = i == 3;
		int r, left = 500;
		while ((r = ob_store_connect(&conf, &pooled[i], &err)) < 0 && left-- > 0)
			(void)poll(NULL, 0, 10);
		ok(r);
		ok(ob_store_check(pooled[i], &err));
	}
	for (int round = 0; round < 20; round++) {
		put(pooled[round % 4], "a", "k");
		struct ob_settle settle = hold(pooled[(round + 1) % 4], 1, 60000);
		ck_assert_str_eq(fetched(pooled[(round + 2) % 4]), "a");
		ck_assert_uint_eq(publish(pooled[(round + 3) % 4], settle).applied, 1);
		ok(ob_store_leave(pooled[round % 4], "default", &settle.owner, &err));
	}
	/* LISTEN would succeed there and never deliver; by a direct connection it does. */
	bool news;
	ck_assert_int_eq(ob_store_wake_fd(pooled[0]), -1);
	struct pollfd fd = { .fd = ob_store_wake_fd(pooled[3]), .events = POLLIN };
	ck_assert_int_ge(fd.fd, 0);
	ok(ob_store_wake_check(pooled[3], &news, &err));
	put(direct, "b", NULL);
	ck_assert_int_eq(poll(&fd, 1, 5000), 1);
	ok(ob_store_wake_check(pooled[3], &news, &err));
	ck_assert(news);
	for (int i = 0; i < 4; i++)
		ob_store_free(pooled[i]);
	ob_store_free(direct);
	PQfinish(app);
	ck_assert_int_eq(kill(pooler, SIGTERM), 0);
	(void)waitpid(pooler, NULL, 0);
}
OB_TEST_END

/* A standby: the same data, read-only. */
OB_TEST(a_read_only_server_is_down_and_not_used)
{
	struct pg_server shared = server;
	char signal_file[128];

	ck_assert(pg_server_start(&server, NULL));
	fixture_new();
	struct ob_store *store = store_new(4);
	put(store, "a", NULL);
	ck_assert(pg_server_crash(&server, false));
	/* A standby without a primary to follow replays what is there, and stays read-only. */
	(void)snprintf(signal_file, sizeof(signal_file), "%s/data/standby.signal", server.dir);
	FILE *file = fopen(signal_file, "we");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(signal_file, 0666), 0);
	ck_assert(pg_server_again(&server));
	const uint32_t first = 0;
	const struct ob_fetch fetch = {
		.target = "default", .partitions = &first, .partition_count = 1, .limit = 1
	};
	for (int i = 0; i < 3; i++) {
		ck_assert_int_lt(ob_store_fetch(store, &fetch, &batch, &err), 0);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	}
	ck_assert_ptr_nonnull(strstr(err.msg,
				     "the server is read-only, a standby perhaps; it must be "
				     "the primary"));
	ck_assert_int_lt(ob_store_check(store, &err), 0);
	ob_store_free(store);
	pg_server_stop(&server);
	server = shared;
}
OB_TEST_END

PG_SUITE("store_postgres", hostile_session_defaults_change_nothing,
	 tables_live_in_the_schema_of_the_layout, a_row_that_commits_late_is_not_lost,
	 producers_that_waited_for_a_lock_keep_their_order,
	 a_zombie_changes_nothing_after_a_takeover,
	 a_killed_connection_is_down_once_and_then_made_again,
	 a_statement_that_takes_too_long_is_ended_by_the_server, a_crash_of_the_server_is_survived,
	 a_commit_wakes_a_waiting_store, without_notify_there_is_no_trigger_and_nothing_to_wait_on,
	 a_pooler_in_transaction_mode_changes_nothing_but_the_waking,
	 a_read_only_server_is_down_and_not_used)
