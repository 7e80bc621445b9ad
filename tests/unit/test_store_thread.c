/* SPDX-License-Identifier: MIT */
/* A store thread as a settler, over a memory database: when it connects, records, lets go and ends.
 */
#include "doubles/memory_store.h"
#include "relay/store_thread.h"
#include "suite.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MESSAGES = 4, LONG_MS = 3600000 };

static const struct ob_uuid owner = { { 7 } };

static struct ob_memdb *db;
static struct ob_store *side; /* the test's own connection */
static struct ob_store_thread *settler;
static uint64_t epoch, batch; /* of the journal's newest row */
static int wake_fd, gate_fd;  /* the gate is closed unless somebody has written to it */
static bool gated;
static _Atomic int opens, closes, refusals;

/* ---- a store that counts and can be held up ---------------------------- */

static struct ob_store_ops counting;
static const struct ob_store_ops *memory;

static void count_close(struct ob_store *store)
{
	atomic_fetch_add(&closes, 1);
	memory->close(store);
}

static int open_counted(void *arg, struct ob_store **ret_store, struct ob_err *err)
{
	eventfd_t value;
	int r;

	(void)arg;
	atomic_fetch_add(&opens, 1);
	if (gated)
		ck_assert_int_eq(eventfd_read(gate_fd, &value), 0);
	if (atomic_load(&refusals) > 0) {
		atomic_fetch_sub(&refusals, 1);
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL, "no room for you");
	}
	r = ob_store_memory_open(db, ret_store, err);
	if (r >= 0)
		(*ret_store)->ops = &counting;
	return r;
}

/* ---- the box ----------------------------------------------------------- */

static void ok(int r, const struct ob_err *err)
{
	if (r < 0)
		ck_abort_msg("%s", err->msg);
}

/* Messages in the log, of whose only partition the journal is ours. */
static void fill(void)
{
	struct outbox_message message = { .aggregate_type = "order",
					  .event_type = "Placed",
					  .payload = "{}" };
	struct ob_reader reader = { .name = OB_STR("default"), .target = OB_STR("default") };
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	struct ob_lease *leases;
	struct outbox_id id;
	size_t index, count;
	uint32_t partitions;
	bool made;

	for (int i = 0; i < MESSAGES; i++) {
		ok(ob_store_tx_begin(side, &err), &err);
		ok(ob_store_tx_push(side, &message, 1, &id, &index, &err), &err);
		ok(ob_store_tx_end(side, true, &err), &err);
	}
	ok(ob_store_reader_make(side, &reader, &(struct ob_place){ OB_START_BEGINNING, 0 }, &made,
				&err),
	   &err);
	ok(ob_store_seed(side, "default", &partitions, &err), &err);
	ok(ob_store_take(side, "default", &owner, 1, LONG_MS, &arena, &leases, &count, &err), &err);
	ck_assert_uint_eq(count, 1);

	struct ob_owned owned = { .epoch = leases[0].epoch };

	ok(ob_store_take_over(side, "default", &owner, &owned, 1, &err), &err);
	ck_assert(!owned.lost);
	epoch = owned.epoch;
	batch = owned.batch;
	ob_progress_done(&owned.progress);
	ob_arena_done(&arena);
}

static void make(int64_t idle_ms)
{
	struct ob_err err = OB_ERR_INIT;

	db = ob_memdb_new(&(struct ob_memdb_conf){ .kind = OB_MEMDB_PLAIN, .partition_count = 1 });
	ok(ob_store_memory_open(db, &side, &err), &err);
	memory = side->ops;
	counting = *memory;
	counting.close = count_close;
	fill();
	wake_fd = eventfd(0, EFD_CLOEXEC);
	gate_fd = eventfd(0, EFD_CLOEXEC);
	ck_assert(wake_fd >= 0 && gate_fd >= 0);
	ok(ob_store_thread_new(&(struct ob_store_thread_conf){ .open = open_counted,
							       .wake_fd = wake_fd,
							       .idle_ms = idle_ms },
			       &settler, &err),
	   &err);
}

/* The settler is the test's to free. */
static void unmake(void)
{
	ck_assert_int_eq(atomic_load(&opens), atomic_load(&closes));
	ob_store_free(side);
	ob_memdb_free(db);
	(void)close(wake_fd);
	(void)close(gate_fd);
}

static int published(void)
{
	struct ob_filter filter = { .reader = "default", .views = 1u << OB_VIEW_PUBLISHED };
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch rows;
	int64_t now;
	int n;

	ob_batch_init(&rows);
	ok(ob_store_list(side, &filter, &rows, &now, &err), &err);
	n = (int)rows.count;
	ob_batch_done(&rows);
	return n;
}

/* The threads of this process, a sanitizer's own among them. */
static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

/* ---- jobs -------------------------------------------------------------- */

/* Each settles one message. */
static struct ob_settle_part parts[MESSAGES];
static struct ob_settle_job jobs[MESSAGES];

static struct ob_store_job *begin(int number)
{
	struct ob_settle_job *job = &jobs[number];

	parts[number] = (struct ob_settle_part){
		.epoch = epoch,
		.batch = batch + 1 + (uint64_t)number,
		.progress = { .pos = number + 1 },
		.published = 1,
	};
	*job = (struct ob_settle_job){
		.base = { .call = ob_settle_job_call },
		.settle = { .reader = "default",
			    .owner = owner,
			    .parts = &parts[number],
			    .part_count = 1 },
	};
	ck_assert(settler->start(settler, &job->base));
	return &job->base;
}

/* As the worker does: look when the fd says so. */
static struct ob_store_job *finish(struct ob_store_job *job)
{
	eventfd_t value;

	do
		ck_assert_int_eq(eventfd_read(wake_fd, &value), 0);
	while (!settler->ended(settler, false));
	return job;
}

/* Look again every few milliseconds; the test's own limit ends it. */
static void await(_Atomic int *counter, int at_least)
{
	while (atomic_load(counter) < at_least)
		(void)poll(NULL, 0, 5);
}

OB_TEST(a_job_is_recorded_and_the_connection_serves_the_next)
{
	make(LONG_MS);
	for (int i = 0; i < MESSAGES; i++) {
		struct ob_store_job *job = finish(begin(i));

		ck_assert_msg(job->r >= 0, "%s", job->err.msg);
		ck_assert_int_eq(parts[i].settled, OB_SETTLED);
		ck_assert_int_eq(published(), i + 1);
	}
	ck_assert_int_eq(atomic_load(&opens), 1);
	ck_assert_int_eq(atomic_load(&closes), 0);
	ob_store_thread_free(settler);
	unmake();
}
OB_TEST_END

/* Its answer may have been lost: the same again changes nothing. */
OB_TEST(a_job_may_be_repeated)
{
	make(LONG_MS);
	ck_assert_int_ge(finish(begin(0))->r, 0);
	size_t journal = ob_memdb_journal_count(db);
	ck_assert_int_ge(finish(begin(0))->r, 0);
	ck_assert_int_eq(parts[0].settled, OB_SETTLED);
	ck_assert_uint_eq(ob_memdb_journal_count(db), journal);
	ob_store_thread_free(settler);
	unmake();
}
OB_TEST_END

OB_TEST(a_lost_partition_is_told)
{
	make(LONG_MS);
	epoch++;

	struct ob_store_job *job = finish(begin(0));

	ck_assert_int_ge(job->r, 0);
	ck_assert_int_eq(parts[0].settled, OB_SETTLE_LOST);
	ck_assert_int_eq(published(), 0);
	ob_store_thread_free(settler);
	unmake();
}
OB_TEST_END

/* And is never FATAL: whoever has a connection goes on with it. */
OB_TEST(an_open_that_fails_is_the_jobs_error_and_the_next_opens_again)
{
	make(LONG_MS);
	atomic_store(&refusals, 1);

	struct ob_store_job *job = finish(begin(0));

	ck_assert_int_eq(job->r, OUTBOX_ESTORE);
	ck_assert_int_eq(job->err.kind, OB_ERR_DOWN);
	ck_assert_str_eq(job->err.msg, "no room for you");
	ck_assert_int_eq(published(), 0);
	ck_assert_int_ge(finish(begin(0))->r, 0);
	ck_assert_int_eq(published(), 1);
	ck_assert_int_eq(atomic_load(&opens), 2);
	ob_store_thread_free(settler);
	atomic_fetch_sub(&opens, 1); /* the one that was refused */
	unmake();
}
OB_TEST_END

OB_TEST(a_settle_that_fails_for_good_says_so)
{
	make(LONG_MS);
	ob_memdb_set_version(db, 99);
	ck_assert_int_eq(finish(begin(0))->err.kind, OB_ERR_FATAL);
	ck_assert_int_lt(jobs[0].base.r, 0);
	ob_memdb_set_version(db, OB_SCHEMA_VERSION);
	ob_store_thread_free(settler);
	unmake();
}
OB_TEST_END

static void *open_gate(void *arg)
{
	_Atomic int *now = arg;

	await(now, 1);
	ck_assert_int_eq(eventfd_write(gate_fd, 1), 0);
	return NULL;
}

OB_TEST(free_waits_for_the_job_that_runs)
{
	static _Atomic int now;
	pthread_t thread;

	gated = true;
	make(LONG_MS);
	ck_assert_int_eq(pthread_create(&thread, NULL, open_gate, &now), 0);
	begin(0);
	await(&opens, 1);
	ck_assert(!settler->ended(settler, false));
	ck_assert_int_eq(published(), 0);
	atomic_store(&now, 1);
	ob_store_thread_free(settler);
	ck_assert_int_eq(published(), 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	unmake();
}
OB_TEST_END

OB_TEST(free_waits_for_a_job_that_was_not_begun)
{
	make(LONG_MS);
	begin(0);
	ob_store_thread_free(settler);
	ck_assert_int_ge(jobs[0].base.r, 0);
	ck_assert_int_eq(published(), 1);
	unmake();
}
OB_TEST_END

OB_TEST(one_may_wait_for_the_end)
{
	static _Atomic int now = 1;
	pthread_t thread;

	gated = true;
	make(LONG_MS);
	begin(0);
	ck_assert_int_eq(pthread_create(&thread, NULL, open_gate, &now), 0);
	ck_assert(settler->ended(settler, true));
	ck_assert_int_eq(published(), 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ob_store_thread_free(settler);
	unmake();
}
OB_TEST_END

OB_TEST(without_a_job_there_is_neither_thread_nor_connection)
{
	int before = threads();

	make(LONG_MS);
	ck_assert_int_eq(threads(), before);
	finish(begin(0));
	ck_assert_int_gt(threads(), before);
	ob_store_thread_free(settler);
	unmake();

	atomic_store(&opens, 0);
	atomic_store(&closes, 0);
	make(LONG_MS);
	ob_store_thread_free(settler);
	ck_assert_int_eq(atomic_load(&opens), 0);
	unmake();
}
OB_TEST_END

OB_TEST(the_connection_is_given_back_when_there_is_nothing_to_do)
{
	make(10);
	for (int i = 0; i < MESSAGES; i++) {
		ck_assert_int_ge(finish(begin(i))->r, 0);
		await(&closes, i + 1);
		ck_assert_int_eq(atomic_load(&opens), i + 1);
	}
	ck_assert_int_eq(published(), MESSAGES);
	ob_store_thread_free(settler);
	unmake();
}
OB_TEST_END

OB_SUITE("store_thread", a_job_is_recorded_and_the_connection_serves_the_next,
	 a_job_may_be_repeated, a_lost_partition_is_told,
	 an_open_that_fails_is_the_jobs_error_and_the_next_opens_again,
	 a_settle_that_fails_for_good_says_so, free_waits_for_the_job_that_runs,
	 free_waits_for_a_job_that_was_not_begun, one_may_wait_for_the_end,
	 without_a_job_there_is_neither_thread_nor_connection,
	 the_connection_is_given_back_when_there_is_nothing_to_do)
