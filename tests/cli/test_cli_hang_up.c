/* SPDX-License-Identifier: MIT */
/*
 * One message over which the receiver ends the connection, every time: the others arrive, it ends
 * dead with the reason, and no other message pays for it.
 */
#include "background.h"
#include "chaos_proxy.h"
#include "database.h"
#include "http_receiver.h"
#include "redis_server.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 100000, OTHERS = 300 };

static const char poison[] =
	"{\"aggregate_type\":\"order\",\"aggregate_id\":\"bad\","
	"\"event_type\":\"Placed\",\"payload\":{\"n\":\"poison\"}}\n";

static struct background worker;

static void prepare_sink(const char *sink)
{
	char yaml[1024];

	begin_database();
	(void)snprintf(yaml, sizeof(yaml),
		       "stores: { main: { url: 'sqlite:test.db' } }\n"
		       "sinks: { out: %s }\n"
		       "relays: [ { sink: out, workers: 1, retry: { max_attempts: 2, "
		       "base_delay: 100ms, max_backoff: 200ms } } ]\n",
		       sink);
	put_file("outbox.yaml", yaml);
}

/* So many, of a few keys. */
static void push_others(int count)
{
	sql("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	    "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
	    "SELECT randomblob(16), 'order', i %% 7, 'Placed', '{}' FROM n",
	    count);
}

static void wait_for(const char *query, const char *want)
{
	int64_t until = now_ms() + LONG_MS;

	while (strcmp(ask(query), want) != 0) {
		ck_assert_msg(now_ms() < until, "%s: %s", query, ask(query));
		(void)poll(NULL, 0, 20);
	}
}

/* The poison among the others, and others later on: something must pass for it to be told. */
static void run(const char *says)
{
	char reason[256];

	push_others(OTHERS / 2);
	expect_in(poison, 0, NULL, "", "push", NULL);
	push_others(OTHERS / 2);
	start(&worker, "work", NULL);
	while (strcmp(ask("SELECT count(*) FROM outbox_messages WHERE state = 'dead'"), "1") != 0) {
		push_others(1);
		(void)poll(NULL, 0, 50);
	}
	wait_for("SELECT count(*) FROM outbox_messages WHERE state NOT IN ('published', 'dead')",
		 "0");
	stop(&worker, 0);
	ASK("SELECT aggregate_id, attempts FROM outbox_messages WHERE attempts > 0 OR state <> "
	    "'published'",
	    "bad,2");
	(void)snprintf(reason, sizeof(reason), "%s",
		       ask("SELECT last_error FROM outbox_messages WHERE aggregate_id = 'bad'"));
	ck_assert_ptr_nonnull(
		strstr(reason,
		       "the receiver hung up 3 times on this message alone, while others "
		       "pass: "));
	ck_assert_msg(strstr(reason, says) != NULL, "%s", reason);
}

OB_TEST(a_handler_that_ends_over_a_message)
{
	static const char handler[] =
		"while read -r line; do\n"
		"case $line in *poison*) exit 3 ;; esac\n"
		"id=${line#*:?}\n"
		"echo \"$line\" >> got\n"
		"echo \"ok ${id%%\\\"*}\"\n"
		"done\n";

	prepare_sink("{ type: exec, command: 'sh handler.sh' }");
	put_file("handler.sh", handler);
	run("the handler ended with exit code 3");
	end();
}
OB_TEST_END

OB_TEST(a_webhook_that_closes_the_connection_over_a_message)
{
	struct http_receiver *receiver = http_receiver_new();
	char sink[128];

	http_receiver_answer(receiver,
			     &(struct http_answer){ .manner = HTTP_CUT, .holding = "poison" });
	(void)snprintf(sink, sizeof(sink),
		       "{ type: http, url: 'http://127.0.0.1:%d/', allow_private: true }",
		       http_receiver_port(receiver));
	prepare_sink(sink);
	run("sending to the receiver");
	http_receiver_free(receiver);
	end();
}
OB_TEST_END

/* Here all that is under way is lost with it. */
OB_TEST(a_proxy_before_redis_that_closes_the_connection_over_a_message)
{
	struct chaos_plan plan = { .cut[CHAOS_TO_SERVER].match = "poison" };
	struct redis_server server = { 0 };
	char sink[128];

	redis_server_start(&server);
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	chaos_proxy_plan(proxy, &plan);
	(void)snprintf(sink, sizeof(sink), "{ type: redis, url: 'redis://127.0.0.1:%d' }",
		       chaos_proxy_port(proxy));
	prepare_sink(sink);
	run("the peer closed the connection");
	chaos_proxy_free(proxy);
	redis_server_end(&server);
	end();
}
OB_TEST_END

OB_SUITE("cli hang-up", a_handler_that_ends_over_a_message,
	 a_webhook_that_closes_the_connection_over_a_message,
	 a_proxy_before_redis_that_closes_the_connection_over_a_message)
