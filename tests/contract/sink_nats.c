/* SPDX-License-Identifier: MIT */
/* The NATS sink for the contract: one private server a process, read back by another client. */
#include "base/json.h"
#include "nats_server.h"
#include "sink_harness.h"

#include <check.h>
#include <stdlib.h>

static struct nats_server server = { .config = "max_payload: 33554432" };

static void end_server(void)
{
	nats_server_end(&server);
}

static char stream[16]; /* its name now */

static void add_stream(void)
{
	static unsigned added;

	(void)snprintf(stream, sizeof(stream), "S%u", ++added);
	nats_stream_add(&server, stream, "orders", NULL);
}

/* A stream remembers ids even when it is emptied, and NATS 2.15 for a moment even when it is
 * removed and made again: take one of another name. */
static void clear(struct sink_env *env)
{
	(void)env;
	nats_stream_remove(&server, stream);
	add_stream();
}

/* The server outlives the environments of a test: a sweep of faults makes hundreds. */
static void begin(struct sink_env *env)
{
	if (server.pid != 0) {
		clear(env);
		return;
	}
	nats_server_start(&server);
	ck_assert_int_eq(atexit(end_server), 0);
	add_stream();
}

static int port(struct sink_env *env)
{
	(void)env;
	return server.port;
}

static struct ob_sink *make(struct sink_env *env)
{
	char url[64];
	struct ob_opt_value options[] = { { "url", url },
					  { "timeout", env->timeout },
					  { "connect_timeout", env->timeout } };
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(url, sizeof(url), "nats://127.0.0.1:%d",
		       env->port ? env->port : server.port);
	if (ob_sink_new(&ob_sink_nats, options, env->timeout ? 3 : 1, &ob_clock_system, &sink,
			&err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* Undo the encoding. */
static struct ob_str keep(struct ob_arena *arena, const char *text)
{
	size_t n = strlen(text), at = 0;
	char *out = ob_arena_alloc(arena, n + 1);

	ck_assert_ptr_nonnull(out);
	for (size_t i = 0; i < n; i++, at++) {
		out[at] = text[i];
		if (text[i] == '%') {
			out[at] = (char)(digit(text[i + 1]) << 4 | digit(text[i + 2]));
			i += 2;
		}
	}
	return (struct ob_str){ out, at };
}

static struct ob_str keep_header(struct ob_arena *arena, natsMsg *msg, const char *name)
{
	const char *value = NULL;

	return natsMsgHeader_Get(msg, name, &value) == NATS_OK ? keep(arena, value) : OB_STR_NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All that are the message's own, by name, as the JSON object that they came from. */
static struct ob_str join_headers(struct ob_arena *arena, natsMsg *msg)
{
	struct ob_buf json = OB_BUF_INIT(100000);
	struct ob_str kept = OB_STR_NULL;
	const char **names = NULL;
	int count = 0;

	ck_assert_int_eq(natsMsgHeader_Keys(msg, &names, &count), NATS_OK);
	qsort(names, (size_t)count, sizeof(*names), by_name);
	for (int i = 0; i < count; i++) {
		if (strncmp(names[i], "Nats-", 5) == 0 || strncmp(names[i], "outbox-", 7) == 0)
			continue;
		ob_buf_addc(&json, json.len == 0 ? '{' : ',');
		ob_json_add_string(&json, keep(arena, names[i]));
		ob_buf_addc(&json, ':');
		ob_json_add_string(&json, keep_header(arena, msg, names[i]));
	}
	free(names);
	if (json.len == 0)
		return keep_header(arena, msg, "outbox-headers");
	ob_buf_addc(&json, '}');
	ck_assert(ob_arena_copy(arena, ob_buf_view(&json), &kept));
	ob_buf_done(&json);
	return kept;
}

struct list {
	struct ob_arena *arena;
	struct stored *stored;
	size_t count;
};

static void add_stored(void *arg, natsMsg *msg)
{
	struct list *list = arg;
	struct stored *one = &list->stored[list->count++];
	struct ob_arena *arena = list->arena;
	struct ob_str body = { natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) };

	*one = (struct stored){ .destination = keep(arena, natsMsg_GetSubject(msg)),
				.key = keep_header(arena, msg, "outbox-key"),
				.snapshot = keep_header(arena, msg, "outbox-snapshot"),
				.headers = join_headers(arena, msg),
				.tombstone =
					keep_header(arena, msg, "outbox-tombstone").p != NULL };
	ck_assert(ob_uuid_parse(keep_header(arena, msg, "Nats-Msg-Id"), &one->id));
	if (one->tombstone)
		ck_assert_uint_eq(body.n, 0);
	else
		ck_assert(ob_arena_copy(arena, body.n ? body : OB_STR(""), &one->body));
}

static size_t list_all(struct sink_env *env, struct stored **ret_stored)
{
	struct list list = { .arena = &env->arena };
	size_t count = nats_stream_count(&server, stream);

	list.stored = ob_arena_alloc(&env->arena, (count + 1) * sizeof(*list.stored));
	ck_assert_ptr_nonnull(list.stored);
	nats_stream_each(&server, stream, add_stored, &list);
	ck_assert_uint_eq(list.count, count);
	*ret_stored = list.stored;
	return count;
}

const struct sink_kind sink_kind_nats = {
	.name = "nats",
	.missing = nats_server_missing,
	.begin = begin,
	.make = make,
	.list = list_all,
	.clear = clear,
	.strict_names = true,
	.wait_ms = 20,
	.port = port,
};
