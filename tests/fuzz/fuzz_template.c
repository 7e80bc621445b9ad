/* SPDX-License-Identifier: MIT */
/*
 * Any text as a template: it is refused with one line, or it can be filled. With its braces
 * doubled it gives itself.
 */
#include "fuzz.h"

#include "base/template.h"

enum { ARENA_MAX = 16 << 20 };

static void check_fault(const struct ob_err *err)
{
	FUZZ_CHECK(err->status == OUTBOX_ECONFIG && err->msg[0]);
	FUZZ_CHECK(strlen(err->msg) < sizeof(err->msg));
}

/* Every value comes from the message or is a part of the text. */
static void check_filled(const struct ob_template *template, struct ob_arena *arena, size_t size)
{
	static const struct ob_header header = { OB_STR("a"), OB_STR("b"), false };
	const struct ob_message whole = {
		.aggregate_type = OB_STR("t"),
		.aggregate_id = OB_STR("i"),
		.key = OB_STR("t:i"),
		.event_type = OB_STR("e"),
		.target = OB_STR("r"),
		.occurred_at_us = 1,
		.sequence_number = 1,
	};
	const struct ob_message bare = { .aggregate_type = OB_STR("t") };
	struct ob_template_input input = { &whole, &header, 1 };
	struct ob_str out, missing = OB_STR_NULL;

	FUZZ_CHECK(ob_template_fill(template, &input, arena, &out, &missing));
	FUZZ_CHECK(out.p ? out.n <= size + template->count * 40 : missing.n > 0);
	input = (struct ob_template_input){ .message = &bare };
	FUZZ_CHECK(ob_template_fill(template, &input, arena, &out, &missing));
	FUZZ_CHECK(out.p || missing.n > 0);
}

static void check_doubled(const char *text, struct ob_arena *arena)
{
	struct ob_buf doubled = OB_BUF_INIT(2 * strlen(text) + 1);
	struct ob_template_input input = { .message = &(struct ob_message){ 0 } };
	struct ob_template template;
	struct ob_err err = OB_ERR_INIT;
	struct ob_str out, missing;

	for (const char *p = text; *p; p++) {
		if (*p == '{' || *p == '}')
			ob_buf_addc(&doubled, *p);
		ob_buf_addc(&doubled, *p);
	}
	FUZZ_CHECK(!doubled.failed);
	int r = ob_template_parse(ob_buf_str(&doubled), arena, &template, &err);
	if (r == 0) {
		FUZZ_CHECK(ob_template_fill(&template, &input, arena, &out, &missing));
		FUZZ_CHECK(ob_str_eq(out, ob_str(text)));
	} else {
		FUZZ_CHECK(strstr(err.msg, "more than")); /* the only way to fail */
	}
	ob_buf_done(&doubled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_template template;
	struct ob_err err = OB_ERR_INIT;
	struct ob_str text;

	/* A text of the configuration has no NUL inside. */
	if (size > 65536 || (size > 0 && memchr(data, 0, size)))
		return 0;
	FUZZ_CHECK(ob_arena_copy(&arena, (struct ob_str){ size ? (const char *)data : "", size },
				 &text));
	int r = ob_template_parse(text.p, &arena, &template, &err);
	if (r == 0)
		check_filled(&template, &arena, size);
	else
		check_fault(&err);
	check_doubled(text.p, &arena);
	ob_arena_done(&arena);
	return 0;
}
