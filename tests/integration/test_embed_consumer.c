/* SPDX-License-Identifier: MIT */
/* The consumer inside a program: a Redis stream to a function, counted once in SQLite. */
#include "outbox/consumer.h"
#include "outbox/inbox.h"
#include "outbox/sqlite.h"
#include "redis_server.h"
#include "run.h"
#include "store/inbox.h"
#include "suite.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>

static struct redis_server redis;
static char dir[64], url[128], source[256];
static sqlite3 *db; /* the test's own connection */
static outbox_consumer *consumer;
static struct outbox_error error;
static int calls; /* of handlers on the test's own thread */
static atomic_int inside;

static void run_sql(const char *sql)
{
	char *why = NULL;

	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
}

static int64_t ask_sql(const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return value;
}

static void begin(void)
{
	struct ob_setup setup = { .partition_count = 4, .inbox = true };
	struct ob_setup_done done;
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *store = NULL;

	redis = (struct redis_server){ 0 };
	redis_server_start(&redis);
	ob_temp_dir(dir);
	(void)snprintf(url, sizeof(url), "sqlite:%s/billing.db", dir);
	(void)snprintf(source, sizeof(source), "{ type: redis, url: 'unix://%s', stream: orders }",
		       redis.socket);
	int r = ob_store_connect(&(struct ob_store_conf){ .url = url }, &store, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	r = ob_store_setup(store, &setup, &done, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	ob_store_free(store);
	ck_assert_int_eq(sqlite3_open(url + strlen("sqlite:"), &db), SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 60000);
	run_sql("CREATE TABLE paid (n INTEGER PRIMARY KEY, key TEXT NOT NULL, payload TEXT NOT "
		"NULL)");
}

static void end(void)
{
	outbox_consumer_free(consumer);
	consumer = NULL;
	(void)sqlite3_close(db);
	ob_temp_dir_remove(dir);
	redis_server_end(&redis);
}

/* The id ends in that number. */
static void add(unsigned number, const char *key, const char *payload)
{
	char id[40];

	(void)snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012u", number);
	redis_do(&redis, "XADD", "orders", "*", "id", id, "event_type", "Paid", "aggregate_type",
		 "order", "aggregate_id", key, "revision", "1", "key", key, "payload", payload,
		 NULL);
}

static void start(struct outbox_consumer_options options)
{
	options.store = url;
	options.name = "billing";
	options.source = source;
	int r = outbox_consumer_new(&options, &consumer, &error);
	ck_assert_msg(r == OUTBOX_OK, "%s", error.message);
}

static void once(int want)
{
	int r = outbox_consumer_process_once(consumer, &error);

	ck_assert_msg(r == want, "%d, not %d: %s", r, want, r < 0 ? error.message : "");
}

static enum outbox_relay_result insert(sqlite3 *to, const struct outbox_relay_message *m)
{
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(sqlite3_prepare_v2(to, "INSERT INTO paid (key, payload) VALUES (?1, ?2)",
					    -1, &stmt, NULL),
			 SQLITE_OK);
	(void)sqlite3_bind_text(stmt, 1, m->key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 2, m->payload, (int)m->payload_size, SQLITE_STATIC);
	int r = sqlite3_step(stmt);
	(void)sqlite3_finalize(stmt);
	return r == SQLITE_DONE ? OUTBOX_RELAY_OK : OUTBOX_RELAY_RETRY;
}

static bool says(const struct outbox_relay_message *m, const char *payload)
{
	return m->payload_size == strlen(payload) &&
	       memcmp(m->payload, payload, m->payload_size) == 0;
}

/* In the consumer's transaction: what it writes of a message that fails is undone. */
static enum outbox_relay_result pay(void *arg, const struct outbox_relay_message *m,
				    outbox_relay_call *call)
{
	enum outbox_relay_result r = insert(outbox_relay_connection(call), m);

	(void)arg;
	if (says(m, "\"bad\"")) {
		outbox_relay_reason(call, "no money");
		return OUTBOX_RELAY_RETRY;
	}
	return says(m, "\"worse\"") ? OUTBOX_RELAY_REJECT : r;
}

OB_TEST(in_the_transaction_each_message_has_its_effect_once)
{
	begin();
	add(1, "a", "1");
	add(2, "b", "2");
	add(1, "a", "1");
	add(3, "a", "3");
	start((struct outbox_consumer_options){ .handler = pay,
						.flags = OUTBOX_CONSUMER_IN_TRANSACTION });
	once(4);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid"), 3);
	ck_assert_int_eq(ask_sql("SELECT group_concat(payload, '') = '13' FROM "
				 "(SELECT payload FROM paid WHERE key = 'a' ORDER BY n)"),
			 1);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_inbox WHERE consumer = 'billing'"),
			 3);
	ck_assert_int_eq(ask_sql("SELECT handled FROM outbox_consumers"), 3);
	ck_assert_int_eq(ask_sql("SELECT duplicates FROM outbox_consumers"), 1);
	add(2, "b", "2");
	once(1);
	once(0);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid"), 3);
	end();
}
OB_TEST_END

OB_TEST(a_failing_message_is_undone_and_parked_with_its_key)
{
	begin();
	add(1, "a", "1");
	add(2, "b", "\"bad\"");
	add(3, "b", "3");
	add(4, "c", "\"worse\"");
	add(5, "a", "5");
	start((struct outbox_consumer_options){ .handler = pay,
						.base_delay_ms = 3600000,
						.flags = OUTBOX_CONSUMER_IN_TRANSACTION });
	once(5);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid"), 2);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid WHERE key = 'a'"), 2);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_parked WHERE queue = 'b'"), 2);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_parked WHERE reason = 'no money' AND "
				 "attempts = 1 AND state = 0"),
			 1);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_parked WHERE state = 2 AND reason = "
				 "'the handler rejected the message'"),
			 1);
	end();
}
OB_TEST_END

OB_TEST(positions_are_written_with_the_effect)
{
	begin();
	add(1, "a", "1");
	add(2, "b", "2");
	start((struct outbox_consumer_options){ .handler = pay,
						.dedup = OUTBOX_CONSUMER_POSITION,
						.flags = OUTBOX_CONSUMER_IN_TRANSACTION });
	once(2);
	once(0);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_positions"), 1);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_inbox"), 0);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid"), 2);
	end();
}
OB_TEST_END

/* On its own connection, with the inbox asked by itself. */
static enum outbox_relay_result ask_inbox(void *arg, const struct outbox_relay_message *m,
					  outbox_relay_call *call)
{
	outbox *ob = arg;
	int is_new = 0;

	ck_assert_ptr_null(outbox_relay_connection(call));
	calls++;
	run_sql("BEGIN IMMEDIATE");
	ck_assert_int_eq(outbox_inbox(ob, "billing", m->id, &is_new, &error), OUTBOX_OK);
	if (is_new)
		(void)insert(db, m);
	run_sql("COMMIT");
	return OUTBOX_RELAY_OK;
}

OB_TEST(a_handler_with_its_own_connection_asks_the_inbox_itself)
{
	outbox *ob = NULL;

	begin();
	ck_assert_int_eq(outbox_sqlite_open(db, NULL, &ob, &error), OUTBOX_OK);
	add(1, "a", "1");
	add(1, "a", "1");
	add(2, "b", "2");
	start((struct outbox_consumer_options){ .handler = ask_inbox, .arg = ob });
	once(3);
	ck_assert_int_eq(calls, 3);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid"), 2);
	outbox_close(ob);
	end();
}
OB_TEST_END

static enum outbox_relay_result stop_at_three(void *arg, const struct outbox_relay_message *m,
					      outbox_relay_call *call)
{
	int *seen = arg;

	(void)m;
	if (++*seen < 3)
		return OUTBOX_RELAY_OK;
	outbox_consumer_stop(consumer);
	ck_assert_int_eq(outbox_relay_stopping(call), 1);
	return *seen == 3 ? OUTBOX_RELAY_OK : OUTBOX_RELAY_RETRY;
}

OB_TEST(a_handler_may_stop_the_run_and_it_may_run_again)
{
	int seen = 0;

	begin();
	for (unsigned i = 1; i <= 5; i++)
		add(i, "a", "1");
	start((struct outbox_consumer_options){ .handler = stop_at_three, .arg = &seen });
	ck_assert_int_eq(outbox_consumer_run(consumer, &error), OUTBOX_OK);
	ck_assert_int_eq(seen, 3);
	/* What it gave up because of the stop is charged nothing, and the lease is free. */
	ck_assert_int_eq(outbox_consumer_run(consumer, &error), OUTBOX_OK);
	ck_assert_int_eq(seen, 4);
	ck_assert_int_eq(ask_sql("SELECT failed FROM outbox_consumers"), 0);
	ck_assert_int_eq(ask_sql("SELECT handled FROM outbox_consumers"), 3);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_parked"), 0);
	/* A stop while nothing runs ends the next run. */
	outbox_consumer_stop(consumer);
	ck_assert_int_eq(outbox_consumer_run(consumer, &error), OUTBOX_OK);
	ck_assert_int_eq(seen, 4);
	end();
}
OB_TEST_END

static enum outbox_relay_result enter(void *arg, const struct outbox_relay_message *m,
				      outbox_relay_call *call)
{
	(void)arg;
	atomic_store(&inside, 1);
	return insert(outbox_relay_connection(call), m);
}

static void *run_consumer(void *arg)
{
	*(int *)arg = outbox_consumer_run(consumer, NULL);
	return NULL;
}

OB_TEST(another_thread_stops_it)
{
	pthread_t thread;
	int result = -1;

	begin();
	start((struct outbox_consumer_options){ .handler = enter,
						.flags = OUTBOX_CONSUMER_IN_TRANSACTION });
	ck_assert_int_eq(pthread_create(&thread, NULL, run_consumer, &result), 0);
	add(1, "a", "1");
	while (!atomic_load(&inside))
		(void)sched_yield();
	outbox_consumer_stop(consumer);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, OUTBOX_OK);
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM paid"), 1);
	ck_assert_int_eq(redis_count(&redis, "XLEN", "orders", NULL), 1);
	end();
}
OB_TEST_END

static enum outbox_relay_result is_down(void *arg, const struct outbox_relay_message *m,
					outbox_relay_call *call)
{
	(void)arg;
	(void)m;
	outbox_relay_reason(call, "the bank is closed");
	return OUTBOX_RELAY_DOWN;
}

OB_TEST(a_handler_that_is_down_costs_no_attempt)
{
	begin();
	add(1, "a", "1");
	start((struct outbox_consumer_options){ .handler = is_down });
	once(OUTBOX_ESINK);
	ck_assert_str_eq(error.message, "the bank is closed");
	ck_assert_int_eq(ask_sql("SELECT count(*) FROM outbox_parked"), 0);
	end();
}
OB_TEST_END

static void refuse(struct outbox_consumer_options options, int status, const char *text)
{
	ck_assert_int_eq(outbox_consumer_new(&options, &consumer, &error), status);
	ck_assert_msg(strstr(error.message, text), "%s", error.message);
}

OB_TEST(wrong_options_are_named)
{
	begin();
	const struct outbox_consumer_options good = {
		.store = url, .name = "billing", .source = source, .handler = pay
	};
	struct outbox_consumer_options bad = good;

	ck_assert_int_eq(outbox_consumer_new(NULL, &consumer, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_consumer_new(&good, NULL, &error), OUTBOX_EINVAL);
	bad.source = NULL;
	refuse(bad, OUTBOX_EINVAL, "store, name, source and handler are required");
	bad.source = "orders";
	refuse(bad, OUTBOX_ECONFIG, "source must be one line");
	bad.source = "{ type: redis, url: 'redis://localhost', stream: a, streem: b }";
	refuse(bad, OUTBOX_ECONFIG, "streem");
	bad = good;
	bad.dedup = OUTBOX_CONSUMER_POSITION;
	refuse(bad, OUTBOX_ECONFIG, "needs OUTBOX_CONSUMER_IN_TRANSACTION");
	bad = good;
	bad.batch_size = 100000;
	refuse(bad, OUTBOX_ECONFIG, "options: batch_size");
	run_sql("DROP TABLE outbox_consumer_members");
	run_sql("DROP TABLE outbox_consumers");
	refuse(good, OUTBOX_ESCHEMA, "outbox setup --inbox");
	end();
}
OB_TEST_END

OB_SUITE("embed_consumer", in_the_transaction_each_message_has_its_effect_once,
	 a_failing_message_is_undone_and_parked_with_its_key, positions_are_written_with_the_effect,
	 a_handler_with_its_own_connection_asks_the_inbox_itself,
	 a_handler_may_stop_the_run_and_it_may_run_again, another_thread_stops_it,
	 a_handler_that_is_down_costs_no_attempt, wrong_options_are_named)
