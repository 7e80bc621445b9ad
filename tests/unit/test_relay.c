/* SPDX-License-Identifier: MIT */
/* A relay with its threads, over a memory database and the system's clock. */
#include "doubles/fault_store.h"
#include "doubles/memory_sink.h"
#include "relay/relay.h"
#include "relay/sdnotify.h"
#include "stall_store.h"
#include "suite.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct ob_memdb *db;
static struct ob_store *writer;
static struct ob_memsink_log sink_log;
static struct ob_memsink_plan plan;       /* of sinks that are opened from now on */
static struct ob_memsink_plan plans[256]; /* one for each sink: it writes there */
static size_t plan_count;
static struct ob_config_relay config;

/* On the test's own thread. */
static int open_sink(void *arg, struct ob_sink **ret_sink, struct ob_err *err)
{
	(void)arg;
	ck_assert_uint_lt(plan_count, sizeof(plans) / sizeof(plans[0]));
	plans[plan_count] = plan;
	return ob_memsink_new(&ob_sink_memory, &plans[plan_count++], &ob_clock_system, ret_sink,
			      err);
}

/* While no relay runs. */
static void set_ack_delay_us(int64_t us)
{
	plan.ack_delay_us = us;
	for (size_t i = 0; i < plan_count; i++)
		plans[i].ack_delay_us = us;
}

static uint32_t partition_count = 8;

static struct ob_relay *make(uint32_t workers)
{
	static char destination[] = "{aggregate_type}.{event_type}";
	struct ob_err err = OB_ERR_INIT;
	struct ob_relay *relay = NULL;

	config = (struct ob_config_relay){
		.name = "default",
		.reads = "default",
		.workers = workers,
		.batch_size = 20,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 100,
		.shutdown_timeout_ms = 5000,
		.leasing = { 8, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0.25 },
		.route = { .destination = destination },
	};
	plan = (struct ob_memsink_plan){ .log = &sink_log, .sender = "test" };
	ob_memsink_log_init(&sink_log, true);
	db = ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = partition_count });
	ck_assert_int_ge(ob_store_memory_open(db, &writer, &err), 0);
	stall_init(db);

	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = stall_open,
				      .open_sink = open_sink };

	ck_assert_msg(ob_relay_new(&conf, &relay, &err) >= 0, "%s", err.msg);
	return relay;
}

static void unmake(struct ob_relay *relay)
{
	ob_relay_free(relay);
	ob_store_free(writer);
	ob_memdb_free(db);
	ob_memsink_log_done(&sink_log);
}

static void push(int count)
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

static uint64_t published(struct ob_relay *relay)
{
	struct ob_metrics_data data;

	ob_relay_metrics(relay, &data);
	return data.published;
}

/* Look again every few milliseconds, for at most twenty seconds; the test's own limit is longer. */
static bool wait_published(struct ob_relay *relay, uint64_t count)
{
	for (int i = 0; i < 4000 && published(relay) < count; i++)
		(void)poll(NULL, 0, 5);
	return published(relay) >= count;
}

static size_t leased(void)
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

OB_TEST(threads_deliver_everything_once_and_release_on_stop)
{
	struct ob_relay *relay = make(2);
	struct ob_err err = OB_ERR_INIT;
	struct ob_metrics_data data;

	push(500);
	ck_assert_int_ge(ob_relay_start(relay, &err), 0);
	push(500);
	ck_assert(wait_published(relay, 1000));
	ck_assert_int_lt(ob_relay_stalled_us(relay), 10000000);
	ob_relay_stop(relay, OB_STOP_DRAIN);

	struct pollfd fd = { .fd = ob_relay_done_fd(relay), .events = POLLIN };

	ck_assert_int_eq(poll(&fd, 1, 10000), 1);
	ck_assert_int_eq(ob_relay_join(relay, &err), 0);
	ck_assert_uint_eq(sink_log.count, 1000);
	ck_assert_uint_eq(leased(), 0);
	ob_relay_metrics(relay, &data);
	ck_assert_uint_eq(data.published, 1000);
	ck_assert(ob_str_eq(sink_log.entries[0].destination, OB_STR("order.Placed")));
	unmake(relay);
}
OB_TEST_END

OB_TEST(a_relay_that_is_freed_while_it_runs_stops)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;

	set_ack_delay_us(3600000000);
	push(10);
	ck_assert_int_ge(ob_relay_start(relay, &err), 0);
	unmake(relay);
}
OB_TEST_END

OB_TEST(a_relay_that_cannot_have_a_second_connection_goes_on_with_one)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;
	uint32_t opens = stall_opens();

	push(500);
	stall_refuse(true);
	ck_assert_int_eq(ob_relay_once(relay, &err), 500);
	ck_assert_uint_gt(stall_opens(), opens);
	ck_assert_uint_eq(sink_log.count, 500);
	unmake(relay);
}
OB_TEST_END

OB_TEST(a_relay_makes_its_reader_and_finds_it_again)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_relay *relay = make(1), *again = NULL;
	struct ob_err err = OB_ERR_INIT;
	struct ob_reader *readers;
	size_t count;

	ck_assert_int_ge(ob_store_readers(writer, &arena, &readers, &count, &err), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert(ob_str_eq(readers[0].name, OB_STR("default")));
	ck_assert(!readers[0].temporary);
	push(10);
	ck_assert_int_eq(ob_relay_once(relay, &err), 10);
	ob_relay_free(relay);

	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = stall_open,
				      .open_sink = open_sink };

	ck_assert_int_ge(ob_relay_new(&conf, &again, &err), 0);
	ck_assert_int_eq(ob_relay_once(again, &err), 0);
	/* Of another target it would not be the same reader. */
	config.reads = "elsewhere";
	relay = NULL;
	ck_assert_int_eq(ob_relay_new(&conf, &relay, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_null(relay);
	ob_arena_done(&arena);
	unmake(again);
}
OB_TEST_END

/* A store whose first check fails. */
static int open_unsound(void *arg, struct ob_store **ret_store, struct ob_err *err)
{
	const struct ob_store_fault_plan fails = { .nth = 1,
						   .only = UINT64_C(1) << OB_STORE_FAULT_check };
	struct ob_store *inner;
	int r = stall_open(arg, &inner, err);

	return r < 0 ? r : ob_store_fault_new(inner, &fails, ret_store, err);
}

OB_TEST(a_relay_does_not_start_where_the_check_fails)
{
	struct ob_relay *relay = make(1), *other = NULL;
	struct ob_err err = OB_ERR_INIT;
	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = open_unsound,
				      .open_sink = open_sink };

	ck_assert_int_eq(ob_relay_new(&conf, &other, &err), OUTBOX_ESTORE);
	ck_assert_ptr_null(other);
	unmake(relay);
}
OB_TEST_END

OB_TEST(the_reader_says_what_it_reads)
{
	const char *types[] = { "Order*", "Paid" }, *aggregates[] = { "order" };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_relay *relay = make(1), *other = NULL;
	struct ob_place place = { OB_START_SEQ, 3 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_reader *readers;
	size_t count;

	push(5);
	config.name = "replay";
	config.types = types;
	config.type_count = 2;
	config.aggregates = aggregates;
	config.aggregate_count = 1;

	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = stall_open,
				      .open_sink = open_sink,
				      .end_seq = 4,
				      .place = &place };

	ck_assert_int_ge(ob_relay_new(&conf, &other, &err), 0);
	ck_assert_int_ge(ob_store_readers(writer, &arena, &readers, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(ob_str_eq(readers[1].name, OB_STR("replay")));
	ck_assert(ob_str_eq(readers[1].filter, OB_STR("types Order*,Paid aggregates order")));
	ck_assert(readers[1].temporary);
	ob_relay_free(other);
	ob_arena_done(&arena);
	unmake(relay);
}
OB_TEST_END

OB_TEST(a_replay_delivers_its_part_and_says_that_it_has_ended)
{
	partition_count = 2;

	struct ob_relay *relay = make(1), *replay = NULL;
	struct ob_place place = { OB_START_SEQ, 11 };
	struct ob_err err = OB_ERR_INIT;

	push(50);
	ck_assert_int_eq(ob_relay_once(relay, &err), 50);
	config.name = "replay";
	config.workers = 3; /* one has nothing to do */

	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = stall_open,
				      .open_sink = open_sink,
				      .end_seq = 30,
				      .place = &place };

	ck_assert_int_ge(ob_relay_new(&conf, &replay, &err), 0);
	ck_assert(!ob_relay_has_ended(replay));
	ck_assert_int_ge(ob_relay_start(replay, &err), 0);
	for (int i = 0; i < 4000 && !ob_relay_has_ended(replay); i++)
		(void)poll(NULL, 0, 5);
	ck_assert(ob_relay_has_ended(replay));
	ob_relay_stop(replay, OB_STOP_DRAIN);
	ck_assert_int_eq(ob_relay_join(replay, &err), 0);
	ck_assert_uint_eq(sink_log.count, 70);
	for (size_t i = 50; i < 70; i++)
		ck_assert(sink_log.entries[i].seq > 10 && sink_log.entries[i].seq <= 30);
	ob_relay_free(replay);
	unmake(relay);
}
OB_TEST_END

OB_TEST(once_delivers_what_is_due_and_leaves)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;

	push(100);
	ck_assert_int_eq(ob_relay_once(relay, &err), 100);
	ck_assert_uint_eq(sink_log.count, 100);
	ck_assert_uint_eq(leased(), 0);
	unmake(relay);
}
OB_TEST_END

OB_TEST(once_without_work_reports_zero)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_relay_once(relay, &err), 0);
	unmake(relay);
}
OB_TEST_END

OB_TEST(once_says_that_the_sink_is_down)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;

	plans[0].down = true;
	push(5);
	ck_assert_int_eq(ob_relay_once(relay, &err), OUTBOX_ESINK);
	ck_assert_int_eq(err.kind, OB_ERR_DOWN);
	unmake(relay);
}
OB_TEST_END

OB_TEST(the_service_manager_hears_us_when_it_listens)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);
	char name[64], text[32] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	/* Bound to no name: the kernel picks one in the abstract space. */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	(void)snprintf(name, sizeof(name), "@%.*s",
		       (int)(size - offsetof(struct sockaddr_un, sun_path) - 1),
		       address.sun_path + 1);
	ck_assert(unsetenv("NOTIFY_SOCKET") == 0);
	ck_assert(!ob_sd_notify("READY=1"));
	ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
	ck_assert(ob_sd_notify("READY=1"));
	ck_assert_int_eq(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
	ck_assert_str_eq(text, "READY=1");
	(void)close(fd);
	ck_assert_int_eq(setenv("WATCHDOG_USEC", "3000000", 1), 0);
	ck_assert_int_eq(ob_sd_watchdog_us(), 3000000);
	ck_assert_int_eq(setenv("WATCHDOG_PID", "1", 1), 0);
	ck_assert_int_eq(ob_sd_watchdog_us(), 0);
}
OB_TEST_END

OB_SUITE("relay", threads_deliver_everything_once_and_release_on_stop,
	 a_relay_that_is_freed_while_it_runs_stops,
	 a_relay_that_cannot_have_a_second_connection_goes_on_with_one,
	 a_relay_makes_its_reader_and_finds_it_again, a_relay_does_not_start_where_the_check_fails,
	 the_reader_says_what_it_reads, a_replay_delivers_its_part_and_says_that_it_has_ended,
	 once_delivers_what_is_due_and_leaves, once_without_work_reports_zero,
	 once_says_that_the_sink_is_down, the_service_manager_hears_us_when_it_listens)
