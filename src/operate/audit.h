/* SPDX-License-Identifier: MIT */
/* Decisions of people, from the first moment on: who decides, and a plan of its own. */
#ifndef OB_OPERATE_AUDIT_H
#define OB_OPERATE_AUDIT_H

#include "base/jout.h"
#include "store/store.h"

struct ob_decision {
	struct ob_audit_row row; /* for ob_operate.audit and ob_store_audit() */
	char plan[OB_UUID_TEXT_SIZE];
};

/* All of it is borrowed; `plan` NULL: a new one. `reader`, `filter`, `reason`: NULL is "". */
struct ob_decision_conf {
	const char *who, *origin; /* "anna@host"; "cli" or "monitor" */
	const char *verb, *reader, *filter, *reason, *plan;
};

void ob_decision_init(struct ob_decision *decision, const struct ob_decision_conf *conf);
/* Append one object about an entry. */
void ob_audit_row_json(struct ob_jout *j, const struct ob_audit_row *row);

#endif
