/* SPDX-License-Identifier: MIT */
/* Option tables: every type, its range, its message, and what a typo may have meant. */
#include "base/opt.h"
#include "suite.h"

#include <string.h>

struct target {
	char *text, *secret;
	bool flag;
	uint32_t count, wide;
	int64_t size, any_size, delay, retention;
	double jitter, any;
	int color;
	uint32_t secret_number;
};

static const char *const colors[] = { "red", "green", "blue", NULL };

#define AT(member) offsetof(struct target, member)

static const struct ob_opt table[] = {
	{ .name = "text", .type = OB_OPT_STR, .offset = AT(text), .dflt = "hello" },
	{ .name = "secret", .type = OB_OPT_STR, .offset = AT(secret), .flags = OB_OPT_SECRET },
	{ .name = "flag", .type = OB_OPT_BOOL, .offset = AT(flag), .dflt = "true" },
	{ .name = "batch_size",
	  .type = OB_OPT_U32,
	  .offset = AT(count),
	  .dflt = "10",
	  .min = 1,
	  .max = 100 },
	{ .name = "wide", .type = OB_OPT_U32, .offset = AT(wide) },
	{ .name = "size",
	  .type = OB_OPT_SIZE,
	  .offset = AT(size),
	  .dflt = "64KB",
	  .min = 1,
	  .max = 1 << 30 },
	{ .name = "any_size", .type = OB_OPT_SIZE, .offset = AT(any_size) },
	{ .name = "delay",
	  .type = OB_OPT_DURATION_MS,
	  .offset = AT(delay),
	  .dflt = "15s",
	  .min = 1000,
	  .max = 86400000 },
	{ .name = "retention",
	  .type = OB_OPT_DURATION_MS,
	  .offset = AT(retention),
	  .dflt = "never",
	  .min = 1,
	  .max = 604800000,
	  .flags = OB_OPT_NEVER },
	{ .name = "jitter",
	  .type = OB_OPT_DOUBLE,
	  .offset = AT(jitter),
	  .dflt = "0.2",
	  .min = 0,
	  .max = 1 },
	{ .name = "any", .type = OB_OPT_DOUBLE, .offset = AT(any) },
	{ .name = "color",
	  .type = OB_OPT_ENUM,
	  .offset = AT(color),
	  .dflt = "green",
	  .choices = colors },
	{ .name = "secret_number",
	  .type = OB_OPT_U32,
	  .offset = AT(secret_number),
	  .flags = OB_OPT_SECRET },
	OB_OPT_END,
};

static struct target t;
static struct ob_err err;

static bool set(const char *name, const char *value)
{
	int r = ob_opt_set(table, &t, name, value, &err);

	ck_assert(r == 0 || r == OUTBOX_ECONFIG);
	return r == 0;
}

static void check_refused(const char *name, const char *value, const char *message)
{
	ck_assert_msg(!set(name, value), "accepted: %s: %s", name, value);
	ck_assert_str_eq(err.msg, message);
}

OB_TEST(defaults_are_parsed_like_anything_else)
{
	ck_assert_int_eq(ob_opt_defaults(table, &t, &err), 0);
	ck_assert_str_eq(t.text, "hello");
	ck_assert_ptr_null(t.secret);
	ck_assert(t.flag);
	ck_assert_uint_eq(t.count, 10);
	ck_assert_int_eq(t.size, 65536);
	ck_assert_int_eq(t.delay, 15000);
	ck_assert_int_eq(t.retention, OB_NEVER_MS);
	ck_assert(t.jitter > 0.19 && t.jitter < 0.21);
	ck_assert_int_eq(t.color, 1);
	ob_opt_free(table, &t);
	ck_assert_ptr_null(t.text);
	ob_opt_free(table, &t);
}
OB_TEST_END

OB_TEST(a_wrong_default_is_reported)
{
	static const struct ob_opt bad[] = {
		{ .name = "x", .type = OB_OPT_U32, .offset = AT(count), .dflt = "many" }, OB_OPT_END
	};

	ck_assert_int_eq(ob_opt_defaults(bad, &t, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "x: 'many' is not a number");
}
OB_TEST_END

OB_TEST(a_text_replaces_the_one_before)
{
	ck_assert(set("text", "one") && set("text", ""));
	ck_assert_str_eq(t.text, "");
	ck_assert(set("text", "two"));
	ck_assert_str_eq(t.text, "two");
	ob_opt_free(table, &t);
}
OB_TEST_END

OB_TEST(a_bool_has_three_ways_to_say_each)
{
	static const char *const yes[] = { "true", "yes", "on" }, *const no[] = { "false", "no",
										  "off" };

	for (int i = 0; i < 3; i++) {
		ck_assert(set("flag", yes[i]) && t.flag);
		ck_assert(set("flag", no[i]) && !t.flag);
	}
	check_refused("flag", "1", "flag: '1' is not true or false");
	check_refused("flag", "", "flag: '' is not true or false");
	check_refused("flag", "True", "flag: 'True' is not true or false");
}
OB_TEST_END

OB_TEST(numbers_are_whole_and_in_range)
{
	static const char *const bad[] = {
		"",    "0",    "101", "-1",  "+5", " 5", "5 ",
		"1.5", "0x10", "1e1", "ten", "5s", "5B", "99999999999999999999"
	};

	ck_assert(set("batch_size", "1") && t.count == 1);
	ck_assert(set("batch_size", "100") && t.count == 100);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!set("batch_size", bad[i]), "accepted: %s", bad[i]);
	ck_assert_uint_eq(t.count, 100);
	check_refused("batch_size", "101", "batch_size: '101' is not a number from 1 to 100");
	ck_assert(set("wide", "4294967295") && t.wide == UINT32_MAX);
	check_refused("wide", "4294967296", "wide: '4294967296' is not a number");
}
OB_TEST_END

OB_TEST(sizes_have_units_of_1024)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} good[] = { { "1", 1 },
		     { "512B", 512 },
		     { "64KB", 65536 },
		     { "16MB", 16777216 },
		     { "1GB", 1073741824 } };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_msg(set("size", good[i].text), "%s", err.msg);
		ck_assert_int_eq(t.size, good[i].bytes);
	}
	check_refused("size", "2GB", "size: '2GB' is not a size (such as 64KB) from 1B to 1GB");
	check_refused("size", "64kb", "size: '64kb' is not a size (such as 64KB) from 1B to 1GB");
	ck_assert(!set("size", "64 KB") && !set("size", "KB") && !set("size", "1.5MB"));
	ck_assert(set("any_size", "8589934591GB"));
	ck_assert(!set("any_size", "8589934592GB"));
	ck_assert(!set("any_size", "18446744073709551617"));
}
OB_TEST_END

OB_TEST(durations_have_units_and_a_bare_number_is_milliseconds)
{
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = { { "1000", 1000 }, { "2500ms", 2500 },  { "15s", 15000 },
		     { "5m", 300000 }, { "24h", 86400000 }, { "1d", 86400000 } };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_msg(set("delay", good[i].text), "%s", err.msg);
		ck_assert_int_eq(t.delay, good[i].ms);
	}
	check_refused("delay", "999ms",
		      "delay: '999ms' is not a duration (such as 15s) from 1s to 1d");
	check_refused("delay", "2d", "delay: '2d' is not a duration (such as 15s) from 1s to 1d");
	ck_assert(!set("delay", "15 s") && !set("delay", "15S") && !set("delay", "1m30s"));
	ck_assert(!set("delay", "-5s") && !set("delay", "106751991168d"));
}
OB_TEST_END

OB_TEST(never_is_allowed_only_where_it_is_said)
{
	t.retention = 0;
	ck_assert(set("retention", "never") && t.retention == OB_NEVER_MS);
	ck_assert(set("retention", "7d") && t.retention == 604800000);
	check_refused(
		"retention", "often",
		"retention: 'often' is not a duration (such as 15s) from 1ms to 7d, or never");
	ck_assert(!set("delay", "never"));
	ck_assert(!set("retention", "Never"));
}
OB_TEST_END

OB_TEST(doubles_are_plain_decimals_in_range)
{
	static const char *const bad[] = {
		"",       ".",   "-",   "1.1", "-0.1", " 0.5",  "0.5 ",
		"0x1p-1", "nan", "inf", "1,5", "half", "1e999", "1e-999"
	};

	ck_assert(set("jitter", "0") && set("jitter", "1") && set("jitter", ".5") &&
		  set("jitter", "5e-1"));
	ck_assert(t.jitter > 0.49 && t.jitter < 0.51);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!set("jitter", bad[i]), "accepted: %s", bad[i]);
	check_refused("jitter", "2", "jitter: '2' is not a number from 0 to 1");
	ck_assert(set("any", "123456.75"));
}
OB_TEST_END

OB_TEST(an_enum_takes_one_of_its_choices)
{
	ck_assert(set("color", "blue") && t.color == 2);
	ck_assert(set("color", "red") && t.color == 0);
	check_refused("color", "pink", "color: 'pink' is not one of red, green, blue");
	check_refused("color", "", "color: '' is not one of red, green, blue");
	ck_assert_int_eq(t.color, 0);
}
OB_TEST_END

OB_TEST(a_secret_is_not_printed)
{
	check_refused("secret_number", "hunter2", "secret_number: '****' is not a number");
	ck_assert_ptr_null(strstr(err.msg, "hunter2"));
}
OB_TEST_END

OB_TEST(a_hostile_value_leaves_the_message_one_line)
{
	char huge[3000];

	check_refused("color", "a\nb\x1B[2J", "color: 'a b [2J' is not one of red, green, blue");
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	ck_assert(!set("color", huge));
	ck_assert_uint_lt(strlen(err.msg), 150);
	ck_assert_ptr_nonnull(strstr(err.msg, "red, green, blue"));
}
OB_TEST_END

OB_TEST(an_unknown_option_is_named)
{
	check_refused("bach_size", "1", "no option 'bach_size'");
	ck_assert_ptr_null(ob_opt_find(table, "bach_size"));
	ck_assert_ptr_null(ob_opt_find(NULL, "text"));
	ck_assert_ptr_eq(ob_opt_find(table, "text"), &table[0]);
}
OB_TEST_END

OB_TEST(a_typo_finds_the_closest_name)
{
	static const char *const names[] = { "workers", "worker", "ordering", "url" };

	ck_assert_str_eq(ob_opt_suggest(table, "bach_size"), "batch_size");
	ck_assert_str_eq(ob_opt_suggest(table, "batchsize"), "batch_size");
	ck_assert_str_eq(ob_opt_suggest(table, "jittre"),
			 "jitter"); /* neighbours swapped: one edit */
	ck_assert_str_eq(ob_opt_suggest(table, "retenton"), "retention");
	ck_assert_ptr_null(ob_opt_suggest(table, "nothing_like_it"));
	ck_assert_ptr_null(ob_opt_suggest(table, "ab"));
	ck_assert_ptr_null(ob_opt_suggest(table, ""));
	ck_assert_str_eq(ob_suggest("workers", names, 4), "workers");
	ck_assert_str_eq(ob_suggest("wroker", names, 4), "worker");
	ck_assert_str_eq(ob_suggest("workerz", names, 4), "workers");
	ck_assert_str_eq(ob_suggest("ulr", names, 4), "url");
	ck_assert_ptr_null(ob_suggest("a_name_that_is_far_longer_than_forty_characters", names, 4));
	ck_assert_ptr_null(ob_suggest("url", names, 0));
}
OB_TEST_END

OB_TEST(a_description_fits_into_what_it_is_given)
{
	char small[12], large[200];

	for (const struct ob_opt *opt = table; opt->name; opt++) {
		ob_opt_describe(opt, large, sizeof(large));
		ck_assert_uint_gt(strlen(large), 5);
		ob_opt_describe(opt, small, sizeof(small));
		ck_assert_uint_lt(strlen(small), sizeof(small));
	}
	ob_opt_describe(ob_opt_find(table, "retention"), large, sizeof(large));
	ck_assert_str_eq(large, "a duration (such as 15s) from 1ms to 7d, or never");
}
OB_TEST_END

OB_SUITE("opt", defaults_are_parsed_like_anything_else, a_wrong_default_is_reported,
	 a_text_replaces_the_one_before, a_bool_has_three_ways_to_say_each,
	 numbers_are_whole_and_in_range, sizes_have_units_of_1024,
	 durations_have_units_and_a_bare_number_is_milliseconds,
	 never_is_allowed_only_where_it_is_said, doubles_are_plain_decimals_in_range,
	 an_enum_takes_one_of_its_choices, a_secret_is_not_printed,
	 a_hostile_value_leaves_the_message_one_line, an_unknown_option_is_named,
	 a_typo_finds_the_closest_name, a_description_fits_into_what_it_is_given)
