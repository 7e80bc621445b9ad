/* SPDX-License-Identifier: MIT */
/* The relay inside a program, on SQLite: what handlers see, say and get. */
#include "base/cleanup.h"
#include "outbox/relay.h"
#include "run.h"
#include "store/store.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_MAX = 256 };

static char dir[64], url[128];
static struct ob_store *store;
static outbox_relay *relay;
static const char *reader = "default"; /* whose states are checked */
static struct outbox_error error;

/* What the handler does, and what it saw. */
static struct {
	pthread_mutex_t lock; /* guards seen and the counts */
	char seen[SEEN_MAX][16];
	size_t count;
	uint32_t failures, last_attempt, reports;
	struct outbox_relay_failure failure;
	char reason[600];
	struct outbox_relay_metrics metrics;
	_Atomic bool inside; /* a handler is running */
	int log_lines;
} world = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void begin(void)
{
	struct ob_setup setup = { .partition_count = 4 };
	struct ob_setup_done done;
	struct ob_err err = OB_ERR_INIT;

	ob_temp_dir(dir);
	(void)snprintf(url, sizeof(url), "sqlite:%s/shop.db", dir);
	struct ob_store_conf conf = { .url = url };
	int r = ob_store_connect(&conf, &store, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
	r = ob_store_setup(store, &setup, &done, &err);
	ck_assert_msg(r == 0, "%s", err.msg);
}

static void end(void)
{
	outbox_relay_free(relay);
	ob_store_free(store);
	ob_temp_dir_remove(dir);
}

static void push(const char *key, const char *payload)
{
	struct outbox_message message = { .aggregate_type = "order",
					  .aggregate_id = key,
					  .event_type = "Placed",
					  .payload = payload,
					  .headers = "{\"a\":1}",
					  .correlation_id = "c-1",
					  .sequence_number = 0 };
	struct ob_err err = OB_ERR_INIT;
	struct outbox_id id;
	size_t index;

	ck_assert_int_eq(ob_store_tx_begin(store, &err), 0);
	ck_assert_int_eq(ob_store_tx_push(store, &message, 1, &id, &index, &err), 0);
	ck_assert_int_eq(ob_store_tx_end(store, true, &err), 0);
}

static void start(struct outbox_relay_options options)
{
	options.store = url;
	int r = outbox_relay_new(&options, &relay, &error);
	ck_assert_msg(r == OUTBOX_OK, "%s", error.message);
}

/* Run one tick and demand that it decides so many messages. */
static void once(int want)
{
	int r = outbox_relay_process_once(relay, &error);

	ck_assert_msg(r == want, "%d, not %d: %s", r, want, r < 0 ? error.message : "");
}

/* The row of a payload, with all its fields. */
static struct ob_message row_of(const char *payload, struct ob_batch *batch)
{
	struct ob_filter filter = { .reader = reader };
	struct ob_err err = OB_ERR_INIT;
	int64_t now;

	ck_assert_int_eq(ob_store_list(store, &filter, batch, &now, &err), 0);
	for (uint32_t i = 0; i < batch->count; i++) {
		if (ob_str_eq(batch->messages[i].payload, ob_str(payload)))
			return batch->messages[i];
	}
	ck_abort_msg("no row with %s", payload);
}

static void check_row(const char *payload, enum ob_view view, uint32_t attempts, const char *last)
{
	struct ob_batch batch;

	ob_batch_init(&batch);
	struct ob_message m = row_of(payload, &batch);
	ck_assert_int_eq(m.view, view);
	ck_assert_uint_eq(m.attempts, attempts);
	if (last)
		ck_assert_msg(ob_str_eq(m.last_error, ob_str(last)), "%.*s", (int)m.last_error.n,
			      m.last_error.p);
	else
		ck_assert_ptr_null(m.last_error.p);
	ob_batch_done(&batch);
}

static uint32_t count_rows(enum ob_view view)
{
	struct ob_filter filter = { .reader = reader };
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch batch;
	uint32_t count = 0;
	int64_t now;

	ob_batch_init(&batch);
	ck_assert_int_eq(ob_store_list(store, &filter, &batch, &now, &err), 0);
	for (uint32_t i = 0; i < batch.count; i++)
		count += batch.messages[i].view == view;
	ob_batch_done(&batch);
	return count;
}

/* ---- handlers ------------------------------------------------------------- */

static void note(const struct outbox_relay_message *m)
{
	(void)pthread_mutex_lock(&world.lock);
	if (world.count < SEEN_MAX)
		(void)snprintf(world.seen[world.count++], 16, "%.*s", (int)m->payload_size,
			       (const char *)m->payload);
	(void)pthread_mutex_unlock(&world.lock);
}

/* The payload says what to do. */
static enum outbox_relay_result obedient(void *arg, const struct outbox_relay_message *m,
					 outbox_relay_call *call)
{
	(void)arg;
	note(m);
	if (memmem(m->payload, m->payload_size, "retry", 5))
		return OUTBOX_RELAY_RETRY;
	if (memmem(m->payload, m->payload_size, "reject", 6))
		return OUTBOX_RELAY_REJECT;
	if (memmem(m->payload, m->payload_size, "down", 4))
		return OUTBOX_RELAY_DOWN;
	if (memmem(m->payload, m->payload_size, "why", 3)) {
		outbox_relay_reason(call, "card\n refused");
		return OUTBOX_RELAY_REJECT;
	}
	return OUTBOX_RELAY_OK;
}

static void on_failure(void *arg, const struct outbox_relay_message *m,
		       const struct outbox_relay_failure *failure)
{
	(void)arg;
	(void)m;
	(void)pthread_mutex_lock(&world.lock);
	world.failures++;
	world.last_attempt += failure->is_last != 0;
	world.failure = *failure;
	(void)snprintf(world.reason, sizeof(world.reason), "%s", failure->reason);
	(void)pthread_mutex_unlock(&world.lock);
}

static void on_metrics(void *arg, const struct outbox_relay_metrics *metrics)
{
	(void)arg;
	world.metrics = *metrics;
	world.reports++;
}

/* ---- tests ------------------------------------------------------------------ */

OB_TEST(a_mixed_batch_is_decided_message_by_message)
{
	begin();
	push("1", "\"good\"");
	push("2", "\"retry\"");
	push("3", "\"reject\"");
	push("4", "\"why\"");
	start((struct outbox_relay_options){ .handler = obedient, .on_failure = on_failure });
	once(4);
	check_row("\"good\"", OB_VIEW_PUBLISHED, 0, NULL);
	check_row("\"retry\"", OB_VIEW_FAILED, 1, "the handler failed");
	check_row("\"reject\"", OB_VIEW_DEAD, 1, "the handler rejected the message");
	check_row("\"why\"", OB_VIEW_DEAD, 1, "card  refused");
	ck_assert_uint_eq(world.failures, 3);
	once(0); /* the retry is not due */
	end();
}
OB_TEST_END

static enum outbox_relay_result looks_at_all(void *arg, const struct outbox_relay_message *m,
					     outbox_relay_call *call)
{
	ck_assert_str_eq(arg, "mine");
	ck_assert_uint_eq(strlen(m->id), 36);
	ck_assert_str_eq(m->aggregate_type, "order");
	ck_assert_str_eq(m->aggregate_id, "77");
	ck_assert_str_eq(m->event_type, "Placed");
	ck_assert_str_eq(m->key, "order:77");
	ck_assert_str_eq(m->target, "default");
	ck_assert_str_eq(m->correlation_id, "c-1");
	ck_assert_ptr_null(m->causation_id);
	ck_assert(m->headers_size == 7 && memcmp(m->headers, "{\"a\":1}", 7) == 0);
	ck_assert(m->payload_size == 2 && memcmp(m->payload, "42", 2) == 0);
	ck_assert_int_eq(m->revision, 1);
	ck_assert_uint_eq(m->attempts, 0);
	ck_assert_int_gt(m->created_at_us, 0);
	ck_assert_int_eq(outbox_relay_time_left(call), -1);
	ck_assert_int_eq(outbox_relay_stopping(call), 0);
	return OUTBOX_RELAY_OK;
}

OB_TEST(a_handler_sees_the_whole_message)
{
	static char mine[] = "mine";

	begin();
	push("77", "42");
	start((struct outbox_relay_options){ .handler = looks_at_all, .arg = mine });
	once(1);
	end();
}
OB_TEST_END

OB_TEST(an_empty_tick_reports_zeros_and_the_backoff)
{
	begin();
	start((struct outbox_relay_options){
		.handler = obedient, .metrics = on_metrics, .idle_backoff_ms = 700 });
	once(0);
	ck_assert_uint_eq(world.reports, 1);
	ck_assert_uint_eq(world.metrics.published, 0);
	ck_assert_uint_eq(world.metrics.failed, 0);
	ck_assert_int_eq(world.metrics.backoff_ms, 700);
	ck_assert_int_eq(world.metrics.pending, -1); /* not asked for */
	end();
}
OB_TEST_END

OB_TEST(pending_is_counted_when_asked_for)
{
	begin();
	push("1", "\"retry\"");
	push("1", "\"behind\"");
	push("2", "\"good\"");
	start((struct outbox_relay_options){
		.handler = obedient, .metrics = on_metrics, .flags = OUTBOX_RELAY_SAMPLE_PENDING });
	once(2);
	ck_assert_uint_eq(world.metrics.published, 1);
	ck_assert_uint_eq(world.metrics.retries, 1);
	ck_assert_int_eq(world.metrics.pending, 2);
	ck_assert_int_eq(world.metrics.backoff_ms, 0);
	end();
}
OB_TEST_END

OB_TEST(a_failing_message_holds_its_key_only)
{
	begin();
	push("1", "\"retry\"");
	push("1", "\"a\"");
	push("2", "\"b\"");
	start((struct outbox_relay_options){ .handler = obedient });
	once(2);
	check_row("\"a\"", OB_VIEW_PARKED, 0, NULL);
	check_row("\"b\"", OB_VIEW_PUBLISHED, 0, NULL);
	end();
}
OB_TEST_END

OB_TEST(the_last_attempt_is_said_to_be_the_last)
{
	begin();
	push("1", "\"retry\"");
	start((struct outbox_relay_options){
		.handler = obedient, .on_failure = on_failure, .max_attempts = 1 });
	once(1);
	check_row("\"retry\"", OB_VIEW_DEAD, 1, "the handler failed");
	ck_assert_int_eq(world.failure.is_last, 1);
	ck_assert_uint_eq(world.failure.attempt, 1);
	end();
}
OB_TEST_END

/* Everything is rejected at once: that is an outage, and only what is dead is said to be. */
OB_TEST(a_failure_that_is_an_outage_is_not_said_to_be_the_last)
{
	char key[16];

	begin();
	for (int i = 0; i < 30; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		push(key, "\"reject\"");
	}
	start((struct outbox_relay_options){ .handler = obedient, .on_failure = on_failure });
	once(OUTBOX_ESINK);
	ck_assert_uint_ge(world.failures, 10);
	/* On a slow machine a few are recorded before there are ten of them: then they are dead. */
	ck_assert_uint_eq(world.last_attempt, count_rows(OB_VIEW_DEAD));
	ck_assert_uint_eq(count_rows(OB_VIEW_PENDING), 30 - world.last_attempt);
	ck_assert_uint_gt(count_rows(OB_VIEW_PENDING), 0);
	end();
}
OB_TEST_END

OB_TEST(a_handler_that_is_down_costs_no_attempt)
{
	begin();
	push("1", "\"down\"");
	start((struct outbox_relay_options){ .handler = obedient });
	once(OUTBOX_ESINK);
	ck_assert_ptr_nonnull(strstr(error.message, "what it needs is away"));
	check_row("\"down\"", OB_VIEW_PENDING, 0, NULL);
	end();
}
OB_TEST_END

static enum outbox_relay_result soften(void *arg, const struct outbox_relay_message *m,
				       enum outbox_relay_result result, const char *reason)
{
	(void)arg;
	(void)m;
	ck_assert_str_eq(reason, "the handler rejected the message");
	return result == OUTBOX_RELAY_REJECT ? OUTBOX_RELAY_RETRY : result;
}

OB_TEST(a_classifier_may_change_the_result)
{
	begin();
	push("1", "\"reject\"");
	start((struct outbox_relay_options){
		.handler = obedient, .classify = soften, .on_failure = on_failure });
	once(1);
	check_row("\"reject\"", OB_VIEW_FAILED, 1, "the handler rejected the message");
	ck_assert_int_eq(world.failure.result, OUTBOX_RELAY_RETRY);
	end();
}
OB_TEST_END

static enum outbox_relay_result slow(void *arg, const struct outbox_relay_message *m,
				     outbox_relay_call *call)
{
	(void)arg;
	note(m);
	ck_assert_int_gt(outbox_relay_time_left(call), 0);
	ck_assert_int_le(outbox_relay_time_left(call), 20);
	while (outbox_relay_time_left(call) > 0) {
	}
	return memmem(m->payload, m->payload_size, "late", 4) ? OUTBOX_RELAY_OK
							      : OUTBOX_RELAY_RETRY;
}

OB_TEST(a_timeout_is_cooperative)
{
	begin();
	push("1", "\"late\"");
	push("2", "\"slow\"");
	start((struct outbox_relay_options){
		.handler = slow, .on_failure = on_failure, .handler_timeout_ms = 20 });
	once(2);
	check_row("\"late\"", OB_VIEW_PUBLISHED, 0, NULL);
	check_row("\"slow\"", OB_VIEW_FAILED, 1,
		  "the handler failed after its time of 20 ms was over");
	ck_assert_int_eq(world.failure.timed_out, 1);
	end();
}
OB_TEST_END

/* ---- running and stopping ------------------------------------------------------ */

static void *run_main(void *arg)
{
	int *result = arg;

	*result = outbox_relay_run(relay, &error);
	return NULL;
}

/* Until it is told to stop; then it gives up. */
static enum outbox_relay_result patient(void *arg, const struct outbox_relay_message *m,
					outbox_relay_call *call)
{
	(void)arg;
	(void)m;
	atomic_store(&world.inside, true);
	while (!outbox_relay_stopping(call)) {
	}
	return OUTBOX_RELAY_RETRY;
}

OB_TEST(a_stop_during_a_handler_charges_and_reports_nothing)
{
	pthread_t thread;
	int result = -1;

	begin();
	push("1", "\"x\"");
	start((struct outbox_relay_options){ .handler = patient, .on_failure = on_failure });
	ck_assert_int_eq(pthread_create(&thread, NULL, run_main, &result), 0);
	while (!atomic_load(&world.inside)) {
	}
	outbox_relay_stop(relay);
	(void)pthread_join(thread, NULL);
	ck_assert_msg(result == OUTBOX_OK, "%s", error.message);
	ck_assert_uint_eq(world.failures, 0);
	check_row("\"x\"", OB_VIEW_PENDING, 0, NULL);
	end();
}
OB_TEST_END

static enum outbox_relay_result stops_at_100(void *arg, const struct outbox_relay_message *m,
					     outbox_relay_call *call)
{
	(void)arg;
	(void)call;
	note(m);
	(void)pthread_mutex_lock(&world.lock);
	bool all = world.count == 100;
	(void)pthread_mutex_unlock(&world.lock);
	if (all)
		outbox_relay_stop(relay);
	return OUTBOX_RELAY_OK;
}

static void count_log(void *arg, enum outbox_relay_level level, const char *line)
{
	(void)arg;
	ck_assert(level >= OUTBOX_RELAY_ERROR && level <= OUTBOX_RELAY_DEBUG && *line);
	(void)pthread_mutex_lock(&world.lock);
	world.log_lines++;
	(void)pthread_mutex_unlock(&world.lock);
}

static void run_a_hundred(struct outbox_relay_options options)
{
	begin();
	for (int i = 0; i < 100; i++) {
		char key[16], payload[16];

		(void)snprintf(key, sizeof(key), "%d", i % 10);
		(void)snprintf(payload, sizeof(payload), "%d", i);
		push(key, payload);
	}
	options.handler = stops_at_100;
	options.log = count_log;
	options.metrics = on_metrics;
	start(options);
	int r = outbox_relay_run(relay, &error);
	ck_assert_msg(r == OUTBOX_OK, "%s", error.message);
	ck_assert_uint_eq(world.count, 100);
	ck_assert_uint_eq(world.metrics.published_total, 100);
}

OB_TEST(a_run_delivers_in_order_per_key_until_a_handler_stops_it)
{
	int last[10] = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

	run_a_hundred((struct outbox_relay_options){ .workers = 2 });
	ck_assert_int_gt(world.log_lines, 0);
	for (size_t i = 0; i < world.count; i++) {
		int n = (int)strtol(world.seen[i], NULL, 10);

		ck_assert_int_lt(last[n % 10], n);
		last[n % 10] = n;
	}
	end();
}
OB_TEST_END

OB_TEST(without_order_every_message_comes_once)
{
	bool seen[100] = { false };

	run_a_hundred(
		(struct outbox_relay_options){ .workers = 3, .ordering = OUTBOX_RELAY_UNORDERED });
	for (size_t i = 0; i < world.count; i++) {
		long n = strtol(world.seen[i], NULL, 10);

		ck_assert(!seen[n]);
		seen[n] = true;
	}
	end();
}
OB_TEST_END

static void on_alarm(int signo)
{
	(void)signo;
	outbox_relay_stop(relay); /* NOLINT(bugprone-signal-handler): that it may is the test */
}

OB_TEST(a_signal_handler_may_stop_it_and_it_may_run_again)
{
	begin();
	start((struct outbox_relay_options){ .handler = obedient });
	ck_assert(signal(SIGUSR1, on_alarm) != SIG_ERR);
	ck_assert_int_eq(raise(SIGUSR1), 0); /* before the run: it ends at once */
	ck_assert_int_eq(outbox_relay_run(relay, &error), OUTBOX_OK);
	push("1", "1");
	once(1);
	end();
}
OB_TEST_END

OB_TEST(relays_of_different_names_each_get_every_message)
{
	begin();
	push("1", "1");
	push("2", "2");
	start((struct outbox_relay_options){ .handler = obedient });
	once(2);
	outbox_relay_free(relay);
	start((struct outbox_relay_options){ .handler = obedient });
	once(0); /* the same name: it goes on where the first one was */
	outbox_relay_free(relay);
	start((struct outbox_relay_options){ .handler = obedient, .name = "mail" });
	once(2);
	ck_assert_uint_eq(world.count, 4);
	check_row("1", OB_VIEW_PUBLISHED, 0, NULL);
	reader = "mail";
	check_row("1", OB_VIEW_PUBLISHED, 0, NULL);
	end();
}
OB_TEST_END

OB_TEST(a_relay_gets_what_its_options_let_through)
{
	static const char *const none[] = { "Paid", "Order*" }, *const some[] = { "Pl*" };
	static const char *const orders[] = { "order" };

	begin();
	push("1", "1");
	start((struct outbox_relay_options){
		.handler = obedient, .name = "a", .types = none, .type_count = 2 });
	once(0);
	outbox_relay_free(relay);
	start((struct outbox_relay_options){ .handler = obedient,
					     .name = "b",
					     .types = some,
					     .type_count = 1,
					     .aggregates = orders,
					     .aggregate_count = 1 });
	once(1);
	outbox_relay_free(relay);
	start((struct outbox_relay_options){ .handler = obedient, .name = "c", .reads = "mail" });
	once(0);
	outbox_relay_free(relay);
	start((struct outbox_relay_options){ .handler = obedient, .name = "d", .start = "end" });
	once(0);
	push("1", "2");
	once(1);
	end();
}
OB_TEST_END

OB_TEST(a_dead_message_can_hold_its_key)
{
	begin();
	push("1", "\"reject\"");
	push("1", "\"next\"");
	start((struct outbox_relay_options){ .handler = obedient,
					     .flags = OUTBOX_RELAY_HOLD_DEAD });
	while (outbox_relay_process_once(relay, &error) > 0)
		;
	check_row("\"reject\"", OB_VIEW_DEAD, 1, "the handler rejected the message");
	check_row("\"next\"", OB_VIEW_PARKED, 0, NULL);
	end();
}
OB_TEST_END

OB_TEST(wrong_options_are_named)
{
	struct outbox_relay_options options = { .store = url, .handler = obedient };

	begin();
	ck_assert_int_eq(outbox_relay_new(NULL, &relay, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(
		outbox_relay_new(&(struct outbox_relay_options){ .store = url }, &relay, &error),
		OUTBOX_EINVAL);
	ck_assert_str_eq(error.message, "options: store and handler are required");
	options.workers = 100000;
	ck_assert_int_eq(outbox_relay_new(&options, &relay, &error), OUTBOX_ECONFIG);
	ck_assert_ptr_nonnull(strstr(error.message, "options: workers"));
	options.workers = 0;
	options.start = "soon";
	ck_assert_int_eq(outbox_relay_new(&options, &relay, &error), OUTBOX_ECONFIG);
	ck_assert_ptr_nonnull(strstr(error.message, "options: start: 'soon' is not beginning"));
	options.start = NULL;
	options.keep_published_ms = -5;
	ck_assert_int_eq(outbox_relay_new(&options, &relay, &error), OUTBOX_ECONFIG);
	ck_assert_ptr_nonnull(strstr(error.message, "retention.published: '-5ms'"));
	options.keep_published_ms = OUTBOX_RELAY_NOT_AT_ALL;
	options.keep_dead_ms = OUTBOX_RELAY_FOR_EVER;
	ck_assert_int_eq(outbox_relay_new(&options, &relay, &error), OUTBOX_OK);
	outbox_relay_free(relay);
	relay = NULL;
	options.store = "nosuch:x";
	ck_assert_int_eq(outbox_relay_new(&options, &relay, &error), OUTBOX_ECONFIG);
	char missing[128];
	(void)snprintf(missing, sizeof(missing), "sqlite:%s/none.db", dir);
	options.store = missing;
	ck_assert_int_eq(outbox_relay_new(&options, &relay, &error), OUTBOX_ESCHEMA);
	ck_assert_ptr_null(relay);
	end();
}
OB_TEST_END

/* Counts what it sees in a table of the same database; one payload always fails. */
static enum outbox_relay_result count_in_tx(void *arg, const struct outbox_relay_message *message,
					    outbox_relay_call *call)
{
	sqlite3 *db = outbox_relay_connection(call);
	char sql[256];

	(void)arg;
	if (!db || !outbox_relay_writer(call))
		return OUTBOX_RELAY_REJECT;
	(void)snprintf(sql, sizeof(sql), "INSERT INTO counted VALUES ('%s')", message->id);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return OUTBOX_RELAY_REJECT;
	/* What it wrote is undone with the failure. */
	return memcmp(message->payload, "\"bad\"", 5) == 0 ? OUTBOX_RELAY_RETRY : OUTBOX_RELAY_OK;
}

static void run_sql(const char *sql, int64_t *ret)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(sqlite3_open(url + 7, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	int rc = sqlite3_step(stmt);
	ck_assert(rc == SQLITE_ROW || rc == SQLITE_DONE);
	if (ret)
		*ret = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
}

OB_TEST(a_handler_in_the_transaction_has_its_effect_exactly_once)
{
	int64_t counted = 0;

	begin();
	run_sql("CREATE TABLE counted (id TEXT PRIMARY KEY)", NULL);
	push("1", "\"a\"");
	push("2", "\"bad\"");
	push("1", "\"b\"");
	push("2", "\"c\"");
	start((struct outbox_relay_options){ .handler = count_in_tx,
					     .flags = OUTBOX_RELAY_IN_TRANSACTION });
	ck_assert_int_eq(outbox_wait_caught_up(url, "default", 0, &error), OUTBOX_EINVAL);
	once(3);
	run_sql("SELECT count(*) FROM counted", &counted);
	ck_assert_int_eq(counted, 2);
	check_row("\"bad\"", OB_VIEW_FAILED, 1, "the handler failed");
	check_row("\"c\"", OB_VIEW_PARKED, 0, NULL);
	ck_assert_int_eq(outbox_wait_caught_up(url, "default", 1, &error), 0);
	end();
}
OB_TEST_END

OB_SUITE("embed", a_handler_in_the_transaction_has_its_effect_exactly_once,
	 a_mixed_batch_is_decided_message_by_message, a_handler_sees_the_whole_message,
	 an_empty_tick_reports_zeros_and_the_backoff, pending_is_counted_when_asked_for,
	 a_failing_message_holds_its_key_only, the_last_attempt_is_said_to_be_the_last,
	 a_failure_that_is_an_outage_is_not_said_to_be_the_last,
	 a_handler_that_is_down_costs_no_attempt, a_classifier_may_change_the_result,
	 a_timeout_is_cooperative, a_stop_during_a_handler_charges_and_reports_nothing,
	 a_run_delivers_in_order_per_key_until_a_handler_stops_it,
	 without_order_every_message_comes_once, a_signal_handler_may_stop_it_and_it_may_run_again,
	 relays_of_different_names_each_get_every_message,
	 a_relay_gets_what_its_options_let_through, a_dead_message_can_hold_its_key,
	 wrong_options_are_named)
