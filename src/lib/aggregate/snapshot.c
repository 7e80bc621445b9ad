/* SPDX-License-Identifier: MIT */
/* Snapshots beside the log. One that cannot be read costs time, never the aggregate. */
#include "base/cleanup.h"
#include "lib/aggregate/aggregate.h"
#include "lib/fail.h"
#include "lib/handle.h"

#include <stdlib.h>

static void answer_done(struct ob_answer *answer)
{
	ob_arena_done(&answer->arena);
}

#define STREAM_VALUES(a) \
	OB_ASK_TEXT(ob_str((a)->stream.target)), OB_ASK_TEXT(ob_str((a)->stream.type)), \
		OB_ASK_TEXT(ob_str((a)->stream.id))

/* Into a state of its own: a snapshot that fails halfway leaves nothing. */
static bool read_state(outbox_aggregate *a, struct ob_str text)
{
	struct outbox_error ignored;
	OB_AUTOFREE void *state = calloc(1, a->type->state_size + 1);

	if (!state || outbox_struct_read(a->type->state_fields, text.p, text.n, state, &a->memory,
					 &ignored) < 0)
		return false;
	memcpy(a->state, state, a->type->state_size);
	return true;
}

int ob_aggregate_find_snapshot(outbox *ob, outbox_aggregate *a, int64_t to_version,
			       struct outbox_error *err)
{
	const struct ob_ask_value values[] = { STREAM_VALUES(a), OB_ASK_NUMBER(to_version) };
	OB_CLEANUP(answer_done) struct ob_answer found = OB_ANSWER_INIT;
	int r = ob->ops->ask(ob->driver, OB_ASK_snapshot_find, values, 4, &found, err);

	if (r < 0 || found.count == 0)
		return r;
	int64_t version = strtoll(found.rows[0][0].p, NULL, 10);
	if (strtol(found.rows[0][1].p, NULL, 10) == a->type->state_revision &&
	    read_state(a, found.rows[0][2]))
		a->version = a->snapshot_version = version;
	return 0;
}

/* Reached or passed a multiple; or there is none although there should be. */
bool ob_aggregate_is_due(const outbox_aggregate *a, int64_t before, int64_t after)
{
	int64_t every = a->type->snapshot_every;

	if (!a->type->state_fields || every <= 0 || after <= before)
		return false;
	return after / every > before / every || (a->snapshot_version == 0 && after >= every);
}

int outbox_aggregate_snapshot(outbox *ob, outbox_aggregate *a, struct outbox_error *err)
{
	OB_CLEANUP(ob_text_done) struct outbox_text text = OB_TEXT_INIT;
	OB_CLEANUP(answer_done) struct ob_answer done = OB_ANSWER_INIT;
	struct outbox_error unused;

	if (!err)
		err = &unused;
	if (!a->type->state_fields)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "'%.60s' has no state_fields: it cannot be snapshot", a->type->name);
	if (a->past || (a->count > 0 && !a->stored) || a->version == 0)
		return ob_fail(err, OUTBOX_ESTATE, OUTBOX_NO_INDEX,
			       "a snapshot is of the newest state that is stored: store first");
	if (!ob->ops->in_transaction(ob->driver))
		return ob_fail(err, OUTBOX_ENOTRANSACTION, OUTBOX_NO_INDEX,
			       "no transaction is open on this connection: begin one, write, "
			       "commit");
	int r = outbox_struct_write(a->type->state_fields, a->state, &text, err);
	const struct ob_ask_value values[] = { STREAM_VALUES(a), OB_ASK_NUMBER(a->version),
					       OB_ASK_NUMBER(a->type->state_revision),
					       OB_ASK_TEXT(ob_buf_view(&text.b)) };
	return r < 0 ? r : ob->ops->ask(ob->driver, OB_ASK_snapshot_keep, values, 6, &done, err);
}
