/* SPDX-License-Identifier: MIT */
/* What is stored is what was sent: bodies of every kind and size, names, headers. */
#include "sink_harness.h"
#include "suite.h"

#include <stdlib.h>

/* Deliver one and read it back; what was there before is removed, so that reading stays short. */
static struct stored deliver(struct sink_env *env, const struct parcel *parcel)
{
	struct ob_sink *sink = sink_make(env);
	struct tally tally = { 0 };
	struct stored *stored;

	if (env->kind->clear)
		env->kind->clear(env);
	sink_push(sink, &parcel->delivery, &tally);
	sink_drain(sink, &tally, 1);
	ck_assert_uint_eq(tally.confirmed, 1);
	ob_sink_free(sink);
	size_t count = sink_read(env, &stored);
	ck_assert_uint_ge(count, 1);
	return stored[count - 1];
}

/* Refused before a byte of it is sent. */
static void check_too_large(struct sink_env *env, const struct parcel *parcel)
{
	struct ob_sink *sink = sink_make(env);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_lt(ob_sink_send(sink, &parcel->delivery, &err), 0);
	ck_assert_int_eq(err.kind, OB_ERR_REJECT);
	ck_assert_ptr_nonnull(strstr(err.msg, "larger than"));
	ob_sink_free(sink);
}

static void check_body(struct sink_env *env, struct ob_str body)
{
	struct parcel parcel;

	parcel_init(&parcel, 7, OB_STR("k"), body);
	if (env->kind->body_max > 0 && body.n > env->kind->body_max) {
		check_too_large(env, &parcel);
		return;
	}
	struct stored stored = deliver(env, &parcel);
	ck_assert_uint_eq(stored.n, 7);
	ck_assert(!stored.tombstone);
	ck_assert_msg(ob_str_eq(stored.body, body), "sent %zu bytes, stored %zu bytes", body.n,
		      stored.body.n);
}

OB_TEST(json_arrives_byte_for_byte)
{
	static const char *const bodies[] = {
		"{}",
		"[1.0,1e2,-0,0.10]",
		"{\"b\":1,\"a\":2}",
		"  {\"spaced\" :\t[ ] }  ",
		"\"\\u00e9\\/\\n\xc3\xa9\xf0\x9f\x98\x80\"",
		"null",
		"12345678901234567",
		"\"text\"",
	};
	struct sink_env env;

	sink_env_init(&env);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		check_body(&env, ob_str(bodies[i]));
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(all_byte_values_arrive)
{
	struct sink_env env;
	char bytes[256];

	sink_env_init(&env);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	check_body(&env, (struct ob_str){ bytes, 256 });
	check_body(&env, (struct ob_str){ bytes, 255 });
	check_body(&env, (struct ob_str){ bytes, 254 });
	check_body(&env, (struct ob_str){ bytes + 10, 1 });
	check_body(&env, OB_STR("{\"broken\":"));
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(an_empty_body_is_not_a_tombstone)
{
	struct sink_env env;
	struct parcel parcel;

	sink_env_init(&env);
	check_body(&env, OB_STR(""));
	parcel_init(&parcel, 8, OB_STR("k"), OB_STR_NULL);
	struct stored stored = deliver(&env, &parcel);
	ck_assert(stored.tombstone);
	ck_assert_ptr_null(stored.body.p);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(bodies_from_one_byte_to_sixteen_megabytes_arrive)
{
	static const size_t sizes[] = { 1, 2, 3, 4095, 4096, 65536, 1 << 20, 16 << 20 };
	struct sink_env env;
	char *bytes = malloc(16 << 20);

	ck_assert_ptr_nonnull(bytes);
	sink_env_init(&env);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(bytes, 'x', sizes[i]);
		check_body(&env, (struct ob_str){ bytes, sizes[i] });
		if (sizes[i] < 2)
			continue;
		bytes[0] = bytes[sizes[i] - 1] = '"'; /* now it is JSON */
		check_body(&env, (struct ob_str){ bytes, sizes[i] });
	}
	free(bytes);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(line_breaks_between_tokens_do_not_break_a_line)
{
	struct sink_env env;
	struct parcel parcel;

	sink_env_init(&env);
	parcel_init(&parcel, 9, OB_STR("k"), OB_STR("{\r\n\t\"a\": [\n1,\r2]\n}"));
	struct stored stored = deliver(&env, &parcel);
	const char *expected =
		env.kind->lines ? "{  \t\"a\": [ 1, 2] }" : "{\r\n\t\"a\": [\n1,\r2]\n}";
	ck_assert(ob_str_eq(stored.body, ob_str(expected)));
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(names_may_hold_anything)
{
	static const struct ob_str names[] = {
		OB_STR("plain"),
		OB_STR("with \"quotes\" and \\"),
		OB_STR("line\nbreak\r\ttab"),
		OB_STR("nul\0inside"),
		OB_STR("gr\xc3\xbc\xc3\x9f"),
	};
	struct sink_env env;
	struct parcel parcel;

	sink_env_init(&env);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		parcel_init(&parcel, i, names[i], OB_STR("{}"));
		if (!env.kind->strict_names)
			parcel.delivery.destination = names[i];
		struct stored stored = deliver(&env, &parcel);
		ck_assert(ob_str_eq(stored.key, names[i]));
		ck_assert(ob_str_eq(stored.destination, parcel.delivery.destination));
	}
	parcel_init(&parcel, 99, OB_STR_NULL, OB_STR("{}"));
	ck_assert_ptr_null(deliver(&env, &parcel).key.p);
	parcel_init(&parcel, 100, OB_STR("bad \xff utf-8"), OB_STR("{}"));
	ck_assert_uint_eq(deliver(&env, &parcel).n, 100);
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(headers_are_those_of_the_delivery_or_the_stored_ones)
{
	const struct ob_header headers[] = { { OB_STR("trace"), OB_STR("00-1"), false },
					     { OB_STR("x\"y"), OB_STR("a\nb"), false } };
	struct sink_env env;
	struct parcel parcel;

	sink_env_init(&env);
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{}"));
	ck_assert_ptr_null(deliver(&env, &parcel).headers.p);
	/* in order by name: RabbitMQ 4 sorts them */
	parcel.message.headers = OB_STR("{\"n\":[1,{\"deep\":true}],\"tenant\":\"a\"}");
	ck_assert(ob_str_eq(deliver(&env, &parcel).headers, parcel.message.headers));
	parcel.delivery.headers = headers;
	parcel.delivery.header_count = 2;
	ck_assert(ob_str_eq(deliver(&env, &parcel).headers,
			    OB_STR("{\"trace\":\"00-1\",\"x\\\"y\":\"a\\nb\"}")));
	sink_env_done(&env);
}
OB_TEST_END

OB_TEST(a_snapshot_goes_out_beside_the_body)
{
	struct sink_env env;
	struct parcel parcel;

	sink_env_init(&env);
	parcel_init(&parcel, 1, OB_STR("k"), OB_STR("{}"));
	ck_assert_ptr_null(deliver(&env, &parcel).snapshot.p);
	parcel.delivery.snapshot = OB_STR("{\"total\": 7, \"note\": \"50% \\\"off\\\"\"}");
	struct stored stored = deliver(&env, &parcel);
	ck_assert_msg(ob_str_eq(stored.snapshot, parcel.delivery.snapshot), "%.*s",
		      (int)stored.snapshot.n, stored.snapshot.p);
	ck_assert(ob_str_eq(stored.body, OB_STR("{}")));
	sink_env_done(&env);
}
OB_TEST_END

SINK_SUITE("sink content", json_arrives_byte_for_byte, all_byte_values_arrive,
	   an_empty_body_is_not_a_tombstone, bodies_from_one_byte_to_sixteen_megabytes_arrive,
	   line_breaks_between_tokens_do_not_break_a_line, names_may_hold_anything,
	   headers_are_those_of_the_delivery_or_the_stored_ones,
	   a_snapshot_goes_out_beside_the_body)
