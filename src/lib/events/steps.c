/* SPDX-License-Identifier: MIT */
/*
 * The unique index over (stream, version) decides: whoever loses a race for a version is refused by
 * it, waits for nobody else, and is told what came of it here.
 */
#include "lib/events/steps.h"
#include "lib/events/stream.h"
#include "lib/fail.h"

/* Versions that an append with ANY tries one after the other; each one lost was taken by another.
 */
enum { RACES_MAX = 100 };

static int finish(const struct ob_append_steps *s, const struct ob_append *call, int64_t first,
		  bool repeated, struct ob_append_done *ret, struct outbox_error *err)
{
	int64_t place[2] = { 0 };
	int r = !call->placed ? 0
			      : s->place(s->driver, &call->stream, first,
					 first + (int64_t)call->count - 1, place, err);

	if (r < 0)
		return r;
	*ret = (struct ob_append_done){ first, place[0], place[1], repeated };
	return 0;
}

/* Do these very events stand where they were to go? 1: yes, and *ret says so. */
static int find_repeat(const struct ob_append_steps *s, const struct ob_append *call,
		       struct ob_append_done *ret, struct outbox_error *err)
{
	int64_t first = 0, version;

	for (size_t i = 0; i < call->count; i++) {
		int r = s->version_of(s->driver, &call->stream, &call->rows[i].id, &version, err);

		if (r < 0)
			return r;
		if (i == 0)
			first = version;
		if (version == 0 || version != first + (int64_t)i ||
		    (call->expected >= 0 && first != call->expected + 1))
			return 0;
	}
	int r = finish(s, call, first, true, ret, err);
	return r < 0 ? r : 1;
}

/* A unique index refused the events: a repeat, a lost race, or an id that is used elsewhere. */
static int explain_refusal(const struct ob_append_steps *s, const struct ob_append *call,
			   int refused, struct ob_append_done *ret, struct outbox_error *err)
{
	struct outbox_error first = *err;
	int64_t actual;

	if (call->own_ids) {
		int r = find_repeat(s, call, ret, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	if (refused == OUTBOX_EDUPID) {
		*err = first;
		return refused;
	}
	int r = s->actual(s->driver, &call->stream, &actual, err);
	return r < 0 ? r : ob_append_conflict(call, actual, err);
}

static void number_after(const struct ob_append *call, int64_t version)
{
	for (size_t i = 0; i < call->count; i++)
		call->messages[i].sequence_number = version + (int64_t)i + 1;
}

static int insert_at(const struct ob_append_steps *s, const struct ob_append *call, int64_t after,
		     struct outbox_error *err)
{
	number_after(call, after);
	return s->insert(s->driver, call->rows, call->count, err);
}

static int end_insert(const struct ob_append_steps *s, const struct ob_append *call, int r,
		      int64_t after, struct ob_append_done *ret, struct outbox_error *err)
{
	if (r == OUTBOX_EDUPSEQUENCE || r == OUTBOX_EDUPID)
		return explain_refusal(s, call, r, ret, err);
	return r != 0 ? r : finish(s, call, after + 1, false, ret, err);
}

/* One statement where the database has it; true: it has decided, and *ret_status says what. */
static bool insert_expected(const struct ob_append_steps *s, const struct ob_append *call,
			    struct ob_append_done *ret, int *ret_status, struct outbox_error *err)
{
	bool stored = false;

	if (!s->insert_expected || call->expected < 0)
		return false;
	number_after(call, call->expected);
	int r = s->insert_expected(s->driver, call->rows, call->count, &stored, err);
	/* What is missing is told better by the statement that needs it alone. */
	if ((r == 0 && !stored) || r == OUTBOX_ESCHEMA)
		return false;
	*ret_status = end_insert(s, call, r, call->expected, ret, err);
	return true;
}

int ob_append_by_steps(const struct ob_append_steps *s, const struct ob_append *call,
		       struct ob_append_done *ret, struct outbox_error *err)
{
	struct ob_stream_state state;
	struct outbox_error unused;
	int r;

	if (insert_expected(s, call, ret, &r, err))
		return r;
	r = s->look(s->driver, &call->stream, &state, err);
	if (r < 0)
		return r;
	int allowed = ob_append_allowed(call, &state, err);
	if (call->own_ids && allowed != OUTBOX_EENDED && call->expected != state.version) {
		r = find_repeat(s, call, ret, &unused);
		if (r != 0)
			return r < 0 ? (*err = unused, r) : 0;
	}
	if (allowed < 0)
		return allowed;
	r = insert_at(s, call, state.version, err);
	/* The refused insert has shown that the version is taken; trying the next locks no more. */
	for (int races = 0; r == OUTBOX_EDUPSEQUENCE && call->expected < 0 && races < RACES_MAX;
	     races++)
		r = insert_at(s, call, ++state.version, err);
	return end_insert(s, call, r, state.version, ret, err);
}
