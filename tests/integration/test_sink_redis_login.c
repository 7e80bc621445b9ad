/* SPDX-License-Identifier: MIT */
/* Getting to a Redis server: urls, passwords and rights, unix socket, TLS. */
#include "sink_redis_fixture.h"

#include "sink/redis/redis.h"

static struct row row;

static void deliver_three(struct ob_sink *sink)
{
	row_init(&row, 3, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 3, "%s", row.acks[0].err.msg);
}

/* ---- urls ------------------------------------------------------------ */

OB_TEST(urls_are_taken_apart)
{
	struct ob_redis_url url;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_redis_url_parse("redis://u%40x:p%3aw@h.example:7000/3", &url, &err), 0);
	ck_assert_str_eq(url.user, "u@x");
	ck_assert_str_eq(url.password, "p:w");
	ck_assert_str_eq(url.host.name, "h.example");
	ck_assert_str_eq(url.host.port, "7000");
	ck_assert_uint_eq(url.db, 3);
	ck_assert(!url.tls);
	ob_redis_url_done(&url);
	ck_assert_int_eq(ob_redis_url_parse("rediss://:secret@[::1]", &url, &err), 0);
	ck_assert_ptr_null(url.user);
	ck_assert_str_eq(url.password, "secret");
	ck_assert_str_eq(url.host.name, "::1");
	ck_assert_str_eq(url.host.port, "6379");
	ck_assert(url.tls);
	ob_redis_url_done(&url);
	ck_assert_int_eq(ob_redis_url_parse("unix:///run/r.sock?db=2", &url, &err), 0);
	ck_assert_str_eq(url.path, "/run/r.sock");
	ck_assert_uint_eq(url.db, 2);
	ob_redis_url_done(&url);
}
OB_TEST_END

OB_TEST(bad_urls_are_refused_without_showing_the_password)
{
	static const char *const bad[] = {
		"",
		"localhost",
		"http://u:secret@h",
		"redis://:secret@h:x",
		"redis://:secret@h/x",
		"redis://:secret@[::1/0",
		"redis://:secret%zz@h",
		"redis://:secret%2@h",
		"redis://:secret@h:70000000/0",
		"unix://relative",
		"unix:///p?secret=1",
		"redis://:secret@h/99999",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ob_redis_url url;
		struct ob_err err = OB_ERR_INIT;

		ck_assert_msg(ob_redis_url_parse(bad[i], &url, &err) == OUTBOX_ECONFIG, "%s",
			      bad[i]);
		ck_assert_int_eq(err.kind, OB_ERR_FATAL);
		ck_assert_ptr_null(strstr(err.msg, "secret"));
	}
}
OB_TEST_END

OB_TEST(a_hash_tag_decides_the_slot)
{
	ck_assert_uint_eq(ob_redis_slot(OB_STR("a")), 15495);
	ck_assert_uint_eq(ob_redis_slot(OB_STR("x{a}y")), 15495);
	ck_assert_uint_eq(ob_redis_slot(OB_STR("123456789")), 12739);
	ck_assert_uint_ne(ob_redis_slot(OB_STR("{}a")), 15495);
}
OB_TEST_END

/* ---- logging in ------------------------------------------------------ */

static const char *const with_password[] = { "--requirepass", "right", NULL };

OB_TEST(a_wrong_password_is_an_outage_that_says_so)
{
	server.args = with_password;
	redis_server_start(&server);
	struct ob_sink *sink = make_sink(url_of(":wrong@", 0), NULL);
	must_not_open(sink, OB_ERR_DOWN, "check username and password");
	ob_sink_free(sink);
	sink = make_sink(url_of("", 0), NULL);
	must_not_open(sink, OB_ERR_DOWN, "set password");
	ob_sink_free(sink);
	sink = make_sink(url_of(":wrong@", 2), "password", "right", NULL);
	must_open(sink);
	deliver_three(sink);
	redis_do(&server, "AUTH", "right", NULL);
	ck_assert_int_eq(redis_count(&server, "XLEN", "orders", NULL), 0);
	redis_do(&server, "SELECT", "2", NULL);
	ck_assert_int_eq(redis_count(&server, "XLEN", "orders", NULL), 3);
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_TEST(a_password_that_changes_is_an_outage_and_costs_no_message)
{
	redis_server_start(&server);
	struct ob_sink *sink = make_sink(url_of("", 0), NULL);
	must_open(sink);
	deliver_three(sink);
	redis_do(&server, "CONFIG", "SET", "requirepass", "new", NULL);
	redis_do(&server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
	must_open(sink);
	struct ob_err err = OB_ERR_INIT;
	row_init(&row, 1, "k", "orders");
	ck_assert_int_lt(ob_sink_send(sink, &row.parcels[0].delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_TEST(a_user_without_scripts_still_delivers_in_order)
{
	redis_server_start(&server);
	redis_do(&server, "ACL", "SETUSER", "plain", "on", ">pw", "~orders*", "+xadd", "+ping",
		 NULL);
	struct ob_sink *sink = make_sink(url_of("plain:pw@", 0), NULL);
	must_open(sink);
	row_init(&row, 9, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 9, "%s", row.acks[0].err.msg);
	ck_assert_str_eq(stream_text(&server, "orders"), "0 1 2 3 4 5 6 7 8");
	/* a stream it may not write fails that message; the command forbidden fails all */
	row_init(&row, 1, "k", "secret");
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_RETRY);
	redis_do(&server, "ACL", "SETUSER", "plain", "-xadd", NULL);
	row_init(&row, 1, "k", "orders");
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_DOWN);
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_TEST(a_server_that_may_evict_streams_is_named)
{
	struct ob_buf text = OB_BUF_INIT(1000);

	redis_server_start(&server);
	redis_do(&server, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", NULL);
	struct ob_sink *sink =
		make_sink(url_of("u:secret@", 0), "username", "default", "password", "any", NULL);
	redis_do(&server, "CONFIG", "SET", "requirepass", "any", NULL);
	must_open(sink);
	struct ob_findings found;
	ob_findings_init(&found);
	ob_sink_advise(sink, &found);
	ck_assert_uint_eq(found.count, 1);
	ck_assert_int_eq(found.list[0].level, OB_LEVEL_WARNING);
	ck_assert_str_eq(found.list[0].text.p,
			 "a full redis may throw away whole streams: maxmemory-policy is "
			 "allkeys-lru");
	ob_findings_done(&found);
	ob_sink_describe(sink, &text);
	ck_assert_ptr_null(strstr(ob_buf_str(&text), "secret"));
	ob_buf_done(&text);
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

/* ---- ways there ------------------------------------------------------ */

OB_TEST(a_unix_socket_works)
{
	char url[160];

	redis_server_start(&server);
	(void)snprintf(url, sizeof(url), "unix://%s?db=1", server.socket);
	struct ob_sink *sink = make_sink(url, NULL);
	must_open(sink);
	deliver_three(sink);
	redis_do(&server, "SELECT", "1", NULL);
	ck_assert_int_eq(redis_count(&server, "XLEN", "orders", NULL), 3);
	ob_sink_free(sink);
	sink = make_sink("unix:///nonexistent/redis.sock", NULL);
	must_not_open(sink, OB_ERR_DOWN, "/nonexistent/redis.sock");
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_TEST(a_host_that_is_not_there_is_an_outage)
{
	struct ob_sink *sink = make_sink("redis://no-such-host.invalid", NULL);

	must_not_open(sink, OB_ERR_DOWN, "no-such-host.invalid");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(tls_is_verified_unless_told_otherwise)
{
	char by_name[64], by_address[64];

	server.tls = true;
	redis_server_start(&server);
	(void)snprintf(by_name, sizeof(by_name), "rediss://localhost:%d", server.tls_port);
	(void)snprintf(by_address, sizeof(by_address), "rediss://127.0.0.1:%d", server.tls_port);
	struct ob_sink *sink = make_sink(by_name, "tls_ca", server.ca, NULL);
	must_open(sink);
	deliver_three(sink);
	ob_sink_free(sink);
	sink = make_sink(by_name, "tls_ca", server.other_ca, NULL);
	must_not_open(sink, OB_ERR_DOWN, "is not trusted");
	ob_sink_free(sink);
	sink = make_sink(by_name, NULL);
	must_not_open(sink, OB_ERR_DOWN, "is not trusted");
	ob_sink_free(sink);
	sink = make_sink(by_address, "tls_ca", server.ca, NULL);
	must_not_open(sink, OB_ERR_DOWN, "is not trusted: IP address mismatch");
	ob_sink_free(sink);
	sink = make_sink(by_address, "tls_verify", "false", NULL);
	must_open(sink);
	deliver_three(sink);
	ob_sink_free(sink);
	sink = make_sink(by_name, "tls_ca", "/nonexistent", NULL);
	must_not_open(sink, OB_ERR_FATAL, "tls_ca '/nonexistent'");
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_TEST(plain_and_tls_do_not_mix)
{
	char url[64];

	server.tls = true;
	redis_server_start(&server);
	(void)snprintf(url, sizeof(url), "redis://localhost:%d", server.tls_port);
	struct ob_sink *sink = make_sink(url, "connect_timeout", "1s", NULL);
	must_not_open(sink, OB_ERR_DOWN, "");
	ob_sink_free(sink);
	(void)snprintf(url, sizeof(url), "rediss://localhost:%d", server.port);
	sink = make_sink(url, "connect_timeout", "1s", NULL);
	must_not_open(sink, OB_ERR_DOWN, "TLS handshake");
	ob_sink_free(sink);
	sink = make_sink("redis://localhost", "tls_ca", server.ca, NULL);
	must_not_open(sink, OB_ERR_FATAL, "rediss://");
	ob_sink_free(sink);
	sink = make_sink("redis://localhost", "max_len", "5", "max_age", "1h", NULL);
	must_not_open(sink, OB_ERR_FATAL, "not by both");
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_TEST(ten_thousand_messages_pass_through_tls)
{
	char url[64];
	struct tally tally = { 0 };
	static struct parcel parcels[10000];

	server.tls = true;
	redis_server_start(&server);
	(void)snprintf(url, sizeof(url), "rediss://localhost:%d", server.tls_port);
	struct ob_sink *sink = make_sink(url, "tls_ca", server.ca, NULL);
	must_open(sink);
	for (size_t i = 0; i < 10000; i++) {
		parcel_init(&parcels[i], i, i % 3 ? OB_STR("k") : OB_STR_NULL, OB_STR("{}"));
		sink_push(sink, &parcels[i].delivery, &tally);
	}
	sink_drain(sink, &tally, 10000);
	ck_assert_uint_eq(tally.confirmed, 10000);
	ck_assert_int_eq(redis_count(&server, "XLEN", "orders", NULL), 10000);
	ob_sink_free(sink);
	redis_server_end(&server);
}
OB_TEST_END

OB_SUITE_NEEDS("redis login", redis_server_missing(), urls_are_taken_apart,
	       bad_urls_are_refused_without_showing_the_password, a_hash_tag_decides_the_slot,
	       a_wrong_password_is_an_outage_that_says_so,
	       a_password_that_changes_is_an_outage_and_costs_no_message,
	       a_user_without_scripts_still_delivers_in_order,
	       a_server_that_may_evict_streams_is_named, a_unix_socket_works,
	       a_host_that_is_not_there_is_an_outage, tls_is_verified_unless_told_otherwise,
	       plain_and_tls_do_not_mix, ten_thousand_messages_pass_through_tls)
