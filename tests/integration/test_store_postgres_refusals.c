/* SPDX-License-Identifier: MIT */
/* The PostgreSQL store: what it refuses and how it says so, and setups of all kinds. */
#include "pg_fixture.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

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
	expect_refused(with, OB_ERR_FATAL, "the server asks for a password; give one in password");
	PQfinish(app);
}
OB_TEST_END

/* The check must refuse, with this message. */
static void expect_check(struct ob_store *store, const char *message)
{
	ck_assert_int_lt(ob_store_check(store, &err), 0);
	ck_assert_str_eq(err.msg, message);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
}

/* What setup cannot mend it refuses as the check does. */
static void expect_both(struct ob_store *store, const char *message)
{
	expect_check(store, message);
	ck_assert_int_lt(store_setup(store, 4), 0);
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
	expect_both(store,
		    "the sequence of column 'seq' of table 'outbox' has CACHE 50: numbers would "
		    "be out of order; run ALTER TABLE outbox ALTER COLUMN seq SET CACHE 1");
	exec(app, "ALTER TABLE outbox ALTER COLUMN seq SET CACHE 1");
	exec(app, "DROP INDEX outbox_late");
	expect_check(store, "index 'outbox_late' is missing: run `outbox setup`");
	ok(store_setup(store, 4));
	exec(app, "DROP INDEX outbox_exceptions_due");
	expect_check(store, "index 'outbox_exceptions_due' is missing: run `outbox setup`");
	ok(store_setup(store, 4));
	ok(ob_store_check(store, &err));
	exec(app, "DROP FUNCTION outbox_push");
	exec(app, "ALTER TABLE outbox ALTER COLUMN payload TYPE jsonb");
	expect_check(store,
		     "column 'payload' of table 'outbox' is jsonb, it must be json; correct "
		     "payload_type in the layout");
	exec(app, "ALTER TABLE outbox ALTER COLUMN payload TYPE json");
	exec(app, "ALTER TABLE outbox ALTER COLUMN seq DROP IDENTITY");
	expect_both(store,
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
			 "table 'outbox' has no column 'txid': it is not ours, or the layout is "
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

/* A failure, a retry by an operator, success, retention: "a" and "b" are of one key. */
static void expect_work(struct ob_store *relay)
{
	const struct ob_decide decide = { .ordering = OB_ORDER_KEY };
	const struct ob_operate retry = { .verb = OB_VERB_RETRY,
					  .filter = { .reader = "default" } };
	const struct ob_retain at_once = { .limit = 100 };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_change changes[2];
	uint64_t changed, refused;
	struct ob_retained done;
	struct worker w;
	bool promote;

	worker_begin(&w, relay, 1, 4);
	ck_assert_str_eq(worker_read(&w, 9), "a b");
	struct ob_promote queue = { batch.messages[0].partition, OB_STR("k") };
	ck_assert(ob_exception_decide(&decide, &batch.messages[0], OB_OUTCOME_RETRY, 3600000,
				      OB_STR("refused"), &changes[0], &promote));
	ck_assert(ob_exception_decide(&decide, &batch.messages[1], OB_OUTCOME_PARK, 0, OB_STR_NULL,
				      &changes[1], &promote));
	ck_assert_uint_eq(worker_settle_with(&w, changes, 2, &queue, 1), 0);
	ck_assert_str_eq(worker_read(&w, 9), "");
	ok(ob_store_operate(relay, &retry, &changed, &refused, &err));
	ck_assert_uint_eq(changed, 1);
	ck_assert_str_eq(worker_read(&w, 9), "a b");
	for (int i = 0; i < 2; i++)
		ck_assert(ob_exception_decide(&decide, &batch.messages[i], OB_OUTCOME_PUBLISHED, 0,
					      OB_STR_NULL, &changes[i], &promote));
	/* The operator's row took the number. */
	ck_assert_uint_eq(worker_settle_with(&w, changes, 2, &queue, 1), 1);
	ck_assert_uint_eq(worker_settle_with(&w, changes, 2, &queue, 1), 0);
	ok(ob_store_retain(relay, &at_once, &arena, &done, &err));
	ck_assert_uint_eq(done.rows, 2);
	ok(ob_store_leave(relay, "default", &w.id, &err));
	worker_end(&w);
	ob_arena_done(&arena);
}

OB_TEST(missing_rights_are_named_with_the_table)
{
	fixture_new();
	PGconn *app = app_open();
	struct ob_store *owner = store_new(4), *relay = NULL;

	exec(app, "CREATE ROLE relay LOGIN");
	ok(ob_store_connect(&(struct ob_store_conf){ .url = url_of("relay") }, &relay, &err));
	expect_check(relay,
		     "user 'relay' may not SELECT, DELETE on table 'outbox'; run GRANT SELECT, "
		     "DELETE ON outbox TO relay");
	exec(app, "GRANT SELECT, DELETE ON outbox TO relay");
	exec(app, "GRANT SELECT, INSERT, DELETE ON outbox_readers, outbox_batches TO relay");
	expect_check(relay,
		     "user 'relay' may not SELECT, INSERT, UPDATE, DELETE on table "
		     "'outbox_exceptions'; run GRANT SELECT, INSERT, UPDATE, DELETE ON "
		     "outbox_exceptions TO relay");
	exec(app,
	     "GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_exceptions, outbox_workers, "
	     "outbox_leases, outbox_throughput, outbox_audit TO relay");
	exec(app, "GRANT SELECT ON outbox_meta TO relay");
	ok(ob_store_check(relay, &err));
	/* These are enough for the whole of its work, also without a look at the sequence. */
	put(owner, "a", "k");
	put(owner, "b", "k");
	expect_work(relay);
	exec(app, "REVOKE INSERT ON outbox_batches FROM relay");
	put(owner, "c", "k");
	struct worker w;
	exec(app, "GRANT INSERT ON outbox_batches TO relay");
	worker_begin(&w, relay, 2, 4);
	exec(app, "REVOKE INSERT ON outbox_batches FROM relay");
	ck_assert_str_eq(worker_read(&w, 9), "c");
	struct ob_settle_part part = { .partition = w.parts[0].partition,
				       .epoch = w.parts[0].epoch,
				       .batch = w.parts[0].batch + 1,
				       .progress = w.parts[0].at };
	struct ob_settle settle = {
		.reader = "default", .owner = w.id, .parts = &part, .part_count = 1
	};
	ck_assert_int_lt(ob_store_settle(relay, &settle, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_str_eq(err.msg,
			 "settling: permission denied for table outbox_batches; grant this user "
			 "SELECT, INSERT, UPDATE and DELETE on the outbox tables");
	worker_end(&w);
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
	ck_assert_int_lt(read_one(relay), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "row-level security"));
	exec(app, "DROP OWNED BY hidden; DROP ROLE hidden");
	ob_store_free(relay);
	ob_store_free(owner);
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
	ok(ob_store_setup_sql(store->ops, NULL, &(struct ob_setup){ .partition_count = 8 }, &sql,
			      &err));
	PGresult *result = PQexec(app, ob_buf_str(&sql));
	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(app));
	PQclear(result);
	ok(ob_store_check(store, &err));
	struct ob_setup_done done;
	ok(ob_store_setup(store, &(struct ob_setup){ .partition_count = 4 }, &done, &err));
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
	ck_assert_str_eq(delivered(store), "plain called late");
	/* A priority has a lane of its own. */
	ck_assert_uint_eq(batch.messages[0].partition + 4, batch.messages[1].partition);
	ck_assert(ob_str_eq(batch.messages[0].payload, OB_STR("{\"a\": 1}")));
	ck_assert(ob_str_eq(batch.messages[1].headers, OB_STR("{\"h\":\"x\"}")));
	ck_assert(batch.messages[2].delayed);
	ob_store_free(store);
	PQfinish(app);
}
OB_TEST_END

PG_SUITE("store_postgres_refusals", who_cannot_connect_is_told_what_to_do,
	 a_wrong_password_is_told_and_never_shown, what_the_promises_rest_on_is_checked_one_by_one,
	 a_foreign_table_under_our_name_is_left_alone, missing_rights_are_named_with_the_table,
	 a_policy_that_hides_rows_is_an_error_and_not_silence,
	 the_printed_script_makes_what_setup_makes, setup_may_run_several_times_at_once,
	 any_language_may_write)
