/* SPDX-License-Identifier: MIT */
/* Reading rows of the log into messages, by the order of the template message_columns. */
#include "store/mysql/message.h"

#include <stddef.h>

enum kind { INT32, UINT32, INT64, TIME, TEXT, ID };

static const struct {
	enum kind kind;
	size_t offset;
} columns[] = {
	{ INT64, offsetof(struct ob_message, seq) },
	{ ID, offsetof(struct ob_message, id) },
	{ TEXT, offsetof(struct ob_message, aggregate_type) },
	{ TEXT, offsetof(struct ob_message, aggregate_id) },
	{ TEXT, offsetof(struct ob_message, event_type) },
	{ TEXT, offsetof(struct ob_message, payload) },
	{ TEXT, offsetof(struct ob_message, headers) },
	{ TEXT, offsetof(struct ob_message, correlation_id) },
	{ TEXT, offsetof(struct ob_message, causation_id) },
	{ TEXT, offsetof(struct ob_message, key) },
	{ TEXT, offsetof(struct ob_message, target) },
	{ INT64, offsetof(struct ob_message, sequence_number) },
	{ TIME, offsetof(struct ob_message, occurred_at_us) },
	{ TIME, offsetof(struct ob_message, created_at_us) },
	{ INT32, offsetof(struct ob_message, revision) },
	{ INT32, offsetof(struct ob_message, priority) },
	{ UINT32, offsetof(struct ob_message, partition) },
	{ TIME, offsetof(struct ob_message, available_at_us) },
};

_Static_assert(sizeof(columns) / sizeof(columns[0]) == MY_MESSAGE_COLUMNS, "as in the header");

static bool read_value(const struct my_packet *p, unsigned i, void *to)
{
	switch (columns[i].kind) {
	case INT32:
		*(int32_t *)to = (int32_t)my_int(p, i);
		return true;
	case UINT32:
		*(uint32_t *)to = (uint32_t)my_int(p, i);
		return true;
	case INT64:
		*(int64_t *)to = my_int(p, i);
		return true;
	case TIME:
		*(int64_t *)to = my_time(p, i);
		return true;
	case TEXT:
		*(struct ob_str *)to = my_str(p, i);
		return true;
	case ID:
		return ob_uuid_scan(my_str(p, i), to);
	}
	return false;
}

int my_read_message(const struct my_packet *p, struct ob_message *ret_message, struct ob_err *err)
{
	char place[256];

	*ret_message = (struct ob_message){ 0 };
	for (unsigned i = 0; i < MY_MESSAGE_COLUMNS; i++) {
		if (!read_value(p, i, (char *)ret_message + columns[i].offset))
			return ob_err_set(
				err, OUTBOX_ESTORE, OB_ERR_FATAL,
				"%s: the id of the row with %s %lld is no UUID; correct or "
				"delete the row",
				my_place(p->s, place), p->s->base.layout->column[OB_COL_seq],
				(long long)ret_message->seq);
	}
	return 0;
}

int my_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return my_oom("reading rows", err);
	*to = *from;
	return ob_batch_own(batch, to) ? 0 : my_oom("reading rows", err);
}
