/* SPDX-License-Identifier: MIT */
/* The verbs of operators: retry, skip, discard. */
#ifndef OB_OPERATE_VERBS_H
#define OB_OPERATE_VERBS_H

#include "base/buf.h"
#include "base/message.h"
#include "log/exception.h"

/* How a verb is spoken of, and what it may touch. Sets of states are bits 1 << OB_VIEW_.... */
struct ob_verb_rule {
	const char *name; /* of the command */
	const char *ask;  /* "retry" 3 messages? */
	const char *did;  /* "retried" 3 messages */
	const char *can;  /* it can be "retried" */
	unsigned allowed; /* the states it works on */
	unsigned usual;   /* those that a filter without --state means */
};

/* By enum ob_verb. */
extern const struct ob_verb_rule ob_verb_rules[];
enum { OB_VERBS = OB_VERB_DISCARD + 1 };

/* Does the message's state allow the verb? A dead one that holds nothing cannot be skipped again.
 */
bool ob_verb_allows(enum ob_verb verb, const struct ob_message *message);
/* Why it does not, and what can be done: "it is published, and only ...". */
void ob_verb_refusal(enum ob_verb verb, const struct ob_message *message, struct ob_buf *out);
/* The names of the states, bits 1 << OB_VIEW_...: "failed, parked or dead". */
void ob_views_text(unsigned views, const char *conjunction, struct ob_buf *out);

#endif
