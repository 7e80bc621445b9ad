/* SPDX-License-Identifier: MIT */
/* Relays and loops as processes of their own. */
#include "base/cleanup.h"
#include "bench/env.h"
#include "bench/fatal.h"
#include "bench/node/node.h"
#include "bench/store/schema.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { STOP_MS = 60000 };

const char *const bench_kind_titles[BENCH_KINDS] = {
	[BENCH_RELAY] = "the relay",
	[BENCH_KEEP] = "the baseline (keep)",
	[BENCH_DELETE] = "the baseline (delete)",
	[BENCH_CURSOR] = "the bare loop",
	[BENCH_NODE] = "the loop in Node",
};

bool bench_subject_get(struct bench_env *env, enum bench_kind kind, const char *store,
		       const char *broker, struct bench_subject *ret, const char **ret_reason)
{
	bool old = kind == BENCH_KEEP || kind == BENCH_DELETE;

	*ret = (struct bench_subject){ .kind = kind };
	if (kind == BENCH_NODE && !bench_node_finds(store, broker, ret_reason))
		return false;
	ret->store = bench_env_store(env, old ? BENCH_OLD : BENCH_NEW, store, ret_reason);
	if (ret->store)
		ret->broker = bench_env_broker(env, broker, ret_reason);
	return ret->broker != NULL;
}

void bench_subject_clear(const struct bench_subject *subject)
{
	bench_schema_clear(subject->store);
	if (subject->kind == BENCH_NODE)
		bench_node_clear(subject->store);
}

void bench_subject_fill(const struct bench_subject *subject, const struct bench_load *load)
{
	subject->broker->ops->clear(subject->broker);
	bench_subject_clear(subject);
	if (subject->kind == BENCH_NODE)
		bench_node_load(subject->store, load);
	else
		bench_schema_load(subject->store, load);
}

bool bench_subject_is_settled(const struct bench_subject *subject)
{
	if (subject->kind == BENCH_CURSOR)
		return bench_schema_is_passed(subject->store);
	if (subject->kind == BENCH_NODE)
		return bench_node_is_through(subject->store);
	return bench_schema_is_settled(subject->store);
}

static void write_config(const struct bench_subject *subject, const char *path)
{
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "we");

	if (file)
		(void)fprintf(file,
			      "stores:\n"
			      "  main: { url: \"%s\" }\n"
			      "sinks:\n"
			      "  out: { type: %s%s%s }\n"
			      "relays:\n",
			      subject->store->url, subject->broker->ops->name,
			      subject->broker->sink, subject->more_sink ? subject->more_sink : "");
	if (file && subject->relays)
		(void)fputs(subject->relays, file);
	else if (file)
		(void)fprintf(file,
			      "  - name: default\n"
			      "    batch_size: %d\n"
			      "%s%s",
			      BENCH_BATCH,
			      /* a log has no such option */
			      subject->kind == BENCH_DELETE && !subject->store->log
				      ? "    after_publish: delete\n"
				      : "",
			      subject->more_relay ? subject->more_relay : "");
	if (!file || fflush(file) != 0)
		bench_fatal("writing %s: %m", path);
}

void bench_subject_start(struct bench_env *env, const struct bench_subject *subject,
			 struct ob_child *child)
{
	char log[BENCH_PATH], config[BENCH_PATH];
	const char *const relay[] = { "outbox", "--config", config, "work", "--silent", NULL };
	const char *const cursor[] = { "outbox-bench",
				       "--bare-loop",
				       subject->store->ops->name,
				       subject->store->url,
				       subject->broker->ops->name,
				       subject->broker->address,
				       NULL };
	const char *const node[] = { "node", BENCH_NODE_LOOP, subject->store->url,
				     subject->broker->address, NULL };
	struct ob_child_conf conf = {
		.program = env->program, .argv = relay, .dir = env->dir, .log = log
	};
	struct ob_err err = OB_ERR_INIT;

	if (subject->store->side == BENCH_OLD)
		conf.program = env->baseline;
	if (subject->kind == BENCH_CURSOR) {
		conf.program = env->self;
		conf.argv = cursor;
	} else if (subject->kind == BENCH_NODE) {
		conf.program = bench_node_program();
		conf.argv = node;
	}
	(void)snprintf(log, sizeof(log), "%s/log", env->dir);
	(void)unlink(log);
	(void)snprintf(config, sizeof(config), "%s/outbox.yaml", env->dir);
	write_config(subject, config);
	if (ob_child_start(child, &conf, &err) < 0)
		bench_fatal("%s", err.msg);
}

void bench_subject_stop(struct bench_env *env, struct ob_child *child)
{
	char words[BENCH_TEXT_SIZE];

	ob_child_signal(child, SIGTERM);
	if (!ob_child_wait_end(child, STOP_MS)) {
		bench_subject_words(env, words);
		ob_child_done(child);
		bench_fatal("the process does not stop within %d s; its last words: %s",
			    STOP_MS / 1000, words);
	}
}

void bench_subject_words(struct bench_env *env, char out[BENCH_TEXT_SIZE])
{
	char path[BENCH_PATH], line[1024];

	out[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/log", env->dir);
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		(void)snprintf(out, BENCH_TEXT_SIZE, "%.*s", (int)strcspn(line, "\n"), line);
}
