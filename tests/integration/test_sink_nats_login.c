/* SPDX-License-Identifier: MIT */
/* The NATS sink: urls, users, tokens, keys, rights, TLS. */
#include "chaos_proxy.h"
#include "nats_jwt.h"
#include "nats_server.h"
#include "run.h"
#include "sink/nats/nats.h"
#include "sink_rows.h"

#include <fcntl.h>
#include <unistd.h>

static struct nats_server server;
static struct row row;

/* A pair of keys made for this test, and for nothing else. */
static const char public_key[] = "UCP3PTXRN5RNGGBQWTP7WYNMVG4BCBF2WX642DG6QVPAMAN5RYGPV2SE";
static const char seed[] = "SUAPA2YD4YMS7W2DHANBLUWYO5PR2H5B2Q7HHHB7D4JGUS3E422OEEDJDA";

static const char *url_of(const char *scheme, const char *user, const char *host)
{
	static char url[160];

	(void)snprintf(url, sizeof(url), "%s://%s%s:%d", scheme, user, host, server.port);
	return url;
}

#define make_sink(...) row_make_sink(&ob_sink_nats, "url", __VA_ARGS__)

static void start(const char *config, const char *login)
{
	server.config = config;
	server.login = login;
	nats_server_start(&server);
	nats_stream_add(&server, "S", "orders.>", NULL);
}

static void deliver_three(struct ob_sink *sink)
{
	must_open(sink);
	row_init(&row, 3, NULL, "orders.a");
	row_deliver(sink, &row);
	ck_assert_msg(row_count(&row, OB_ERR_NONE) == 3, "%s", row.acks[0].err.msg);
	ob_sink_free(sink);
}

static void expect_down(struct ob_sink *sink, const char *text)
{
	must_not_open(sink, OB_ERR_DOWN, text);
	ob_sink_free(sink);
}

/* ---- urls ------------------------------------------------------------ */

OB_TEST(urls_are_taken_apart)
{
	struct ob_nats_url url;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(
		ob_nats_url_parse("nats://u%40x:p%3Aw@a:1, b , tls://[::1]:2/", &url, &err), 0);
	ck_assert_uint_eq(url.count, 3);
	ck_assert_str_eq(url.user, "u@x");
	ck_assert_str_eq(url.password, "p:w");
	ck_assert_str_eq(url.servers[1].port, "4222");
	ck_assert_str_eq(url.servers[2].name, "::1");
	ck_assert(url.tls);
	ob_nats_url_done(&url);
	ck_assert_int_eq(ob_nats_url_parse("nats://t0ken@host", &url, &err), 0);
	ck_assert_str_eq(url.token, "t0ken");
	ck_assert_ptr_null(url.user);
	ob_nats_url_done(&url);
}
OB_TEST_END

OB_TEST(bad_options_are_refused_without_showing_a_secret)
{
	static const char *const bad[] = { "host",       "http://host",       "nats://a:b:c",
					   "nats://a:x", "nats://s%zzcret@a", "nats://a,http://b" };
	struct ob_nats_url url;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ob_err err = OB_ERR_INIT;

		ck_assert_int_eq(ob_nats_url_parse(bad[i], &url, &err), OUTBOX_ECONFIG);
		ck_assert_ptr_null(strstr(err.msg, "cret"));
	}
	struct ob_sink *sink = make_sink("nats://a", "token", "t", "username", "u", NULL);
	must_not_open(sink, OB_ERR_FATAL, "not by several");
	ob_sink_free(sink);
	sink = make_sink("nats://a", "nkey", "U", NULL);
	must_not_open(sink, OB_ERR_FATAL, "nkey and nkey_seed");
	ob_sink_free(sink);
	sink = make_sink("nats://a", "inbox_prefix", "a b", NULL);
	must_not_open(sink, OB_ERR_FATAL, "inbox_prefix");
	ob_sink_free(sink);
	sink = make_sink("nats://a", "creds", "/nonexistent", NULL);
	must_not_open(sink, OB_ERR_FATAL, "creds '/nonexistent'");
	ob_sink_free(sink);
}
OB_TEST_END

OB_TEST(the_description_names_the_servers_and_no_secret)
{
	struct ob_buf text = OB_BUF_INIT(1000);
	struct ob_sink *sink = make_sink("tls://u:secret@a:1,b", NULL);

	ob_sink_describe(sink, &text);
	ck_assert_str_eq(ob_buf_str(&text), "nats a:1,b:4222 TLS");
	ob_buf_done(&text);
	ob_sink_free(sink);
}
OB_TEST_END

/* ---- logging in ------------------------------------------------------ */

OB_TEST(a_user_and_a_password_are_needed_and_enough)
{
	start("authorization { user: u, password: \"p@ss\" }", "u:p@ss@");
	deliver_three(make_sink(url_of("nats", "u:p%40ss@", "127.0.0.1"), NULL));
	deliver_three(make_sink(url_of("nats", "", "127.0.0.1"), "username", "u", "password",
				"p@ss", NULL));
	expect_down(make_sink(url_of("nats", "u:wrong@", "127.0.0.1"), NULL),
		    "check user, password");
	expect_down(make_sink(url_of("nats", "", "127.0.0.1"), NULL), "check user, password");
	nats_server_end(&server);
}
OB_TEST_END

OB_TEST(a_token_is_enough)
{
	start("authorization { token: \"s3cret\" }", "s3cret@");
	deliver_three(make_sink(url_of("nats", "s3cret@", "127.0.0.1"), NULL));
	deliver_three(make_sink(url_of("nats", "", "127.0.0.1"), "token", "s3cret", NULL));
	expect_down(make_sink(url_of("nats", "", "127.0.0.1"), "token", "wrong", NULL),
		    "check user, password");
	nats_server_end(&server);
}
OB_TEST_END

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

OB_TEST(a_key_is_enough)
{
	char config[300], path[96];

	(void)snprintf(config, sizeof(config),
		       "authorization { users: [ { nkey: \"%s\" }, { user: a, password: b } ] }",
		       public_key);
	start(config, "a:b@");
	(void)snprintf(path, sizeof(path), "%s/seed", server.dir);
	write_file(path, seed);
	deliver_three(make_sink(url_of("nats", "", "127.0.0.1"), "nkey", public_key, "nkey_seed",
				path, NULL));
	nats_server_end(&server);
}
OB_TEST_END

/* ---- credentials ----------------------------------------------------- */

static struct nats_jwt jwt;
static char creds_dir[64], creds[100];

/* A server whose users come with JWTs, and a file of credentials for one of them. */
static void start_with_jwts(void)
{
	ob_temp_dir(creds_dir);
	(void)snprintf(creds, sizeof(creds), "%s/relay.creds", creds_dir);
	nats_jwt_make(&jwt);
	nats_jwt_creds(&jwt.account, &jwt.user, creds);
	server.creds = creds;
	start(jwt.config, NULL);
}

static void stop_with_jwts(void)
{
	nats_server_end(&server);
	ob_temp_dir_remove(creds_dir);
}

OB_TEST(a_file_of_credentials_is_enough)
{
	start_with_jwts();
	deliver_three(make_sink(url_of("nats", "", "127.0.0.1"), "creds", creds, NULL));
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 3);
	stop_with_jwts();
}
OB_TEST_END

OB_TEST(wrong_credentials_are_an_outage_that_says_so)
{
	char other[100];
	struct nats_key key;

	start_with_jwts();
	(void)snprintf(other, sizeof(other), "%s/other.creds", creds_dir);
	expect_down(make_sink(url_of("nats", "", "127.0.0.1"), NULL), "check user, password");
	/* signed by an account that the server does not know */
	nats_key_make(&key, NATS_KEY_ACCOUNT);
	nats_jwt_creds(&key, &jwt.user, other);
	expect_down(make_sink(url_of("nats", "", "127.0.0.1"), "creds", other, NULL),
		    "check user, password, token or key");
	/* no credentials at all */
	write_file(other, "nothing in here\n");
	expect_down(make_sink(url_of("nats", "", "127.0.0.1"), "creds", other, NULL), "creds");
	/* and not there */
	ck_assert_int_eq(unlink(other), 0);
	struct ob_sink *sink = make_sink(url_of("nats", "", "127.0.0.1"), "creds", other, NULL);
	must_not_open(sink, OB_ERR_FATAL, "other.creds");
	ob_sink_free(sink);
	stop_with_jwts();
}
OB_TEST_END

/* The file is read again at each connection: credentials may be renewed while the relay runs. */
OB_TEST(renewed_credentials_are_used_without_a_restart)
{
	struct nats_key key;

	start_with_jwts();
	char mine[100];
	(void)snprintf(mine, sizeof(mine), "%s/mine.creds", creds_dir);
	nats_key_make(&key, NATS_KEY_ACCOUNT);
	nats_jwt_creds(&key, &jwt.user, mine);
	struct ob_sink *sink = make_sink(url_of("nats", "", "127.0.0.1"), "creds", mine, NULL);
	must_not_open(sink, OB_ERR_DOWN, "check user, password, token or key");
	nats_jwt_creds(&jwt.account, &jwt.user, mine);
	deliver_three(sink);
	stop_with_jwts();
}
OB_TEST_END

/* ---- rights ---------------------------------------------------------- */

OB_TEST(a_subject_that_is_not_ours_fails_its_messages_alone)
{
	start("authorization { users: [ { user: a, password: b }, { user: relay, password: r, "
	      "permissions: { publish: [\"orders.mine\"], subscribe: [\"relay.>\"] } } ] }",
	      "a:b@");
	struct ob_sink *sink =
		make_sink(url_of("nats", "relay:r@", "127.0.0.1"), "inbox_prefix", "relay", NULL);
	must_open(sink);
	row_init(&row, 6, NULL, "orders.mine");
	for (size_t i = 0; i < row.count; i += 2)
		row.parcels[i].delivery.destination = OB_STR("orders.other");
	row_deliver(sink, &row);
	for (size_t i = 0; i < row.count; i++)
		ck_assert_msg(row.acks[i].err.kind == (i % 2 ? OB_ERR_NONE : OB_ERR_RETRY), "%s",
			      row.acks[i].err.msg);
	ck_assert_ptr_nonnull(strstr(row.acks[0].err.msg, "allow this user to publish"));
	ob_sink_free(sink);
	/* with the usual inbox no acknowledgement could come */
	sink = make_sink(url_of("nats", "relay:r@", "127.0.0.1"), NULL);
	must_open(sink);
	row_init(&row, 1, NULL, "orders.mine");
	row_deliver(sink, &row);
	ck_assert_int_eq(row.acks[0].err.kind, OB_ERR_DOWN);
	ck_assert_msg(strstr(row.acks[0].err.msg, "inbox_prefix") != NULL, "%s",
		      row.acks[0].err.msg);
	ob_sink_free(sink);
	nats_server_end(&server);
}
OB_TEST_END

/* ---- TLS ------------------------------------------------------------- */

OB_TEST(tls_is_verified_unless_told_otherwise)
{
	server.tls = true;
	start(NULL, NULL);
	deliver_three(make_sink(url_of("tls", "", "localhost"), "tls_ca", server.ca, NULL));
	deliver_three(make_sink(url_of("nats", "", "localhost"), "tls_ca", server.ca, NULL));
	deliver_three(make_sink(url_of("tls", "", "127.0.0.1"), "tls_verify", "false", NULL));
	expect_down(make_sink(url_of("tls", "", "localhost"), "tls_ca", server.other_ca, NULL),
		    "certificate");
	expect_down(make_sink(url_of("tls", "", "localhost"), NULL), "certificate");
	expect_down(make_sink(url_of("tls", "", "127.0.0.1"), "tls_ca", server.ca, NULL),
		    "IP address mismatch");
	expect_down(make_sink(url_of("nats", "", "localhost"), NULL),
		    "certificate"); /* TLS, as it asks */
	struct ob_sink *sink =
		make_sink(url_of("tls", "", "localhost"), "tls_ca", "/nonexistent", NULL);
	must_not_open(sink, OB_ERR_FATAL, "tls_ca '/nonexistent'");
	ob_sink_free(sink);
	nats_server_end(&server);
}
OB_TEST_END

/* The library itself would wait for ever. */
OB_TEST(a_server_that_falls_silent_in_the_handshake_is_an_outage)
{
	struct chaos_plan silent = { .end = CHAOS_MUTE };
	char url[64];

	server.tls = true;
	start(NULL, NULL);
	struct chaos_proxy *proxy = chaos_proxy_new(server.port);
	silent.cut[CHAOS_TO_CLIENT].match = "\x16\x03"; /* what a handshake of TLS begins with */
	chaos_proxy_plan(proxy, &silent);
	(void)snprintf(url, sizeof(url), "tls://localhost:%d", chaos_proxy_port(proxy));
	struct ob_sink *sink = make_sink(url, "tls_ca", server.ca, "connect_timeout", "2s", NULL);
	for (size_t i = 1; i <= 2; i++) {
		must_not_open(sink, OB_ERR_DOWN, "has not answered in the TLS handshake");
		ck_assert_uint_eq(chaos_proxy_cuts(proxy), i);
	}
	ob_sink_free(sink);
	chaos_proxy_plan(proxy, &(struct chaos_plan){ 0 });
	deliver_three(make_sink(url, "tls_ca", server.ca, NULL));
	chaos_proxy_free(proxy);
	nats_server_end(&server);
}
OB_TEST_END

OB_TEST(without_tls_at_the_server_nothing_is_sent)
{
	start(NULL, NULL);
	expect_down(make_sink(url_of("tls", "", "localhost"), "connect_timeout", "2s", NULL),
		    "no TLS");
	nats_server_end(&server);
}
OB_TEST_END

OB_TEST(ten_thousand_messages_pass_through_tls)
{
	static struct parcel parcels[10000];
	struct tally tally = { 0 };

	server.tls = true;
	start(NULL, NULL);
	struct ob_sink *sink = make_sink(url_of("tls", "", "localhost"), "tls_ca", server.ca, NULL);
	must_open(sink);
	for (size_t i = 0; i < 10000; i++) {
		parcel_init(&parcels[i], i, OB_STR_NULL, OB_STR("{}"));
		parcels[i].delivery.destination = OB_STR("orders.a");
		sink_push(sink, &parcels[i].delivery, &tally);
	}
	sink_drain(sink, &tally, 10000);
	ck_assert_msg(tally.confirmed == 10000, "%s", tally.last.msg);
	ck_assert_uint_eq(nats_stream_count(&server, "S"), 10000);
	ob_sink_free(sink);
	nats_server_end(&server);
}
OB_TEST_END

OB_SUITE_NEEDS("nats login", nats_server_missing(), urls_are_taken_apart,
	       bad_options_are_refused_without_showing_a_secret,
	       the_description_names_the_servers_and_no_secret,
	       a_user_and_a_password_are_needed_and_enough, a_token_is_enough, a_key_is_enough,
	       a_file_of_credentials_is_enough, wrong_credentials_are_an_outage_that_says_so,
	       renewed_credentials_are_used_without_a_restart,
	       a_subject_that_is_not_ours_fails_its_messages_alone,
	       tls_is_verified_unless_told_otherwise,
	       a_server_that_falls_silent_in_the_handshake_is_an_outage,
	       without_tls_at_the_server_nothing_is_sent, ten_thousand_messages_pass_through_tls)
