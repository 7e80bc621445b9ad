/* SPDX-License-Identifier: MIT */
/* A relay with its threads, over a memory database and the system's clock. */
#include "relay/relay.h"
#include "relay/sdnotify.h"
#include "sink/memory.h"
#include "store/memory.h"
#include "suite.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct ob_memdb *db;
static struct ob_store *writer;
static struct ob_memsink_log sink_log;
static struct ob_memsink_plan plan;
static struct ob_config_relay config;
static _Atomic int gate; /* while it is 1, whoever connects waits */
static bool refusing;    /* no more connections */
static _Atomic int refused;

static int open_store(void *arg, struct ob_store **ret_store, struct ob_err *err)
{
	(void)arg;
	while (atomic_load(&gate) == 1)
		(void)poll(NULL, 0, 5);
	if (refusing) {
		atomic_fetch_add(&refused, 1);
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "no room for you");
	}
	return ob_store_memory_open(db, ret_store, err);
}

static int open_sink(void *arg, struct ob_sink **ret_sink, struct ob_err *err)
{
	(void)arg;
	return ob_memsink_new(&ob_sink_memory, &plan, &ob_clock_system, ret_sink, err);
}

static struct ob_relay *make(uint32_t workers)
{
	static char destination[] = "{aggregate_type}.{event_type}";
	struct ob_err err = OB_ERR_INIT;
	struct ob_relay *relay = NULL;

	config = (struct ob_config_relay){
		.name = "default",
		.workers = workers,
		.batch_size = 20,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 100,
		.shutdown_timeout_ms = 5000,
		.claim_ttl_ms = 60000,
		.leasing = { true, 8, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0.25 },
		.route = { .destination = destination },
		.cleanup = { OB_NEVER_MS, OB_NEVER_MS, 3600000, 1000 },
	};
	plan = (struct ob_memsink_plan){ .log = &sink_log, .sender = "test" };
	ob_memsink_log_init(&sink_log, true);
	db = ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = 8 });
	ck_assert_ptr_nonnull(db);
	ck_assert_int_ge(ob_store_memory_open(db, &writer, &err), 0);

	struct ob_relay_conf conf = { .relay = &config,
				      .open_store = open_store,
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

	plan.ack_delay_us = 3600000000;
	push(10);
	ck_assert_int_ge(ob_relay_start(relay, &err), 0);
	unmake(relay);
}
OB_TEST_END

/* A loop that turns while what it waits for does not come is no sign of life. */
OB_TEST(a_second_connection_that_hangs_is_seen)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;
	int64_t stalled = 0;

	push(500);
	atomic_store(&gate, 1);
	ck_assert_int_ge(ob_relay_start(relay, &err), 0);
	/* An idle loop turns once a second. */
	for (int i = 0; i < 4000 && stalled < 2000000; i++) {
		(void)poll(NULL, 0, 5);
		stalled = ob_relay_stalled_us(relay);
	}
	ck_assert_int_ge(stalled, 2000000);
	atomic_store(&gate, 0);
	ck_assert(wait_published(relay, 500));
	ck_assert_uint_eq(sink_log.count, 500);
	unmake(relay);
}
OB_TEST_END

OB_TEST(a_relay_that_cannot_have_a_second_connection_goes_on_with_one)
{
	struct ob_relay *relay = make(1);
	struct ob_err err = OB_ERR_INIT;

	push(500);
	refusing = true;
	ck_assert_int_eq(ob_relay_once(relay, &err), 500);
	ck_assert_int_gt(atomic_load(&refused), 0);
	ck_assert_uint_eq(sink_log.count, 500);
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

	plan.down = true;
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
	 a_relay_that_is_freed_while_it_runs_stops, a_second_connection_that_hangs_is_seen,
	 a_relay_that_cannot_have_a_second_connection_goes_on_with_one,
	 once_delivers_what_is_due_and_leaves, once_without_work_reports_zero,
	 once_says_that_the_sink_is_down, the_service_manager_hears_us_when_it_listens)
