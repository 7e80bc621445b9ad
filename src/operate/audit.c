/* SPDX-License-Identifier: MIT */
/* Decisions of people, and how they are told to programs. */
#include "operate/audit.h"

static struct ob_str text_or_empty(const char *text)
{
	return text ? ob_str(text) : OB_STR("");
}

void ob_decision_init(struct ob_decision *decision, const struct ob_decision_conf *conf)
{
	*decision = (struct ob_decision){
		.row = { .who = text_or_empty(conf->who),
			 .origin = text_or_empty(conf->origin),
			 .verb = text_or_empty(conf->verb),
			 .reader = text_or_empty(conf->reader),
			 .filter = text_or_empty(conf->filter),
			 .reason = text_or_empty(conf->reason) },
	};
	if (!conf->plan) {
		struct ob_uuid id = ob_uuid_new();

		ob_uuid_format(&id, decision->plan);
	}
	decision->row.plan = ob_str(conf->plan ? conf->plan : decision->plan);
}

void ob_audit_row_json(struct ob_jout *j, const struct ob_audit_row *row)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_int(j, "number", row->number);
	ob_jout_when(j, "at", row->at_us);
	ob_jout_text(j, "who", row->who);
	ob_jout_text(j, "origin", row->origin);
	ob_jout_text(j, "verb", row->verb);
	ob_jout_text(j, "reader", row->reader.n ? row->reader : OB_STR_NULL);
	ob_jout_text(j, "filter", row->filter);
	ob_jout_int(j, "count", (int64_t)row->count);
	ob_jout_text(j, "plan", row->plan);
	ob_jout_text(j, "reason", row->reason.n ? row->reason : OB_STR_NULL);
	ob_jout_end(j, '}');
}
