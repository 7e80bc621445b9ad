/* SPDX-License-Identifier: MIT */
/* Servers on demand, and their end. */
#include "bench/env.h"

#include "bench/broker/parts.h"
#include "bench/fatal.h"
#include "bench/store/schema.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETUP_MS = 60000 };

static const struct bench_store_ops *const stores[BENCH_STORES] = {
#if BENCH_POSTGRES
	&bench_store_postgres,
#endif
#if BENCH_MYSQL
	&bench_store_mysql,
#endif
#if BENCH_SQLITE
	&bench_store_sqlite,
#endif
};

static const struct bench_broker_ops *const brokers[] = {
	&bench_broker_file,
	&bench_broker_exec,
#if BENCH_REDIS
	&bench_broker_redis,
#endif
#if BENCH_HTTP
	&bench_broker_http,
#endif
#if BENCH_KAFKA
	&bench_broker_kafka,
#endif
#if BENCH_NATS
	&bench_broker_nats,
#endif
#if BENCH_RABBITMQ
	&bench_broker_rabbitmq,
#endif
	NULL,
};

/* As a whole path: processes are started elsewhere. It may not be there. */
static void find_program(char out[BENCH_PATH], const char *path)
{
	char *whole = realpath(path, NULL);

	if ((size_t)snprintf(out, BENCH_PATH, "%s", whole ? whole : path) >= BENCH_PATH)
		bench_fatal("%s: the path is too long", path);
	free(whole);
}

static void find_programs(struct bench_env *env, const char *program, const char *baseline)
{
	char beside[BENCH_PATH + 32];
	ssize_t n = readlink("/proc/self/exe", env->self, sizeof(env->self) - 1);
	const char *slash = n > 0 ? strrchr(env->self, '/') : NULL;

	if (!slash)
		bench_fatal("cannot find this program: %m");
	(void)snprintf(beside, sizeof(beside), "%.*s/../src/cli/outbox", (int)(slash - env->self),
		       env->self);
	find_program(env->program, program ? program : beside);
	if (access(env->program, X_OK) < 0)
		bench_fatal("%s cannot be run: %m (--program names another)", env->program);
	find_program(env->baseline,
		     baseline ? baseline : BENCH_SOURCE "/build-baseline/build/src/cli/outbox");
	if (baseline && access(baseline, X_OK) < 0)
		bench_fatal("%s cannot be run: %m", baseline);
}

void bench_env_open(struct bench_env *env, const char *program, const char *baseline)
{
	const char *temp = getenv("TMPDIR");

	find_programs(env, program, baseline);
	(void)snprintf(env->dir, sizeof(env->dir), "%.32s/outbox-bench.XXXXXX",
		       temp && *temp ? temp : "/tmp");
	if (!mkdtemp(env->dir)) {
		env->dir[0] = '\0';
		bench_fatal("cannot make a directory in %s: %m", temp && *temp ? temp : "/tmp");
	}
	for (size_t i = 0; i < BENCH_SIDES * BENCH_STORES; i++) {
		struct bench_store *store = &env->stores[i / BENCH_STORES][i % BENCH_STORES];

		store->side = (enum bench_side)(i / BENCH_STORES);
		store->ops = stores[i % BENCH_STORES];
	}
	for (size_t i = 0; brokers[i]; i++)
		env->brokers[i].ops = brokers[i];
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void bench_env_close(struct bench_env *env)
{
	for (size_t i = 0; i < BENCH_SIDES * BENCH_STORES; i++) {
		struct bench_store *store = &env->stores[i / BENCH_STORES][i % BENCH_STORES];

		if (store->there)
			store->ops->stop(store);
		store->there = false;
	}
	for (size_t i = 0; i < BENCH_BROKERS_MAX; i++) {
		if (env->brokers[i].there)
			env->brokers[i].ops->stop(&env->brokers[i]);
		env->brokers[i].there = false;
	}
	if (env->dir[0])
		(void)nftw(env->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	env->dir[0] = '\0';
}

static void set_up(struct bench_env *env, struct bench_store *store)
{
	const char *const argv[] = { "outbox", "--store", store->url, "setup", "--partitions", "16",
				     /* The baseline has no events. */
				     store->side == BENCH_OLD ? NULL : "--events", NULL };
	char log[BENCH_PATH], words[BENCH_TEXT_SIZE];
	struct ob_child_conf conf = { .program = store->side == BENCH_OLD ? env->baseline
									  : env->program,
				      .argv = argv,
				      .dir = env->dir,
				      .log = log };
	struct ob_child child = { 0 };
	struct ob_err err = OB_ERR_INIT;

	(void)snprintf(log, sizeof(log), "%s/log", env->dir);
	if (ob_child_start(&child, &conf, &err) < 0)
		bench_fatal("%s", err.msg);
	if (!ob_child_wait_end(&child, SETUP_MS) || child.code != 0) {
		bench_subject_words(env, words);
		bench_fatal("outbox setup on %s fails: %s", store->ops->title, words);
	}
}

static void start_store(struct bench_env *env, struct bench_store *store)
{
	/* SQLite's file is ours; servers choose their own place */
	(void)snprintf(store->url, sizeof(store->url), "sqlite:%s/outbox-%d.db", env->dir,
		       (int)store->side);
	store->there = store->ops->start(store);
	if (!store->there)
		return;
	set_up(env, store);
	store->ops->connect(store);
	bench_schema_open(store);
}

struct bench_store *bench_env_store(struct bench_env *env, enum bench_side side, const char *name,
				    const char **ret_reason)
{
	if (side == BENCH_OLD && access(env->baseline, X_OK) < 0) {
		*ret_reason =
			"the baseline is not built: bench/baseline builds it, and says what "
			"is missing";
		return NULL;
	}
	for (size_t i = 0; i < BENCH_STORES && env->stores[side][i].ops; i++) {
		struct bench_store *store = &env->stores[side][i];

		if (strcmp(store->ops->name, name) != 0)
			continue;
		if (!store->tried)
			start_store(env, store);
		store->tried = true;
		*ret_reason = store->reason;
		return store->there ? store : NULL;
	}
	*ret_reason = "this build is without that store";
	return NULL;
}

bool bench_broker_finds(struct bench_broker *broker, const char *program)
{
	static const char *const places[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin" };
	char path[128];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", places[i], program);
		if (access(path, X_OK) == 0)
			return true;
	}
	(void)snprintf(broker->reason, sizeof(broker->reason), "%s is missing", program);
	return false;
}

struct bench_broker *bench_env_broker(struct bench_env *env, const char *name,
				      const char **ret_reason)
{
	for (size_t i = 0; i < BENCH_BROKERS_MAX && env->brokers[i].ops; i++) {
		struct bench_broker *broker = &env->brokers[i];

		if (strcmp(broker->ops->name, name) != 0)
			continue;
		if (!broker->tried) {
			broker->tried = true;
			(void)snprintf(broker->address, sizeof(broker->address), "%s/out.%s",
				       env->dir, name);
			broker->there = broker->ops->start(broker);
		}
		*ret_reason = broker->reason;
		return broker->there ? broker : NULL;
	}
	*ret_reason = "this build is without that sink";
	return NULL;
}
