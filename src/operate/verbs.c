/* SPDX-License-Identifier: MIT */
/* The operator verbs: how they are spoken of, and which states they may touch. */
#include "operate/verbs.h"

#define BIT(view) (1U << OB_VIEW_##view)

enum {
	STUCK = BIT(FAILED) | BIT(DEAD),
	WAITING = BIT(PENDING) | BIT(DELAYED) | BIT(FAILED) | BIT(PARKED),
};

/*
 * A filter without --state never means messages that are merely waiting their
 * turn: `skip --key K` is about the one that is stuck, not about those behind it.
 */
const struct ob_verb_rule ob_verb_rules[OB_VERBS] = {
	[OB_VERB_RETRY] = { .name = "retry",
			    .ask = "retry",
			    .did = "retried",
			    .can = "retried",
			    .allowed = STUCK,
			    .usual = STUCK },
	[OB_VERB_SKIP] = { .name = "skip",
			   .ask = "skip",
			   .did = "skipped",
			   .can = "skipped",
			   .allowed = WAITING | BIT(DEAD),
			   .usual = STUCK },
	[OB_VERB_DISCARD] = { .name = "discard",
			      .ask = "discard",
			      .did = "discarded",
			      .can = "discarded",
			      .allowed = WAITING | BIT(DEAD),
			      .usual = STUCK },
};

bool ob_verb_allows(enum ob_verb verb, const struct ob_message *m)
{
	if (verb == OB_VERB_SKIP && m->view == OB_VIEW_DEAD)
		return m->state == OB_STATE_DEAD_HOLD;
	return ob_verb_rules[verb].allowed & (1U << m->view);
}

void ob_views_text(unsigned views, const char *conjunction, struct ob_buf *out)
{
	int left = __builtin_popcount(views);
	bool first = true;

	for (int view = 0; view < OB_VIEW_COUNT; view++) {
		if (!(views & (1U << view)))
			continue;
		left--;
		if (!first && left)
			ob_buf_adds(out, ", ");
		else if (!first)
			ob_buf_addf(out, " %s ", conjunction);
		ob_buf_adds(out, ob_view_name((enum ob_view)view));
		first = false;
	}
}

/* "; it can be skipped or discarded" */
static void add_possible(struct ob_buf *why, unsigned view)
{
	const char *can[OB_VERBS];
	size_t count = 0;

	for (size_t i = 0; i < OB_VERBS; i++) {
		if (ob_verb_rules[i].allowed & view)
			can[count++] = ob_verb_rules[i].can;
	}
	ob_buf_adds(why, count ? "; it can be " : "; nothing can be changed any more");
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(why, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", can[i]);
}

void ob_verb_refusal(enum ob_verb verb, const struct ob_message *m, struct ob_buf *out)
{
	if (verb == OB_VERB_SKIP && m->state == OB_STATE_DEAD && m->view == OB_VIEW_DEAD) {
		ob_buf_adds(out,
			    "it is dead already and holds nothing; it can be retried or discarded");
		return;
	}
	ob_buf_addf(out, "it is %s, and only ", ob_view_name(m->view));
	ob_views_text(ob_verb_rules[verb].allowed, "and", out);
	ob_buf_addf(out, " messages can be %s", ob_verb_rules[verb].can);
	add_possible(out, 1U << m->view);
}
