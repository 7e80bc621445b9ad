/* SPDX-License-Identifier: MIT */
/* Opening sinks, and messages in a row. */
#include "sink_rows.h"

#include <stdarg.h>

enum { WAIT_MS = 40000 };

struct ob_sink *row_make_sink(const struct ob_sink_ops *ops, ...)
{
	struct ob_opt_value options[12];
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;
	size_t count = 0;
	va_list words;

	va_start(words, ops);
	for (const char *name; (name = va_arg(words, const char *)); count++) {
		ck_assert_uint_lt(count, 12);
		options[count] = (struct ob_opt_value){ name, va_arg(words, const char *) };
	}
	va_end(words);
	if (ob_sink_new(ops, options, count, &ob_clock_system, &sink, &err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

void must_open(struct ob_sink *sink)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_sink_open(sink, &err) < 0)
		ck_abort_msg("%s", err.msg);
}

void must_not_open(struct ob_sink *sink, enum ob_err_kind kind, const char *text)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_lt(ob_sink_open(sink, &err), 0);
	ck_assert_msg(err.kind == kind, "%s", err.msg);
	ck_assert_msg(strstr(err.msg, text) != NULL, "%s", err.msg);
}

void row_init(struct row *row, size_t count, const char *key, const char *destination)
{
	ck_assert_uint_le(count, ROW_MAX);
	row->count = count;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(row->bodies[i], sizeof(row->bodies[i]), "%zu", i);
		parcel_init(&row->parcels[i], i, ob_str(key), ob_str(row->bodies[i]));
		row->parcels[i].delivery.destination = ob_str(destination);
	}
}

void row_send(struct ob_sink *sink, const struct row *row)
{
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < row->count; i++) {
		int r = ob_sink_send(sink, &row->parcels[i].delivery, &err);
		ck_assert_msg(r == 0, "%d %s", r, err.msg);
	}
}

/* An outcome has come, and those of the same key that were sent before have theirs. */
static void row_take(struct row *row, const struct ob_ack *ack, bool got[ROW_MAX])
{
	struct ob_str key = row->parcels[ack->tag].message.key;

	ck_assert(!got[ack->tag]);
	got[ack->tag] = true;
	row->acks[ack->tag] = *ack;
	for (size_t i = 0; key.p && i < ack->tag; i++)
		ck_assert(got[i] || !ob_str_eq(row->parcels[i].message.key, key));
}

void row_wait(struct ob_sink *sink, struct row *row)
{
	struct ob_err err = OB_ERR_INIT;
	bool got[ROW_MAX] = { false };

	for (size_t count = 0; count < row->count;) {
		struct ob_ack acks[16];
		int n = ob_sink_poll(sink, WAIT_MS, acks, 16, &err);

		ck_assert_msg(n > 0, "no outcome in %d ms", WAIT_MS);
		for (int i = 0; i < n; i++, count++)
			row_take(row, &acks[i], got);
	}
}

void row_deliver(struct ob_sink *sink, struct row *row)
{
	row_send(sink, row);
	row_wait(sink, row);
}

size_t row_count(const struct row *row, enum ob_err_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < row->count; i++)
		n += row->acks[i].err.kind == kind;
	return n;
}
