/* SPDX-License-Identifier: MIT */
/* The report of a process that consumes, as JSON and back. */
#include "base/consumer_report.h"

#include "base/report_field.h"

#define FIELD(member, as) OB_FIELD(struct ob_consumer_report, member, as)

static const struct ob_field fields[] = {
	FIELD(version, TEXT),
	FIELD(source, TEXT),
	FIELD(handler, TEXT),
	FIELD(dedup, TEXT),
	FIELD(ordering, TEXT),
	FIELD(owner, FLAG),
	FIELD(rate, RATE),
#define X(name, help) FIELD(name, NUMBER),
	OB_CONSUME_COUNTER_MAP(X)
#undef X
		FIELD(lag, KNOWN),
	FIELD(oldest_us, KNOWN),
	FIELD(in_memory, NUMBER),
	FIELD(in_flight, NUMBER),
	FIELD(parked_now, NUMBER),
	FIELD(dead_now, NUMBER),
	FIELD(held_keys, NUMBER),
	FIELD(full, FLAG),
	FIELD(breaker, TEXT),
	FIELD(alarm, FLAG),
	FIELD(breaker_since_us, WHEN),
	FIELD(probe_us, WHEN),
	FIELD(breaker_why, TEXT),
	FIELD(source_state, TEXT),
	FIELD(source_since_us, WHEN),
	FIELD(source_why, TEXT),
	FIELD(handler_state, TEXT),
	FIELD(handler_since_us, WHEN),
	FIELD(handler_why, TEXT),
	FIELD(last_error, TEXT),
	FIELD(last_error_us, WHEN),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

void ob_consumer_report_write(const struct ob_consumer_report *report, struct ob_buf *out)
{
	struct ob_jout j = { .b = OB_BUF_INIT(OB_CONSUMER_REPORT_BYTES) };

	ob_jout_begin(&j, NULL, '{');
	ob_fields_write(&j, fields, FIELDS, report);
	ob_jout_end(&j, '}');
	/* Quotes double a text: if it does not fit, better nothing than a renewal refused. */
	if (!j.b.failed)
		ob_buf_add(out, ob_buf_view(&j.b));
	ob_jout_done(&j);
}

bool ob_consumer_report_read(struct ob_consumer_report *ret, struct ob_str text)
{
	return ob_fields_read(fields, FIELDS,
			      text.n > OB_CONSUMER_REPORT_BYTES ? OB_STR_NULL : text, ret);
}

void ob_consumer_report_json(struct ob_jout *j, const struct ob_consumer_report *report)
{
	ob_fields_json(j, fields, FIELDS, report);
}
