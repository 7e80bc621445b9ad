/* SPDX-License-Identifier: MIT */
/* The MySQL store on a real server: lost connections, locks, hostile settings, refusals. */
#include "mysql_fixture.h"
#include "run.h"

#include <pthread.h>
#include <stdlib.h>

static const struct ob_uuid me = { { 1, [6] = 0x40, [8] = 0x80 } };

/* What a worker does, on one connection. */
struct worker {
	struct ob_store *store;
	struct ob_batch batch;
	struct ob_arena arena;
	struct ob_lease leases[64];
	size_t lease_count;
	struct ob_settled settled;
	struct ob_err err;
	int result;
};

static void worker_begin(struct worker *w, const char *user)
{
	struct ob_lease *leases;
	uint32_t all;

	*w = (struct worker){ .store = fixture_store(user), .arena = OB_ARENA_INIT(SIZE_MAX / 2) };
	ob_batch_init(&w->batch);
	ok(ob_store_seed(w->store, "default", &all, &fault));
	ok(ob_store_take(w->store, "default", &me, all, 60000, &w->arena, &leases, &w->lease_count,
			 &fault));
	ck_assert_uint_le(w->lease_count, 64);
	for (size_t i = 0; i < w->lease_count; i++)
		w->leases[i] = leases[i];
}

static void worker_end(struct worker *w)
{
	ob_batch_done(&w->batch);
	ob_arena_done(&w->arena);
	ob_store_free(w->store);
}

static int worker_fetch(struct worker *w, uint32_t limit)
{
	uint32_t partitions[64];
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = w->lease_count,
		.limit = limit,
		.max_bytes = 1 << 24,
	};

	for (size_t i = 0; i < w->lease_count; i++)
		partitions[i] = w->leases[i].partition;
	return ob_store_fetch(w->store, &fetch, &w->batch, &w->err);
}

static int worker_settle(struct worker *w, enum ob_outcome_kind kind)
{
	static struct ob_outcome outcomes[2000];
	const struct ob_settle settle = {
		.target = "default",
		.owner = me,
		.leases = w->leases,
		.lease_count = w->lease_count,
		.outcomes = outcomes,
		.outcome_count = w->batch.count,
	};

	for (uint32_t i = 0; i < w->batch.count; i++)
		outcomes[i] = (struct ob_outcome){ .message = &w->batch.messages[i],
						   .kind = kind,
						   .delay_ms = 3600000 };
	return ob_store_settle(w->store, &settle, NULL, &w->settled, &w->err);
}

static void *settle_in_thread(void *arg)
{
	struct worker *w = arg;

	w->result = worker_settle(w, OB_OUTCOME_PUBLISHED);
	return NULL;
}

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
				  .token = me,
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

/* ---- many claimers --------------------------------------------------- */

enum { CLAIMERS = 8, CLAIM_ROWS = 20000 };

struct claimer {
	struct ob_store *store;
	uint8_t number;
	int64_t seqs[CLAIM_ROWS];
	size_t count;
	char trouble[512];
};

static void *run_claimer(void *arg)
{
	struct claimer *c = arg;
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch batch;
	struct ob_claim claim = { .target = "default",
				  .worker = "w",
				  .limit = 50,
				  .max_bytes = 1 << 24,
				  .ttl_ms = 600000 };

	ob_batch_init(&batch);
	do {
		claim.token = (struct ob_uuid){ { c->number, (uint8_t)(c->count & 0xff),
						  (uint8_t)(c->count >> 8), 1 } };
		if (ob_store_claim(c->store, &claim, &batch, &err) < 0) {
			(void)snprintf(c->trouble, sizeof(c->trouble), "%s", err.msg);
			break;
		}
		for (uint32_t i = 0; i < batch.count && c->count < CLAIM_ROWS; i++)
			c->seqs[c->count++] = batch.messages[i].seq;
	} while (batch.count > 0);
	ob_batch_done(&batch);
	return NULL;
}

OB_TEST(eight_claimers_get_twenty_thousand_rows_each_once)
{
	static struct claimer claimers[CLAIMERS];
	static bool seen[CLAIM_ROWS * 4];
	pthread_t threads[CLAIMERS];
	size_t count = 0;

	fixture_begin(16);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq %% 500, 'e', '{}' FROM seq_1_to_%d",
	    CLAIM_ROWS);
	for (int i = 0; i < CLAIMERS; i++) {
		claimers[i].store = fixture_store("root");
		claimers[i].number = (uint8_t)(i + 1);
	}
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_claimer, &claimers[i]), 0);
	for (int i = 0; i < CLAIMERS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		ck_assert_msg(!claimers[i].trouble[0], "%s", claimers[i].trouble);
		for (size_t k = 0; k < claimers[i].count; k++) {
			ck_assert_int_lt(claimers[i].seqs[k], CLAIM_ROWS * 4);
			ck_assert(!seen[claimers[i].seqs[k]]);
			seen[claimers[i].seqs[k]] = true;
		}
		count += claimers[i].count;
		ob_store_free(claimers[i].store);
	}
	ck_assert_uint_eq(count, CLAIM_ROWS);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_fetch_reads_no_more_rows_than_it_returns)
{
	static const char reads[] =
		"SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS "
		"WHERE VARIABLE_NAME IN ('HANDLER_READ_NEXT', 'HANDLER_READ_KEY', "
		"'HANDLER_READ_RND')";
	struct worker w;

	fixture_begin(4);
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload, status, "
	    "published_at) SELECT 'order', seq, 'e', '{}', 1, UTC_TIMESTAMP(6) FROM "
	    "seq_1_to_5000");
	sql(admin,
	    "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT 'order', seq, 'e', '{}' FROM seq_1_to_2000");
	worker_begin(&w, "root");
	ok(worker_fetch(&w, 400)); /* prepares the statements */
	long long before = number(admin, reads);
	long long own = number(admin, reads) - before;
	before = number(admin, reads);
	ok(worker_fetch(&w, 400));
	long long after = number(admin, reads) - before - own;
	ck_assert_uint_eq(w.batch.count, 400);
	/* Each row once in the index and once by its number, and a few to begin. */
	ck_assert_msg(after <= 2 * 400 + 50, "%lld reads", after);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- what is refused ------------------------------------------------- */

static void expect_refused(const char *url, const char *option, const char *value,
			   enum ob_err_kind kind, const char *message)
{
	const struct ob_opt_value options[] = { { option, value } };
	const struct ob_store_conf conf = { .url = url,
					    .options = options,
					    .option_count = option ? 1 : 0 };
	struct ob_store *store = NULL;

	ck_assert_int_lt(ob_store_connect(&conf, &store, &fault), 0);
	ck_assert_int_eq(fault.kind, kind);
	ck_assert_msg(strstr(fault.msg, message), "'%s' is not in: %s", message, fault.msg);
	ck_assert_msg(!strstr(fault.msg, "s3cret"), "%s", fault.msg);
}

OB_TEST(an_address_that_is_wrong_is_named_without_its_password)
{
	char url[256], path[128];

	fixture_begin(0);
	(void)mysql_server_socket(&server, path);
	expect_refused("mysql:shop", NULL, NULL, OB_ERR_FATAL, "has no //");
	expect_refused("mysql://u:s3cret@h:99999/d", NULL, NULL, OB_ERR_FATAL,
		       "has a port that is not between 1 and 65535");
	expect_refused("mysql://u:s3cret@h:x/d", NULL, NULL, OB_ERR_FATAL,
		       "has a port that is no number");
	expect_refused("mysql://u:s3cret@h", NULL, NULL, OB_ERR_FATAL, "names no database");
	expect_refused("mysql://u:s3cret%zz@h/d", NULL, NULL, OB_ERR_FATAL, "two hex digits");
	expect_refused("mysql://u:s3cret@h/d?sokcet=x", NULL, NULL, OB_ERR_FATAL,
		       "has an option 'sokcet' that a mysql store does not know");
	expect_refused("mysql://u:s3cret@127.0.0.1:1/d", NULL, NULL, OB_ERR_DOWN,
		       "connecting: 127.0.0.1:1, database 'd': Can't connect");
	(void)snprintf(url, sizeof(url), "mariadb://root:s3cret@/%s?socket=%s", database, path);
	sql(admin, "CREATE OR REPLACE USER shop@localhost IDENTIFIED BY 'right'");
	(void)snprintf(url, sizeof(url), "mysql://shop@/%s?socket=%s", database, path);
	expect_refused(url, "password", "s3cret", OB_ERR_FATAL,
		       "Access denied for user 'shop'@'localhost' (using password: YES); correct "
		       "the user and the password of the store");
	mysql_server_url(&server, "root", "nowhere", url);
	expect_refused(url, NULL, NULL, OB_ERR_FATAL,
		       "Unknown database 'nowhere'; create the database, or correct its name in "
		       "the url");
	fixture_end();
}
OB_TEST_END

static void expect_check(struct ob_store *store, const char *message)
{
	ck_assert_int_lt(ob_store_check(store, &fault), 0);
	ck_assert_int_eq(fault.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(fault.msg, message), "'%s' is not in: %s", message, fault.msg);
}

OB_TEST(a_server_that_breaks_a_promise_is_refused_at_the_start)
{
	fixture_begin(2);
	struct ob_store *store = fixture_store("root");
	ok(ob_store_check(store, &fault));
	sql(admin, "SET GLOBAL read_only = 1");
	expect_check(store, "the server is read-only, perhaps a replica");
	sql(admin, "SET GLOBAL read_only = 0, sql_mode = ''");
	expect_check(store, "add STRICT_TRANS_TABLES to the global sql_mode");
	sql(admin, "SET GLOBAL sql_mode = DEFAULT, auto_increment_increment = 2");
	expect_check(store, "auto_increment_increment is 2");
	sql(admin, "SET GLOBAL auto_increment_increment = 1");
	ok(ob_store_check(store, &fault));
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(tables_that_are_not_as_they_must_be_are_refused_and_mended)
{
	const struct ob_setup setup = { .partition_count = 2 };
	struct ob_setup_done done;

	fixture_begin(2);
	struct ob_store *store = fixture_store("root");
	sql(admin, "ALTER TABLE outbox DROP KEY outbox_ready");
	expect_check(store, "index 'outbox_ready' is missing: run `outbox setup`");
	ok(ob_store_setup(store, &setup, &done, &fault));
	ok(ob_store_check(store, &fault));
	sql(admin, "DROP TABLE outbox_workers");
	expect_check(store, "table 'outbox_workers' is missing; run `outbox setup`");
	ok(ob_store_setup(store, &setup, &done, &fault));
	ok(ob_store_check(store, &fault));
	sql(admin, "ALTER TABLE outbox_workers ENGINE=MyISAM");
	expect_check(store, "run ALTER TABLE outbox_workers ENGINE=InnoDB");
	sql(admin, "ALTER TABLE outbox_workers ENGINE=InnoDB");
	sql(admin, "ALTER TABLE outbox MODIFY payload LONGBLOB");
	expect_check(store, "column 'payload' of table 'outbox' is longblob, but must be longtext");
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_foreign_table_under_our_name_is_left_alone)
{
	const struct ob_setup setup = { .partition_count = 2 };
	struct ob_setup_done done;

	fixture_begin(0);
	struct ob_store *store = fixture_store("root");
	sql(admin, "CREATE TABLE outbox (id INT PRIMARY KEY)");
	ck_assert_int_eq(ob_store_setup(store, &setup, &done, &fault), OUTBOX_ESCHEMA);
	ck_assert_msg(strstr(fault.msg, "table 'outbox' has no column"), "%s", fault.msg);
	ck_assert_str_eq(text(admin, "SHOW TABLES"), "outbox");
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(missing_rights_are_named)
{
	struct worker w;

	fixture_begin(2);
	sql(admin, "CREATE OR REPLACE USER poor@localhost");
	sql(admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON %s.outbox_partitions TO poor@localhost",
	    database);
	sql(admin, "GRANT SELECT ON %s.outbox_meta TO poor@localhost", database);
	worker_begin(&w, "poor");
	ck_assert_int_eq(worker_fetch(&w, 1), OUTBOX_ESTORE);
	ck_assert_int_eq(w.err.kind, OB_ERR_FATAL);
	ck_assert_msg(strstr(w.err.msg, "grant this user SELECT, INSERT, UPDATE and DELETE"), "%s",
		      w.err.msg);
	worker_end(&w);
	fixture_end();
}
OB_TEST_END

/* ---- setup and resize ------------------------------------------------ */

static void *run_setup(void *arg)
{
	const struct ob_setup setup = { .partition_count = 4 };
	struct ob_setup_done done;
	struct worker *w = arg;

	w->result = ob_store_setup(w->store, &setup, &done, &w->err);
	return NULL;
}

OB_TEST(setups_that_run_at_once_make_one_schema)
{
	static struct worker workers[4];
	pthread_t threads[4];

	fixture_begin(0);
	for (int i = 0; i < 4; i++)
		workers[i].store = fixture_store("root");
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_setup, &workers[i]), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_msg(workers[i].result == 0, "%s", workers[i].err.msg);
	ok(ob_store_check(workers[0].store, &fault));
	for (int i = 0; i < 4; i++)
		ob_store_free(workers[i].store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_setup_that_was_interrupted_is_finished)
{
	const struct ob_setup setup = { .partition_count = 8 };
	struct ob_setup_done done;

	fixture_begin(4);
	struct ob_store *store = fixture_store("root");
	sql(admin, "UPDATE outbox_meta SET value = 0 WHERE name = 'schema_version'");
	sql(admin, "DROP TABLE outbox, outbox_workers");
	sql(admin, "DROP PROCEDURE outbox_push");
	ck_assert_int_lt(ob_store_check(store, &fault), 0);
	ok(ob_store_setup(store, &setup, &done, &fault));
	ck_assert_uint_eq(done.from_version, 0);
	ok(ob_store_check(store, &fault));
	ck_assert_int_eq(number(admin,
				"SELECT value FROM outbox_meta WHERE name = "
				"'partition_count'"),
			 4);
	ob_store_free(store);
	fixture_end();
}
OB_TEST_END

OB_TEST(a_resize_that_was_interrupted_is_noticed_and_finished)
{
	fixture_begin(4);
	struct ob_store *store = fixture_store("root");
	put(store, "a", "k");
	ok(ob_store_resize(store, 7, &fault));
	ok(ob_store_check(store, &fault));
	/* As if the process had died between the ALTER and the commit. */
	sql(admin, "UPDATE outbox_meta SET value = 4 WHERE name = 'partition_count'");
	expect_check(store, "a resize was interrupted; run `outbox partitions resize 7` again");
	ok(ob_store_resize(store, 7, &fault));
	ok(ob_store_check(store, &fault));
	ob_store_free(store);
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
	    a_settle_waits_for_a_takeover_and_then_changes_nothing,
	    a_row_that_commits_late_is_not_missed,
	    an_open_producer_blocks_neither_settling_nor_claiming,
	    eight_claimers_get_twenty_thousand_rows_each_once,
	    a_fetch_reads_no_more_rows_than_it_returns,
	    an_address_that_is_wrong_is_named_without_its_password,
	    a_server_that_breaks_a_promise_is_refused_at_the_start,
	    tables_that_are_not_as_they_must_be_are_refused_and_mended,
	    a_foreign_table_under_our_name_is_left_alone, missing_rights_are_named,
	    setups_that_run_at_once_make_one_schema, a_setup_that_was_interrupted_is_finished,
	    a_resize_that_was_interrupted_is_noticed_and_finished,
	    the_mariadb_client_writes_messages)
