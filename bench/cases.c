/* SPDX-License-Identifier: MIT */
/* The list of cases: every store with every sink, and what has a question of its own. */
#include "bench/cases.h"

#include "bench/fatal.h"

#include <stdio.h>
#include <string.h>

enum {
	CASES_MAX = 96,
	PAYLOAD = 280, /* and the braces and names around it: 300 bytes */
	PAYLOAD_LARGE = 100000,
	CELL = 20000, /* messages of a pair that no bar is about */
	CELL_QUICK = 2000,
};

struct name {
	const char *name, *title;
};

static const struct name stores[] = {
	{ "postgres", "PostgreSQL" },
	{ "mysql", "MariaDB" },
	{ "sqlite", "SQLite" },
};

/* Servers that disturb even when idle come last. */
static const struct name brokers[] = {
	{ "file", "file" },   { "redis", "Redis" }, { "http", "HTTP" },
	{ "kafka", "Kafka" }, { "nats", "NATS" },   { "rabbitmq", "RabbitMQ" },
};

/* Pairs that a bar is about take more messages than the others. */
static const struct {
	const char *name;
	uint64_t messages;
} larger[] = {
	{ "postgres-redis-keep", 200000 }, { "postgres-redis-delete", 200000 },
	{ "mysql-redis-keep", 200000 },    { "sqlite-file-keep", 200000 },
	{ "sqlite-file-delete", 200000 },  { "postgres-kafka-keep", 100000 },
	{ "postgres-nats-keep", 100000 },  { "postgres-rabbitmq-keep", 100000 },
};

static struct bench_case list[CASES_MAX];
static size_t count;

static struct bench_case *add(const char *group, bench_case_fn *run, const struct bench_case *from)
{
	struct bench_case *c = &list[count++];

	if (count > CASES_MAX)
		bench_fatal("too many cases");
	*c = *from;
	c->group = group;
	c->run = run;
	c->payload_size = from->payload_size ? from->payload_size : PAYLOAD;
	return c;
}

static void name_pair(struct bench_case *c, const struct name *store, const struct name *broker,
		      bool delete_rows)
{
	(void)snprintf(c->name, sizeof(c->name), "%s-%s-%s", store->name, broker->name,
		       delete_rows ? "delete" : "keep");
	(void)snprintf(c->title, sizeof(c->title), "%s → %s, %s", store->title, broker->title,
		       delete_rows ? "delete" : "keep");
	for (size_t i = 0; i < sizeof(larger) / sizeof(larger[0]); i++) {
		if (strcmp(larger[i].name, c->name) == 0)
			c->messages = larger[i].messages;
	}
}

static void add_pairs(const struct name *broker)
{
	for (size_t s = 0; s < sizeof(stores) / sizeof(stores[0]); s++) {
		for (int delete_rows = 0; delete_rows < 2; delete_rows++) {
			struct bench_case c = { .store = stores[s].name,
						.broker = broker->name,
						.messages = CELL,
						.quick = CELL_QUICK,
						.delete_rows = delete_rows };

			name_pair(&c, &stores[s], broker, delete_rows);
			add("drain", bench_run_drain, &c);
		}
	}
}

static void add_pushes(void)
{
	static const uint32_t each[] = { 1, 100 }, producers[] = { 1, 4, 16 };

	for (size_t i = 0; i < 18; i++) {
		struct bench_case c = { .store = stores[i / 6].name,
					.broker = "file",
					.each = each[i / 3 % 2],
					.producers = producers[i % 3] };

		c.messages = c.each == 1 ? 8000 : 48000;
		c.quick = c.each == 1 ? 320 : 1600;
		(void)snprintf(c.name, sizeof(c.name), "push-%s-%u-%u", c.store, c.each,
			       c.producers);
		(void)snprintf(c.title, sizeof(c.title), "%s, %s, %u producer%s",
			       stores[i / 6].title, c.each == 1 ? "one by one" : "batches of 100",
			       c.producers, c.producers == 1 ? "" : "s");
		add("push", bench_run_push, &c);
	}
}

static void add_latencies(void)
{
	static const uint32_t rates[] = { 200, 2000 };

	for (size_t i = 0; i < 6; i++) {
		const struct name *store = &stores[i / 2];
		bool file = strcmp(store->name, "sqlite") == 0;
		struct bench_case c = { .store = store->name,
					.broker = file ? "file" : "redis",
					.each = rates[i % 2] };

		c.messages = c.each * 5;
		c.quick = c.each;
		(void)snprintf(c.name, sizeof(c.name), "latency-%s-%u", c.store, c.each);
		(void)snprintf(c.title, sizeof(c.title), "%s → %s, %u messages/s", store->title,
			       file ? "file" : "Redis", c.each);
		add("latency", bench_run_latency, &c);
	}
}

/* Questions of their own. */
static const struct {
	const char *group;
	bench_case_fn *run;
	struct bench_case c;
} others[] = {
	{ "drain",
	  bench_run_drain,
	  { .name = "one-key",
	    .title = "PostgreSQL → Redis, all of one key",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 100000,
	    .quick = 2000,
	    .one_key = true } },
	{ "growth",
	  bench_run_backlog,
	  { .name = "backlog-postgres",
	    .title = "PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 5000000,
	    .quick = 50000 } },
	{ "growth",
	  bench_run_backlog,
	  { .name = "backlog-mysql",
	    .title = "MariaDB → Redis",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "growth",
	  bench_run_backlog,
	  { .name = "backlog-sqlite",
	    .title = "SQLite → Redis",
	    .store = "sqlite",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "finished",
	  bench_run_published,
	  { .name = "finished-postgres",
	    .title = "PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "finished",
	  bench_run_published,
	  { .name = "finished-mysql",
	    .title = "MariaDB → Redis",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "finished",
	  bench_run_published,
	  { .name = "finished-sqlite",
	    .title = "SQLite → Redis",
	    .store = "sqlite",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "process",
	  bench_run_memory,
	  { .name = "memory-large",
	    .title = "drain of messages of 100 kB",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 5000,
	    .quick = 300,
	    .payload_size = PAYLOAD_LARGE } },
	{ "process",
	  bench_run_idle,
	  { .name = "idle-postgres",
	    .title = "idle, PostgreSQL",
	    .store = "postgres",
	    .broker = "redis" } },
	{ "process",
	  bench_run_idle,
	  { .name = "idle-sqlite", .title = "idle, SQLite", .store = "sqlite", .broker = "file" } },
	{ "process",
	  bench_run_start,
	  { .name = "start-postgres",
	    .title = "start, PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis" } },
	{ "process",
	  bench_run_start,
	  { .name = "start-sqlite",
	    .title = "start, SQLite → file",
	    .store = "sqlite",
	    .broker = "file" } },
};

const struct bench_case *bench_cases(size_t *ret_count)
{
	if (count == 0) {
		add_latencies();
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			add(others[i].group, others[i].run, &others[i].c);
		add_pushes();
		for (size_t i = 0; i < sizeof(brokers) / sizeof(brokers[0]); i++)
			add_pairs(&brokers[i]);
	}
	*ret_count = count;
	return list;
}

uint64_t bench_case_messages(const struct bench_env *env, const struct bench_case *c)
{
	return env->messages ? env->messages : env->quick ? c->quick : c->messages;
}

bool bench_case_subject(struct bench_env *env, const struct bench_case *c,
			struct bench_subject *subject, struct bench_result *result)
{
	const char *reason = "";

	*subject = (struct bench_subject){ .delete_rows = c->delete_rows };
	subject->store = bench_env_store(env, c->store, &reason);
	if (subject->store)
		subject->broker = bench_env_broker(env, c->broker, &reason);
	if (!subject->broker)
		bench_result_miss(result, "%s", reason);
	return subject->broker != NULL;
}

void bench_case_fill(const struct bench_subject *subject, const struct bench_load *load)
{
	subject->broker->ops->clear(subject->broker);
	subject->store->ops->clear(subject->store);
	subject->store->ops->load(subject->store, load);
}
