/* SPDX-License-Identifier: MIT */
/* The http sink as a kind of sink: a receiver on this machine, and its requests read back. */
#include "http_receiver.h"
#include "sink_harness.h"

#include "base/json.h"

#include <check.h>
#include <stdlib.h>

static size_t hidden; /* so many requests are read back no more */

static void http_begin(struct sink_env *env)
{
	hidden = 0;
	env->peer = http_receiver_new();
}

static void http_end(struct sink_env *env)
{
	http_receiver_free(env->peer);
}

static int http_port(struct sink_env *env)
{
	return http_receiver_port(env->peer);
}

static struct ob_sink *make_with(struct sink_env *env, const char *batch)
{
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;
	char url[64];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/hook",
		       env->port ? env->port : http_port(env));
	const struct ob_opt_value options[] = { { "url", url },
						{ "allow_private", "true" },
						{ "batch", batch },
						{ "timeout", env->timeout } };
	if (ob_sink_new(&ob_sink_http, options, env->timeout ? 4 : 3, &ob_clock_system, &sink,
			&err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

static struct ob_sink *http_make(struct sink_env *env)
{
	return make_with(env, "1");
}

static struct ob_sink *batch_make(struct sink_env *env)
{
	return make_with(env, "7");
}

static struct ob_str keep_header(struct ob_arena *arena, const struct http_request_seen *seen,
				 const char *name)
{
	struct ob_str kept = OB_STR_NULL;
	size_t size = 0;
	char *value = http_header(seen, name, &size);

	ck_assert(!value || ob_arena_copy(arena, (struct ob_str){ value, size }, &kept));
	free(value);
	return kept;
}

/* All with the prefix, in their order, as the JSON object that they came from. */
static struct ob_str join_headers(struct ob_arena *arena, const struct http_request_seen *seen)
{
	static const char prefix[] = "\r\noutbox-header-";
	struct ob_buf json = OB_BUF_INIT(100000);
	struct ob_str kept = OB_STR_NULL;

	for (const char *at = strstr(seen->head, prefix); at; at = strstr(at + 2, prefix)) {
		char name[256];
		struct http_request_seen line = { .head = name };
		size_t n = strcspn(at + 2, ":");

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, at + 2);
		struct ob_str value = keep_header(arena, seen, name);
		/* undo the encoding of the name as if it were a value */
		(void)snprintf(name, sizeof(name), "x\r\nn: %.*s\r\n",
			       (int)(n - (sizeof(prefix) - 3)), at + sizeof(prefix) - 1);
		ob_buf_addc(&json, json.len == 0 ? '{' : ',');
		ob_json_add_string(&json, keep_header(arena, &line, "n"));
		ob_buf_addc(&json, ':');
		ob_json_add_string(&json, value);
	}
	if (json.len == 0)
		return keep_header(arena, seen, "outbox-headers");
	ob_buf_addc(&json, '}');
	ck_assert(ob_arena_copy(arena, ob_buf_view(&json), &kept));
	ob_buf_done(&json);
	return kept;
}

static size_t http_list(struct sink_env *env, struct stored **ret_stored)
{
	size_t count = http_receiver_count(env->peer);
	struct stored *list = ob_arena_alloc(&env->arena, (count + 1) * sizeof(*list));

	ck_assert_ptr_nonnull(list);
	for (size_t i = 0; i < count; i++) {
		struct http_request_seen seen = http_receiver_get(env->peer, i);
		struct ob_str id = keep_header(&env->arena, &seen, "webhook-id");

		list[i] = (struct stored){
			.destination = keep_header(&env->arena, &seen, "outbox-destination"),
			.key = keep_header(&env->arena, &seen, "outbox-key"),
			.snapshot = keep_header(&env->arena, &seen, "outbox-snapshot"),
			.headers = join_headers(&env->arena, &seen),
			.tombstone = keep_header(&env->arena, &seen, "outbox-tombstone").p != NULL,
		};
		ck_assert(ob_uuid_parse(id, &list[i].id));
		if (!list[i].tombstone)
			list[i].body = (struct ob_str){ seen.body, seen.body_size };
	}
	*ret_stored = list;
	return count;
}

/* ---- batches --------------------------------------------------------- */

/* The elements of a JSON array, as lines. */
static void add_elements(struct ob_buf *out, const struct http_request_seen *seen)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 1; i + 1 < seen->body_size; i++) {
		char c = seen->body[i];

		if (quoted && c == '\\')
			ob_buf_addc(out, seen->body[i++]);
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted)
			depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		bool between = !quoted && depth == 0 && c == ',';
		ob_buf_add(out, between ? OB_STR("\n") : (struct ob_str){ seen->body + i, 1 });
	}
	ob_buf_addc(out, '\n');
}

static struct ob_str batch_read(struct sink_env *env)
{
	size_t count = http_receiver_count(env->peer);

	ob_buf_clear(&env->text);
	for (size_t i = hidden; i < count; i++) {
		struct http_request_seen seen = http_receiver_get(env->peer, i);
		struct ob_str body = { seen.body, seen.body_size };

		ck_assert(ob_json_valid(body, NULL) && body.p[0] == '[');
		add_elements(&env->text, &seen);
	}
	ck_assert(!env->text.failed);
	return ob_buf_view(&env->text);
}

static void batch_clear(struct sink_env *env)
{
	hidden = http_receiver_count(env->peer);
}

const struct sink_kind sink_kind_http_batch = {
	.name = "http-batch",
	.lines = true,
	.make = batch_make,
	.read = batch_read,
	.clear = batch_clear,
	.begin = http_begin,
	.end = http_end,
	.concurrent = true,
	.wait_ms = 20,
	.port = http_port,
};

const struct sink_kind sink_kind_http = {
	.name = "http",
	.make = http_make,
	.begin = http_begin,
	.end = http_end,
	.list = http_list,
	.concurrent = true,
	.wait_ms = 20,
	.port = http_port,
};
