/* SPDX-License-Identifier: MIT */
/* Records become messages: translators, then serializers, each by the first that supports it. */
#include "base/cleanup.h"
#include "base/grow.h"
#include "base/json.h"
#include "lib/fail.h"
#include "lib/handle.h"
#include "lib/serialize/text.h"

#include <stdlib.h>

/*
 * A record has a message inside, and the callbacks of the program read it in the program's layout,
 * so this message can never grow. Whoever appends a member to struct outbox_message keeps the
 * struct of before under a name of its own for this one.
 */
_Static_assert(offsetof(struct outbox_record, event) ==
		       sizeof(size_t) + OB_GROW_SIZE(struct outbox_message, flags),
	       "the message inside a record never grows");

/* ---- the serializers that are here ----------------------------------- */

int outbox_serialize_raw(const struct outbox_serializer *self, const struct outbox_record *record,
			 outbox_text *out, struct outbox_error *err)
{
	const char *raw = record->event;

	(void)self;
	if (!raw)
		return ob_fail(err, OUTBOX_ENOPAYLOAD, OUTBOX_NO_INDEX, "the record has no event");
	outbox_text_add(out, raw, record->event_size ? record->event_size : strlen(raw));
	return 0;
}

static const struct outbox_field *fields_of(const struct outbox_serializer *self,
					    const struct outbox_record *record)
{
	const char *type = record->message.event_type;

	for (const struct outbox_shape *s = self->arg; s && s->event_type && type; s++) {
		if (strcmp(s->event_type, type) == 0)
			return s->fields;
	}
	return NULL;
}

int outbox_supports_struct(const struct outbox_serializer *self, const struct outbox_record *record)
{
	return record->event && fields_of(self, record) != NULL;
}

int outbox_serialize_struct(const struct outbox_serializer *self,
			    const struct outbox_record *record, outbox_text *out,
			    struct outbox_error *err)
{
	return outbox_struct_write(fields_of(self, record), record->event, out, err);
}

int outbox_serialize_state(const struct outbox_serializer *self, const struct outbox_record *record,
			   outbox_text *out, struct outbox_error *err)
{
	return outbox_struct_write(self->arg, record->state, out, err);
}

/* ---- one record ------------------------------------------------------ */

/* One call: its records, and the memory of their documents. */
struct pass {
	const struct outbox_serializers *how;
	bool binary; /* payloads are bytes */
	struct outbox_text scratch;
	struct outbox_text *memory; /* of the documents */
};

static const char *event_of(const struct outbox_record *record)
{
	return record->message.event_type ? record->message.event_type : "";
}

/* Say which event it was about. */
static int about(const struct outbox_record *record, const char *name, size_t index,
		 struct outbox_error *err)
{
	char text[sizeof(err->message)];

	(void)snprintf(text, sizeof(text), "%s", err->message);
	return ob_fail(err, err->status, index, "event '%.60s', %s: %s", event_of(record),
		       name ? name : "a serializer", text);
}

static int not_supported(const struct outbox_record *record, const char *what, size_t index,
			 struct outbox_error *err)
{
	return ob_fail(err, OUTBOX_ESERIALIZER, index,
		       "event '%.100s': no serializer of the %s list supports it", event_of(record),
		       what);
}

static int check_document(struct ob_str text, int status, struct outbox_error *err)
{
	struct ob_json_fault fault;

	if (ob_json_valid(text, &fault))
		return 0;
	return ob_fail(err, status, OUTBOX_NO_INDEX, "it wrote what is not JSON: %s at byte %zu",
		       fault.what, fault.offset);
}

/* Run the first that supports it; *ret is in the memory of the pass. */
/* NOLINTNEXTLINE(readability-function-size): all that an error must name */
static int run_list(struct pass *p, const struct outbox_serializer *const *list, const char *what,
		    int status, const struct outbox_record *record, size_t index,
		    struct ob_str *ret, struct outbox_error *err)
{
	bool check = status == OUTBOX_ESNAPSHOTJSON || !p->binary;

	while (list && *list && (*list)->supports && !(*list)->supports(*list, record))
		list++;
	if (!list || !*list)
		return not_supported(record, what, index, err);
	ob_buf_clear(&p->scratch.b);
	*err = (struct outbox_error){ 0 };
	int r = (*list)->serialize(*list, record, &p->scratch, err);
	if (r < 0 && err->status == 0)
		(void)ob_fail(err, r, index, "it failed");
	if (r >= 0 && p->scratch.b.failed)
		r = ob_fail(err, OUTBOX_ENOMEM, index, "out of memory, or longer than %d bytes",
			    OB_TEXT_MAX);
	if (r >= 0 && check)
		r = check_document(ob_buf_view(&p->scratch.b), status, err);
	if (r < 0)
		return about(record, (*list)->name, index, err);
	if (!ob_arena_copy(&p->memory->arena, ob_buf_view(&p->scratch.b), ret))
		return ob_fail(err, OUTBOX_ENOMEM, index, "out of memory");
	return 0;
}

static int translate(struct pass *p, const struct outbox_record *from, size_t index,
		     struct outbox_record *ret, struct outbox_error *err)
{
	const struct outbox_translator *const *list = p->how->translators;

	*ret = *from;
	while (list && *list && (*list)->supports && !(*list)->supports(*list, from))
		list++;
	if (!list || !*list)
		return 0;
	*err = (struct outbox_error){ 0 };
	int r = (*list)->translate(*list, from, ret, p->memory, err);
	if (r >= 0)
		return 0;
	if (err->status == 0)
		(void)ob_fail(err, r, index, "it failed");
	return about(from, (*list)->name, index, err);
}

static int make_message(struct pass *p, const struct outbox_record *from, size_t index,
			struct outbox_message *ret, struct outbox_error *err)
{
	struct outbox_record record;
	struct ob_str payload = OB_STR_NULL, snapshot = OB_STR_NULL;
	int r = translate(p, from, index, &record, err);

	if (r == 0 && !(record.message.flags & OUTBOX_TOMBSTONE))
		r = run_list(p, p->how->payload, "payload", OUTBOX_EPAYLOADJSON, &record, index,
			     &payload, err);
	if (r == 0 && record.state && p->how->snapshot)
		r = run_list(p, p->how->snapshot, "snapshot", OUTBOX_ESNAPSHOTJSON, &record, index,
			     &snapshot, err);
	if (r < 0)
		return r;
	*ret = record.message;
	ret->payload = payload.p;
	ret->payload_size = payload.n;
	if (snapshot.p) {
		ret->snapshot = snapshot.p;
		ret->snapshot_size = snapshot.n;
	}
	return 0;
}

/* ---- calls ----------------------------------------------------------- */

static void pass_done(struct pass *p)
{
	ob_text_done(&p->scratch);
}

int ob_record_serialize(const struct outbox_serializers *how, const struct outbox_record *record,
			struct outbox_text *memory, struct outbox_message *ret,
			struct outbox_error *err)
{
	OB_CLEANUP(pass_done)
	struct pass p = { .how = how, .scratch = OB_TEXT_INIT, .memory = memory };

	return make_message(&p, record, OUTBOX_NO_INDEX, ret, err);
}

static int make_messages(struct pass *p, const outbox *ob, const struct outbox_record *records,
			 size_t count, struct outbox_message **ret, struct outbox_error *err)
{
	if (!ob || !p->how || (count > 0 && !records))
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "%s is NULL",
			       !ob       ? "the outbox"
			       : !p->how ? "how"
					 : "records");
	if (count > OUTBOX_APPEND_MAX)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "%zu records in one call: %u is the most", count, OUTBOX_APPEND_MAX);
	p->binary = ob->rules.flags & OUTBOX_BINARY_PAYLOAD;
	*ret = ob_arena_alloc(&p->memory->arena, (count + 1) * sizeof(**ret));
	if (!*ret)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++)
		r = make_message(p, &records[i], i, &(*ret)[i], err);
	return r;
}

int outbox_push_records(outbox *ob, const struct outbox_serializers *how,
			const struct outbox_record *records, size_t count,
			struct outbox_id *ret_ids, struct outbox_error *err)
{
	OB_CLEANUP(ob_text_done) struct outbox_text memory = OB_TEXT_INIT;
	OB_CLEANUP(pass_done)
	struct pass p = { .how = how, .scratch = OB_TEXT_INIT, .memory = &memory };
	struct outbox_message *messages = NULL;
	struct outbox_error unused;
	int r = make_messages(&p, ob, records, count, &messages, err ? err : &unused);

	return r < 0 ? r : outbox_push(ob, messages, count, ret_ids, err);
}

/* NOLINTNEXTLINE(readability-function-size): as outbox_append(), and how */
int outbox_append_records(outbox *ob, const struct outbox_stream *stream, int64_t expected,
			  const struct outbox_serializers *how, const struct outbox_record *records,
			  size_t count, struct outbox_id *ret_ids, struct outbox_appended *ret_done,
			  struct outbox_error *err)
{
	OB_CLEANUP(ob_text_done) struct outbox_text memory = OB_TEXT_INIT;
	OB_CLEANUP(pass_done)
	struct pass p = { .how = how, .scratch = OB_TEXT_INIT, .memory = &memory };
	struct outbox_message *messages = NULL;
	struct outbox_error unused;
	int r = make_messages(&p, ob, records, count, &messages, err ? err : &unused);

	return r < 0 ? r
		     : outbox_append(ob, stream, expected, messages, count, ret_ids, ret_done, err);
}
