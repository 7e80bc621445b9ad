/* SPDX-License-Identifier: MIT */
/*
 * A relay with its threads over a memory database whose calls a test can hold up, and the system's
 * clock; all inline.
 */
#ifndef OB_TESTS_THREADS_BOX_H
#define OB_TESTS_THREADS_BOX_H

#include "doubles/memory_sink.h"
#include "relay/relay.h"
#include "stall_store.h"

#include <check.h>
#include <poll.h>
#include <stdatomic.h>

enum { PARTITIONS = 8 };

static struct ob_memdb *db;
static struct ob_store *writer;
static struct ob_memsink_log sink_log;
static struct ob_memsink_plan plan;       /* of sinks that are opened from now on */
static struct ob_memsink_plan plans[256]; /* one for each sink: it writes there */
static size_t plan_count;
static struct ob_config_relay config;
static struct ob_config_retention retention;
static bool retains;
static struct ob_log relay_log;
static _Atomic int held_lines; /* how often a reader that holds rows was named */
static _Atomic int retention_failures;

/* On the test's own thread. */
static inline int open_sink(void *arg, struct ob_sink **ret_sink, struct ob_err *err)
{
	(void)arg;
	ck_assert_uint_lt(plan_count, sizeof(plans) / sizeof(plans[0]));
	plans[plan_count] = plan;
	return ob_memsink_new(&ob_sink_memory, &plans[plan_count++], &ob_clock_system, ret_sink,
			      err);
}

/* While no relay runs. */
static inline void set_ack_delay_us(int64_t us)
{
	plan.ack_delay_us = us;
	for (size_t i = 0; i < plan_count; i++)
		plans[i].ack_delay_us = us;
}

static inline void listen(void *arg, enum ob_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	if (strstr(line, "a reader that does not move keeps old rows"))
		atomic_fetch_add(&held_lines, 1);
	if (strstr(line, "retention failed"))
		atomic_fetch_add(&retention_failures, 1);
}

static inline struct ob_relay *new_relay(void)
{
	struct ob_relay_conf conf = { .relay = &config,
				      .log = &relay_log,
				      .open_store = stall_open,
				      .open_sink = open_sink,
				      .retention = retains ? &retention : NULL };
	struct ob_err err = OB_ERR_INIT;
	struct ob_relay *relay = NULL;

	ck_assert_msg(ob_relay_new(&conf, &relay, &err) >= 0, "%s", err.msg);
	return relay;
}

static inline struct ob_relay *make(uint32_t workers)
{
	static char destination[] = "{aggregate_type}";
	struct ob_err err = OB_ERR_INIT;

	config = (struct ob_config_relay){
		.name = "default",
		.reads = "default",
		.workers = workers,
		.batch_size = 20,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 100,
		.shutdown_timeout_ms = 5000,
		.leasing = { PARTITIONS, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0.25 },
		.route = { .destination = destination },
	};
	retention = (struct ob_config_retention){
		.published_ms = 0, .dead_ms = OB_NEVER_MS, .every_ms = 10, .batch = 7
	};
	relay_log = (struct ob_log){ .fd = -1,
				     .level = OB_LOG_INFO,
				     .format = OB_LOG_LOGFMT,
				     .clock = &ob_clock_system,
				     .hook = listen };
	plan = (struct ob_memsink_plan){ .log = &sink_log, .sender = "test" };
	ob_memsink_log_init(&sink_log, true);
	db = ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = PARTITIONS });
	ck_assert_int_ge(ob_store_memory_open(db, &writer, &err), 0);
	stall_init(db);
	return new_relay();
}

static inline void unmake(void)
{
	/* Every thread has given its connection back. */
	ck_assert_uint_eq(stall_open_count(), 0);
	ob_store_free(writer);
	ob_memdb_free(db);
	ob_memsink_log_done(&sink_log);
}

static inline void start(struct ob_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_relay_start(relay, &err) >= 0, "%s", err.msg);
}

static inline void join(struct ob_relay *relay)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_relay_join(relay, &err) == 0, "%s", err.msg);
}

static inline void stop_and_join(struct ob_relay *relay, enum ob_stop how)
{
	ob_relay_stop(relay, how);
	join(relay);
}

static inline void push(int count)
{
	struct ob_err err = OB_ERR_INIT;
	struct outbox_id id;
	size_t index;
	char key[16];

	for (int i = 0; i < count; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i % 37);

		struct outbox_message message = {
			.aggregate_type = "order",
			.event_type = "Placed",
			.payload = "{}",
			.partition_key = key,
		};

		ck_assert_int_ge(ob_store_tx_begin(writer, &err), 0);
		ck_assert_int_ge(ob_store_tx_push(writer, &message, 1, &id, &index, &err), 0);
		ck_assert_int_ge(ob_store_tx_end(writer, true, &err), 0);
	}
}

static inline struct ob_metrics_data metrics(struct ob_relay *relay)
{
	struct ob_metrics_data data;

	ob_relay_metrics(relay, &data);
	return data;
}

/* Look again every few milliseconds; the test's own limit ends it. */
#define AWAIT(condition) \
	do { \
		while (!(condition)) \
			(void)poll(NULL, 0, 5); \
	} while (0)

static inline int64_t now_ms(void)
{
	return ob_clock_boot_us(&ob_clock_system) / 1000;
}

static inline size_t stored(void)
{
	size_t count;

	(void)pthread_mutex_lock(&sink_log.lock);
	count = sink_log.count;
	(void)pthread_mutex_unlock(&sink_log.lock);
	return count;
}

static inline size_t leased(void)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_partition *partitions;
	struct ob_err err = OB_ERR_INIT;
	size_t count, n = 0;

	ck_assert_int_ge(ob_store_partitions(writer, "default", &arena, &partitions, &count, &err),
			 0);
	for (size_t i = 0; i < count; i++)
		n += partitions[i].leased;
	ob_arena_done(&arena);
	return n;
}

static inline bool count_row(void *arg, const struct ob_message *row)
{
	(void)row;
	(*(size_t *)arg)++;
	return true;
}

static inline size_t rows(void)
{
	size_t n = 0;

	ob_memdb_each(db, count_row, &n);
	return n;
}

/* Each once, those of a key in order. */
static inline void check_stored(size_t count)
{
	ck_assert_uint_eq(sink_log.count, count);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (sink_log.entries[k].seq >= sink_log.entries[i].seq &&
			    ob_str_eq(sink_log.entries[k].key, sink_log.entries[i].key))
				ck_abort_msg("twice, or out of order");
		}
	}
}

#endif
