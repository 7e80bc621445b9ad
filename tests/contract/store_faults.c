/* SPDX-License-Identifier: MIT */
/*
 * Contract: every operation may be repeated without harm. Scenarios run on a
 * store whose n-th call fails, for n = 1, 2, 3, ... until none does, before the
 * call and after it (a lost reply). Whatever failed is called again, and the
 * end must look like the end of a run without faults.
 */
#include "store_harness.h"

typedef void scenario_fn(void);

/* Repeat a call while it fails with the injected fault. */
#define RETRIED(call) \
	do { \
		int retried_ = (call); \
		if (retried_ < 0) { \
			ck_assert_int_eq(fx.err.kind, OB_ERR_DOWN); \
			retried_ = (call); \
		} \
		ck_assert_msg(retried_ >= 0, "%s again: %s", #call, fx.err.msg); \
	} while (0)

/* ---- steps ----------------------------------------------------------- */

/* One transaction; the status of its first failure. */
static int try_put(const struct outbox_message *messages, size_t count)
{
	size_t index;

	int r = ob_store_tx_begin(fx.store, &fx.err);
	if (r >= 0)
		r = ob_store_tx_push(fx.store, messages, count, NULL, &index, &fx.err);
	if (r >= 0)
		r = ob_store_tx_end(fx.store, true, &fx.err);
	if (r < 0) {
		struct ob_err unused = OB_ERR_INIT;
		ck_assert_int_eq(ob_store_tx_end(fx.store, false, &unused), 0);
	}
	return r;
}

/* Messages with ids of their own, so that a repeat of what got in is a duplicate. */
static void put_two(const char *first, const char *second, const char *key)
{
	char ids[2][OB_UUID_TEXT_SIZE];
	struct outbox_message messages[2] = { { .event_type = first, .partition_key = key },
					      { .event_type = second, .partition_key = key } };

	for (int i = 0; i < 2; i++) {
		struct ob_uuid id = store_uuid((uint8_t)messages[i].event_type[0]);

		id.b[1] = (uint8_t)messages[i].event_type[1];
		ob_uuid_format(&id, ids[i]);
		messages[i].id = ids[i];
		messages[i] = store_filled(messages[i]);
	}
	int r = try_put(messages, 2);
	if (r < 0)
		r = try_put(messages, 2);
	ck_assert_msg(r >= 0 || r == OUTBOX_EDUPID, "%s", fx.err.msg);
}

static void hold(uint8_t owner, int64_t ttl_ms)
{
	struct ob_owned owned[STORE_PARTS_MAX] = { 0 };
	struct ob_lease *leases;
	size_t count;
	uint32_t all;

	store_be("main", "default", owner);
	RETRIED(ob_store_seed(fx.store, "main", &all, &fx.err));
	RETRIED(ob_store_take(fx.store, "main", &fx.me, all, ttl_ms, &fx.arena, &leases, &count,
			      &fx.err));
	/* The reply may have been lost: what is held is what renewing says. */
	RETRIED(ob_store_renew(fx.store, "main", &fx.me, ttl_ms, &fx.arena, &leases, &count,
			       &fx.err));
	ck_assert_uint_eq(count, fx.partition_count);
	for (uint32_t i = 0; i < OB_LANES * all; i++)
		owned[i] = (struct ob_owned){ .partition = i, .epoch = leases[i % all].epoch };
	RETRIED(ob_store_take_over(fx.store, "main", &fx.me, owned, OB_LANES * all, &fx.err));
	for (uint32_t i = 0; i < OB_LANES * all; i++) {
		ck_assert(!owned[i].lost);
		fx.parts[i] = (struct store_part){ .partition = i,
						   .epoch = owned[i].epoch,
						   .batch = owned[i].batch,
						   .recorded = owned[i].progress };
		ob_progress_set(&fx.parts[i].reading, &fx.parts[i].recorded);
	}
	fx.part_count = OB_LANES * all;
}

static void read_both(void)
{
	struct ob_read_part parts[STORE_PARTS_MAX];
	struct ob_read read = { .reader = "main",
				.target = "default",
				.parts = parts,
				.part_count = fx.part_count,
				.limit = 99,
				.exception_limit = 99,
				.max_bytes = 1 << 20 };

	for (size_t i = 0; i < fx.part_count; i++)
		parts[i] = (struct ob_read_part){ .partition = fx.parts[i].partition,
						  .from = fx.parts[i].reading };
	RETRIED(ob_store_read(fx.store, &read, &fx.batch, &fx.done, &fx.err));
	for (size_t i = 0; i < fx.part_count; i++) {
		ob_progress_set(&fx.parts[i].reading, &parts[i].after);
		ob_progress_done(&parts[i].after);
	}
}

/* The same settle again when its reply was lost. */
static void record(void)
{
	struct ob_settle_part parts[STORE_PARTS_MAX];
	struct ob_settle settle = { .reader = "main",
				    .owner = fx.me,
				    .parts = parts,
				    .part_count = fx.part_count,
				    .changes = fx.changes,
				    .change_count = fx.change_count,
				    .promotes = fx.promotes,
				    .promote_count = fx.promote_count };

	for (size_t i = 0; i < fx.part_count; i++)
		parts[i] = (struct ob_settle_part){ .partition = fx.parts[i].partition,
						    .epoch = fx.parts[i].epoch,
						    .batch = fx.parts[i].batch + 1,
						    .progress = fx.parts[i].reading };
	RETRIED(ob_store_settle(fx.store, &settle, &fx.err));
	for (size_t i = 0; i < fx.part_count; i++) {
		ck_assert_int_eq(parts[i].settled, OB_SETTLED);
		fx.parts[i].batch++;
	}
	fx.change_count = fx.promote_count = 0;
}

/* An operator repeats what may have happened: the second time it may be refused. */
static void operate(enum ob_verb verb, const char *label)
{
	const struct ob_operate op = { .verb = verb,
				       .filter = { .reader = "main", .event_type = label } };
	uint64_t changed, refused;

	RETRIED(ob_store_operate(fx.store, &op, &changed, &refused, &fx.err));
}

/* ---- scenarios ------------------------------------------------------- */

static void deliver(void)
{
	hold(1, 60000);
	put_two("a1", "a2", "a");
	put_two("b1", "b2", "b");
	put_two("c1", "c2", "c");
	read_both();
	ck_assert_str_eq(store_labels(&fx.batch), "a1 a2 b1 b2 c1 c2");
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	fx.decide.hold_dead = true;
	store_outcome("c1", OB_OUTCOME_DEAD);
	store_outcome("c2", OB_OUTCOME_PARK);
	record();
	store_advance_ms(5000);
	put_two("d1", "d2", "d");
	read_both();
	ck_assert_str_eq(store_labels(&fx.batch), "a1 a2 d1 d2");
	store_outcome("a1", OB_OUTCOME_PUBLISHED);
	store_outcome("d1", OB_OUTCOME_SPILL);
	record();
	read_both();
	ck_assert_str_eq(store_labels(&fx.batch), "a2 d1");
	store_outcome("a2", OB_OUTCOME_RETRY);
	store_outcome("d1", OB_OUTCOME_PUBLISHED);
	record();
}

static void take_over(void)
{
	const struct ob_worker worker = {
		.id = store_uuid(2),
		.reader = OB_STR("main"),
		.hostname = OB_STR("h"),
		.published = 3,
	};
	const struct ob_uuid two = store_uuid(2), three = store_uuid(3);
	const uint32_t first = 0;
	struct ob_worker *workers;
	struct ob_partition *partitions;
	struct ob_reader *readers;
	uint32_t gone;
	size_t count;

	hold(1, 1000);
	put_two("a1", "a2", "a");
	read_both();
	store_advance_ms(1000);
	RETRIED(ob_store_beat(fx.store, &worker, 9000, &fx.err));
	hold(2, 9000);
	read_both();
	record();
	RETRIED(ob_store_release(fx.store, "main", &two, &first, 1, &fx.err));
	hold(2, 9000);
	RETRIED(ob_store_workers(fx.store, "main", &fx.arena, &workers, &count, &fx.err));
	ck_assert_uint_eq(count, 1);
	RETRIED(ob_store_partitions(fx.store, "main", &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(partitions[0].epoch, 3);
	RETRIED(ob_store_reap(fx.store, "main", &three, &gone, &fx.err));
	RETRIED(ob_store_readers(fx.store, &fx.arena, &readers, &count, &fx.err));
	RETRIED(ob_store_leave(fx.store, "main", &two, &fx.err));
}

static void decide(void)
{
	struct ob_stats *stats;
	int64_t now;
	size_t count;

	hold(1, 60000);
	put_two("a1", "a2", "a");
	put_two("b1", "b2", "b");
	put_two("c1", "c2", "c");
	read_both();
	store_outcome("a1", OB_OUTCOME_RETRY);
	store_outcome("a2", OB_OUTCOME_PARK);
	store_outcome("b1", OB_OUTCOME_RETRY);
	store_outcome("b2", OB_OUTCOME_PARK);
	store_outcome("c1", OB_OUTCOME_DEAD);
	record();
	operate(OB_VERB_RETRY, "a1");
	operate(OB_VERB_SKIP, "b1");
	operate(OB_VERB_DISCARD, "c1");
	RETRIED(ob_store_stats(fx.store, NULL, 0, &fx.arena, &stats, &count, &now, &fx.err));
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 2);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PARKED], 1);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_DEAD], 1);
	ck_assert_uint_eq(stats[0].count[OB_VIEW_DISCARDED], 1);
}

static void move(void)
{
	const struct ob_reader other = { .name = OB_STR("other"), .target = OB_STR("default") };
	struct ob_place place = { .start = OB_START_BEGINNING };
	bool made;

	hold(1, 1000);
	put_two("a1", "a2", "a");
	put_two("b1", "b2", "b");
	read_both();
	store_outcome("b1", OB_OUTCOME_RETRY);
	record();
	RETRIED(ob_store_reader_make(fx.store, &other, &place, &made, &fx.err));
	int r = ob_store_reader_remove(fx.store, "other", &fx.err);
	if (r < 0)
		r = ob_store_reader_remove(fx.store, "other", &fx.err);
	ck_assert_msg(r >= 0 || r == OUTBOX_EINVAL, "%s", fx.err.msg); /* it was removed before */
	place.start = OB_START_END;
	RETRIED(ob_store_reader_make(fx.store, &other, &place, &made, &fx.err));
}

static void tidy_up(void)
{
	const struct ob_retain retain = { .limit = 99 };
	struct ob_setup_done done;
	struct ob_retained retained;
	bool news;

	RETRIED(ob_store_setup(fx.store, &(struct ob_setup){ .partition_count = 5 }, &done,
			       &fx.err));
	RETRIED(ob_store_check(fx.store, &fx.err));
	hold(1, 1000);
	put_two("a1", "a2", "a");
	put_two("b1", "b2", "b");
	read_both();
	store_outcome("b1", OB_OUTCOME_RETRY);
	store_outcome("b2", OB_OUTCOME_PARK);
	record();
	RETRIED(ob_store_retain(fx.store, &retain, &fx.arena, &retained, &fx.err));
	store_advance_ms(1000);
	RETRIED(ob_store_resize(fx.store, 3, &fx.err));
	RETRIED(ob_store_wake_check(fx.store, &news, &fx.err));
}

/* ---- the sweep ------------------------------------------------------- */

/* What may differ between a call that was made once and one that was made twice. */
static void drop_journal_line(char *dump)
{
	char *line = strstr(dump, "journal ");

	if (line)
		*line = '\0';
}

/* Run a scenario with a plan; the end state, which the caller frees. */
static char *run(scenario_fn *scenario, const struct ob_store_fault_plan *plan,
		 struct ob_store_fault_count *ret_count)
{
	struct ob_store *plain, *fault;

	store_begin(1);
	plain = fx.store;
	store_ok(ob_store_fault_new(plain, plan, &fault, &fx.err));
	fx.connections[0] = fault; /* which owns the plain one */
	fx.store = fault;
	scenario();
	*ret_count = ob_store_fault_counted(fault);
	fx.store = plain;
	char *end = store_dump();
	drop_journal_line(end);
	store_end();
	return end;
}

static void sweep(scenario_fn *scenario)
{
	struct ob_store_fault_count count;
	const struct ob_store_fault_plan none = { .nth = 0 };

	char *expected = run(scenario, &none, &count);
	uint64_t calls = count.calls;
	ck_assert_uint_gt(calls, 5);
	for (int mode = OB_FAULT_BEFORE; mode <= OB_FAULT_AFTER; mode++) {
		uint64_t n = 0;

		do {
			const struct ob_store_fault_plan plan = {
				.nth = ++n, .mode = (enum ob_store_fault_mode)mode
			};
			char *end = run(scenario, &plan, &count);
			ck_assert_msg(strcmp(end, expected) == 0,
				      "fault %llu (%s, mode %d) changed the end:\n%s\nnot\n%s",
				      (unsigned long long)n, count.fired_in, mode, end, expected);
			free(end);
		} while (count.fired);
		ck_assert_uint_eq(n, calls + 1);
	}
	free(expected);
}

OB_TEST(delivering_survives_a_fault_anywhere)
{
	sweep(deliver);
}
OB_TEST_END

OB_TEST(a_takeover_survives_a_fault_anywhere)
{
	sweep(take_over);
}
OB_TEST_END

OB_TEST(operating_survives_a_fault_anywhere)
{
	sweep(decide);
}
OB_TEST_END

OB_TEST(making_and_removing_readers_survives_a_fault_anywhere)
{
	sweep(move);
}
OB_TEST_END

OB_TEST(retention_and_resizing_survive_a_fault_anywhere)
{
	sweep(tidy_up);
}
OB_TEST_END

OB_TEST(a_fault_can_be_kept_to_some_operations)
{
	const struct ob_store_fault_plan plan = {
		.nth = 1,
		.only = UINT64_C(1) << OB_STORE_FAULT_read,
	};
	struct ob_store *fault;
	struct ob_partition *partitions;
	size_t count;

	store_begin(1);
	store_hold_all(60000);
	store_ok(ob_store_fault_new(fx.store, &plan, &fault, &fx.err));
	fx.connections[0] = fx.store = fault;
	store_ok(ob_store_partitions(fault, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(ob_store_fault_counted(fault).calls, 0);

	struct ob_read_part part = { .partition = 0, .from = fx.parts[0].recorded };
	struct ob_read some = {
		.reader = "main", .target = "default", .parts = &part, .part_count = 1, .limit = 1
	};
	ck_assert_int_eq(ob_store_read(fault, &some, &fx.batch, &fx.done, &fx.err), OUTBOX_ESTORE);
	ck_assert_int_eq(fx.err.kind, OB_ERR_DOWN);
	ck_assert(ob_store_fault_counted(fault).fired);
	ck_assert_str_eq(ob_store_fault_counted(fault).fired_in, "read");
	store_ok(ob_store_read(fault, &some, &fx.batch, &fx.done, &fx.err));
	ob_progress_done(&part.after);
}
OB_TEST_END

STORE_CASES(faults, delivering_survives_a_fault_anywhere, a_takeover_survives_a_fault_anywhere,
	    operating_survives_a_fault_anywhere,
	    making_and_removing_readers_survives_a_fault_anywhere,
	    retention_and_resizing_survive_a_fault_anywhere, a_fault_can_be_kept_to_some_operations)
