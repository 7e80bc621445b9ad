/* SPDX-License-Identifier: MIT */
/*
 * A message as AMQP properties. What has a property of its own goes there, the rest into
 * the table of headers. Stored headers become values of the table's own types, so that
 * consumers and headers exchanges see numbers as numbers.
 */
#include "base/json.h"
#include "base/json_read.h"
#include "sink/rabbitmq/rabbitmq.h"

#include <jansson.h>
#include <strings.h>

enum { OWN_MAX = 12, DEPTH_MAX = 32, HEADERS_MAX = 4096 };

/* ---- values ---------------------------------------------------------- */

static amqp_field_value_t text_value(struct ob_str text)
{
	return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8,
				     .value.bytes = ob_rabbitmq_bytes(text) };
}

static void put(amqp_table_t *table, struct ob_str name, amqp_field_value_t value)
{
	table->entries[table->num_entries++] =
		(amqp_table_entry_t){ .key = ob_rabbitmq_bytes(name), .value = value };
}

static void put_text(amqp_table_t *table, struct ob_str name, struct ob_str text)
{
	if (text.p)
		put(table, name, text_value(text));
}

static void put_number(amqp_table_t *table, struct ob_str name, int64_t number)
{
	if (number != 0)
		put(table, name,
		    (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_I64, .value.i64 = number });
}

/* ---- stored headers -------------------------------------------------- */

static int no_memory(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for the headers");
}

static int check_name(struct ob_str name, struct ob_err *err)
{
	if (name.n <= OB_RABBITMQ_SHORT)
		return 0;
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
			  "the header '%.60s...' has a name of %zu bytes; AMQP takes at most %d",
			  name.p, name.n, OB_RABBITMQ_SHORT);
}

static int convert(amqp_pool_t *pool, json_t *json, int depth, amqp_field_value_t *ret,
		   struct ob_err *err);

static int convert_array(amqp_pool_t *pool, json_t *json, int depth, amqp_field_value_t *ret,
			 struct ob_err *err)
{
	size_t n = json_array_size(json);
	amqp_array_t array = { 0, amqp_pool_alloc(pool, (n + 1) * sizeof(*array.entries)) };

	if (!array.entries)
		return no_memory(err);
	for (size_t i = 0; i < n; i++, array.num_entries++) {
		int r = convert(pool, json_array_get(json, i), depth, &array.entries[i], err);
		if (r < 0)
			return r;
	}
	*ret = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_ARRAY, .value.array = array };
	return 0;
}

/* Append the members to a table that has room for them. */
static int convert_members(amqp_pool_t *pool, json_t *json, int depth, amqp_table_t *table,
			   struct ob_err *err)
{
	const char *name;
	json_t *member;

	json_object_foreach(json, name, member)
	{
		amqp_field_value_t value;
		int r = check_name(ob_str(name), err);

		if (r == 0)
			r = convert(pool, member, depth, &value, err);
		if (r < 0)
			return r;
		put(table, ob_str(name), value);
	}
	return 0;
}

static int convert_object(amqp_pool_t *pool, json_t *json, int depth, amqp_field_value_t *ret,
			  struct ob_err *err)
{
	size_t n = json_object_size(json);
	amqp_table_t table = { 0, amqp_pool_alloc(pool, (n + 1) * sizeof(*table.entries)) };

	if (!table.entries)
		return no_memory(err);
	int r = convert_members(pool, json, depth, &table, err);
	*ret = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_TABLE, .value.table = table };
	return r;
}

static int convert(amqp_pool_t *pool, json_t *json, int depth, amqp_field_value_t *ret,
		   struct ob_err *err)
{
	if (depth == DEPTH_MAX)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "the headers are nested deeper than %d levels", DEPTH_MAX);
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		return convert_object(pool, json, depth + 1, ret, err);
	case JSON_ARRAY:
		return convert_array(pool, json, depth + 1, ret, err);
	case JSON_STRING:
		*ret = text_value(
			(struct ob_str){ json_string_value(json), json_string_length(json) });
		return 0;
	case JSON_INTEGER:
		*ret = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_I64,
					     .value.i64 = json_integer_value(json) };
		return 0;
	case JSON_REAL:
		*ret = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_F64,
					     .value.f64 = json_real_value(json) };
		return 0;
	case JSON_TRUE:
	case JSON_FALSE:
		*ret = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_BOOLEAN,
					     .value.boolean = json_is_true(json) };
		return 0;
	case JSON_NULL:
		break;
	}
	*ret = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_VOID };
	return 0;
}

/* ---- the table ------------------------------------------------------- */

/* These two send copies to more routing keys; the broker closes the channel over any other type. */
static int check_copies(const amqp_table_t *table, struct ob_err *err)
{
	for (int i = 0; i < table->num_entries; i++) {
		const amqp_table_entry_t *e = &table->entries[i];
		struct ob_str name = ob_rabbitmq_str(e->key);
		bool ok = e->value.kind == AMQP_FIELD_KIND_ARRAY;

		if (!ob_str_eq(name, OB_STR("CC")) && !ob_str_eq(name, OB_STR("BCC")))
			continue;
		for (int k = 0; ok && k < e->value.value.array.num_entries; k++)
			ok = e->value.value.array.entries[k].kind == AMQP_FIELD_KIND_UTF8;
		if (!ok)
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
					  "the header %.*s must be a list of routing keys",
					  (int)name.n, name.p);
	}
	return 0;
}

/* A value that is no string. What jansson cannot hold, a number beyond 64 bits, stays as its text.
 */
static int put_json(struct rabbitmq_sink *sink, struct ob_rabbitmq_properties *p,
		    struct ob_str name, struct ob_str json, struct ob_err *err)
{
	amqp_field_value_t value = text_value(json);
	json_t *tree = json_loadb(json.p, json.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	int r = 0;

	if (tree && !p->trees)
		p->trees = json_array();
	if (tree && json_array_append_new(p->trees, tree) < 0)
		return no_memory(err);
	if (tree)
		r = convert(&sink->pool, tree, 0, &value, err);
	if (r == 0)
		put(&p->basic.headers, name, value);
	return r;
}

/* Of two with one name the last counts. */
static void drop_older(amqp_table_t *table, struct ob_str name)
{
	for (int i = 0; i < table->num_entries; i++) {
		if (!ob_str_eq(ob_rabbitmq_str(table->entries[i].key), name))
			continue;
		table->entries[i] = table->entries[--table->num_entries];
		return;
	}
}

/* The text of a JSON string, in the memory of the pool; p NULL: there is none. */
static struct ob_str decode(struct rabbitmq_sink *sink, struct ob_str raw)
{
	char *out = amqp_pool_alloc(&sink->pool, raw.n);

	return (struct ob_str){ out, out ? ob_json_decode(raw, out) : 0 };
}

/* The headers as they are stored: a JSON object. */
static int put_stored(struct rabbitmq_sink *sink, struct ob_str object,
		      struct ob_rabbitmq_properties *p, struct ob_err *err)
{
	amqp_table_t *table = &p->basic.headers;
	struct ob_json_cursor cursor;
	struct ob_json_member member;
	int r = 0;

	ob_json_begin(&cursor, object);
	while (r == 0 && ob_json_next(&cursor, &member)) {
		bool is_text = *member.value.p == '"';
		struct ob_str name = decode(sink, member.name);
		struct ob_str text = is_text ? decode(sink, member.value) : member.value;

		if (!name.p || !text.p)
			return no_memory(err);
		r = check_name(name, err);
		drop_older(table, name);
		if (r == 0 && is_text)
			put_text(table, name, text);
		else if (r == 0)
			r = put_json(sink, p, name, text, err);
	}
	return r;
}

static int put_headers(struct rabbitmq_sink *sink, const struct ob_delivery *d,
		       struct ob_rabbitmq_properties *p, struct ob_err *err)
{
	int r = 0;

	if (p->is_object)
		return put_stored(sink, d->message->headers, p, err);
	for (size_t i = 0; i < d->header_count && r == 0; i++) {
		const struct ob_header *header = &d->headers[i];

		r = check_name(header->name, err);
		if (r == 0 && header->json)
			r = put_json(sink, p, header->name, header->value, err);
		else if (r == 0)
			put_text(&p->basic.headers, header->name, header->value);
	}
	return r;
}

/* A text that its property cannot hold is a header instead. */
static void put_long(amqp_table_t *table, struct ob_str name, struct ob_str text)
{
	if (text.n > OB_RABBITMQ_SHORT)
		put_text(table, name, text);
}

/* Ours come last: of two with one name, most consumers take the last. */
static void put_own(const struct ob_delivery *d, struct ob_rabbitmq_properties *p,
		    amqp_table_t *table)
{
	const struct ob_message *m = d->message;

	put_text(table, OB_STR("outbox-key"), d->key);
	put_text(table, OB_STR("outbox-aggregate-type"), m->aggregate_type);
	put_text(table, OB_STR("outbox-aggregate-id"), m->aggregate_id);
	put_long(table, OB_STR("outbox-event-type"), m->event_type);
	put_number(table, OB_STR("outbox-revision"), m->revision);
	put_number(table, OB_STR("outbox-sequence-number"), m->sequence_number);
	put_long(table, OB_STR("outbox-correlation-id"), m->correlation_id);
	put_text(table, OB_STR("outbox-causation-id"), m->causation_id);
	if (ob_line_time(m->occurred_at_us, p->time))
		put_text(table, OB_STR("outbox-occurred-at"), ob_str(p->time));
	put_text(table, OB_STR("outbox-snapshot"), d->snapshot);
	if (!d->body.p)
		put(table, OB_STR("outbox-tombstone"),
		    (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 });
	if (!p->is_object && d->header_count == 0)
		put_text(table, OB_STR("outbox-headers"), m->headers); /* no JSON object */
}

static size_t count_members(struct ob_str object)
{
	struct ob_json_cursor cursor;
	struct ob_json_member member;
	size_t count = 0;

	ob_json_begin(&cursor, object);
	while (ob_json_next(&cursor, &member))
		count++;
	return count;
}

static int make_table(struct rabbitmq_sink *sink, const struct ob_delivery *d,
		      struct ob_rabbitmq_properties *p, struct ob_err *err)
{
	amqp_table_t *table = &p->basic.headers;
	struct ob_str stored = d->message->headers;
	size_t count = d->header_count;

	p->is_object = d->header_count == 0 && stored.p && ob_json_valid_object(stored, NULL);
	if (p->is_object)
		count = count_members(stored);
	if (count > HEADERS_MAX)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "the message has more than %d headers", HEADERS_MAX);
	count += OWN_MAX;
	recycle_amqp_pool(&sink->pool);
	table->entries = amqp_pool_alloc(&sink->pool, count * sizeof(*table->entries));
	if (!table->entries)
		return no_memory(err);
	int r = put_headers(sink, d, p, err);
	if (r == 0)
		r = check_copies(table, err);
	if (r == 0)
		put_own(d, p, table);
	return r;
}

/* ---- all properties -------------------------------------------------- */

static void set_short(amqp_basic_properties_t *basic, amqp_bytes_t *property, amqp_flags_t flag,
		      struct ob_str text)
{
	if (!text.p || text.n > OB_RABBITMQ_SHORT)
		return;
	*property = ob_rabbitmq_bytes(text);
	basic->_flags |= flag;
}

static struct ob_str content_type(const struct ob_delivery *d)
{
	if (d->content_type.p || !d->body.p)
		return d->content_type;
	return ob_json_valid(d->body, NULL) ? OB_STR("application/json")
					    : OB_STR("application/octet-stream");
}

int ob_rabbitmq_properties_make(struct rabbitmq_sink *sink, const struct ob_delivery *d,
				struct ob_rabbitmq_properties *p, struct ob_err *err)
{
	const struct ob_message *m = d->message;
	amqp_basic_properties_t *basic = &p->basic;

	basic->_flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
	basic->delivery_mode = AMQP_DELIVERY_PERSISTENT;
	basic->headers = (amqp_table_t){ 0 };
	p->trees = NULL;
	ob_uuid_format(&m->id, p->id);
	set_short(basic, &basic->message_id, AMQP_BASIC_MESSAGE_ID_FLAG, ob_str(p->id));
	set_short(basic, &basic->type, AMQP_BASIC_TYPE_FLAG, m->event_type);
	set_short(basic, &basic->correlation_id, AMQP_BASIC_CORRELATION_ID_FLAG, m->correlation_id);
	set_short(basic, &basic->content_type, AMQP_BASIC_CONTENT_TYPE_FLAG, content_type(d));
	if (m->occurred_at_us > 0) {
		basic->timestamp = (uint64_t)m->occurred_at_us / 1000000;
		basic->_flags |= AMQP_BASIC_TIMESTAMP_FLAG;
	}
	if (sink->max_priority > 0) {
		int64_t most = sink->max_priority, want = m->priority < 0 ? 0 : m->priority;

		basic->priority = (uint8_t)(want < most ? want : most);
		basic->_flags |= AMQP_BASIC_PRIORITY_FLAG;
	}
	return make_table(sink, d, p, err);
}

void ob_rabbitmq_properties_done(struct ob_rabbitmq_properties *p)
{
	json_decref(p->trees);
	p->trees = NULL;
}
