/* SPDX-License-Identifier: MIT */
/* Templates: what they give, what they miss, and what is wrong with them. */
#include "base/template.h"
#include "suite.h"

static struct ob_arena arena = OB_ARENA_INIT(1 << 20);

static const struct ob_header headers[] = {
	{ OB_STR("tenant"), OB_STR("acme"), false },
	{ OB_STR("Trace-Id"), OB_STR("t1"), false },
	{ OB_STR("empty"), OB_STR(""), false },
};

static struct ob_message whole(void)
{
	struct ob_message m = {
		.seq = 42,
		.aggregate_type = OB_STR("order"),
		.aggregate_id = OB_STR("7"),
		.event_type = OB_STR("Placed"),
		.key = OB_STR("order:7"),
		.target = OB_STR("default"),
		.correlation_id = OB_STR("c1"),
		.causation_id = OB_STR("d1"),
		.sequence_number = 3,
		.revision = 2,
		.priority = -5,
		.occurred_at_us = 1700000000123456,
	};

	ck_assert(ob_uuid_parse(OB_STR("01900000-0000-7000-8000-000000000001"), &m.id));
	return m;
}

/* What a template gives; p NULL: something was missing. */
static struct ob_str fill(const char *text, const struct ob_message *m, struct ob_str *ret_missing)
{
	struct ob_template_input input = { m, headers, sizeof(headers) / sizeof(headers[0]) };
	struct ob_template template;
	struct ob_err err = OB_ERR_INIT;
	struct ob_str out;

	ck_assert_msg(ob_template_parse(text, &arena, &template, &err) == 0, "%s: %s", text,
		      err.msg);
	ck_assert(ob_template_fill(&template, &input, &arena, &out, ret_missing));
	return out;
}

static void gives(const char *text, const char *expected)
{
	struct ob_message m = whole();
	struct ob_str missing, out = fill(text, &m, &missing);

	ck_assert_msg(ob_str_eq(out, ob_str(expected)), "%s: %.*s", text, (int)out.n, out.p);
}

static void misses(const char *text, const char *field)
{
	struct ob_message m = { .aggregate_type = OB_STR("order"), .event_type = OB_STR("e") };
	struct ob_str missing = OB_STR_NULL, out = fill(text, &m, &missing);

	ck_assert_ptr_null(out.p);
	ck_assert_msg(ob_str_eq(missing, ob_str(field)), "%.*s", (int)missing.n, missing.p);
}

static void bad(const char *text, const char *expected)
{
	struct ob_template template;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_template_parse(text, &arena, &template, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, expected);
}

OB_TEST(every_field_has_a_value)
{
	gives("{id}", "01900000-0000-7000-8000-000000000001");
	gives("{aggregate_type}", "order");
	gives("{aggregate_id}", "7");
	gives("{event_type}", "Placed");
	gives("{revision}", "2");
	gives("{sequence_number}", "3");
	gives("{target}", "default");
	gives("{key}", "order:7");
	gives("{priority}", "-5");
	gives("{correlation_id}", "c1");
	gives("{causation_id}", "d1");
	gives("{seq}", "42");
	gives("{occurred_at}", "2023-11-14T22:13:20.123456Z");
	gives("{headers.tenant}", "acme");
	gives("{headers.trace-id}", "t1");
	gives("{headers.empty}", "");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(text_and_fields_are_joined)
{
	gives("", "");
	gives("plain", "plain");
	gives("a.{event_type}-{target}.z", "a.Placed-default.z");
	gives("{aggregate_type}{aggregate_id}", "order7");
	gives("{seq}/{priority}/{headers.empty}|", "42/-5/|");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(doubled_braces_stand_for_themselves)
{
	gives("{{", "{");
	gives("}}", "}");
	gives("a{{b}}c", "a{b}c");
	gives("{{{target}}}", "{default}");
	gives("{{{{x", "{{x");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(what_has_no_value_is_missing_or_has_a_default)
{
	misses("{aggregate_id}", "aggregate_id");
	misses("a.{correlation_id}.b", "correlation_id");
	misses("{event_type}{sequence_number}", "sequence_number");
	misses("{occurred_at}", "occurred_at");
	misses("{headers.nobody}", "headers.nobody");
	misses("{key}", "key");
	misses("{partition_key}", "partition_key");
	gives("{headers.nobody|public}", "public");
	gives("{headers.nobody|}", "");
	gives("{headers.nobody|a|b}", "a|b");
	gives("x-{headers.tenant|public}-{headers.nobody|none}", "x-acme-none");
	gives("{headers.empty|default}", "");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(the_partition_key_is_the_key_that_was_given)
{
	struct ob_message m = whole();
	struct ob_str missing;

	ck_assert(ob_str_eq(fill("{partition_key|none}", &m, &missing), OB_STR("none")));
	m.key = OB_STR("tenant-1");
	ck_assert(ob_str_eq(fill("{partition_key|none}", &m, &missing), OB_STR("tenant-1")));
	m.aggregate_id = OB_STR_NULL;
	m.key = OB_STR("order:7");
	ck_assert(ob_str_eq(fill("{partition_key|none}", &m, &missing), OB_STR("order:7")));
	m.key = OB_STR_NULL;
	ck_assert(ob_str_eq(fill("{partition_key|none}", &m, &missing), OB_STR("none")));
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(one_field_is_not_copied)
{
	struct ob_message m = whole();
	struct ob_str missing;

	ck_assert_ptr_eq(fill("{aggregate_type}", &m, &missing).p, m.aggregate_type.p);
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(a_bad_template_says_what_is_wrong)
{
	char many[OB_TEMPLATE_PARTS * 2 + 3] = "";

	bad("{nothing}", "no field '{nothing}'");
	bad("{}", "no field '{}'");
	bad("{|x}", "no field '{}'");
	bad("{event_typ}", "no field '{event_typ}'; did you mean '{event_type}'?");
	bad("{Event_type}", "no field '{Event_type}'; did you mean '{event_type}'?");
	bad("{header.tenant}", "no field '{header.tenant}'");
	bad("{headers.}", "'{headers.}' names no header: write '{headers.tenant}'");
	bad("x{target", "a '{' without its '}'; doubled it stands for itself");
	bad("{tar{get}", "a '{' without its '}'; doubled it stands for itself");
	bad("x}", "a '}' without its '{'; doubled it stands for itself");
	bad("{target}}", "a '}' without its '{'; doubled it stands for itself");
	bad("{", "a '{' without its '}'; doubled it stands for itself");
	for (size_t i = 0; i <= OB_TEMPLATE_PARTS; i++)
		memcpy(many + 2 * i, "{{", 2);
	bad(many, "more than 32 fields and pieces of text");
	many[2 * (size_t)OB_TEMPLATE_PARTS] = '\0';
	gives(many, "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{");
	ob_arena_done(&arena);
}
OB_TEST_END

OB_SUITE("template", every_field_has_a_value, text_and_fields_are_joined,
	 doubled_braces_stand_for_themselves, what_has_no_value_is_missing_or_has_a_default,
	 the_partition_key_is_the_key_that_was_given, one_field_is_not_copied,
	 a_bad_template_says_what_is_wrong)
