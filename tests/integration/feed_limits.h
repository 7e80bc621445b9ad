/* SPDX-License-Identifier: MIT */
/* Findings of a source that was not opened. */
#ifndef OB_TESTS_FEED_LIMITS_H
#define OB_TESTS_FEED_LIMITS_H

#include "feed/feed.h"

#include <check.h>

/* A finding of that code must be there, with this level and this in its text. */
static inline void expect_finding(const struct ob_findings *found, const char *code,
				  enum ob_level level, const char *text)
{
	const struct ob_finding *it = NULL;

	for (size_t i = 0; i < found->count; i++) {
		if (strcmp(found->list[i].check->code, code) == 0)
			it = &found->list[i];
	}
	ck_assert_msg(it != NULL, "no %s", code);
	ck_assert_msg(it->level == level && strstr(it->text.p, text), "%s: %s",
		      ob_level_name(it->level), it->text.p);
}

/* What the source's limits mean; frees the feed. */
static inline void probe(struct ob_feed *feed, int64_t handler_ms, struct ob_findings *found)
{
	struct ob_err err = OB_ERR_INIT;

	ob_findings_init(found);
	ck_assert_msg(ob_feed_probe(feed, handler_ms, found, &err) == 0, "%s", err.msg);
	ck_assert(!found->failed);
	ob_feed_free(feed);
}

#endif
