/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store on a real server: what its contract does not cover. */
#include "pg_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ob_uuid uuid(uint8_t n)
{
	return (struct ob_uuid){ { [0] = n, [6] = 0x40, [8] = 0x80 } };
}

/* Take all partitions for a worker; its leases, valid until the end. */
static struct ob_settle hold(struct ob_store *store, uint8_t owner, int64_t ttl_ms)
{
	static struct ob_arena arena = { .max = 1 << 20 };
	struct ob_uuid id = uuid(owner);
	struct ob_lease *leases;
	size_t count;
	uint32_t all;

	ok(ob_store_seed(store, "default", &all, &err));
	ok(ob_store_take(store, "default", &id, all, ttl_ms, &arena, &leases, &count, &err));
	return (struct ob_settle){
		.target = "default", .owner = id, .leases = leases, .lease_count = count
	};
}

/* Settle the whole batch as published. */
static struct ob_settled publish(struct ob_store *store, struct ob_settle settle)
{
	struct ob_outcome outcomes[16];
	struct ob_settled settled;

	ck_assert_uint_le(batch.count, 16);
	for (uint32_t i = 0; i < batch.count; i++)
		outcomes[i] = (struct ob_outcome){ .message = &batch.messages[i] };
	settle.outcomes = outcomes;
	settle.outcome_count = batch.count;
	ok(ob_store_settle(store, &settle, NULL, &settled, &err));
	return settled;
}

/* ---- what is refused, and how ---------------------------------------- */

OB_TEST(who_cannot_connect_is_told_what_to_do)
{
	char wrong[256];

	fixture_new();
	PGconn *app = app_open();
	(void)snprintf(wrong, sizeof(wrong), "postgresql://postgres@/nowhere?host=%s&port=%d",
		       server.dir, server.port);
	expect_refused(wrong, OB_ERR_FATAL,
		       "connecting: database \"nowhere\" does not exist; create the database, or "
		       "correct its name");
	ck_assert_str_eq(err.native, "3D000");
	expect_refused(
		url_of("nobody"), OB_ERR_FATAL,
		"connecting: role \"nobody\" does not exist; correct the user, or let it in by "
		"the server's pg_hba.conf");
	ck_assert_str_eq(err.native, "28000");
	expect_refused("postgresql://127.0.0.1:1/x", OB_ERR_DOWN, "Connection refused");
	expect_refused("postgresql://u:geheim%zz@h/d", OB_ERR_FATAL, "url is no PostgreSQL URL");
	ck_assert_ptr_null(strstr(err.msg, "geheim"));
	PQfinish(app);
}
OB_TEST_END

/* The server asks for a password over TCP. */
OB_TEST(a_wrong_password_is_told_and_never_shown)
{
	char hba[160], with[256];

	fixture_new();
	PGconn *app = app_open();
	exec(app, "CREATE ROLE guarded LOGIN PASSWORD 'right'");
	(void)snprintf(hba, sizeof(hba), "%s/data/pg_hba.conf", server.dir);
	FILE *file = fopen(hba, "we");
	ck_assert_ptr_nonnull(file);
	(void)fprintf(file, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
	ck_assert_int_eq(fclose(file), 0);
	exec(app, "SELECT pg_reload_conf()");
	/* The reload is asynchronous: ask until it shows. */
	while (number(app, "SELECT count(*) FROM pg_hba_file_rules") != 2)
		(void)poll(NULL, 0, 5);
	const char *name = text(app, "SELECT current_database()");
	(void)snprintf(with, sizeof(with), "postgresql://guarded:wr0ng@127.0.0.1:%d/%s",
		       server.port, name);
	/* The postmaster may still use the old rules for a moment. */
	struct ob_store *early = NULL;
	while (ob_store_connect(&(struct ob_store_conf){ .url = with }, &early, &err) == 0) {
		ob_store_free(early);
		(void)poll(NULL, 0, 5);
	}
	expect_refused(with, OB_ERR_FATAL,
		       "password authentication failed for user \"guarded\"; "
		       "correct the user or the password");
	ck_assert_str_eq(err.native, "28P01");
	ck_assert_ptr_null(strstr(err.msg, "wr0ng"));
	(void)snprintf(with, sizeof(with), "postgresql://guarded@127.0.0.1:%d/%s", server.port,
		       name);
	expect_refused(with, OB_ERR_FATAL, "the server asks for a password; give one in the url");
	PQfinish(app);
}
OB_TEST_END

/* Check and setup must both refuse, with this message. */
static void expect_check(struct ob_store *store, const char *message)
{
	ck_assert_int_lt(ob_store_check(store, &err), 0);
	ck_assert_str_eq(err.msg, message);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
}

OB_TEST(what_the_promises_rest_on_is_checked_one_by_one)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_open();
	char missing[256];

	(void)snprintf(missing, sizeof(missing),
		       "database '%s': table 'outbox' is missing; run `outbox "
		       "setup`",
		       text(app, "SELECT current_database()"));
	expect_check(store, missing);
	ok(store_setup(store, 4));
	ok(ob_store_check(store, &err));

	exec(app, "ALTER TABLE outbox ALTER COLUMN seq SET CACHE 50");
	expect_check(store,
		     "the sequence of column 'seq' of table 'outbox' has CACHE 50: numbers would "
		     "be out of order; run ALTER TABLE outbox ALTER COLUMN seq SET CACHE 1");
	exec(app, "ALTER TABLE outbox ALTER COLUMN seq SET CACHE 1");
	exec(app, "DROP INDEX outbox_ready");
	expect_check(store, "index 'outbox_ready' is missing: run `outbox setup`");
	ok(store_setup(store, 4));
	ok(ob_store_check(store, &err));
	exec(app, "DROP FUNCTION outbox_push");
	exec(app, "ALTER TABLE outbox ALTER COLUMN payload TYPE jsonb");
	expect_check(store,
		     "column 'payload' of table 'outbox' is jsonb, it must be json; correct "
		     "payload_type in the layout");
	exec(app, "ALTER TABLE outbox ALTER COLUMN payload TYPE json");
	exec(app, "ALTER TABLE outbox ALTER COLUMN seq DROP IDENTITY");
	expect_check(store,
		     "column 'seq' of table 'outbox' is no identity: its numbers would not tell "
		     "the order of messages; move the rows to a table made by `outbox setup`");
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(a_foreign_table_under_our_name_is_left_alone)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_open();

	exec(app, "CREATE TABLE outbox (id int, note text)");
	ck_assert_int_eq(store_setup(store, 4), OUTBOX_ESCHEMA);
	ck_assert_str_eq(err.msg,
			 "table 'outbox' has no column 'seq': it is not ours, or the layout is "
			 "not the one it was made with; correct the layout or choose another "
			 "table name");
	ck_assert_int_eq(number(app,
				"SELECT count(*) FROM pg_class WHERE relname LIKE 'outbox%' AND "
				"relkind = 'r'"),
			 1);
	exec(app, "DROP TABLE outbox; CREATE VIEW outbox AS SELECT 1");
	ck_assert_int_eq(store_setup(store, 4), OUTBOX_ESCHEMA);
	ck_assert_str_eq(err.msg,
			 "'outbox' exists and is no table: choose another table name in the "
			 "layout");
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(missing_rights_are_named_with_the_table)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *owner = store_new(4), *relay = NULL;

	exec(app, "CREATE ROLE relay LOGIN");
	ok(ob_store_connect(&(struct ob_store_conf){ .url = url_of("relay") }, &relay, &err));
	expect_check(relay,
		     "user 'relay' may not SELECT, UPDATE, DELETE on table 'outbox'; run GRANT "
		     "SELECT, UPDATE, DELETE ON outbox TO relay");
	exec(app, "GRANT SELECT, UPDATE, DELETE ON outbox TO relay");
	expect_check(relay,
		     "user 'relay' may not SELECT, INSERT, UPDATE, DELETE on table "
		     "'outbox_workers'; run GRANT SELECT, INSERT, UPDATE, DELETE ON "
		     "outbox_workers TO relay");
	exec(app,
	     "GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_workers, outbox_partitions, "
	     "outbox_throughput TO relay");
	exec(app, "GRANT SELECT ON outbox_meta TO relay");
	ok(ob_store_check(relay, &err));
	/* These are enough for the whole of its work. */
	put(owner, "a", "k");
	struct ob_settle settle = hold(relay, 1, 60000);
	ck_assert_str_eq(fetched(relay), "a");
	ck_assert_uint_eq(publish(relay, settle).applied, 1);
	exec(app, "REVOKE UPDATE ON outbox FROM relay");
	put(owner, "b", "k");
	ck_assert_str_eq(fetched(relay), "b");
	struct ob_outcome outcome = { .message = &batch.messages[0] };
	struct ob_settled settled;
	settle.outcomes = &outcome;
	settle.outcome_count = 1;
	ck_assert_int_lt(ob_store_settle(relay, &settle, NULL, &settled, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_str_eq(err.msg,
			 "settling: permission denied for table outbox; grant this user SELECT, "
			 "INSERT, UPDATE and DELETE on the outbox tables");
	exec(app, "DROP OWNED BY relay; DROP ROLE relay");
	ob_store_free(relay);
	ob_store_free(owner);
	PQfinish(app);
}
OB_TEST_END

OB_TEST(a_policy_that_hides_rows_is_an_error_and_not_silence)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *owner = store_new(4), *relay = NULL;

	exec(app,
	     "CREATE ROLE hidden LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO hidden;"
	     "ALTER TABLE outbox ENABLE ROW LEVEL SECURITY");
	ok(ob_store_connect(&(struct ob_store_conf){ .url = url_of("hidden") }, &relay, &err));
	const uint32_t first = 0;
	const struct ob_fetch fetch = {
		.target = "default", .partitions = &first, .partition_count = 1, .limit = 1
	};
	ck_assert_int_lt(ob_store_fetch(relay, &fetch, &batch, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "row-level security"));
	exec(app, "DROP OWNED BY hidden; DROP ROLE hidden");
	ob_store_free(relay);
	ob_store_free(owner);
	PQfinish(app);
}
OB_TEST_END

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

/* ---- setup ----------------------------------------------------------- */

OB_TEST(the_printed_script_makes_what_setup_makes)
{
	struct ob_buf sql = OB_BUF_INIT(1 << 20);

	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_open();
	ok(ob_store_setup_sql(store->ops, NULL, &(struct ob_setup){ 8 }, &sql, &err));
	PGresult *result = PQexec(app, ob_buf_str(&sql));
	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(app));
	PQclear(result);
	ok(ob_store_check(store, &err));
	struct ob_setup_done done;
	ok(ob_store_setup(store, &(struct ob_setup){ 4 }, &done, &err));
	ck_assert_uint_eq(done.from_version, OB_SCHEMA_VERSION);
	uint32_t count;
	ok(ob_store_seed(store, "default", &count, &err));
	ck_assert_uint_eq(count, 8);
	ob_buf_done(&sql);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* Eight processes at once; each must find or make the whole schema. */
OB_TEST(setup_may_run_several_times_at_once)
{
	fixture_new();
	pid_t pids[8];

	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct ob_store *mine = store_open();
			int r = store_setup(mine, 4);

			ob_store_free(mine);
			_exit(r < 0);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status = -1;

		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	struct ob_store *store = store_open();
	ok(ob_store_check(store, &err));
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(any_language_may_write)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);

	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES "
	     "('order', '1', 'plain', '{\"a\": 1}')");
	exec(app,
	     "SELECT outbox_push('order', '1', 'called', '{\"b\":2}', '{\"h\":\"x\"}', "
	     "delay => NULL, priority => 3)");
	exec(app, "SELECT outbox_push('order', '1', 'late', '1', delay => interval '1 hour')");
	ck_assert_str_eq(fetched(store), "called plain");
	ck_assert_uint_eq(batch.messages[0].partition, batch.messages[1].partition);
	ck_assert(ob_str_eq(batch.messages[1].payload, OB_STR("{\"a\": 1}")));
	ck_assert(ob_str_eq(batch.messages[0].headers, OB_STR("{\"h\":\"x\"}")));
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

/* The plan of a fetch as the store sends it, by a server that logs plans. */
OB_TEST(a_fetch_reads_the_ready_index_and_little_else)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *store = store_new(4);
	char name[64];

	ob_store_free(store);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, status, "
	     "published_at) SELECT 't', i::text, 'e', '{}', 1, now() FROM generate_series(1, "
	     "20000) i");
	exec(app,
	     "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) SELECT 't', "
	     "i::text, 'e', '{}' FROM generate_series(1, 5000) i");
	exec(app, "VACUUM ANALYZE outbox");
	(void)snprintf(name, sizeof(name), "%s", text(app, "SELECT current_database()"));
	exec(app, "SELECT pg_stat_reset()");
	store = store_open();
	const uint32_t all[] = { 0, 1, 2, 3 };
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = all,
		.partition_count = 4,
		.limit = 100,
		.max_bytes = 1 << 20,
	};
	ok(ob_store_fetch(store, &fetch, &batch, &err));
	ck_assert_uint_eq(batch.count, 100);
	ob_store_free(store); /* its end writes what it counted */
	while (number(app,
		      "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = "
		      "'outbox_ready'") == 0)
		(void)poll(NULL, 0, 5);
	ck_assert_int_eq(number(app,
				"SELECT seq_scan FROM pg_stat_user_tables WHERE relname = "
				"'outbox'"),
			 0);
	ck_assert_int_le(number(app,
				"SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname "
				"= 'outbox_ready'"),
			 110);
	ck_assert_int_le(number(app,
				"SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname "
				"= 'outbox'"),
			 120);
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
	int port = pg_server_free_port();
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

/* ---- claims ---------------------------------------------------------- */

enum { CLAIMERS = 8, CLAIM_ROWS = 20000 };

static atomic_uint claimed_by[CLAIM_ROWS + 1];

static void *claim_all(void *arg)
{
	struct ob_store *mine = arg;
	struct ob_err my_err = OB_ERR_INIT;
	struct ob_batch rows;
	int r = 0;

	ob_batch_init(&rows);
	do {
		struct ob_claim claim = {
			.target = "default",
			.token = ob_uuid_new(),
			.worker = "w",
			.limit = 100,
			.max_bytes = 1 << 20,
			.ttl_ms = 60000,
		};

		r = ob_store_claim(mine, &claim, &rows, &my_err);
		for (uint32_t i = 0; r >= 0 && i < rows.count; i++)
			(void)atomic_fetch_add(&claimed_by[rows.messages[i].seq], 1);
	} while (r >= 0 && rows.count > 0);
	ob_batch_done(&rows);
	return r < 0 ? arg : NULL;
}

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	pthread_t threads[CLAIMERS];
	struct ob_store *stores[CLAIMERS];

	fixture_new();
	PGconn *app = app_open();
	for (int i = 0; i < CLAIMERS; i++)
		stores[i] = i ? store_open() : store_new(4);
	exec(app,
	     "INSERT INTO outbox (aggregate_type, event_type, payload) SELECT 't', 'e', '{}' FROM "
	     "generate_series(1, %d)",
	     CLAIM_ROWS);
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, claim_all, stores[i]), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		void *failed;

		ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
		ck_assert_ptr_null(failed);
	}
	for (int i = 1; i <= CLAIM_ROWS; i++)
		ck_assert_uint_eq(claimed_by[i], 1);
	for (int i = 0; i < CLAIMERS; i++)
		ob_store_free(stores[i]);
	PQfinish(app);
}
OB_TEST_END

PG_SUITE("store_postgres", who_cannot_connect_is_told_what_to_do,
	 a_wrong_password_is_told_and_never_shown, what_the_promises_rest_on_is_checked_one_by_one,
	 a_foreign_table_under_our_name_is_left_alone, missing_rights_are_named_with_the_table,
	 a_policy_that_hides_rows_is_an_error_and_not_silence,
	 hostile_session_defaults_change_nothing, tables_live_in_the_schema_of_the_layout,
	 a_row_that_commits_late_is_not_lost, producers_that_waited_for_a_lock_keep_their_order,
	 a_zombie_changes_nothing_after_a_takeover,
	 a_killed_connection_is_down_once_and_then_made_again,
	 a_statement_that_takes_too_long_is_ended_by_the_server, a_crash_of_the_server_is_survived,
	 a_commit_wakes_a_waiting_store, without_notify_there_is_no_trigger_and_nothing_to_wait_on,
	 the_printed_script_makes_what_setup_makes, setup_may_run_several_times_at_once,
	 any_language_may_write, a_fetch_reads_the_ready_index_and_little_else,
	 a_pooler_in_transaction_mode_changes_nothing_but_the_waking,
	 a_read_only_server_is_down_and_not_used,
	 eight_workers_claim_twenty_thousand_rows_once_each)
