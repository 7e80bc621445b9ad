/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store on a real server: what its contract does not cover. */
#include "pg_fixture.h"

#include <poll.h>
#include <sys/stat.h>

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
	ck_assert_str_eq(delivered(store), "k\xC3\xA4se");
	ck_assert_int_gt(batch.messages[0].created_at_us, INT64_C(1600000000) * 1000000);
	ck_assert_str_eq(delivered(store), "");
	ck_assert_int_eq(
		number(app,
		       "SELECT count(*) FROM outbox_messages WHERE state = 'published' AND "
		       "published_at > pg_catalog.clock_timestamp() - interval '1 minute'"),
		1);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* Every operation on a log with two messages that are delivered. */
static void expect_operations(struct ob_store *store)
{
	struct ob_filter filter = { .reader = "default" };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_stats *stats;
	struct ob_reader *readers;
	struct ob_retained done;
	uint64_t changed, refused;
	int64_t now;
	size_t count;

	ok(ob_store_list(store, &filter, &batch, &now, &err));
	ck_assert_uint_eq(batch.count, 2);
	const struct ob_uuid id = batch.messages[1].id;
	filter.id = &id;
	ok(ob_store_list(store, &filter, &batch, &now, &err));
	ck_assert_uint_eq(batch.count, 1);
	filter = (struct ob_filter){ .reader = "default", .views = 1U << OB_VIEW_PENDING };
	ok(ob_store_list(store, &filter, &batch, &now, &err));
	ck_assert_uint_eq(batch.count, 0);
	filter.views = 0;
	ok(ob_store_operate(store,
			    &(struct ob_operate){ .verb = OB_VERB_DISCARD, .filter = filter },
			    &changed, &refused, &err));
	ck_assert_uint_eq(refused, 2);
	ok(ob_store_stats(store, NULL, 10, &arena, &stats, &count, &now, &err));
	ok(ob_store_readers(store, &arena, &readers, &count, &err));
	ck_assert_int_eq(readers[0].low_pos, 2);
	ok(ob_store_resize(store, 3, &err));
	ok(ob_store_reader_seek(store, "default", &(struct ob_place){ OB_START_SEQ, 2 }, &err));
	ck_assert_str_eq(delivered(store), "b");
	ok(ob_store_retain(store, &(struct ob_retain){ .limit = 1 }, &arena, &done, &err));
	ck_assert_uint_eq(done.rows, 1);
	ck_assert(done.more);
	ob_arena_done(&arena);
}

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
	ck_assert_str_eq(delivered(store), "a b");
	ck_assert_str_eq(delivered(store), "");
	ck_assert_int_eq(number(app,
				"SELECT count(*) FROM \"Shop\".\"Events$1_messages\" WHERE state = "
				"'published' AND length(id) = 36"),
			 2);
	expect_operations(store);
	exec(app, "TRUNCATE \"Shop\".\"Events$1\"");
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* ---- order and visibility -------------------------------------------- */

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
	ck_assert_str_eq(delivered(store), "first second");
	exec(three, "ROLLBACK");
	ob_store_free(store);
	PQfinish(one);
	PQfinish(two);
	PQfinish(three);
}
OB_TEST_END

OB_TEST(a_lease_that_someone_has_locked_is_passed_over)
{
	fixture_new();
	PGconn *other = app_open();
	struct ob_store *store = store_new(4);
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_lease *leases;
	const struct ob_uuid me = uuid(1);
	uint32_t partitions;
	size_t count;

	ck_assert_str_eq(delivered(store), ""); /* makes the reader */
	ok(ob_store_seed(store, "default", &partitions, &err));
	exec(other, "BEGIN; SELECT 1 FROM outbox_leases WHERE partition_no = 0 FOR UPDATE");
	ok(ob_store_take(store, "default", &me, 2, 60000, &arena, &leases, &count, &err));
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(leases[0].partition, 1);
	ck_assert_uint_eq(leases[1].partition, 2);
	ob_arena_done(&arena);
	ob_store_free(store);
	PQfinish(other);
}
OB_TEST_END

/* ---- fencing --------------------------------------------------------- */

/* The new owner's row is not committed yet when the old one settles: it waits, and loses. */
OB_TEST(a_zombie_changes_nothing_after_a_takeover)
{
	const struct ob_opt_value options[] = { { "lock_timeout", "200ms" }, { NULL, NULL } };
	const struct ob_decide decide = { .ordering = OB_ORDER_KEY };
	struct ob_change change;
	struct worker w;
	bool promote;

	fixture_new();
	PGconn *other = app_open();
	struct ob_store *zombie = store_new(1), *hasty = store_open_with(options);
	put(zombie, "a", "k");
	worker_begin(&w, hasty, 1, 1);
	ck_assert_str_eq(worker_read(&w, 9), "a");
	ck_assert(ob_exception_decide(&decide, &batch.messages[0], OB_OUTCOME_DEAD, 0,
				      OB_STR("bad"), &change, &promote));
	exec(other,
	     "BEGIN; INSERT INTO outbox_batches (reader, partition_no, batch, epoch, at, pos, "
	     "seen) "
	     "SELECT reader, partition_no, batch + 1, epoch + 1, at, pos, seen FROM outbox_batches "
	     "WHERE partition_no = 0 ORDER BY batch DESC LIMIT 1");

	/* While it is open nothing can be decided: not ours to write. */
	struct ob_settle_part part = { .partition = 0,
				       .epoch = w.parts[0].epoch,
				       .batch = w.parts[0].batch + 1,
				       .progress = w.parts[0].at };
	struct ob_settle settle = {
		.reader = "default", .owner = w.id, .parts = &part, .part_count = 1
	};
	for (size_t changes = 0; changes < 2; changes++) {
		settle.changes = &change;
		settle.change_count = changes;
		ck_assert_int_eq(ob_store_settle(hasty, &settle, &err), OUTBOX_EBUSY);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
		ck_assert_str_eq(err.native, "55P03");
	}
	exec(other, "COMMIT");
	for (size_t changes = 0; changes < 2; changes++) {
		settle.change_count = changes;
		ok(ob_store_settle(hasty, &settle, &err));
		ck_assert_int_eq(part.settled, OB_SETTLE_LOST);
	}
	ck_assert_int_eq(number(other, "SELECT count(*) FROM outbox_exceptions"), 0);
	worker_end(&w);
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

	for (int i = 0; i < 3; i++) {
		exec(app,
		     "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE "
		     "application_name = 'outbox' AND datname = current_database()");
		ck_assert_int_lt(read_one(store), 0);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
		ok(read_one(store));
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
	ck_assert_str_eq(delivered(store), "b");
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
	struct worker w;

	ck_assert(pg_server_start(&server, NULL));
	fixture_new();
	struct ob_store *store = store_new(4);
	put(store, "a", "k");
	worker_begin(&w, store, 1, 4);
	ck_assert_str_eq(worker_read(&w, 9), "a");

	ck_assert(pg_server_crash(&server, false));
	for (int i = 0; i < 2; i++) {
		ck_assert_int_lt(read_one(store), 0);
		ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	}
	ck_assert(pg_server_again(&server));
	ck_assert_uint_eq(worker_settle(&w), 0);
	ck_assert_str_eq(worker_read(&w, 9), "");
	worker_end(&w);
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
	ck_assert_str_eq(delivered(store), "a b");
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
	ck_assert_int_eq(number(app, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '%wake'"),
			 0);
	ck_assert_int_eq(ob_store_wake_fd(store), -1);
	ok(ob_store_wake_check(store, &news, &err));
	ck_assert(!news);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* ---- between us and the server --------------------------------------- */

OB_TEST(a_pooler_in_transaction_mode_changes_nothing_but_the_waking)
{
	struct ob_store *direct, *pooled[4];
	char through[256];
	pid_t pooler = 0;

	fixture_new();
	direct = store_new(4);
	if (!pooler_start(&pooler, through)) {
		(void)printf("# SKIP no pgbouncer is installed (package pgbouncer)\n");
		ob_store_free(direct);
		return;
	}
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
		struct worker w;

		put(pooled[round % 4], "a", "k");
		worker_begin(&w, pooled[(round + 1) % 4], 1, 4);
		w.store = pooled[(round + 2) % 4];
		ck_assert_str_eq(worker_read(&w, 9), "a");
		w.store = pooled[(round + 3) % 4];
		ck_assert_uint_eq(worker_settle(&w), 0);
		ok(ob_store_leave(pooled[round % 4], "default", &w.id, &err));
		worker_end(&w);
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
	/* Its session is not ours: a lock in it would say nothing. */
	const struct ob_worker worker = { .id = uuid(1),
					  .reader = OB_STR("default"),
					  .hostname = OB_STR("h") };
	PGconn *app = app_open();
	ok(ob_store_beat(pooled[0], &worker, 60000, &err));
	ck_assert_int_eq(number(app, "SELECT count(session) FROM outbox_workers"), 0);
	ok(ob_store_beat(direct, &worker, 60000, &err));
	ck_assert_int_eq(number(app, "SELECT count(session) FROM outbox_workers"), 1);
	PQfinish(app);
	for (int i = 0; i < 4; i++)
		ob_store_free(pooled[i]);
	ob_store_free(direct);
	pooler_stop(pooler);
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
	for (int i = 0; i < 3; i++) {
		ck_assert_int_lt(read_one(store), 0);
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
	 tables_live_in_the_schema_of_the_layout, producers_that_waited_for_a_lock_keep_their_order,
	 a_lease_that_someone_has_locked_is_passed_over, a_zombie_changes_nothing_after_a_takeover,
	 a_killed_connection_is_down_once_and_then_made_again,
	 a_statement_that_takes_too_long_is_ended_by_the_server, a_crash_of_the_server_is_survived,
	 a_commit_wakes_a_waiting_store, without_notify_there_is_no_trigger_and_nothing_to_wait_on,
	 a_pooler_in_transaction_mode_changes_nothing_but_the_waking,
	 a_read_only_server_is_down_and_not_used)
