/* SPDX-License-Identifier: MIT */
/* outbox work from SQLite to NATS JetStream, as a process, through servers that are killed. */
#include "background.h"
#include "nats_server.h"

#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 100000, MANY = 20000, KEYS = 7 };

static struct background worker;
static struct nats_server server;

static void prepare_nats(const char *sink_options)
{
	char yaml[512];

	nats_server_start(&server);
	nats_stream_add(&server, "EVENTS", "order", NULL);
	(void)snprintf(yaml, sizeof(yaml),
		       "stores: { main: { url: 'sqlite:x.db' } }\n"
		       "sinks: { out: { type: nats, url: 'nats://127.0.0.1:%d'%s } }\n",
		       server.port, sink_options);
	prepare(yaml);
}

static void finish(void)
{
	kill_now(&worker);
	nats_server_end(&server);
	end();
}

/* What a query of one number returns, from a connection that is closed again. */
static int64_t number(const char *query)
{
	char path[256];
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;

	(void)snprintf(path, sizeof(path), "%s/x.db", dir);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	(void)sqlite3_busy_timeout(db, 60000);
	ck_assert_msg(sqlite3_prepare_v2(db, query, -1, &stmt, NULL) == SQLITE_OK, "%s",
		      sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
	return n;
}

static void wait_published(int64_t count)
{
	int64_t until = now_ms() + LONG_MS;

	while (number("SELECT count(*) FROM outbox_messages WHERE state = 'published'") < count) {
		ck_assert_msg(now_ms() < until, "fewer than %lld published", (long long)count);
		(void)poll(NULL, 0, 20);
	}
}

struct seen {
	long next[KEYS];
};

/* {"n":17}; first copies of a key are in order. */
static void check_order(void *arg, natsMsg *msg)
{
	struct seen *seen = arg;
	char text[32];

	(void)snprintf(text, sizeof(text), "%.*s", natsMsg_GetDataLength(msg),
		       natsMsg_GetData(msg));
	long n = strtol(text + 5, NULL, 10);
	ck_assert_msg(n <= seen->next[n % KEYS], "%ld before %ld", n, seen->next[n % KEYS]);
	if (n == seen->next[n % KEYS])
		seen->next[n % KEYS] += KEYS;
}

OB_TEST(a_server_killed_three_times_loses_nothing)
{
	struct seen seen;

	prepare_nats(", timeout: 20s");
	push(MANY, "default");
	start(&worker, "work", NULL);
	for (int i = 1; i <= 3; i++) {
		wait_published(i * 3000);
		nats_server_kill(&server);
		wait_text(worker.err, "sink is down, waiting for it", LONG_MS);
		nats_server_restart(&server);
	}
	wait_published(MANY);
	stop(&worker, 0);
	ck_assert_int_eq(number("SELECT count(*) FROM outbox_messages WHERE state <> 'published'"),
			 0);
	ck_assert_int_eq(number("SELECT sum(attempts) FROM outbox_messages"), 0);
	for (int k = 0; k < KEYS; k++)
		seen.next[k] = k;
	nats_stream_each(&server, "EVENTS", check_order, &seen);
	for (int k = 0; k < KEYS; k++)
		ck_assert_int_ge(seen.next[k], MANY);
	ck_assert_uint_ge(nats_stream_count(&server, "EVENTS"), MANY);
	finish();
}
OB_TEST_END

OB_TEST(a_stream_that_is_missing_stops_messages_until_it_is_there)
{
	prepare_nats("");
	nats_stream_remove(&server, "EVENTS");
	push(5, "default");
	start(&worker, "work", NULL);
	wait_text(worker.err, "no stream listens on the subject 'order'", LONG_MS);
	nats_stream_add(&server, "EVENTS", "order", NULL);
	wait_published(5);
	stop(&worker, 0);
	ck_assert_int_eq(number("SELECT sum(attempts) FROM outbox_messages"), 0);
	ck_assert_uint_eq(nats_stream_count(&server, "EVENTS"), 5);
	finish();
}
OB_TEST_END

OB_TEST(a_wrong_password_stops_no_message)
{
	server.config = "authorization { user: u, password: right }";
	server.login = "u:right@";
	prepare_nats(", username: u, password: wrong");
	push(5, "default");
	start(&worker, "work", NULL);
	wait_text(worker.err, "check user, password", LONG_MS);
	server.config = "authorization { user: u, password: wrong }";
	nats_server_reload(&server);
	wait_published(5);
	stop(&worker, 0);
	ck_assert_int_eq(number("SELECT sum(attempts) FROM outbox_messages"), 0);
	finish();
}
OB_TEST_END

OB_SUITE_NEEDS("nats, end to end", nats_server_missing(), a_server_killed_three_times_loses_nothing,
	       a_stream_that_is_missing_stops_messages_until_it_is_there,
	       a_wrong_password_stops_no_message)
