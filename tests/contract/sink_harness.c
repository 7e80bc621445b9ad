/* SPDX-License-Identifier: MIT */
/* Fixtures for the tests of sinks. */
#include "sink_harness.h"

#include "base/cleanup.h"
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char id_prefix[] = "01900000-0000-7000-8000-";

static struct ob_sink *new_sink(const struct ob_sink_ops *ops, const struct ob_opt_value *options,
				size_t count)
{
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	if (ob_sink_new(ops, options, count, &ob_clock_system, &sink, &err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

static struct ob_sink *make_file(struct sink_env *env)
{
	struct ob_opt_value path = { "path", env->path };

	return new_sink(&ob_sink_file, &path, 1);
}

static struct ob_sink *make_stdout(struct sink_env *env)
{
	if (env->saved_stdout < 0) {
		(void)fflush(stdout);
		env->saved_stdout = dup(STDOUT_FILENO);
		OB_AUTOCLOSE int fd = open(env->path, O_WRONLY | O_CREAT | O_APPEND, 0600);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	}
	return new_sink(&ob_sink_stdout, NULL, 0);
}

/* A program that appends the lines it gets to the file. */
static struct ob_sink *make_exec(struct sink_env *env)
{
	const char *handler = getenv("EXEC_HANDLER");
	char command[1024];
	struct ob_opt_value option = { "command", command };
	OB_AUTOCLOSE int fd = open(env->path, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(handler != NULL, "EXEC_HANDLER is not set");
	(void)snprintf(command, sizeof(command), "'%s' '%s'", handler, env->path);
	return new_sink(&ob_sink_exec, &option, 1);
}

static struct ob_sink *make_mem(struct sink_env *env, const struct ob_sink_ops *ops)
{
	struct ob_sink *sink = NULL;
	struct ob_err err = OB_ERR_INIT;

	env->plan.log = &env->log;
	if (ob_memsink_new(ops, &env->plan, &ob_clock_system, &sink, &err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

static struct ob_sink *make_memory(struct sink_env *env)
{
	env->plan.shuffle = 42; /* outcomes in any order, later than the first poll */
	env->plan.ack_polls = 2;
	return make_mem(env, &ob_sink_memory);
}

static struct ob_sink *make_memory_late(struct sink_env *env)
{
	env->plan.store_late = true;
	return make_mem(env, &ob_sink_memory);
}

static struct ob_sink *make_memory_ordered(struct sink_env *env)
{
	env->plan.shuffle = 43;
	env->plan.ack_polls = 1;
	return make_mem(env, &ob_sink_memory_ordered);
}

static struct ob_str read_lines(struct sink_env *env)
{
	ob_buf_clear(&env->text);
	read_file(env->path, &env->text);
	return ob_buf_view(&env->text);
}

static void clear_lines(struct sink_env *env)
{
	ck_assert_int_eq(truncate(env->path, 0), 0);
}

static const struct sink_kind kinds[] = {
	{ "file", true, make_file, read_lines, .clear = clear_lines },
	{ "stdout", true, make_stdout, read_lines, .clear = clear_lines },
	{ "exec", true, make_exec, read_lines, .clear = clear_lines, .wait_ms = 20 },
	{ .name = "memory", .make = make_memory },
	{ .name = "memory_late", .make = make_memory_late },
	{ .name = "memory_ordered", .make = make_memory_ordered },
};

static const struct sink_kind *find_kind(const char *name)
{
#if HAVE_REDIS
	if (strcmp(name, sink_kind_redis.name) == 0)
		return &sink_kind_redis;
#endif
#if HAVE_RABBITMQ
	if (strcmp(name, sink_kind_rabbitmq.name) == 0)
		return &sink_kind_rabbitmq;
#endif
#if HAVE_KAFKA
	if (strcmp(name, sink_kind_kafka.name) == 0)
		return &sink_kind_kafka;
	if (strcmp(name, sink_kind_kafka_one.name) == 0)
		return &sink_kind_kafka_one;
#endif
#if HAVE_NATS
	if (strcmp(name, sink_kind_nats.name) == 0)
		return &sink_kind_nats;
#endif
#if HAVE_HTTP
	if (strcmp(name, sink_kind_http.name) == 0)
		return &sink_kind_http;
	if (strcmp(name, sink_kind_http_batch.name) == 0)
		return &sink_kind_http_batch;
#endif
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	ck_abort_msg("no sink kind %s", name);
}

static const struct sink_kind *kind_under_test(void)
{
	const char *name = getenv("SINK");

	return find_kind(name ? name : "file");
}

int sink_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	const struct sink_kind *kind = kind_under_test();
	const char *missing = kind->missing ? kind->missing() : NULL;

	if (!missing)
		return ob_suite_run_with(name, tests, count, only, kind->start, kind->stop);
	(void)printf("1..0 # SKIP %s\n", missing);
	return EXIT_SUCCESS;
}

void sink_env_init(struct sink_env *env)
{
	*env = (struct sink_env){ .saved_stdout = -1,
				  .text = OB_BUF_INIT((size_t)1 << 30),
				  .arena = OB_ARENA_INIT((size_t)1 << 31) };
	env->kind = kind_under_test();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(env->dir, sizeof(env->dir), "/tmp/outbox-sink-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(env->dir));
	(void)snprintf(env->path, sizeof(env->path), "%s/out.ndjson", env->dir);
	ob_memsink_log_init(&env->log, true);
	if (env->kind->begin)
		env->kind->begin(env);
}

void sink_env_done(struct sink_env *env)
{
	DIR *dir = opendir(env->dir);

	if (env->kind->end)
		env->kind->end(env);
	if (env->saved_stdout >= 0) {
		(void)dup2(env->saved_stdout, STDOUT_FILENO);
		(void)close(env->saved_stdout);
	}
	for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		(void)closedir(dir);
	ck_assert_int_eq(rmdir(env->dir), 0);
	ob_memsink_log_done(&env->log);
	ob_buf_done(&env->text);
	ob_arena_done(&env->arena);
}

struct ob_sink *sink_make(struct sink_env *env)
{
	struct ob_sink *sink = env->kind->make(env);
	struct ob_err err = OB_ERR_INIT;

	if (ob_sink_open(sink, &err) < 0)
		ck_abort_msg("%s", err.msg);
	return sink;
}

void parcel_init(struct parcel *parcel, uint64_t n, struct ob_str key, struct ob_str body)
{
	char id[OB_UUID_TEXT_SIZE];

	*parcel = (struct parcel){ .message = { .seq = (int64_t)n,
						.aggregate_type = OB_STR("order"),
						.aggregate_id = OB_STR("1042"),
						.event_type = OB_STR("OrderPlaced"),
						.revision = 1,
						.occurred_at_us = 1700000000123456 } };
	(void)snprintf(id, sizeof(id), "%s%012llx", id_prefix, (unsigned long long)n);
	ck_assert(ob_uuid_parse(ob_str(id), &parcel->message.id));
	parcel->message.payload = body;
	parcel->message.key = key;
	parcel->delivery = (struct ob_delivery){ .tag = n,
						 .message = &parcel->message,
						 .destination = OB_STR("orders"),
						 .key = key,
						 .body = body };
}

void read_file(const char *path, struct ob_buf *out)
{
	OB_AUTOCLOSE int fd = open(path, O_RDONLY);
	char chunk[65536];
	ssize_t n;

	ck_assert_msg(fd >= 0, "cannot open %s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		ob_buf_add(out, (struct ob_str){ chunk, (size_t)n });
	ck_assert(n == 0 && !out->failed);
}

static struct ob_str keep(struct ob_arena *arena, struct ob_str s)
{
	struct ob_str copy = OB_STR_NULL;

	ck_assert(ob_arena_copy(arena, s, &copy));
	return copy;
}

static struct ob_str keep_field(struct ob_arena *arena, const json_t *object, const char *name)
{
	const json_t *field = json_object_get(object, name);

	if (!field)
		return OB_STR_NULL;
	ck_assert(json_is_string(field));
	return keep(arena, (struct ob_str){ json_string_value(field), json_string_length(field) });
}

static struct ob_str unbase64(struct ob_arena *arena, struct ob_str text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/";
	char *out = ob_arena_alloc(arena, text.n / 4 * 3 + 1);
	size_t n = 0;

	ck_assert_ptr_nonnull(out);
	ck_assert_uint_eq(text.n % 4, 0);
	for (size_t i = 0; i < text.n; i += 4) {
		uint32_t three = 0;
		size_t bytes = 3 - (text.p[i + 2] == '=') - (text.p[i + 3] == '=');

		for (size_t k = 0; k < 4; k++) {
			const char *at = strchr(digits, text.p[i + k]);
			three = three << 6 | (at ? (uint32_t)(at - digits) : 0);
		}
		for (size_t k = 0; k < bytes; k++)
			out[n++] = (char)(three >> (16 - 8 * k));
	}
	return (struct ob_str){ out, n };
}

/* The bytes of the last member as they stand: a parser would hide what was changed. */
static struct ob_str raw_payload(struct ob_str line)
{
	static const char name[] = ",\"payload\":";
	const char *at = memmem(line.p, line.n, name, sizeof(name) - 1);

	ck_assert_ptr_nonnull(at);
	at += sizeof(name) - 1;
	return (struct ob_str){ at, (size_t)(line.p + line.n - 1 - at) };
}

static void parse_line(struct ob_arena *arena, struct ob_str line, struct stored *out)
{
	json_error_t fault;
	json_t *object =
		json_loadb(line.p, line.n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &fault);

	ck_assert_msg(json_is_object(object), "%s in: %.*s", fault.text,
		      (int)(line.n < 200 ? line.n : 200), line.p);
	struct ob_str id = keep_field(arena, object, "id");
	ck_assert(ob_uuid_parse(id, &out->id));
	out->destination = keep_field(arena, object, "destination");
	out->key = keep_field(arena, object, "key");
	out->tombstone = json_is_true(json_object_get(object, "tombstone"));
	struct ob_str base64 = keep_field(arena, object, "payload_base64");
	if (base64.p)
		out->body = unbase64(arena, base64);
	else if (!out->tombstone)
		out->body = keep(arena, raw_payload(line));
	const json_t *headers = json_object_get(object, "headers");
	if (headers) {
		char *text = json_dumps(headers, JSON_COMPACT | JSON_ENCODE_ANY);
		out->headers = keep(arena, ob_str(text));
		free(text);
	}
	const json_t *snapshot = json_object_get(object, "snapshot");
	if (snapshot) {
		char *text = json_dumps(snapshot, JSON_ENCODE_ANY);
		out->snapshot = keep(arena, ob_str(text));
		free(text);
	}
	json_decref(object);
}

static void set_number(struct stored *stored)
{
	for (size_t i = 10; i < 16; i++)
		stored->n = stored->n << 8 | stored->id.b[i];
}

size_t sink_parse_lines(struct ob_arena *arena, struct ob_str text, struct stored **ret_stored)
{
	size_t count = 0, at = 0;

	for (size_t i = 0; i < text.n; i++)
		count += text.p[i] == '\n';
	struct stored *list = ob_arena_alloc(arena, (count + 1) * sizeof(*list));
	ck_assert_ptr_nonnull(list);
	for (size_t i = 0; i < count; i++) {
		const char *end = memchr(text.p + at, '\n', text.n - at);

		parse_line(arena, (struct ob_str){ text.p + at, (size_t)(end - text.p) - at },
			   &list[i]);
		set_number(&list[i]);
		at = (size_t)(end - text.p) + 1;
	}
	ck_assert_msg(at == text.n, "the last line has no end");
	*ret_stored = list;
	return count;
}

size_t sink_read(struct sink_env *env, struct stored **ret_stored)
{
	ob_arena_reset(&env->arena, SIZE_MAX);
	if (env->kind->read)
		return sink_parse_lines(&env->arena, env->kind->read(env), ret_stored);
	if (env->kind->list) {
		size_t count = env->kind->list(env, ret_stored);

		for (size_t i = 0; i < count; i++)
			set_number(&(*ret_stored)[i]);
		return count;
	}

	struct stored *list = ob_arena_alloc(&env->arena, (env->log.count + 1) * sizeof(*list));
	ck_assert_ptr_nonnull(list);
	for (size_t i = 0; i < env->log.count; i++) {
		const struct ob_memsink_entry *e = &env->log.entries[i];

		list[i] = (struct stored){ .id = e->id,
					   .destination = e->destination,
					   .key = e->key,
					   .body = e->body,
					   .headers = e->headers,
					   .snapshot = e->snapshot,
					   .tombstone = !e->body.p };
		set_number(&list[i]);
	}
	*ret_stored = list;
	return env->log.count;
}

void tally_polled(struct tally *tally, const struct ob_ack *acks, int count)
{
	for (int i = 0; i < count; i++) {
		if (acks[i].err.kind == OB_ERR_NONE) {
			tally->confirmed++;
		} else {
			tally->failed++;
			tally->last = acks[i].err;
		}
		if (!tally->seen)
			continue;
		ck_assert_uint_lt(acks[i].tag, tally->seen_size);
		ck_assert_msg(tally->seen[acks[i].tag]++ == 0, "a second outcome for one delivery");
	}
}

static void poll_once(struct ob_sink *sink, struct tally *tally)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_ack acks[64];
	int n = ob_sink_poll(sink, 1000, acks, 64, &err);

	ck_assert_msg(n >= 0, "%s", err.msg);
	tally_polled(tally, acks, n);
}

void sink_push(struct ob_sink *sink, const struct ob_delivery *delivery, struct tally *tally)
{
	struct ob_err err = OB_ERR_INIT;
	int r;

	while ((r = ob_sink_send(sink, delivery, &err)) == OB_SINK_FULL)
		poll_once(sink, tally);
	ck_assert_msg(r == 0, "%s", err.msg);
}

void sink_drain(struct ob_sink *sink, struct tally *tally, size_t count)
{
	while (tally->confirmed + tally->failed < count)
		poll_once(sink, tally);
	ck_assert_uint_eq(tally->confirmed + tally->failed, count);
}
