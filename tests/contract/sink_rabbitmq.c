/* SPDX-License-Identifier: MIT */
/*
 * The RabbitMQ sink for the contract: one private broker a program. All goes to an exchange
 * that gives every message to one queue, whatever its routing key.
 */
#include "base/json.h"
#include "rabbitmq_server.h"
#include "sink_harness.h"

#include <stdlib.h>

static struct rabbitmq_server server;

static void start(void)
{
	rabbitmq_server_start(&server);
}

static void stop(void)
{
	rabbitmq_server_stop(&server);
}

static void clear(struct sink_env *env)
{
	rabbitmq_purge(env->peer, "contract");
}

static void begin(struct sink_env *env)
{
	env->peer = rabbitmq_connect(&server);
	rabbitmq_exchange(env->peer, "contract", "fanout");
	rabbitmq_queue(env->peer, "contract", 0);
	rabbitmq_bind(env->peer, "contract", "contract", "");
	clear(env);
}

static void end(struct sink_env *env)
{
	rabbitmq_disconnect(env->peer);
}

static int port(struct sink_env *env)
{
	(void)env;
	return server.port;
}

static struct ob_sink *make(struct sink_env *env)
{
	char url[64];
	const struct ob_opt_value options[] = { { "url", url },
						{ "exchange", "contract" },
						{ "connect_timeout", env->timeout },
						{ "timeout", env->timeout } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d",
		       env->port ? env->port : server.port);
	if (ob_sink_new(&ob_sink_rabbitmq, options, env->timeout ? 4 : 2, &ob_clock_system, &sink,
			&err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

/* ---- reading back ---------------------------------------------------- */

static struct ob_str keep(struct ob_arena *arena, amqp_bytes_t bytes)
{
	struct ob_str copy = OB_STR_NULL;

	ck_assert(ob_arena_copy(arena, (struct ob_str){ bytes.len ? bytes.bytes : "", bytes.len },
				&copy));
	return copy;
}

static struct ob_str view(amqp_bytes_t bytes)
{
	return (struct ob_str){ bytes.bytes, bytes.len };
}

static void add_json(struct ob_buf *out, const amqp_field_value_t *value);

static void add_members(struct ob_buf *out, const amqp_table_t *table)
{
	const char *comma = "";

	ob_buf_addc(out, '{');
	for (int i = 0; i < table->num_entries; i++) {
		const amqp_table_entry_t *e = &table->entries[i];

		if (e->key.len > 7 && memcmp(e->key.bytes, "outbox-", 7) == 0)
			continue;
		ob_buf_adds(out, comma);
		ob_json_add_string(out, view(e->key));
		ob_buf_addc(out, ':');
		add_json(out, &e->value);
		comma = ",";
	}
	ob_buf_addc(out, '}');
}

static void add_json(struct ob_buf *out, const amqp_field_value_t *value)
{
	switch (value->kind) {
	case AMQP_FIELD_KIND_UTF8:
		ob_json_add_string(out, view(value->value.bytes));
		break;
	case AMQP_FIELD_KIND_I64:
		ob_buf_addf(out, "%lld", (long long)value->value.i64);
		break;
	case AMQP_FIELD_KIND_BOOLEAN:
		ob_buf_adds(out, value->value.boolean ? "true" : "false");
		break;
	case AMQP_FIELD_KIND_TABLE:
		add_members(out, &value->value.table);
		break;
	case AMQP_FIELD_KIND_ARRAY:
		ob_buf_addc(out, '[');
		for (int i = 0; i < value->value.array.num_entries; i++) {
			ob_buf_adds(out, i > 0 ? "," : "");
			add_json(out, &value->value.array.entries[i]);
		}
		ob_buf_addc(out, ']');
		break;
	default:
		ck_abort_msg("a header of type %c", value->kind);
	}
}

static void read_headers(struct ob_arena *arena, const amqp_table_t *table, struct stored *out)
{
	struct ob_buf json = OB_BUF_INIT(100000);

	for (int i = 0; i < table->num_entries; i++) {
		const amqp_table_entry_t *e = &table->entries[i];

		if (ob_str_eq(view(e->key), OB_STR("outbox-key")))
			out->key = keep(arena, e->value.value.bytes);
		else if (ob_str_eq(view(e->key), OB_STR("outbox-snapshot")))
			out->snapshot = keep(arena, e->value.value.bytes);
		else if (ob_str_eq(view(e->key), OB_STR("outbox-tombstone")))
			out->tombstone = e->value.value.boolean;
	}
	add_members(&json, table);
	if (json.len > 2)
		ck_assert(ob_arena_copy(arena, ob_buf_view(&json), &out->headers));
	ob_buf_done(&json);
}

static void read_one(struct sink_env *env, const amqp_envelope_t *envelope, struct stored *out)
{
	const amqp_basic_properties_t *properties = &envelope->message.properties;

	ck_assert(ob_uuid_parse(view(properties->message_id), &out->id));
	ck_assert_uint_eq(properties->delivery_mode, AMQP_DELIVERY_PERSISTENT);
	out->destination = keep(&env->arena, envelope->routing_key);
	read_headers(&env->arena, &properties->headers, out);
	if (!out->tombstone)
		out->body = keep(&env->arena, envelope->message.body);
	else
		ck_assert_uint_eq(envelope->message.body.len, 0);
}

/* Takes them out, too. */
static size_t list_all(struct sink_env *env, struct stored **ret_stored)
{
	struct timeval patience = { .tv_sec = 30 };
	uint32_t count = rabbitmq_count(env->peer, "contract");
	struct stored *list = ob_arena_alloc(&env->arena, (count + 1) * sizeof(*list));

	ck_assert_ptr_nonnull(list);
	memset(list, 0, (count + 1) * sizeof(*list));
	const amqp_basic_consume_ok_t *consumer =
		amqp_basic_consume(env->peer, 1, amqp_cstring_bytes("contract"), amqp_empty_bytes,
				   0, 1, 0, amqp_empty_table);
	ck_assert_ptr_nonnull(consumer);
	for (uint32_t i = 0; i < count; i++) {
		amqp_envelope_t envelope;
		amqp_rpc_reply_t reply = amqp_consume_message(env->peer, &envelope, &patience, 0);

		ck_assert_int_eq(reply.reply_type, AMQP_RESPONSE_NORMAL);
		read_one(env, &envelope, &list[i]);
		amqp_destroy_envelope(&envelope);
		amqp_maybe_release_buffers(env->peer);
	}
	/* a new connection, without the consumer */
	rabbitmq_disconnect(env->peer);
	env->peer = rabbitmq_connect(&server);
	*ret_stored = list;
	return count;
}

const struct sink_kind sink_kind_rabbitmq = {
	.name = "rabbitmq",
	.missing = rabbitmq_server_missing,
	.start = start,
	.stop = stop,
	.begin = begin,
	.make = make,
	.list = list_all,
	.clear = clear,
	.end = end,
	.wait_ms = 20,
	.port = port,
};
