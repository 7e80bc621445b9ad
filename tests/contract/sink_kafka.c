/* SPDX-License-Identifier: MIT */
/* The Kafka sink for the contract: one mock cluster a process, read back by a consumer. */
#include "base/json.h"
#include "kafka_front.h"
#include "sink_harness.h"

#include <check.h>
#include <stdlib.h>

static struct kafka_mock mock;

static void end_mock(void)
{
	kafka_mock_end(&mock);
}

static void clear(struct sink_env *env)
{
	(void)env;
	kafka_mock_skip(&mock);
}

/* It outlives the environments of a test: a sweep of faults makes hundreds. */
static void begin(struct sink_env *env)
{
	if (mock.pid == 0) {
		kafka_mock_start(&mock);
		ck_assert_int_eq(atexit(end_mock), 0);
	}
	clear(env);
}

/* With one broker there is one way to it, which a proxy can stand in. */
static void begin_one(struct sink_env *env)
{
	mock.broker_count = 1;
	begin(env);
}

static int port(struct sink_env *env)
{
	(void)env;
	return kafka_mock_port(&mock);
}

static void front(struct sink_env *env, struct chaos_proxy *proxy)
{
	(void)env;
	kafka_front_name(&mock, proxy, "127.0.0.1", chaos_proxy_port(proxy));
}

static struct ob_sink *make(struct sink_env *env)
{
	char brokers[32];
	struct ob_opt_value options[] = { { "brokers", env->port ? brokers : mock.brokers },
					  { "max_message_size", "2MB" },
					  { "timeout", env->timeout } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(brokers, sizeof(brokers), "127.0.0.1:%d", env->port);
	if (ob_sink_new(&ob_sink_kafka, options, env->timeout ? 3 : 2, &ob_clock_system, &sink,
			&err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

/* The caller's headers stand before ours, of which `id` is the first. */
static struct ob_str headers_of(struct sink_env *env, const struct kafka_record *record)
{
	struct ob_buf text = OB_BUF_INIT(1 << 20);
	struct ob_str copy = OB_STR_NULL, stored = kafka_header(record, "headers");

	if (stored.p)
		return stored;
	for (size_t i = 0; !ob_str_eq(record->names[i], OB_STR("id")); i++) {
		ob_buf_adds(&text, i ? "," : "{");
		ob_json_add_string(&text, record->names[i]);
		ob_buf_addc(&text, ':');
		ob_json_add_string(&text, record->values[i]);
	}
	if (text.len > 0) {
		ob_buf_addc(&text, '}');
		ck_assert(ob_arena_copy(&env->arena, ob_buf_view(&text), &copy));
	}
	ob_buf_done(&text);
	return copy;
}

static size_t list_all(struct sink_env *env, struct stored **ret_stored)
{
	struct kafka_record *records;
	size_t count = kafka_mock_read(&mock, &env->arena, &records);
	struct stored *list = ob_arena_alloc(&env->arena, (count + 1) * sizeof(*list));

	ck_assert_ptr_nonnull(list);
	for (size_t i = 0; i < count; i++) {
		list[i] = (struct stored){ .destination = records[i].topic,
					   .key = records[i].key,
					   .body = records[i].value,
					   .tombstone = !records[i].value.p,
					   .headers = headers_of(env, &records[i]),
					   .snapshot = kafka_header(&records[i], "snapshot") };
		ck_assert(ob_uuid_parse(kafka_header(&records[i], "id"), &list[i].id));
	}
	*ret_stored = list;
	return count;
}

#define KAFKA_KIND(kind_name, kind_begin, kind_port) \
	{ \
		.name = (kind_name), .begin = (kind_begin), .make = make, .list = list_all, \
		.clear = clear, .strict_names = true, .body_max = 1 << 20, .reconnects = true, \
		.wait_ms = 20, .port = (kind_port), .front = front, \
	}

const struct sink_kind sink_kind_kafka = KAFKA_KIND("kafka", begin, NULL);
const struct sink_kind sink_kind_kafka_one = KAFKA_KIND("kafka-one", begin_one, port);
