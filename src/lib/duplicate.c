/* SPDX-License-Identifier: MIT */
/* Finding the message that is a duplicate. */
#include "lib/duplicate.h"

#include "lib/fail.h"

#include <inttypes.h>

typedef bool same_fn(const struct ob_push_row *a, const struct ob_push_row *b);

const char *ob_push_target(const struct ob_push_row *row)
{
	return row->message->target ? row->message->target : "default";
}

static bool same_id(const struct ob_push_row *a, const struct ob_push_row *b)
{
	return ob_uuid_eq(&a->id, &b->id) && strcmp(ob_push_target(a), ob_push_target(b)) == 0;
}

/* NULL never equals NULL in a unique index: without aggregate_id nothing collides. */
static bool has_sequence(const struct ob_push_row *row)
{
	return row->message->sequence_number != 0 && row->message->aggregate_id;
}

static bool same_sequence(const struct ob_push_row *a, const struct ob_push_row *b)
{
	return has_sequence(b) && a->message->sequence_number == b->message->sequence_number &&
	       strcmp(a->message->aggregate_id, b->message->aggregate_id) == 0 &&
	       strcmp(a->message->aggregate_type, b->message->aggregate_type) == 0 &&
	       strcmp(ob_push_target(a), ob_push_target(b)) == 0;
}

/* Rows of earlier statements of the call are in the table; only these must be compared. */
static bool stands_before(const struct ob_push_row *rows, size_t i, same_fn *same)
{
	for (size_t j = 0; j < i; j++) {
		if (same(&rows[i], &rows[j]))
			return true;
	}
	return false;
}

static int check_row(const struct ob_duplicate_lookup *l, const struct ob_push_row *rows, size_t i,
		     size_t first, struct outbox_error *err)
{
	const struct ob_push_row *row = &rows[i];
	const struct outbox_message *m = row->message;
	char id[OB_UUID_TEXT_SIZE];

	if (stands_before(rows, i, same_id) || l->id_stored(l->arg, row)) {
		ob_uuid_format(&row->id, id);
		return ob_fail(err, OUTBOX_EDUPID, first + i,
			       "id %s is already stored for target '%.80s'", id,
			       ob_push_target(row));
	}
	if (l->sequence_stored && has_sequence(row) &&
	    (stands_before(rows, i, same_sequence) || l->sequence_stored(l->arg, row)))
		return ob_fail(err, OUTBOX_EDUPSEQUENCE, first + i,
			       "%.60s '%.60s' already has a message with sequence number %" PRId64,
			       m->aggregate_type, m->aggregate_id, m->sequence_number);
	return 0;
}

int ob_duplicate_find(const struct ob_duplicate_lookup *lookup, const struct ob_push_row *rows,
		      size_t count, size_t first, struct outbox_error *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = check_row(lookup, rows, i, first, err);
	return r;
}
