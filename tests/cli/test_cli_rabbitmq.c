/* SPDX-License-Identifier: MIT */
/* outbox work from SQLite to RabbitMQ, as a process, through three crashes of the broker. */
#include "background.h"
#include "rabbitmq_server.h"

#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 60000, MANY = 20000, KEYS = 7, CRASHES = 3 };

static struct background worker;
static struct rabbitmq_server server;

static void prepare_rabbitmq(int max_attempts)
{
	char yaml[512];

	(void)snprintf(yaml, sizeof(yaml),
		       "stores: { main: { url: 'sqlite:x.db' } }\n"
		       "sinks: { out: { type: rabbitmq, url: 'amqp://127.0.0.1:%d' } }\n"
		       "relays: [ { retry: { max_attempts: %d } } ]\n",
		       server.port, max_attempts);
	prepare(yaml);
}

/* A number out of the relay's database, as an application sees it. */
static int ask(const char *query)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;

	ck_assert_int_eq(sqlite3_open_v2(path_of("x.db"), &db, SQLITE_OPEN_READWRITE, NULL),
			 SQLITE_OK);
	(void)sqlite3_busy_timeout(db, LONG_MS);
	ck_assert_msg(sqlite3_prepare_v2(db, query, -1, &stmt, NULL) == SQLITE_OK, "%s",
		      sqlite3_errmsg(db));
	ck_assert_msg(sqlite3_step(stmt) == SQLITE_ROW, "%s", sqlite3_errmsg(db));
	int n = sqlite3_column_int(stmt, 0);
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
	return n;
}

static int published(void)
{
	return ask("SELECT count(*) FROM outbox_messages WHERE state = 'published'");
}

static void wait_published(int count)
{
	int64_t until = now_ms() + 3 * LONG_MS;

	while (published() < count) {
		ck_assert_msg(now_ms() < until, "only %d of %d published", published(), count);
		(void)poll(NULL, 0, 20);
	}
}

/* Every message is there, and first copies of a key are in order. Returns the copies. */
static int check_queue(void)
{
	struct timeval patience = { .tv_sec = 30 };
	amqp_connection_state_t client = rabbitmq_connect(&server);
	uint32_t count = rabbitmq_count(client, "order");
	int next[KEYS];

	for (int k = 0; k < KEYS; k++)
		next[k] = k;
	ck_assert_ptr_nonnull(amqp_basic_consume(client, 1, amqp_cstring_bytes("order"),
						 amqp_empty_bytes, 0, 1, 0, amqp_empty_table));
	for (uint32_t i = 0; i < count; i++) {
		amqp_envelope_t got;
		char body[32];

		ck_assert_int_eq(amqp_consume_message(client, &got, &patience, 0).reply_type,
				 AMQP_RESPONSE_NORMAL);
		(void)snprintf(body, sizeof(body), "%.*s", (int)got.message.body.len,
			       (const char *)got.message.body.bytes);
		amqp_destroy_envelope(&got);
		amqp_maybe_release_buffers(client);
		int n = (int)strtol(body + strcspn(body, "0123456789"), NULL, 10);
		ck_assert_msg(n <= next[n % KEYS], "%d before %d", n, next[n % KEYS]);
		if (n == next[n % KEYS])
			next[n % KEYS] += KEYS;
	}
	for (int k = 0; k < KEYS; k++)
		ck_assert_int_ge(next[k], MANY);
	rabbitmq_disconnect(client);
	return (int)count;
}

static void make_queue(void)
{
	amqp_connection_state_t client = rabbitmq_connect(&server);

	rabbitmq_queue(client, "order", 0);
	rabbitmq_purge(client, "order");
	rabbitmq_disconnect(client);
}

/* Nobody has made the queue: it is tried again, then dead, and never published. */
static void deliver_to_nobody(void)
{
	prepare_rabbitmq(1);
	push(1, "default");
	struct ob_run run = outbox(NULL, "work", "--once", NULL);
	ck_assert_msg(strstr(run.out, "0 published, 0 failed, 1 dead") != NULL, "%s", run.out);
	ob_run_done(&run);
	ck_assert_int_eq(published(), 0);
	ck_assert_int_eq(ask("SELECT count(*) FROM outbox_messages WHERE state = 'dead' AND "
			     "attempts = 1 AND "
			     "last_error LIKE '%no queue is bound%'"),
			 1);
	end();
}

/* One broker for both, as it takes so long to start. */
OB_TEST(no_queue_is_a_failure_and_three_crashes_lose_nothing)
{
	rabbitmq_server_start(&server);
	deliver_to_nobody();
	make_queue();
	prepare_rabbitmq(8);
	push(MANY, "default");
	start(&worker, "work", NULL);
	for (int i = 1; i <= CRASHES; i++) {
		wait_published(i * MANY / (CRASHES + 1));
		rabbitmq_server_kill(&server);
		ck_assert_int_lt(published(), MANY);
		rabbitmq_server_again(&server);
	}
	wait_published(MANY);
	wait_text(worker.err, "sink is back, going on", LONG_MS);
	stop(&worker, 0);
	ck_assert_int_eq(ask("SELECT count(*) FROM outbox_messages WHERE state <> 'published'"), 0);
	ck_assert_int_eq(ask("SELECT coalesce(sum(attempts), 0) FROM outbox_messages"), 0);
	ck_assert_int_ge(check_queue(), MANY);
	kill_now(&worker);
	rabbitmq_server_stop(&server);
	end();
}
OB_TEST_END

int main(void)
{
	const char *missing = rabbitmq_server_missing();

	if (missing) {
		(void)printf("1..0 # SKIP %s\n", missing);
		return EXIT_SUCCESS;
	}
	const TTest *const tests[] = { no_queue_is_a_failure_and_three_crashes_lose_nothing };
	return ob_suite_run("rabbitmq, end to end", tests, 1, NULL);
}
