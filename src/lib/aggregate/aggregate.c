/* SPDX-License-Identifier: MIT */
/* Aggregates: loading one, recording events, storing them in one append. */
#include "lib/aggregate/aggregate.h"

#include "base/cleanup.h"
#include "base/grow.h"
#include "lib/events/stream.h"
#include "lib/fail.h"
#include "lib/handle.h"

#include <inttypes.h>
#include <stdlib.h>

static int out_of_memory(struct outbox_error *err)
{
	return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
}

void outbox_aggregate_free(outbox_aggregate *a)
{
	if (!a)
		return;
	outbox_upcast_free(a->upcast);
	ob_text_done(&a->memory);
	free(a->recorded);
	free(a->state);
	free(a->id);
	free(a);
}

static void freep(outbox_aggregate **a)
{
	outbox_aggregate_free(*a);
}

const void *outbox_aggregate_state(const outbox_aggregate *a)
{
	return a->state;
}

int64_t outbox_aggregate_version(const outbox_aggregate *a)
{
	return a->stored ? a->version : a->version + (int64_t)a->count;
}

int64_t outbox_aggregate_snapshot_version(const outbox_aggregate *a)
{
	return a->snapshot_version;
}

size_t outbox_aggregate_recorded(const outbox_aggregate *a)
{
	return a->count;
}

/* ---- applying -------------------------------------------------------- */

static int check_kind(const outbox_aggregate *a, const struct outbox_event *event,
		      struct outbox_error *err)
{
	const struct outbox_event_kind *k = a->type->kinds;

	while (k && k->event_type && strcmp(k->event_type, event->event_type) != 0)
		k++;
	if (!k)
		return 0;
	if (!k->event_type)
		return ob_fail(err, OUTBOX_EEVENT, OUTBOX_NO_INDEX,
			       "'%.60s' has no event type '%.60s': version %" PRId64 " of '%.60s'",
			       a->type->name, event->event_type, event->version, a->id);
	int32_t today = k->revision ? k->revision : 1;
	if (event->revision == today)
		return 0;
	return ob_fail(err, OUTBOX_EEVENT, OUTBOX_NO_INDEX,
		       "event '%.60s' has revision %" PRId32 ", and no upcaster leads to %" PRId32
		       ": version %" PRId64 " of '%.60s'",
		       event->event_type, event->revision, today, event->version, a->id);
}

static int apply_one(outbox_aggregate *a, const struct outbox_event *event,
		     struct outbox_error *err)
{
	int r = check_kind(a, event, err);

	if (r < 0)
		return r;
	*err = (struct outbox_error){ 0 };
	r = a->type->apply(a->state, event, &a->memory, err);
	if (r >= 0)
		return 0;
	char text[sizeof(err->message)];
	(void)snprintf(text, sizeof(text), "%s", err->message);
	return ob_fail(err, r, OUTBOX_NO_INDEX,
		       "applying event '%.60s', version %" PRId64 " of '%.60s': %s",
		       event->event_type, event->version, a->id, text);
}

int ob_aggregate_apply(outbox_aggregate *a, const struct outbox_event *event,
		       struct outbox_error *err)
{
	struct outbox_upcasted today = { .events = event, .count = 1 };
	int r = a->upcast ? outbox_upcast_event(a->upcast, event, &today, err) : 0;

	for (size_t i = 0; i < today.count && r == 0; i++)
		r = apply_one(a, &today.events[i], err);
	return r;
}

/* ---- loading --------------------------------------------------------- */

static int make_aggregate(const struct outbox_aggregate_type *type, const char *id,
			  outbox_aggregate **ret, struct outbox_error *err)
{
	if (!type || !type->name || !type->apply || !id)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "an aggregate needs a type with a name and apply(), and an id");
	outbox_aggregate *a = calloc(1, sizeof(*a));
	if (!a)
		return out_of_memory(err);
	*a = (outbox_aggregate){ .type = type, .memory = OB_TEXT_INIT };
	a->id = strdup(id);
	a->state = calloc(1, type->state_size + 1);
	if (type->upcasters)
		a->upcast = outbox_upcast_new(type->upcasters);
	if (!a->id || !a->state || (type->upcasters && !a->upcast)) {
		outbox_aggregate_free(a);
		return out_of_memory(err);
	}
	a->stream = (struct outbox_stream){ .type = type->name,
					    .id = a->id,
					    .target = type->target ? type->target : "default" };
	*ret = a;
	return 0;
}

static int read_events(outbox_aggregate *a, outbox_event_reader *reader, struct outbox_error *err)
{
	const struct outbox_event *event;
	int r;

	while ((r = outbox_events_next(reader, &event, err)) > 0) {
		if (event->version != a->version + 1)
			return ob_fail(err, OUTBOX_ESTATE, OUTBOX_NO_INDEX,
				       "stream '%.60s' of '%.60s' has no version %" PRId64
				       ": the next is %" PRId64,
				       a->id, a->type->name, a->version + 1, event->version);
		r = ob_aggregate_apply(a, event, err);
		if (r < 0)
			return r;
		a->version = event->version;
	}
	return r;
}

static int check_open(outbox *ob, const outbox_aggregate *a, struct outbox_error *err)
{
	struct outbox_stream_info info = { 0 };
	int r = outbox_stream_look(ob, &a->stream, &info, err);

	if (r < 0 || info.end == OUTBOX_STREAM_OPEN)
		return r;
	return ob_fail(err, OUTBOX_EENDED, OUTBOX_NO_INDEX, "stream '%.60s' of '%.60s' is %s",
		       a->id, a->type->name,
		       info.end == OUTBOX_STREAM_ARCHIVED ? "archived" : "tombstoned");
}

int outbox_aggregate_load(outbox *ob, const struct outbox_aggregate_type *type, const char *id,
			  const struct outbox_load *load, outbox_aggregate **ret,
			  struct outbox_error *err)
{
	static const struct outbox_load present;
	const struct outbox_load *want = load ? load : &present;
	OB_CLEANUP(freep) outbox_aggregate *a = NULL;
	outbox_event_reader *reader = NULL;
	struct outbox_error unused;

	if (!err)
		err = &unused;
	int r = ob ? make_aggregate(type, id, &a, err)
		   : ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no outbox");
	if (r == 0)
		r = check_open(ob, a, err);
	/* A snapshot has no time, and one of a later version is another state. */
	if (r == 0 && type->state_fields && !want->no_snapshot && !want->to_us)
		r = ob_aggregate_find_snapshot(
			ob, a, want->to_version ? want->to_version : INT64_MAX, err);
	if (r < 0)
		return r;
	/* What was cut off is read too, unless a snapshot stands for it. */
	const struct outbox_event_query query = { .stream = a->stream,
						  .after_version = a->version,
						  .to_version = want->to_version,
						  .to_us = want->to_us,
						  .flags = OUTBOX_WITH_ENDED };
	r = outbox_events_open(ob, &query, &reader, err);
	if (r == 0)
		r = read_events(a, reader, err);
	outbox_events_close(reader);
	if (r < 0)
		return r;
	a->past = want->to_version || want->to_us;
	*ret = OB_TAKE(a);
	return 0;
}

/* ---- recording ------------------------------------------------------- */

/* A text that lives as long as the aggregate; NULL stays NULL. */
static bool keep_text(outbox_aggregate *a, const char **text)
{
	struct ob_str own;

	if (!ob_arena_copy(&a->memory.arena, ob_str(*text), &own))
		return false;
	*text = own.p;
	return true;
}

/* The caller's texts may be gone when it is stored. */
static bool keep_texts(outbox_aggregate *a, struct outbox_message *m)
{
	return keep_text(a, &m->event_type) && keep_text(a, &m->headers) && keep_text(a, &m->id) &&
	       keep_text(a, &m->partition_key) && keep_text(a, &m->correlation_id) &&
	       keep_text(a, &m->causation_id);
}

static bool make_room(outbox_aggregate *a)
{
	size_t room = a->room ? a->room * 2 : 8;

	if (a->count < a->room)
		return true;
	struct outbox_message *more = realloc(a->recorded, room * sizeof(*more));
	if (!more)
		return false;
	a->recorded = more;
	a->room = room;
	return true;
}

/* The event as a reader will see it, so that the state is the same afterwards. */
static struct outbox_event event_of(const outbox_aggregate *a, const struct outbox_message *m)
{
	return (struct outbox_event){
		.version = a->version + (int64_t)a->count + 1,
		.id = m->id,
		.type = a->stream.type,
		.stream_id = a->id,
		.target = a->stream.target,
		.event_type = m->event_type,
		.payload = m->payload,
		.payload_size = m->payload_size,
		.headers = m->headers,
		.headers_size = m->headers ? strlen(m->headers) : 0,
		.correlation_id = m->correlation_id,
		.causation_id = m->causation_id,
		.occurred_at_us = m->occurred_at_us,
		.revision = m->revision ? m->revision : 1,
	};
}

static int may_record(const outbox_aggregate *a, const char *event_type, struct outbox_error *err)
{
	if (!event_type)
		return ob_fail(err, OUTBOX_EEVENTTYPE, OUTBOX_NO_INDEX, "event_type is missing");
	if (a->past)
		return ob_fail(err, OUTBOX_ESTATE, OUTBOX_NO_INDEX,
			       "this is '%.60s' as it was: load the present to record", a->id);
	if (a->stored)
		return ob_fail(err, OUTBOX_ESTATE, OUTBOX_NO_INDEX,
			       "'%.60s' was stored already: load it again to record", a->id);
	if (!a->type->serializers)
		return ob_fail(err, OUTBOX_ESERIALIZER, OUTBOX_NO_INDEX,
			       "'%.60s' has no serializers", a->type->name);
	return 0;
}

/* Today's revision of its type, where that is known. */
static int32_t revision_of(const outbox_aggregate *a, const char *event_type)
{
	for (const struct outbox_event_kind *k = a->type->kinds; k && k->event_type; k++) {
		if (strcmp(k->event_type, event_type) == 0)
			return k->revision;
	}
	return 0;
}

int outbox_aggregate_record_sized(outbox_aggregate *a, const char *event_type, const void *event,
				  const void *more, size_t more_size, struct outbox_error *err)
{
	struct outbox_record record = { .event = event };
	struct outbox_error unused;

	if (!err)
		err = &unused;
	struct ob_err fault = OB_ERR_INIT;
	int r = may_record(a, event_type, err);
	if (r < 0)
		return r;
	if (more && ob_grow_check(&ob_grow_message, more_size, &fault) < 0)
		return ob_fail(err, fault.status, OUTBOX_NO_INDEX, "%s", fault.msg);
	const struct outbox_message *before = a->count ? &a->recorded[a->count - 1] : NULL;
	struct outbox_id made = outbox_id_new();
	if (more)
		ob_grow_copy(&ob_grow_message, more, more_size, &record.message);
	record.message.event_type = event_type;
	if (!record.message.id)
		record.message.id = made.text;
	if (!record.message.revision)
		record.message.revision = revision_of(a, event_type);
	if (!record.message.correlation_id && before)
		record.message.correlation_id = before->correlation_id;
	if (!record.message.causation_id && before)
		record.message.causation_id = before->causation_id;
	if (!make_room(a))
		return out_of_memory(err);
	struct outbox_message m;
	r = ob_record_serialize(a->type->serializers, &record, &a->memory, &m, err);
	if (r < 0)
		return r;
	if (!keep_texts(a, &m))
		return out_of_memory(err);
	struct outbox_event seen = event_of(a, &m);
	r = ob_aggregate_apply(a, &seen, err);
	if (r == 0)
		a->recorded[a->count++] = m;
	return r;
}

OUTBOX_API int first_record(outbox_aggregate *aggregate, const char *event_type, const void *event,
			    const void *more, struct outbox_error *err)
	OB_FIRST_ABI("outbox_aggregate_record");

int first_record(outbox_aggregate *aggregate, const char *event_type, const void *event,
		 const void *more, struct outbox_error *err)
{
	return outbox_aggregate_record_sized(aggregate, event_type, event, more,
					     ob_grow_message.first, err);
}

/* ---- storing --------------------------------------------------------- */

int outbox_aggregate_store(outbox *ob, outbox_aggregate *a, struct outbox_appended *ret_done,
			   struct outbox_error *err)
{
	struct outbox_appended done = { 0 };
	struct outbox_error unused;
	int64_t before = a->stored ? a->version - (int64_t)a->count : a->version;

	if (!err)
		err = &unused;
	if (a->count == 0)
		return 0;
	int r = outbox_append(ob, &a->stream, before, a->recorded, a->count, NULL, &done, err);
	if (r < 0)
		return r;
	/* Its ids are there, and not by a commit whose reply was lost: it was us. */
	if (done.repeated && a->stored)
		return ob_fail(err, OUTBOX_EDUPID, OUTBOX_NO_INDEX,
			       "'%.60s' was stored already: load it again", a->id);
	a->stored = true;
	a->version = done.last_version;
	if (ob_aggregate_is_due(a, before, a->version))
		r = outbox_aggregate_snapshot(ob, a, err);
	if (r == 0 && ret_done) {
		done.size = ret_done->size;
		*ret_done = done;
	}
	return r;
}
