/* SPDX-License-Identifier: MIT */
/* From a row to an event; every library of a database has its own copy. */
#include "lib/events/row.h"
#include "lib/fail.h"

bool ob_event_is_number(int column)
{
	return column == OB_EV_POSITION || column == OB_EV_VERSION || column == OB_EV_OCCURRED_AT ||
	       column == OB_EV_CREATED_AT || column == OB_EV_REVISION;
}

int ob_event_add(struct ob_event_page *page, const struct ob_event_row *row,
		 struct outbox_error *err)
{
	struct ob_str own[OB_EV_COLUMNS] = { 0 };
	char id[OB_UUID_TEXT_SIZE] = "";
	struct ob_uuid uuid;
	bool ok = true;

	for (int c = 0; c < OB_EV_COLUMNS && ok; c++) {
		struct ob_str text = row->text[c];

		if (c == OB_EV_ID && ob_uuid_scan(text, &uuid)) {
			ob_uuid_format(&uuid, id);
			text = ob_str(id);
		}
		ok = ob_arena_copy(&page->arena, text, &own[c]);
	}
	if (!ok)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	page->bytes += own[OB_EV_PAYLOAD].n + own[OB_EV_HEADERS].n;
	page->events[page->count++] = (struct outbox_event){
		.position = row->number[OB_EV_POSITION],
		.version = row->number[OB_EV_VERSION],
		.id = own[OB_EV_ID].p,
		.type = own[OB_EV_TYPE].p,
		.stream_id = own[OB_EV_STREAM_ID].p,
		.target = own[OB_EV_TARGET].p,
		.event_type = own[OB_EV_EVENT_TYPE].p,
		.payload = own[OB_EV_PAYLOAD].p,
		.payload_size = own[OB_EV_PAYLOAD].n,
		.headers = own[OB_EV_HEADERS].p,
		.headers_size = own[OB_EV_HEADERS].n,
		.correlation_id = own[OB_EV_CORRELATION].p,
		.causation_id = own[OB_EV_CAUSATION].p,
		.occurred_at_us = row->number[OB_EV_OCCURRED_AT],
		.created_at_us = row->number[OB_EV_CREATED_AT],
		.revision = (int32_t)row->number[OB_EV_REVISION],
	};
	return 0;
}

struct ob_str *ob_answer_row(struct ob_answer *answer, struct outbox_error *err)
{
	if (answer->count == answer->room) {
		size_t room = answer->room ? answer->room * 2 : 4;
		struct ob_str(*more)[OB_ASK_COLUMNS] =
			ob_arena_alloc(&answer->arena, room * sizeof(*more));

		if (!more) {
			(void)ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
			return NULL;
		}
		if (answer->count > 0)
			memcpy(more, answer->rows, answer->count * sizeof(*more));
		answer->rows = more;
		answer->room = room;
	}
	return answer->rows[answer->count++];
}

int ob_answer_cell(struct ob_answer *answer, struct ob_str *cell, struct ob_str text,
		   struct outbox_error *err)
{
	if (ob_arena_copy(&answer->arena, text, cell))
		return 0;
	return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
}
