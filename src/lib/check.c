/* SPDX-License-Identifier: MIT */
/*
 * The checks of a message, in a fixed order: what is missing, JSON, the id,
 * texts, numbers, columns that the table does not have.
 */
#include "lib/check.h"

#include "base/json.h"
#include "base/layout.h"
#include "base/utf8.h"
#include "lib/fail.h"

#include <inttypes.h>

/* 1000-01-01 and 9999-12-31, in us: what every database can hold. */
#define TIME_MIN_US INT64_C(-30610224000000000)
#define TIME_MAX_US INT64_C(253402300799999999)

/* NUL-terminated text that is bounded in characters. */
static const struct {
	const char *name;
	size_t offset;
} texts[] = {
#define TEXT(member) \
	{ \
#member, offsetof(struct outbox_message, member) \
	}
	TEXT(aggregate_type), TEXT(aggregate_id),   TEXT(event_type),   TEXT(partition_key),
	TEXT(target),         TEXT(correlation_id), TEXT(causation_id),
#undef TEXT
};

static int bad(struct outbox_error *err, int status, const char *field, const char *what)
{
	return ob_fail(err, status, OUTBOX_NO_INDEX, "%s %s", field, what);
}

/* A run of bytes with its size, or up to its NUL; longer than the bound is cut just behind it. */
static struct ob_str resolve(const void *p, size_t size)
{
	if (!p)
		return OB_STR_NULL;
	return (struct ob_str){ p, size ? size : strnlen(p, (size_t)OUTBOX_PAYLOAD_MAX + 1) };
}

static int check_size(struct ob_str s, const char *field, struct outbox_error *err)
{
	if (s.n <= OUTBOX_PAYLOAD_MAX)
		return 0;
	return ob_fail(err, OUTBOX_ETOOLONG, OUTBOX_NO_INDEX, "%s is longer than %u bytes", field,
		       OUTBOX_PAYLOAD_MAX);
}

static int bad_json(struct outbox_error *err, int status, const char *what,
		    const struct ob_json_fault *fault)
{
	return ob_fail(err, status, OUTBOX_NO_INDEX, "%s: %s at byte %zu", what, fault->what,
		       fault->offset);
}

static int check_payload_json(struct ob_str s, struct outbox_error *err)
{
	struct ob_json_fault fault;

	if (!s.p || ob_json_valid(s, &fault))
		return 0;
	return bad_json(err, OUTBOX_EPAYLOADJSON, "payload is not valid JSON", &fault);
}

static int check_headers_json(struct ob_str s, struct outbox_error *err)
{
	struct ob_json_fault fault;

	if (!s.p || ob_json_valid_object(s, &fault))
		return 0;
	return bad_json(err, OUTBOX_EHEADERSJSON, "headers are not a valid JSON object", &fault);
}

static int check_snapshot_json(struct ob_str s, struct outbox_error *err)
{
	struct ob_json_fault fault;

	if (!s.p || ob_json_valid(s, &fault))
		return 0;
	return bad_json(err, OUTBOX_ESNAPSHOTJSON, "snapshot is not valid JSON", &fault);
}

int ob_check_json(const struct ob_push_row *row, unsigned flags, struct outbox_error *err)
{
	int r = flags & OUTBOX_BINARY_PAYLOAD ? 0 : check_payload_json(row->payload, err);

	if (r == 0)
		r = check_headers_json(row->headers, err);
	if (r == 0)
		r = check_snapshot_json(row->snapshot, err);
	return r;
}

static int check_required(const struct outbox_message *m, struct outbox_error *err)
{
	bool tombstone = m->flags & OUTBOX_TOMBSTONE;

	if (!m->aggregate_type || !m->aggregate_type[0])
		return bad(err, OUTBOX_EAGGREGATETYPE, "aggregate_type", "is missing");
	if (!m->event_type || !m->event_type[0])
		return bad(err, OUTBOX_EEVENTTYPE, "event_type", "is missing");
	if (!m->payload && !tombstone)
		return bad(err, OUTBOX_ENOPAYLOAD, "payload",
			   "is missing: give one, or set OUTBOX_TOMBSTONE");
	if (m->payload && tombstone)
		return bad(err, OUTBOX_EINVAL, "payload",
			   "is set on a message with OUTBOX_TOMBSTONE");
	return 0;
}

/* Payload, headers and snapshot: size first, so that a huge document is not parsed. */
static int check_documents(const struct ob_push_row *row, unsigned flags, struct outbox_error *err)
{
	bool json_payload = !(flags & (OUTBOX_NO_PAYLOAD_CHECK | OUTBOX_BINARY_PAYLOAD));
	int r = check_size(row->payload, "payload", err);

	if (r == 0 && json_payload)
		r = check_payload_json(row->payload, err);
	if (r == 0)
		r = check_size(row->headers, "headers", err);
	if (r == 0 && !(flags & OUTBOX_NO_HEADERS_CHECK))
		r = check_headers_json(row->headers, err);
	if (r == 0)
		r = check_size(row->snapshot, "snapshot", err);
	if (r == 0 && !(flags & OUTBOX_NO_PAYLOAD_CHECK))
		r = check_snapshot_json(row->snapshot, err);
	return r;
}

static int check_id(const char *text, struct ob_uuid *ret_id, struct outbox_error *err)
{
	struct ob_uuid id;

	if (!ob_uuid_parse(ob_str(text), &id))
		return ob_fail(err, OUTBOX_EID, OUTBOX_NO_INDEX, "id '%.60s' is not a UUID", text);
	if (ob_uuid_is_nil(&id))
		return bad(err, OUTBOX_EID, "id", "is the nil UUID: leave it out to have one made");
	*ret_id = id;
	return 0;
}

static int check_texts(const struct outbox_message *m, struct outbox_error *err)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *const *member =
			(const char *const *)(const void *)((const char *)m + texts[i].offset);
		struct ob_str s = ob_str(*member);

		if (!ob_utf8_valid(s))
			return bad(err, OUTBOX_ETEXT, texts[i].name, "is not valid UTF-8");
		if (s.n > OUTBOX_TEXT_MAX && ob_utf8_count(s) > OUTBOX_TEXT_MAX)
			return ob_fail(err, OUTBOX_ETOOLONG, OUTBOX_NO_INDEX,
				       "%s is longer than %d characters", texts[i].name,
				       OUTBOX_TEXT_MAX);
	}
	/* No relay has this name, so nobody would ever deliver it. */
	if (m->target && !m->target[0])
		return bad(err, OUTBOX_EINVAL, "target", "is empty: leave it out for 'default'");
	return 0;
}

static int check_numbers(const struct outbox_message *m, struct outbox_error *err)
{
	if (m->priority < INT16_MIN || m->priority > INT16_MAX)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "priority %" PRId32 " is not between %d and %d", m->priority,
			       INT16_MIN, INT16_MAX);
	if (m->sequence_number < 0)
		return bad(err, OUTBOX_EINVAL, "sequence_number", "is negative");
	if (m->revision < 0)
		return bad(err, OUTBOX_EINVAL, "revision", "is negative");
	if (m->occurred_at_us < TIME_MIN_US || m->occurred_at_us > TIME_MAX_US)
		return bad(err, OUTBOX_EINVAL, "occurred_at_us",
			   "is not in the years 1000 to 9999: it counts microseconds since 1970");
	if (m->delay_ms > OUTBOX_DELAY_MAX)
		return bad(err, OUTBOX_EINVAL, "delay_ms", "is longer than a hundred years");
	if (m->flags & ~OUTBOX_TOMBSTONE)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "flags 0x%x are unknown",
			       m->flags & ~OUTBOX_TOMBSTONE);
	return 0;
}

/* A value whose column is switched off would be lost without a word. */
static int check_columns(const struct outbox_message *m, uint32_t off, struct outbox_error *err)
{
	const struct {
		const char *name;
		int column;
		bool set;
	} optional[] = {
		{ "revision", OB_COL_revision, m->revision != 0 },
		{ "sequence_number", OB_COL_sequence_number, m->sequence_number != 0 },
		{ "headers", OB_COL_headers, m->headers != NULL },
		{ "snapshot", OB_COL_snapshot, m->snapshot != NULL },
		{ "correlation_id", OB_COL_correlation_id, m->correlation_id != NULL },
		{ "causation_id", OB_COL_causation_id, m->causation_id != NULL },
		{ "partition_key", OB_COL_partition_key, m->partition_key != NULL },
		{ "occurred_at_us", OB_COL_occurred_at, m->occurred_at_us != 0 },
	};

	if (!off)
		return 0;
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		if (optional[i].set && off & (1u << optional[i].column))
			return bad(err, OUTBOX_EINVAL, optional[i].name,
				   "is set, but its column is switched off");
	}
	return 0;
}

int ob_check_message(const struct outbox_message *message, const struct ob_check_rules *rules,
		     struct ob_push_row *ret_row, bool *ret_has_id, struct outbox_error *err)
{
	struct ob_push_row row = {
		.message = message,
		.payload = resolve(message->payload, message->payload_size),
		.headers = resolve(message->headers, message->headers_size),
		.snapshot = resolve(message->snapshot, message->snapshot_size),
	};
	int r = check_required(message, err);

	if (r == 0)
		r = check_documents(&row, rules->flags, err);
	if (r == 0 && message->id)
		r = check_id(message->id, &row.id, err);
	if (r == 0)
		r = check_texts(message, err);
	if (r == 0)
		r = check_numbers(message, err);
	if (r == 0)
		r = check_columns(message, rules->off_columns, err);
	if (r < 0)
		return r;
	*ret_row = row;
	*ret_has_id = message->id != NULL;
	return 0;
}
