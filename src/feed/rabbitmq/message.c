/* SPDX-License-Identifier: MIT */
/* A delivery as a message: the way back from sink/rabbitmq/table.c. */
#include "base/json.h"
#include "feed/rabbitmq/rabbitmq.h"

#include <inttypes.h>
#include <math.h>

enum { DEPTH_MAX = 32, HEADER_MAX = 1 << 20 };

/* ---- values of the table --------------------------------------------- */

static bool add_value(struct ob_buf *out, const amqp_field_value_t *value, int depth);

static bool add_table(struct ob_buf *out, const amqp_table_t *table, int depth)
{
	bool ok = depth < DEPTH_MAX;

	ob_buf_addc(out, '{');
	for (int i = 0; i < table->num_entries && ok; i++) {
		ob_buf_adds(out, i ? "," : "");
		ob_json_add_string(out, ob_rabbitmq_str(table->entries[i].key));
		ob_buf_addc(out, ':');
		ok = add_value(out, &table->entries[i].value, depth + 1);
	}
	ob_buf_addc(out, '}');
	return ok;
}

static bool add_array(struct ob_buf *out, const amqp_array_t *array, int depth)
{
	bool ok = depth < DEPTH_MAX;

	ob_buf_addc(out, '[');
	for (int i = 0; i < array->num_entries && ok; i++) {
		ob_buf_adds(out, i ? "," : "");
		ok = add_value(out, &array->entries[i], depth + 1);
	}
	ob_buf_addc(out, ']');
	return ok;
}

static void add_real(struct ob_buf *out, double value)
{
	if (isfinite(value))
		ob_buf_addf(out, "%.17g", value);
	else
		ob_buf_adds(out, "null");
}

static bool is_integer(const amqp_field_value_t *value, int64_t *ret)
{
	switch (value->kind) {
	case AMQP_FIELD_KIND_I8:
		*ret = (int)value->value.i8;
		return true;
	case AMQP_FIELD_KIND_U8:
		*ret = value->value.u8;
		return true;
	case AMQP_FIELD_KIND_I16:
		*ret = value->value.i16;
		return true;
	case AMQP_FIELD_KIND_U16:
		*ret = value->value.u16;
		return true;
	case AMQP_FIELD_KIND_I32:
		*ret = value->value.i32;
		return true;
	case AMQP_FIELD_KIND_U32:
		*ret = value->value.u32;
		return true;
	case AMQP_FIELD_KIND_I64:
		*ret = value->value.i64;
		return true;
	case AMQP_FIELD_KIND_U64:
	case AMQP_FIELD_KIND_TIMESTAMP:
		*ret = (int64_t)value->value.u64;
		return true;
	default:
		return false;
	}
}

static bool is_text(const amqp_field_value_t *value)
{
	return value->kind == AMQP_FIELD_KIND_UTF8 || value->kind == AMQP_FIELD_KIND_BYTES;
}

/* Append it as JSON; false: it is nested too deeply. */
static bool add_value(struct ob_buf *out, const amqp_field_value_t *value, int depth)
{
	int64_t number;

	if (is_integer(value, &number))
		ob_buf_addf(out, "%" PRId64, number);
	else if (is_text(value))
		ob_json_add_string(out, value->value.bytes.len ? ob_rabbitmq_str(value->value.bytes)
							       : OB_STR(""));
	else if (value->kind == AMQP_FIELD_KIND_BOOLEAN)
		ob_buf_adds(out, value->value.boolean ? "true" : "false");
	else if (value->kind == AMQP_FIELD_KIND_F32)
		add_real(out, (double)value->value.f32);
	else if (value->kind == AMQP_FIELD_KIND_F64)
		add_real(out, value->value.f64);
	else if (value->kind == AMQP_FIELD_KIND_DECIMAL)
		ob_buf_addf(out, "%ue-%u", value->value.decimal.value,
			    value->value.decimal.decimals);
	else if (value->kind == AMQP_FIELD_KIND_ARRAY)
		return add_array(out, &value->value.array, depth);
	else if (value->kind == AMQP_FIELD_KIND_TABLE)
		return add_table(out, &value->value.table, depth);
	else
		ob_buf_adds(out, "null");
	return true;
}

/* ---- headers --------------------------------------------------------- */

struct reading {
	struct ob_feed_draft draft;
	struct ob_arena *arena;
	bool deep; /* a header is nested too deeply */
	bool ok;   /* there is memory */
};

/* "outbox-event-type" is our field event_type. */
static void take_own(struct reading *rd, struct ob_str name, const amqp_field_value_t *value)
{
	struct ob_buf text = OB_BUF_INIT(HEADER_MAX);
	struct ob_str field, copy;

	if (is_text(value))
		ob_buf_add(&text, ob_rabbitmq_str(value->value.bytes));
	else
		(void)add_value(&text, value, DEPTH_MAX);
	rd->ok = rd->ok && !text.failed && ob_feed_entry_own_name(name, rd->arena, &field) &&
		 ob_arena_copy(rd->arena, ob_buf_view(&text), &copy);
	if (rd->ok)
		ob_feed_entry_field(&rd->draft, field, copy);
	ob_buf_done(&text);
}

static void take_header(struct reading *rd, const amqp_table_entry_t *e)
{
	struct ob_str name = ob_rabbitmq_str(e->key);
	struct ob_buf json = OB_BUF_INIT(HEADER_MAX);
	int64_t before;

	/* How often a quorum queue handed it out before: it is about this delivery. */
	if (ob_str_eq(name, OB_STR("x-delivery-count"))) {
		if (is_integer(&e->value, &before) && before >= 0 && before < UINT32_MAX)
			rd->draft.entry->deliveries = (uint32_t)before + 1;
		return;
	}
	if (name.n > 7 && memcmp(name.p, "outbox-", 7) == 0) {
		take_own(rd, name, &e->value);
		return;
	}
	rd->deep |= !add_value(&json, &e->value, 0);
	rd->ok = rd->ok && !json.failed;
	ob_feed_entry_header(&rd->draft, name, ob_buf_view(&json));
	ob_buf_done(&json);
}

/* ---- properties ------------------------------------------------------ */

static void take_property(struct reading *rd, bool there, amqp_bytes_t value, struct ob_str field)
{
	struct ob_str copy;

	rd->ok = rd->ok && (!there || ob_arena_copy(rd->arena, ob_rabbitmq_str(value), &copy));
	if (rd->ok && there)
		ob_feed_entry_field(&rd->draft, field, copy);
}

static void take_properties(struct reading *rd, const amqp_basic_properties_t *p)
{
	struct ob_message *m = &rd->draft.entry->message;

	take_property(rd, p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG, p->message_id, OB_STR("id"));
	take_property(rd, p->_flags & AMQP_BASIC_TYPE_FLAG, p->type, OB_STR("event_type"));
	take_property(rd, p->_flags & AMQP_BASIC_CORRELATION_ID_FLAG, p->correlation_id,
		      OB_STR("correlation_id"));
	take_property(rd, p->_flags & AMQP_BASIC_CONTENT_TYPE_FLAG, p->content_type,
		      OB_STR("content_type"));
	if ((p->_flags & AMQP_BASIC_TIMESTAMP_FLAG) && p->timestamp < INT64_MAX / 1000000)
		m->occurred_at_us = (int64_t)p->timestamp * 1000000;
	if (p->_flags & AMQP_BASIC_PRIORITY_FLAG)
		m->priority = p->priority;
	for (int i = 0; (p->_flags & AMQP_BASIC_HEADERS_FLAG) && i < p->headers.num_entries; i++)
		take_header(rd, &p->headers.entries[i]);
}

/* ---- the entry ------------------------------------------------------- */

static uint64_t hash_more(uint64_t hash, struct ob_str bytes)
{
	for (size_t i = 0; i < bytes.n; i++)
		hash = (hash ^ (unsigned char)bytes.p[i]) * UINT64_C(1099511628211);
	return hash;
}

/*
 * A queue has no places. What tells an entry without an id from others is what stands in it, so
 * that one that comes again after a crash is not kept twice.
 */
static bool set_place(const struct rabbitmq_feed *feed, struct ob_arena *arena,
		      struct ob_feed_entry *entry)
{
	const struct ob_message *m = &entry->message;
	const struct ob_str parts[] = { m->payload, m->headers, m->event_type, m->key };
	uint64_t hash = UINT64_C(14695981039346656037);
	char where[320];

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = hash_more(hash, parts[i]);
	(void)snprintf(where, sizeof(where), "%.255s %016" PRIx64, feed->queue, hash);
	return ob_arena_copy(arena, ob_str(feed->queue), &entry->part) &&
	       ob_arena_copy(arena, ob_str(where), &entry->where);
}

bool ob_rabbitmq_entry(struct rabbitmq_feed *feed, struct ob_arena *arena,
		       struct ob_feed_entry *entry)
{
	const struct ob_rabbitmq_coming *coming = &feed->coming;
	amqp_pool_t *pool = &ob_rabbitmq_link(feed)->pool;
	struct reading rd = { .arena = arena, .ok = true };
	void *decoded = NULL;

	*entry = (struct ob_feed_entry){ .tag = feed->void_tags + coming->delivery_tag,
					 .deliveries = coming->redelivered ? 0 : 1 };
	recycle_amqp_pool(pool);
	ob_feed_entry_begin(&rd.draft, entry);
	bool readable = amqp_decode_properties(AMQP_BASIC_CLASS, pool,
					       ob_rabbitmq_bytes(ob_buf_view(&coming->properties)),
					       &decoded) >= 0;
	if (readable)
		take_properties(&rd, decoded);
	if (!rd.draft.tombstone)
		rd.ok = rd.ok &&
			ob_arena_copy(arena, ob_buf_view(&coming->body), &entry->message.payload);
	rd.ok = ob_feed_entry_finish(&rd.draft, arena) && rd.ok;
	if (!readable)
		entry->fault = OB_STR("its properties cannot be read");
	else if (rd.deep)
		entry->fault = OB_STR("its headers are nested too deeply");
	return rd.ok && set_place(feed, arena, entry);
}
