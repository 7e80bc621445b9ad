/* SPDX-License-Identifier: MIT */
/* Getting to a RabbitMQ and staying there: urls, users, TLS, alarms, heartbeats, silence. */
#include "chaos_proxy.h"
#include "sink/rabbitmq/rabbitmq.h"
#include "sink_rabbitmq_fixture.h"

#include "run.h"

#include <poll.h>

static struct row row;
static amqp_connection_state_t client;

static void begin(const char *queue)
{
	client = rabbitmq_connect(&server);
	rabbitmq_queue(client, queue, 0);
}

static void deliver_three(struct ob_sink *sink, const char *queue)
{
	row_init(&row, 3, NULL, queue);
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 3, "%s", row.acks[0].err.msg);
}

static int64_t now_ms(void)
{
	return ob_clock_boot_us(&ob_clock_system) / 1000;
}

/* ---- urls ------------------------------------------------------------ */

OB_TEST(urls_are_taken_apart)
{
	struct ob_rabbitmq_url url;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(
		ob_rabbitmq_url_parse("amqp://u%40x:p%3aw@a:7000,b,[::1]:1/v%2fh", &url, &err), 0);
	ck_assert_str_eq(url.user, "u@x");
	ck_assert_str_eq(url.password, "p:w");
	ck_assert_uint_eq(url.host_count, 3);
	ck_assert_str_eq(url.hosts[0].name, "a");
	ck_assert_str_eq(url.hosts[0].port, "7000");
	ck_assert_str_eq(url.hosts[1].name, "b");
	ck_assert_str_eq(url.hosts[1].port, "5672");
	ck_assert_str_eq(url.hosts[2].name, "::1");
	ck_assert_str_eq(url.vhost, "v/h");
	ck_assert(!url.tls);
	ob_rabbitmq_url_done(&url);
	ck_assert_int_eq(ob_rabbitmq_url_parse("amqps://h/", &url, &err), 0);
	ck_assert_ptr_null(url.user);
	ck_assert_str_eq(url.hosts[0].port, "5671");
	ck_assert_str_eq(url.vhost, "/");
	ck_assert(url.tls);
	ob_rabbitmq_url_done(&url);
}
OB_TEST_END

OB_TEST(bad_urls_are_refused_without_showing_the_password)
{
	static const char *const bad[] = {
		"",
		"localhost",
		"http://u:secret@h",
		"amqp://:secret@h:x",
		"amqp://:secret@h/a/b",
		"amqp://:secret@h/a%zz",
		"amqp://:secret@[::1/",
		"amqp://:secret%2@h",
		"amqp://:secret@h:70000000",
		"amqp://:secret@h?x=1",
		"amqp://:secret@a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ob_rabbitmq_url url;
		struct ob_err err = OB_ERR_INIT;

		ck_assert_msg(ob_rabbitmq_url_parse(bad[i], &url, &err) == OUTBOX_ECONFIG, "%s",
			      bad[i]);
		ck_assert_int_eq(err.kind, OB_ERR_FATAL);
		ck_assert_ptr_null(strstr(err.msg, "secret"));
	}
}
OB_TEST_END

OB_TEST(options_that_do_not_go_together_are_refused)
{
	struct ob_sink *sink =
		make_sink("amqp://h", "exchange", "x", "exchange_per_message", "true", NULL);

	must_not_open(sink, OB_ERR_FATAL, "not from both");
	ob_sink_free(sink);
	sink = make_sink("amqp://h", "tls_ca", server.ca, NULL);
	must_not_open(sink, OB_ERR_FATAL, "amqps://");
	ob_sink_free(sink);
}
OB_TEST_END

/* ---- logging in ------------------------------------------------------ */

OB_TEST(wrong_credentials_are_an_outage_that_says_so)
{
	struct ob_buf text = OB_BUF_INIT(1000);
	char url[128];

	begin("login");
	struct ob_sink *sink = make_sink(url_of("guest:wrong@"), NULL);
	must_not_open(sink, OB_ERR_DOWN, "check user name and password");
	ob_sink_describe(sink, &text);
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "wrong"));
	ob_buf_done(&text);
	ob_sink_free(sink);
	sink = make_sink(url_of("nobody:wrong@"), "username", "guest", "password", "guest", NULL);
	must_open(sink);
	deliver_three(sink, "login");
	ob_sink_free(sink);
	(void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d/nowhere", server.port);
	sink = make_sink(url, NULL);
	must_not_open(sink, OB_ERR_DOWN, "vhost");
	ob_sink_free(sink);
	(void)snprintf(url, sizeof(url), "amqp://limited:secret@127.0.0.1:%d/other", server.port);
	sink = make_sink(url, NULL);
	must_not_open(sink, OB_ERR_DOWN, "vhost");
	ob_sink_free(sink);
	rabbitmq_disconnect(client);
}
OB_TEST_END

OB_TEST(hosts_are_tried_in_turn)
{
	char url[128];

	begin("hosts");
	(void)snprintf(url, sizeof(url), "amqp://no-such-host.invalid,127.0.0.1:%d,127.0.0.1:%d/",
		       free_port(), server.port);
	struct ob_sink *sink = make_sink(url, NULL);
	must_open(sink);
	deliver_three(sink, "hosts");
	ob_sink_free(sink);
	(void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d,127.0.0.1:%d", free_port(),
		       free_port());
	sink = make_sink(url, NULL);
	must_not_open(sink, OB_ERR_DOWN, "none of 2 brokers takes us");
	ob_sink_free(sink);
	rabbitmq_disconnect(client);
}
OB_TEST_END

OB_TEST(tls_is_verified_unless_told_otherwise)
{
	char by_name[64], by_address[64], plain[64];

	begin("tls");
	(void)snprintf(by_name, sizeof(by_name), "amqps://localhost:%d", server.tls_port);
	(void)snprintf(by_address, sizeof(by_address), "amqps://127.0.0.1:%d", server.tls_port);
	(void)snprintf(plain, sizeof(plain), "amqp://127.0.0.1:%d", server.tls_port);
	struct ob_sink *sink = make_sink(by_name, "tls_ca", server.ca, NULL);
	must_open(sink);
	deliver_three(sink, "tls");
	row_init(&row, 500, NULL, "tls");
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 500);
	ob_sink_free(sink);
	sink = make_sink(by_name, "tls_ca", server.other_ca, NULL);
	must_not_open(sink, OB_ERR_DOWN, "is not trusted");
	ob_sink_free(sink);
	sink = make_sink(by_address, "tls_ca", server.ca, NULL);
	must_not_open(sink, OB_ERR_DOWN, "is not trusted: IP address mismatch");
	ob_sink_free(sink);
	sink = make_sink(by_address, "tls_verify", "false", NULL);
	must_open(sink);
	deliver_three(sink, "tls");
	ob_sink_free(sink);
	sink = make_sink(by_name, "tls_ca", "/nonexistent", NULL);
	must_not_open(sink, OB_ERR_FATAL, "tls_ca '/nonexistent'");
	ob_sink_free(sink);
	sink = make_sink(plain, "connect_timeout", "2s", NULL);
	must_not_open(sink, OB_ERR_DOWN, "");
	ob_sink_free(sink);
	rabbitmq_disconnect(client);
}
OB_TEST_END

/* ---- alarms ---------------------------------------------------------- */

static void set_watermark(const char *part)
{
	rabbitmq_ctl(&server, (const char *const[]){ "set_vm_memory_high_watermark", part, NULL });
}

/* How many outcomes came within that time. */
static size_t poll_for(struct ob_sink *sink, int64_t ms)
{
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0;

	for (int64_t until = now_ms() + ms, left; (left = until - now_ms()) > 0;) {
		struct ob_ack acks[16];
		int n = ob_sink_poll(sink, left < 200 ? (int)left : 200, acks, 16, &err);

		ck_assert_int_ge(n, 0);
		for (int i = 0; i < n; i++, count++)
			row.acks[acks[i].tag] = acks[i];
	}
	return count;
}

/* In an alarm a message is neither late nor lost, and the sink says what it waits for. */
OB_TEST(an_alarm_of_the_broker_is_an_outage_and_stops_the_clock)
{
	struct ob_err err = OB_ERR_INIT;

	begin("alarm");
	struct ob_sink *sink = make_sink(url_of(""), "timeout", "500ms", "heartbeat", "1s", NULL);
	must_open(sink);
	deliver_three(sink, "alarm");
	set_watermark("0");
	/* the broker tells of the alarm when someone publishes */
	row_init(&row, 2, NULL, "alarm");
	ck_assert_int_eq(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	size_t got = 0;
	for (int i = 0; i < 100 && ob_sink_send(sink, &row.parcels[1].delivery, &err) >= 0; i++)
		got += poll_for(sink, 50);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(err.msg, "connection.blocked") != NULL, "%s", err.msg);
	must_not_open(sink, OB_ERR_DOWN, "low on memory");
	got += poll_for(sink, 3000); /* longer than the timeout and two heartbeats */
	must_not_open(sink, OB_ERR_DOWN, "low on memory");
	set_watermark("0.4");
	/* open() sees the end of the alarm by itself */
	for (int64_t until = now_ms() + 30000; ob_sink_open(sink, &err) < 0;) {
		got += poll_for(sink, 50);
		ck_assert_msg(now_ms() < until, "%s", err.msg);
	}
	for (int64_t until = now_ms() + 30000; got == 0; got += poll_for(sink, 50))
		ck_assert_int_lt(now_ms(), until);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_NONE);
	deliver_three(sink, "alarm");
	ob_sink_free(sink);
	rabbitmq_disconnect(client);
}
OB_TEST_END

/* ---- heartbeats ------------------------------------------------------ */

OB_TEST(an_idle_connection_is_kept_alive_by_polls)
{
	begin("idle");
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	struct ob_sink *sink = make_sink(url_at(chaos_proxy_port(proxy)), "heartbeat", "1s", NULL);
	must_open(sink);
	for (int64_t until = now_ms() + 4000; now_ms() < until; (void)poll(NULL, 0, 100))
		ck_assert_uint_eq(poll_for(sink, 1), 0);
	deliver_three(sink, "idle");
	ck_assert_uint_eq(chaos_proxy_connections(proxy), 1);
	ob_sink_free(sink);
	chaos_proxy_free(proxy);
	rabbitmq_disconnect(client);
}
OB_TEST_END

OB_TEST(a_connection_that_was_closed_while_idle_costs_no_outage)
{
	begin("closed");
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	struct ob_sink *sink = make_sink(url_at(chaos_proxy_port(proxy)), "heartbeat", "1s", NULL);
	must_open(sink);
	deliver_three(sink, "closed");
	struct pollfd closed = { .fd = ob_sink_fd(sink), .events = POLLIN };
	chaos_proxy_break(proxy);
	ck_assert_int_eq(poll(&closed, 1, 20000), 1);
	deliver_three(sink, "closed");
	/* the broker does it itself when it hears nothing for long */
	(void)poll(NULL, 0, 4500);
	deliver_three(sink, "closed");
	ck_assert_uint_eq(chaos_proxy_connections(proxy), 3);
	ob_sink_free(sink);
	chaos_proxy_free(proxy);
	rabbitmq_disconnect(client);
}
OB_TEST_END

/* ---- silence --------------------------------------------------------- */

/* basic.ack: class 60, method 80 */
static const char ack_bytes[] = { 0, 60, 0, 80 };

static void lose_confirms(enum chaos_end how, const char *timeout, const char *heartbeat)
{
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	struct chaos_plan plan = { .end = how, .times = 1 };

	plan.cut[CHAOS_TO_CLIENT] =
		(struct chaos_cut){ .match = ack_bytes, .match_size = sizeof(ack_bytes) };
	chaos_proxy_plan(proxy, &plan);
	struct ob_sink *sink = make_sink(url_at(chaos_proxy_port(proxy)), "timeout", timeout,
					 "heartbeat", heartbeat, NULL);
	must_open(sink);
	row_init(&row, 20, NULL, "lost");
	row_deliver(sink, &row);
	ck_assert_uint_eq(chaos_proxy_cuts(proxy), 1);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 20);
	must_open(sink);
	row_deliver(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_NONE), 20);
	ob_sink_free(sink);
	chaos_proxy_free(proxy);
}

OB_TEST(lost_confirms_are_an_outage_and_nothing_is_lost)
{
	begin("lost");
	lose_confirms(CHAOS_RESET, "30s", "30s");
	ck_assert_uint_ge(rabbitmq_count(client, "lost"), 20);
	/* our own deadline */
	int64_t before = now_ms();
	lose_confirms(CHAOS_MUTE, "700ms", "30s");
	ck_assert_int_ge(now_ms() - before, 700);
	/* and that of the heartbeats */
	before = now_ms();
	lose_confirms(CHAOS_MUTE, "10m", "1s");
	ck_assert_int_ge(now_ms() - before, 2000);
	ck_assert_int_lt(now_ms() - before, 30000);
	rabbitmq_disconnect(client);
}
OB_TEST_END

OB_TEST(a_broker_that_closes_the_connection_is_an_outage)
{
	struct ob_err err = OB_ERR_INIT;

	begin("forced");
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	struct ob_sink *sink = make_sink(url_at(chaos_proxy_port(proxy)), NULL);
	must_open(sink);
	/* messages wait on a way that is slow, so the closing comes before their confirms */
	chaos_proxy_plan(proxy, &(struct chaos_plan){ .delay_ms = 60000 });
	row_init(&row, 5, NULL, "forced");
	row_send(sink, &row);
	struct ob_ack ack;
	ck_assert_int_eq(ob_sink_poll(sink, 0, &ack, 1, &err), 0);
	chaos_proxy_break(proxy);
	row_wait(sink, &row);
	ck_assert_uint_eq(row_count(&row, OB_ERR_DOWN), 5);
	ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ob_sink_free(sink);
	chaos_proxy_free(proxy);
	rabbitmq_disconnect(client);
}
OB_TEST_END

RABBITMQ_SUITE("rabbitmq login", urls_are_taken_apart,
	       bad_urls_are_refused_without_showing_the_password,
	       options_that_do_not_go_together_are_refused,
	       wrong_credentials_are_an_outage_that_says_so, hosts_are_tried_in_turn,
	       tls_is_verified_unless_told_otherwise,
	       an_alarm_of_the_broker_is_an_outage_and_stops_the_clock,
	       an_idle_connection_is_kept_alive_by_polls,
	       a_connection_that_was_closed_while_idle_costs_no_outage,
	       lost_confirms_are_an_outage_and_nothing_is_lost,
	       a_broker_that_closes_the_connection_is_an_outage)
