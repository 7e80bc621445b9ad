/* SPDX-License-Identifier: MIT */
/* The relay and the bare loop as processes of their own. */
#include "base/cleanup.h"
#include "bench/env.h"
#include "bench/fatal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { STOP_MS = 60000 };

static void write_config(const struct bench_subject *subject, const char *path)
{
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "we");

	if (file)
		(void)fprintf(file,
			      "stores:\n"
			      "  main: { url: \"%s\" }\n"
			      "sinks:\n"
			      "  out: { type: %s%s%s }\n"
			      "relays:\n"
			      "  - name: default\n"
			      "    batch_size: %d\n"
			      "    after_publish: %s\n",
			      subject->store->url, subject->broker->ops->name,
			      subject->broker->sink, subject->more_sink ? subject->more_sink : "",
			      BENCH_BATCH, subject->delete_rows ? "delete" : "keep");
	if (!file || fflush(file) != 0)
		bench_fatal("writing %s: %m", path);
}

void bench_subject_start(struct bench_env *env, const struct bench_subject *subject,
			 struct ob_child *child)
{
	char log[BENCH_PATH], config[BENCH_PATH];
	const char *const relay[] = { "outbox", "--config", config, "work", "--silent", NULL };
	const char *const bare[] = { "outbox-bench",
				     "--bare-loop",
				     subject->store->ops->name,
				     subject->store->url,
				     subject->broker->ops->name,
				     subject->broker->address,
				     subject->delete_rows ? "delete" : "keep",
				     NULL };
	struct ob_child_conf conf = { .program = subject->bare ? env->self : env->program,
				      .argv = subject->bare ? bare : relay,
				      .dir = env->dir,
				      .log = log };
	struct ob_err err = OB_ERR_INIT;

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
