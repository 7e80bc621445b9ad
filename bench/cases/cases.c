/* SPDX-License-Identifier: MIT */
/* The list of cases: every store with every sink, and what has a question of its own. */
#include "bench/cases/cases.h"

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

/* Who takes turns. */
enum {
	KEEP = 1 << BENCH_RELAY | 1 << BENCH_KEEP,
	KEEP_DELETE = KEEP | 1 << BENCH_DELETE,
	CURSOR = 1 << BENCH_RELAY | 1 << BENCH_CURSOR,
	KEEP_CURSOR = KEEP | CURSOR,
	EVERYBODY = (1 << BENCH_KINDS) - 1,
};

/* Pairs that a bar is about take more messages than the others. */
static const struct {
	const char *name;
	uint64_t messages;
	unsigned kinds;
} larger[] = {
	{ "postgres-redis", 1000000, EVERYBODY },
	{ "mysql-redis", 300000, KEEP_DELETE | CURSOR },
	{ "sqlite-file", 300000, KEEP_DELETE | CURSOR },
	{ "postgres-kafka", 200000, KEEP_DELETE | CURSOR },
	{ "postgres-nats", 100000, KEEP_DELETE | CURSOR },
	{ "postgres-rabbitmq", 50000, KEEP_DELETE | CURSOR },
	{ "postgres-http", 50000, KEEP_DELETE | CURSOR },
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

static void add_pairs(const struct name *broker)
{
	for (size_t s = 0; s < sizeof(stores) / sizeof(stores[0]); s++) {
		struct bench_case c = { .store = stores[s].name,
					.broker = broker->name,
					.messages = CELL,
					.quick = CELL_QUICK,
					.kinds = KEEP_CURSOR };

		(void)snprintf(c.name, sizeof(c.name), "%s-%s", stores[s].name, broker->name);
		(void)snprintf(c.title, sizeof(c.title), "%s → %s", stores[s].title, broker->title);
		for (size_t i = 0; i < sizeof(larger) / sizeof(larger[0]); i++) {
			if (strcmp(larger[i].name, c.name) != 0)
				continue;
			c.messages = larger[i].messages;
			c.kinds = larger[i].kinds;
		}
		add("drain", bench_run_drain, &c);
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

static void add_appends(void)
{
	static const uint32_t writers[] = { 1, 4, 16 };

	for (size_t i = 0; i < 9; i++) {
		struct bench_case c = { .store = stores[i / 3].name,
					.broker = "file",
					.producers = writers[i % 3],
					.messages = 8000,
					.quick = 320 };

		(void)snprintf(c.name, sizeof(c.name), "append-%s-%u", c.store, c.producers);
		(void)snprintf(c.title, sizeof(c.title), "%s, %u writer%s", stores[i / 3].title,
			       c.producers, c.producers == 1 ? "" : "s");
		add("append", bench_run_append, &c);
	}
}

#if BENCH_REDIS
static void add_consumers(void)
{
	static const struct name databases[] = { { "postgres", "PostgreSQL" },
						 { "sqlite", "SQLite" } };

	for (size_t i = 0; i < 4; i++) {
		const struct name *store = &databases[i / 2];
		struct bench_case c = { .store = store->name,
					.broker = "redis",
					.each = i % 2,
					.messages = 100000,
					.quick = 5000 };

		(void)snprintf(c.name, sizeof(c.name), "consume-%s-%s", c.store,
			       c.each ? "position" : "ids");
		(void)snprintf(c.title, sizeof(c.title), "Redis → %s, by %s", store->title,
			       c.each ? "position" : "ids");
		add("consume", bench_run_consume, &c);
	}
}
#endif

static void add_latencies(void)
{
	static const uint32_t rates[] = { 200, 2000 };

	for (size_t i = 0; i < 6; i++) {
		const struct name *store = &stores[i / 2];
		bool file = strcmp(store->name, "sqlite") == 0;
		struct bench_case c = { .store = store->name,
					.broker = file ? "file" : "redis",
					.each = rates[i % 2] };

		c.messages = c.each == 200 ? 2000 : 10000; /* ten seconds; five */
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
	    .keys = 1,
	    .kinds = KEEP_CURSOR } },
#if BENCH_REDIS
	{ "fanout",
	  bench_run_fanout,
	  { .name = "fanout-postgres",
	    .title = "PostgreSQL → two Redis streams",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 500000,
	    .quick = 3000 } },
	{ "fanout",
	  bench_run_fanout,
	  { .name = "fanout-mysql",
	    .title = "MariaDB → two Redis streams",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 500000,
	    .quick = 3000 } },
	{ "fanout",
	  bench_run_fanout,
	  { .name = "fanout-sqlite",
	    .title = "SQLite → two Redis streams",
	    .store = "sqlite",
	    .broker = "redis",
	    .messages = 500000,
	    .quick = 3000 } },
#endif
	{ "refused",
	  bench_run_refused,
	  { .name = "refused-postgres",
	    .title = "PostgreSQL → a handler",
	    .store = "postgres",
	    .broker = "exec",
	    .messages = 300000,
	    .quick = 3000,
	    .keys = 300 } },
	{ "refused",
	  bench_run_refused,
	  { .name = "refused-mysql",
	    .title = "MariaDB → a handler",
	    .store = "mysql",
	    .broker = "exec",
	    .messages = 300000,
	    .quick = 3000,
	    .keys = 300 } },
	{ "refused",
	  bench_run_refused,
	  { .name = "refused-sqlite",
	    .title = "SQLite → a handler",
	    .store = "sqlite",
	    .broker = "exec",
	    .messages = 300000,
	    .quick = 3000,
	    .keys = 300 } },
	{ "backlog",
	  bench_run_backlog,
	  { .name = "backlog-postgres",
	    .title = "PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 10000000,
	    .quick = 1000000 } },
	{ "backlog",
	  bench_run_backlog,
	  { .name = "backlog-mysql",
	    .title = "MariaDB → Redis",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 100000 } },
	{ "backlog",
	  bench_run_backlog,
	  { .name = "backlog-sqlite",
	    .title = "SQLite → Redis",
	    .store = "sqlite",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 100000 } },
	{ "finished",
	  bench_run_finished,
	  { .name = "finished-postgres",
	    .title = "PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "finished",
	  bench_run_finished,
	  { .name = "finished-mysql",
	    .title = "MariaDB → Redis",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "finished",
	  bench_run_finished,
	  { .name = "finished-sqlite",
	    .title = "SQLite → Redis",
	    .store = "sqlite",
	    .broker = "redis",
	    .messages = 1000000,
	    .quick = 20000 } },
	{ "held",
	  bench_run_held,
	  { .name = "held-postgres",
	    .title = "PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 5000000,
	    .quick = 300000 } },
	{ "held",
	  bench_run_held,
	  { .name = "held-mysql",
	    .title = "MariaDB → Redis",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 5000000,
	    .quick = 300000 } },
#if BENCH_REDIS
	{ "kill",
	  bench_run_repeats,
	  { .name = "repeats-postgres",
	    .title = "drain of 50,000, PostgreSQL",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 50000,
	    .quick = 20000 } },
	{ "kill",
	  bench_run_repeats,
	  { .name = "repeats-mysql",
	    .title = "drain of 50,000, MariaDB",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 50000,
	    .quick = 20000 } },
	{ "kill",
	  bench_run_repeats,
	  { .name = "repeats-sqlite",
	    .title = "drain of 50,000, SQLite",
	    .store = "sqlite",
	    .broker = "redis",
	    .messages = 50000,
	    .quick = 20000 } },
	{ "kill",
	  bench_run_takeover,
	  { .name = "takeover-postgres",
	    .title = "the only owner, PostgreSQL",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 0,
	    .quick = 0 } },
	{ "kill",
	  bench_run_takeover,
	  { .name = "takeover-mysql",
	    .title = "the only owner, MariaDB",
	    .store = "mysql",
	    .broker = "redis",
	    .messages = 0,
	    .quick = 0 } },
#endif
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
	    .broker = "redis",
	    .messages = 0,
	    .quick = 0 } },
	{ "process",
	  bench_run_idle,
	  { .name = "idle-sqlite",
	    .title = "idle, SQLite",
	    .store = "sqlite",
	    .broker = "file",
	    .messages = 0,
	    .quick = 0 } },
	{ "process",
	  bench_run_start,
	  { .name = "start-postgres",
	    .title = "start, PostgreSQL → Redis",
	    .store = "postgres",
	    .broker = "redis",
	    .messages = 0,
	    .quick = 0 } },
	{ "process",
	  bench_run_start,
	  { .name = "start-sqlite",
	    .title = "start, SQLite → file",
	    .store = "sqlite",
	    .broker = "file",
	    .messages = 0,
	    .quick = 0 } },
	{ "lines",
	  bench_run_lines,
	  { .name = "lines",
	    .title = "src/store, src/relay, src/log",
	    .store = "sqlite",
	    .broker = "file",
	    .messages = 0,
	    .quick = 0 } },
};

const struct bench_case *bench_cases(size_t *ret_count)
{
	if (count == 0) {
		add_latencies();
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			add(others[i].group, others[i].run, &others[i].c);
		add_pushes();
		add_appends();
#if BENCH_REDIS
		add_consumers();
#endif
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

bool bench_case_subject(struct bench_env *env, const struct bench_case *c, enum bench_kind kind,
			struct bench_subject *subject, struct bench_result *result)
{
	const char *reason = "";

	if (bench_subject_get(env, kind, c->store, c->broker, subject, &reason))
		return true;
	if (kind == BENCH_RELAY)
		bench_result_miss(result, "%s", reason);
	else
		bench_result_leave_out(result, reason);
	return false;
}
