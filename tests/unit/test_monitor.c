/* SPDX-License-Identifier: MIT */
/* The monitor's decisions that need no server: routes, hosts, sessions, masks, rates. */
#include "base/listen.h"
#include "monitor/auth.h"
#include "monitor/mask.h"
#include "monitor/rates.h"
#include "monitor/routes.h"
#include "monitor/throttle.h"
#include "relay/histogram.h"
#include "suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- routes ---------------------------------------------------------- */

static json_t *load_api(void)
{
	json_error_t error;
	json_t *api = json_load_file(OPENAPI, 0, &error);

	ck_assert_msg(api != NULL, "%s", error.text);
	json_t *paths = json_incref(json_object_get(api, "paths"));

	json_decref(api);
	return paths;
}

/* "/api/v1/jobs/{id}" as the table has it: with a star. */
static void star(const char *path, char out[128])
{
	size_t n = 0;

	for (; *path && n + 1 < 128; path++) {
		if (*path == '{') {
			out[n++] = '*';
			path = strchr(path, '}');
		} else {
			out[n++] = *path;
		}
	}
	out[n] = '\0';
}

static const struct ob_route *find(const char *method, const char *path)
{
	for (const struct ob_route *r = ob_routes; r->path; r++) {
		if (strcasecmp(r->method, method) == 0 && strcmp(r->path, path) == 0)
			return r;
	}
	return NULL;
}

OB_TEST(the_table_of_routes_is_that_of_the_api_file)
{
	json_t *paths = load_api(), *methods, *operation;
	const char *path, *method;
	size_t described = 0, listed = 0;
	char pattern[128];

	json_object_foreach(paths, path, methods)
	{
		json_object_foreach(methods, method, operation)
		{
			star(path, pattern);
			const struct ob_route *r = find(method, pattern);

			ck_assert_msg(r != NULL, "no route %s %s", method, path);
			ck_assert_str_eq(json_string_value(json_object_get(operation, "x-role")),
					 ob_role_name(r->role));
			described++;
		}
	}
	for (const struct ob_route *r = ob_routes; r->path; r++)
		listed += r->answer != ob_page_answer && r->answer != ob_asset_answer;
	ck_assert_uint_eq(described, listed);
	json_decref(paths);
}
OB_TEST_END

OB_TEST(what_changes_something_takes_post_and_an_operator)
{
	for (const struct ob_route *r = ob_routes; r->path; r++) {
		bool session = strstr(r->path, "/log") != NULL;

		if (strcmp(r->method, "POST") == 0 && !session)
			ck_assert_int_eq(r->role, OB_ROLE_OPERATOR);
		else if (!session)
			ck_assert_str_eq(r->method, "GET");
	}
}
OB_TEST_END

OB_TEST(a_path_is_found_with_its_word)
{
	char word[OB_PATH_WORD], longest[OB_PATH_WORD + 40];
	bool other;

	ck_assert_ptr_nonnull(ob_route_find("GET", "/", word, &other));
	const struct ob_route *r =
		ob_route_find("HEAD", "/api/v1/messages/7/payload", word, &other);
	ck_assert_ptr_eq(r->answer, ob_api_payload);
	ck_assert_str_eq(word, "7");
	ck_assert_ptr_null(ob_route_find("DELETE", "/api/v1/state", word, &other));
	ck_assert(other);
	const char *const nowhere[] = { "",
					"//",
					"/api",
					"/api/v1/messages/",
					"/api/v1/messages//payload",
					"/api/v1/messages/7/payload/",
					"/messages/7/8",
					"/state" };
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		ck_assert_msg(!ob_route_find("GET", nowhere[i], word, &other), "%s", nowhere[i]);
		ck_assert(!other);
	}
	(void)snprintf(longest, sizeof(longest), "/messages/%0*d", OB_PATH_WORD, 1);
	ck_assert_ptr_null(ob_route_find("GET", longest, word, &other));
}
OB_TEST_END

/* ---- wrong tokens ---------------------------------------------------- */

OB_TEST(wrong_tokens_are_slowed_down_by_their_address)
{
	static struct ob_throttle throttle;
	int64_t now = 1000 * (int64_t)OB_THROTTLE_US;

	for (int i = 0; i < OB_THROTTLE_BURST; i++) {
		ck_assert(ob_throttle_allows(&throttle, "10.0.0.1", now));
		ob_throttle_note(&throttle, "10.0.0.1", now);
	}
	ck_assert(!ob_throttle_allows(&throttle, "10.0.0.1", now));
	ck_assert(!ob_throttle_allows(&throttle, "10.0.0.1", now + OB_THROTTLE_US - 1));
	ck_assert(ob_throttle_allows(&throttle, "10.0.0.2", now));
	/* One more each second. */
	now += OB_THROTTLE_US;
	ck_assert(ob_throttle_allows(&throttle, "10.0.0.1", now));
	ob_throttle_note(&throttle, "10.0.0.1", now);
	ck_assert(!ob_throttle_allows(&throttle, "10.0.0.1", now));
	/* All of them when it was quiet for long, and not more. */
	now += 3600 * (int64_t)OB_THROTTLE_US;
	for (int i = 0; i < OB_THROTTLE_BURST; i++)
		ob_throttle_note(&throttle, "10.0.0.1", now);
	ck_assert(!ob_throttle_allows(&throttle, "10.0.0.1", now));
	ck_assert_uint_eq(throttle.wrong, 2 * OB_THROTTLE_BURST + 1);
}
OB_TEST_END

OB_TEST(many_addresses_take_the_place_of_the_oldest)
{
	static struct ob_throttle throttle;
	int64_t now = 1000 * (int64_t)OB_THROTTLE_US;
	char address[32];

	for (int i = 0; i < OB_THROTTLE_BURST; i++) {
		ob_throttle_note(&throttle, "2001:db8::1", now);
		ob_throttle_note(&throttle, "", now);
	}
	ck_assert(!ob_throttle_allows(&throttle, "2001:db8::2", now));
	ck_assert(ob_throttle_allows(&throttle, "2001:db8:0:1::2", now));
	ck_assert(!ob_throttle_allows(&throttle, "", now));
	for (int i = 0; i < 2 * OB_THROTTLE_SLOTS; i++) {
		(void)snprintf(address, sizeof(address), "10.0.%d.%d", i / 256, i % 256);
		ob_throttle_note(&throttle, address, now);
	}
	/* They were wrong most often: they stay. */
	ck_assert(!ob_throttle_allows(&throttle, "2001:db8::2", now));
	ck_assert(!ob_throttle_allows(&throttle, "", now));
}
OB_TEST_END

/* ---- who asks -------------------------------------------------------- */

OB_TEST(hosts_are_names_of_ours_or_addresses)
{
	ck_assert(ob_host_allowed("127.0.0.1", true, NULL));
	ck_assert(ob_host_allowed("127.9.9.9:80", true, NULL));
	ck_assert(ob_host_allowed("[::1]:80", true, NULL));
	ck_assert(ob_host_allowed("Localhost:1", true, NULL));
	ck_assert(ob_host_allowed("a.example", true, "b.example, A.EXAMPLE"));
	ck_assert(ob_host_allowed("10.0.0.7:8025", false, NULL));
	const char *const bad[] = { NULL,          "",     "evil.com",          "10.0.0.7",
				    "[::2]",       "[::1", "localhost:",        "localhost:8x",
				    "127.0.0.1.x", ":80",  "a.example.evil.com" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bool empty_port = bad[i] && strcmp(bad[i], "localhost:") == 0;

		ck_assert_msg(ob_host_allowed(bad[i], true, "a.example") == empty_port, "%s",
			      bad[i] ? bad[i] : "none");
	}
	ck_assert(ob_origin_matches("http://a:80", "a:80"));
	ck_assert(ob_origin_matches("https://a", "A"));
	ck_assert(!ob_origin_matches("null", "null"));
	ck_assert(!ob_origin_matches("http://a:80", "a"));
	ck_assert(!ob_origin_matches("file://a", "a"));
	ck_assert(!ob_origin_matches("http://a", NULL));
}
OB_TEST_END

OB_TEST(a_session_holds_until_its_time_and_no_other_key)
{
	const struct ob_config_monitor conf = { .tokens = { "viewer-token-16ch",
							    "operator-token-16" } };
	struct ob_auth auth, other;
	char session[OB_SESSION_SIZE];

	ck_assert(ob_auth_init(&auth, &conf, NULL) && ob_auth_init(&other, &conf, NULL));
	ck_assert(!auth.open);
	ck_assert_int_eq(ob_auth_token(&auth, "viewer-token-16ch"), OB_ROLE_VIEWER);
	ck_assert_int_eq(ob_auth_token(&auth, "operator-token-16"), OB_ROLE_OPERATOR);
	ck_assert_int_eq(ob_auth_token(&auth, ""), OB_ROLE_NONE);
	ob_auth_sign(&auth, OB_ROLE_OPERATOR, 1000, session);
	ck_assert_int_eq(ob_auth_session(&auth, session, 999), OB_ROLE_OPERATOR);
	ck_assert_int_eq(ob_auth_session(&auth, session, 1000), OB_ROLE_NONE);
	ck_assert_int_eq(ob_auth_session(&other, session, 999), OB_ROLE_NONE);
	for (size_t i = 0; session[i]; i++) {
		char was = session[i];

		session[i] = was == '1' ? '0' : '1';
		ck_assert_int_eq(ob_auth_session(&auth, session, 1), OB_ROLE_NONE);
		session[i] = was;
	}
	ob_auth_sign(&auth, OB_ROLE_VIEWER, 1000, session);
	ck_assert_int_eq(ob_auth_session(&auth, session, 1), OB_ROLE_VIEWER);
	/* A role whose token is not set cannot be had by an empty one. */
	const struct ob_config_monitor half = { .tokens = { NULL, "operator-token-16" } };
	ck_assert(ob_auth_init(&auth, &half, NULL));
	ck_assert_int_eq(ob_auth_token(&auth, ""), OB_ROLE_NONE);
}
OB_TEST_END

/* ---- addresses ------------------------------------------------------- */

OB_TEST(addresses_to_listen_at)
{
	const struct {
		const char *text, *host;
		int port;
		bool loopback;
	} good[] = {
		{ "127.0.0.1:8025", "127.0.0.1", 8025, true },
		{ "localhost:0", "127.0.0.1", 0, true },
		{ "127.1.2.3:1", "127.1.2.3", 1, true },
		{ "[::1]:65535", "::1", 65535, true },
		{ ":80", "0.0.0.0", 80, false },
		{ "[::]:80", "::", 80, false },
		{ "10.0.0.1:80", "10.0.0.1", 80, false },
		{ "unix:/run/x.sock", "", 0, true },
	};
	const char *const bad[] = {
		"",       "8025",  "localhost", "127.0.0.1:",   "127.0.0.1:65536", "a.com:80",
		"::1:80", "[::1]", "[::1:80",   "127.0.0.1:8 ", "unix:",           "127.0.0.1:-1"
	};
	struct ob_err err = OB_ERR_INIT;
	struct ob_listen at;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_msg(ob_listen_parse(good[i].text, &at, &err) == 0, "%s", good[i].text);
		ck_assert_str_eq(at.host, good[i].host);
		ck_assert_int_eq(at.port, good[i].port);
		ck_assert_msg(at.loopback == good[i].loopback, "%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(ob_listen_parse(bad[i], &at, &err) == OUTBOX_ECONFIG, "%s", bad[i]);
}
OB_TEST_END

/* ---- masks ----------------------------------------------------------- */

static void expect_masked(const char *json, const char *masked)
{
	struct ob_buf out = OB_BUF_INIT(4096);

	ck_assert_msg(ob_mask_json(&out, ob_str(json), "*pass*, card"), "%s", json);
	ck_assert_str_eq(ob_buf_str(&out), masked);
	ob_buf_done(&out);
}

OB_TEST(values_of_masked_keys_are_gone_and_all_else_stays)
{
	expect_masked("{}", "{}");
	expect_masked("[1,\"pass\"]", "[1,\"pass\"]");
	expect_masked("\"card\"", "\"card\"");
	expect_masked("{\"card\":1}", "{\"card\":\"***\"}");
	expect_masked("{\"CARD\" : -1.5e9 , \"x\":2}", "{\"CARD\" : \"***\" , \"x\":2}");
	expect_masked("{\"card\":null}", "{\"card\":\"***\"}");
	expect_masked("{\"card\":\"a\\\"}b\",\"y\":1}", "{\"card\":\"***\",\"y\":1}");
	expect_masked("{\"card\":{\"x\":[1,{\"y\":\"}]\"}]},\"z\":9007199254740993}",
		      "{\"card\":\"***\",\"z\":9007199254740993}");
	expect_masked("{\"card\":[],\"card\":[[]]}", "{\"card\":\"***\",\"card\":\"***\"}");
	expect_masked("{\"a\":[{\"my_password\":true}]}", "{\"a\":[{\"my_password\":\"***\"}]}");
	expect_masked("{\"p\\u0061ss\":1,\"cards\":1e400}",
		      "{\"p\\u0061ss\":\"***\",\"cards\":1e400}");
	expect_masked("{\"x\":\"card\",\"y\":\"\\\"card\\\":1\"}",
		      "{\"x\":\"card\",\"y\":\"\\\"card\\\":1\"}");
}
OB_TEST_END

OB_TEST(what_is_no_json_cannot_be_masked)
{
	struct ob_buf out = OB_BUF_INIT(4096);

	ck_assert(!ob_mask_json(&out, OB_STR("card=1"), "card"));
	ck_assert(!ob_mask_json(&out, OB_STR(""), "card"));
	ck_assert(!ob_mask_json(&out, OB_STR("{\"card\":1"), "card"));
	ck_assert_uint_eq(out.len, 0);
}
OB_TEST_END

/* ---- numbers --------------------------------------------------------- */

OB_TEST(a_rate_is_what_workers_grew_by)
{
	struct ob_worker w[2] = { { .id = { { 1 } }, .reader = OB_STR("a"), .published = 1000 },
				  { .id = { { 2 } }, .reader = OB_STR("a") } };
	struct ob_rates rates = { 0 };

	ck_assert(ob_rates_read(&rates, OB_STR("a")) <= 0);
	ob_rates_note(&rates, w, 1, 0);
	ck_assert(ob_rates_read(&rates, OB_STR("a")) < 0);
	w[0].published += 50;
	w[1].published = 7; /* it was not there before */
	ob_rates_note(&rates, w, 2, 1000000);
	ck_assert_int_eq((int)ob_rates_read(&rates, OB_STR("a")), 50);
	w[1].published += 30;
	ob_rates_note(&rates, w, 2, 2000000);
	ck_assert_int_eq((int)ob_rates_read(&rates, OB_STR("a")), 40);
	w[0].published = 3; /* it began anew under its id */
	ob_rates_note(&rates, w, 2, 4000000);
	ck_assert_int_eq((int)ob_rates_read(&rates, OB_STR("a")), 20);
	for (int i = 5; i < 40; i++)
		ob_rates_note(&rates, w, 2, i * 1000000);
	ck_assert_int_eq((int)ob_rates_read(&rates, OB_STR("a")), 0);
	ob_rates_done(&rates);
}
OB_TEST_END

OB_TEST(a_histogram_counts_up_to_its_bounds)
{
	struct ob_histogram h = { 0 }, sum = { 0 };

	for (size_t i = 1; i < OB_HISTOGRAM_BOUNDS; i++) {
		ck_assert_int_lt(ob_histogram_us[i - 1], ob_histogram_us[i]);
		ck_assert_int_lt(ob_histogram_messages[i - 1], ob_histogram_messages[i]);
	}
	ob_histogram_note(&h, ob_histogram_us, -5);
	ob_histogram_note(&h, ob_histogram_us, 1000);
	ob_histogram_note(&h, ob_histogram_us, 1001);
	ob_histogram_note(&h, ob_histogram_us, INT64_C(4000000000));
	ck_assert_uint_eq(h.counts[0], 2);
	ck_assert_uint_eq(h.counts[1], 1);
	ck_assert_uint_eq(h.counts[OB_HISTOGRAM_BOUNDS], 1);
	ck_assert_uint_eq(h.sum, UINT64_C(4000002001));
	ob_histogram_add(&sum, &h);
	ob_histogram_add(&sum, &h);
	ck_assert_uint_eq(sum.counts[0], 4);
	ck_assert_uint_eq(sum.sum, 2 * h.sum);
}
OB_TEST_END

OB_SUITE("monitor", the_table_of_routes_is_that_of_the_api_file,
	 what_changes_something_takes_post_and_an_operator, a_path_is_found_with_its_word,
	 hosts_are_names_of_ours_or_addresses, a_session_holds_until_its_time_and_no_other_key,
	 addresses_to_listen_at, values_of_masked_keys_are_gone_and_all_else_stays,
	 what_is_no_json_cannot_be_masked, a_rate_is_what_workers_grew_by,
	 a_histogram_counts_up_to_its_bounds, wrong_tokens_are_slowed_down_by_their_address,
	 many_addresses_take_the_place_of_the_oldest)
