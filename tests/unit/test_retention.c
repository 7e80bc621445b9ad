/* SPDX-License-Identifier: MIT */
/* The thread of retention for itself, over a memory database and a clock that the test turns. */
#include "relay/retention.h"
#include "stall_store.h"
#include "suite.h"

#include <poll.h>
#include <stdatomic.h>

enum { MESSAGES = 20 };

/* ---- a clock that threads may read while it is turned ---------------- */

static _Atomic int64_t passed_us;

static int64_t turned_boot_us(const struct ob_clock *clock)
{
	(void)clock;
	return 1000000 + atomic_load(&passed_us);
}

static int64_t turned_real_us(const struct ob_clock *clock)
{
	(void)clock;
	return INT64_C(1800000000000000) + atomic_load(&passed_us);
}

static const struct ob_clock turned = { turned_boot_us, turned_real_us };

static void pass_minutes(int64_t minutes)
{
	atomic_fetch_add(&passed_us, minutes * 60000000);
}

/* ---- the box --------------------------------------------------------- */

static struct ob_memdb *db;
static struct ob_store *side;
static struct ob_metrics metrics;
static struct ob_retention *retention;
static struct ob_config_retention conf;
static _Atomic int held_lines, failed_lines;
static char held_line[512]; /* the last; read it after the thread has ended */

static void ok(int r, const struct ob_err *err)
{
	if (r < 0)
		ck_abort_msg("%s", err->msg);
}

static void listen(void *arg, enum ob_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	if (strstr(line, "a reader that does not move keeps old rows")) {
		(void)snprintf(held_line, sizeof(held_line), "%s", line);
		atomic_fetch_add(&held_lines, 1);
	}
	if (strstr(line, "retention failed"))
		atomic_fetch_add(&failed_lines, 1);
}

static const struct ob_log log_to_test = {
	.fd = -1, .level = OB_LOG_INFO, .format = OB_LOG_LOGFMT, .clock = &turned, .hook = listen
};

static void add_reader(const char *name, enum ob_start start)
{
	struct ob_reader reader = { .name = ob_str(name), .target = OB_STR("default") };
	struct ob_err err = OB_ERR_INIT;
	bool made;

	ok(ob_store_reader_make(side, &reader, &(struct ob_place){ start, 0 }, &made, &err), &err);
	ck_assert(made);
}

/* Rows in the log, and a reader that has them all behind it. */
static void make(void)
{
	struct outbox_message message = { .aggregate_type = "order",
					  .event_type = "Placed",
					  .payload = "{}" };
	struct ob_err err = OB_ERR_INIT;
	struct outbox_id id;
	size_t index;

	db = ob_memdb_new(&(struct ob_memdb_conf){
		.kind = OB_MEMDB_PLAIN, .clock = &turned, .partition_count = 2 });
	ok(ob_store_memory_open(db, &side, &err), &err);
	stall_init(db);
	for (int i = 0; i < MESSAGES; i++) {
		ok(ob_store_tx_begin(side, &err), &err);
		ok(ob_store_tx_push(side, &message, 1, &id, &index, &err), &err);
		ok(ob_store_tx_end(side, true, &err), &err);
	}
	add_reader("runs", OB_START_END);
	conf = (struct ob_config_retention){
		.published_ms = 3600000, .dead_ms = OB_NEVER_MS, .every_ms = 10, .batch = 3
	};
	ob_metrics_init(&metrics, &(struct ob_uuid){ { 0 } });
}

static void start(void)
{
	struct ob_err err = OB_ERR_INIT;

	ok(ob_retention_new(&(struct ob_retention_conf){ .relay = "shop",
							 .retention = &conf,
							 .open = stall_open,
							 .metrics = &metrics,
							 .clock = &turned,
							 .log = &log_to_test },
			    &retention, &err),
	   &err);
}

static void stop(void)
{
	ob_retention_free(retention);
	retention = NULL;
	ck_assert_uint_eq(stall_open_count(), 0);
}

static void unmake(void)
{
	ob_store_free(side);
	ob_memdb_free(db);
	ob_metrics_done(&metrics);
}

static bool count_row(void *arg, const struct ob_message *row)
{
	(void)row;
	(*(size_t *)arg)++;
	return true;
}

static size_t rows(void)
{
	size_t n = 0;

	ob_memdb_each(db, count_row, &n);
	return n;
}

static uint64_t cleaned(void)
{
	struct ob_metrics_data data;

	ob_metrics_read(&metrics, &data);
	return data.cleaned;
}

/* Two more passes: the first may have begun before what the test did last. */
static void await_pass(void)
{
	stall_await_calls(STALL_retain, stall_calls(STALL_retain) + 2);
}

/* ---- what it removes ------------------------------------------------- */

OB_TEST(nothing_is_removed_before_its_time_and_then_everything_in_batches)
{
	make();
	start();
	await_pass();
	ck_assert_uint_eq(rows(), MESSAGES);
	stop(); /* or a batch would seem to have taken an hour, and be paced by that */
	pass_minutes(61);
	start();
	while (rows() > 0)
		(void)poll(NULL, 0, 5);
	ck_assert_uint_ge(stall_calls(STALL_retain), 2 + MESSAGES / 3);
	stop();
	ck_assert_uint_eq(cleaned(), MESSAGES);
	unmake();
}
OB_TEST_END

OB_TEST(the_first_pass_comes_after_the_first_interval)
{
	make();
	conf.every_ms = 3600000;
	start();
	(void)poll(NULL, 0, 50);
	ck_assert_uint_eq(stall_calls(STALL_retain), 0);
	ck_assert_uint_eq(stall_opens(), 0);
	/* And to end it nobody waits so long. */
	stop();
	unmake();
}
OB_TEST_END

OB_TEST(to_end_it_waits_for_the_batch_that_runs)
{
	make();
	pass_minutes(61);
	stall_hold(STALL_retain);
	start();
	stall_await_waiting(STALL_retain, 1);
	ck_assert_uint_eq(rows(), MESSAGES);
	stall_let_go(STALL_retain);
	stop();
	ck_assert_uint_lt(rows(), MESSAGES);
	unmake();
}
OB_TEST_END

/* ---- failures -------------------------------------------------------- */

OB_TEST(a_pass_that_fails_is_told_and_made_again_on_a_new_connection)
{
	struct ob_metrics_data data;

	make();
	pass_minutes(61);
	stall_fail(STALL_retain, OB_ERR_DOWN);
	start();
	while (atomic_load(&failed_lines) < 3)
		(void)poll(NULL, 0, 5);
	ck_assert_uint_ge(stall_opens(), 3);
	ob_metrics_read(&metrics, &data);
	ck_assert_uint_gt(data.error_count, 0);
	ck_assert_str_eq(data.errors[0].text, "as the test wants it");
	stall_fail(STALL_retain, OB_ERR_NONE);
	while (rows() > 0)
		(void)poll(NULL, 0, 5);
	stop();
	unmake();
}
OB_TEST_END

/* Also one that says FATAL: delivery needs no retention. */
OB_TEST(a_connection_that_is_refused_is_tried_again)
{
	make();
	pass_minutes(61);
	stall_refuse(true);
	start();
	while (atomic_load(&failed_lines) < 2)
		(void)poll(NULL, 0, 5);
	stall_refuse(false);
	while (rows() > 0)
		(void)poll(NULL, 0, 5);
	stop();
	unmake();
}
OB_TEST_END

/* ---- a reader that holds rows ---------------------------------------- */

OB_TEST(a_reader_that_stands_still_is_named_once_an_hour)
{
	make();
	add_reader("lost", OB_START_BEGINNING);
	start();
	await_pass();
	/* Its rows are not old enough to be missed. */
	ck_assert_int_eq(atomic_load(&held_lines), 0);
	pass_minutes(90);
	while (atomic_load(&held_lines) < 1)
		(void)poll(NULL, 0, 5);
	pass_minutes(50);
	await_pass();
	ck_assert_int_eq(atomic_load(&held_lines), 1);
	pass_minutes(11);
	while (atomic_load(&held_lines) < 2)
		(void)poll(NULL, 0, 5);
	stop();
	ck_assert_uint_eq(rows(), MESSAGES);
	ck_assert_ptr_nonnull(strstr(held_line, "reader=lost"));
	/* For how long, not since when: 151 minutes. */
	ck_assert_ptr_nonnull(strstr(held_line, "still_ms=9060000"));
	unmake();
}
OB_TEST_END

/* With nothing kept, every row that is not out yet is too old; that is no reader's fault. */
OB_TEST(a_reader_that_moves_is_not_named)
{
	make();
	conf.published_ms = 0;
	add_reader("new", OB_START_BEGINNING);
	start();
	await_pass();
	await_pass();
	ck_assert_int_eq(atomic_load(&held_lines), 0);
	pass_minutes(2);
	while (atomic_load(&held_lines) < 1)
		(void)poll(NULL, 0, 5);
	stop();
	unmake();
}
OB_TEST_END

OB_SUITE("retention", nothing_is_removed_before_its_time_and_then_everything_in_batches,
	 the_first_pass_comes_after_the_first_interval, to_end_it_waits_for_the_batch_that_runs,
	 a_pass_that_fails_is_told_and_made_again_on_a_new_connection,
	 a_connection_that_is_refused_is_tried_again,
	 a_reader_that_stands_still_is_named_once_an_hour, a_reader_that_moves_is_not_named)
