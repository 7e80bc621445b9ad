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

static void fetch(void)
{
	const uint32_t first = 0;
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = &first,
		.partition_count = 1,
		.limit = 99,
		.max_bytes = 1 << 20,
	};

	RETRIED(ob_store_fetch(fx.store, &fetch, &fx.batch, &fx.err));
}

static void settle(const char *label, enum ob_outcome_kind kind)
{
	const struct ob_outcome outcome = {
		.message = store_fetched(label),
		.kind = kind,
		.delay_ms = 5000,
		.error = OB_STR("why"),
	};

	struct ob_settle one = fx.settle;
	one.outcomes = &outcome;
	one.outcome_count = 1;
	RETRIED(ob_store_settle(fx.store, &one, NULL, &fx.settled, &fx.err));
}

static void hold(uint8_t owner, int64_t ttl_ms)
{
	const struct ob_uuid id = store_uuid(owner);
	struct ob_lease *leases;
	size_t count;
	uint32_t all;

	RETRIED(ob_store_seed(fx.store, "default", &all, &fx.err));
	RETRIED(ob_store_take(fx.store, "default", &id, all, ttl_ms, &fx.arena, &leases, &count,
			      &fx.err));
	/* The reply may have been lost: what is held is what renewing says. */
	RETRIED(ob_store_renew(fx.store, "default", &id, ttl_ms, &fx.arena, &leases, &count,
			       &fx.err));
	ck_assert_uint_eq(count, fx.partition_count);
	memcpy(fx.leases, leases, count * sizeof(*leases));
	fx.settle.owner = id;
	fx.settle.leases = fx.leases;
	fx.settle.lease_count = count;
}

static void operate(enum ob_verb verb, const char *label)
{
	const struct ob_operate op = { .verb = verb, .filter.event_type = label, .priority = 4 };
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
	fetch();
	ck_assert_str_eq(store_labels(&fx.batch), "a1 a2 b1 b2 c1 c2");
	settle("a1", OB_OUTCOME_RETRY);
	settle("b1", OB_OUTCOME_PUBLISHED);
	fx.settle.hold_dead = true;
	settle("c1", OB_OUTCOME_DEAD);
	store_advance_ms(5000);
	fetch();
	ck_assert_str_eq(store_labels(&fx.batch), "a1 b2");
	settle("a1", OB_OUTCOME_PUBLISHED);
	fx.settle.delete_published = true;
	settle("b2", OB_OUTCOME_PUBLISHED);
	fetch();
	ck_assert_str_eq(store_labels(&fx.batch), "a2");
	settle("a2", OB_OUTCOME_RELEASE);
}

static void claim_cycle(void)
{
	static struct ob_uuid token;
	struct ob_claim claim = {
		.target = "default",
		.worker = "w",
		.limit = 2,
		.max_bytes = 1 << 20,
		.ttl_ms = 1000,
	};

	put_two("a1", "a2", NULL);
	put_two("b1", "b2", NULL);
	fx.settle.ordering = OB_ORDER_NONE;
	fx.settle.token = &token;
	token = claim.token = store_uuid(7);
	RETRIED(ob_store_claim(fx.store, &claim, &fx.batch, &fx.err));
	ck_assert_str_eq(store_labels(&fx.batch), "a1 a2");
	settle("a1", OB_OUTCOME_PUBLISHED);
	settle("a2", OB_OUTCOME_RETRY);
	token = claim.token = store_uuid(8);
	RETRIED(ob_store_claim(fx.store, &claim, &fx.batch, &fx.err));
	ck_assert_str_eq(store_labels(&fx.batch), "b1 b2");
	settle("b1", OB_OUTCOME_DEAD);
	settle("b2", OB_OUTCOME_RELEASE);
	token = claim.token = store_uuid(9);
	RETRIED(ob_store_claim(fx.store, &claim, &fx.batch, &fx.err));
	ck_assert_str_eq(store_labels(&fx.batch), "b2");
}

static void take_over(void)
{
	const struct ob_worker worker = {
		.id = store_uuid(2),
		.target = OB_STR("default"),
		.hostname = OB_STR("h"),
		.published = 3,
	};
	const struct ob_uuid two = store_uuid(2);
	const uint32_t first = 0;
	struct ob_worker *workers;
	struct ob_partition *partitions;
	size_t count;

	hold(1, 1000);
	put_two("a1", "a2", "a");
	fetch();
	struct ob_settle old = fx.settle;
	struct ob_lease old_lease = fx.leases[0];
	store_advance_ms(1000);
	RETRIED(ob_store_beat(fx.store, &worker, 9000, &fx.err));
	hold(2, 9000);
	struct ob_settle now = fx.settle;
	fx.settle = old;
	fx.settle.leases = &old_lease;
	settle("a1", OB_OUTCOME_PUBLISHED);
	ck_assert_uint_eq(fx.settled.lost, 1);
	fx.settle = now;
	settle("a1", OB_OUTCOME_PUBLISHED);
	RETRIED(ob_store_release(fx.store, "default", &two, &first, 1, &fx.err));
	hold(2, 9000);
	RETRIED(ob_store_workers(fx.store, "default", &fx.arena, &workers, &count, &fx.err));
	ck_assert_uint_eq(count, 1);
	RETRIED(ob_store_partitions(fx.store, "default", &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(partitions[0].epoch, 3);
	RETRIED(ob_store_leave(fx.store, "default", &two, &fx.err));
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
	fetch();
	settle("a1", OB_OUTCOME_RETRY);
	settle("b1", OB_OUTCOME_RETRY);
	operate(OB_VERB_RETRY, "a1");
	operate(OB_VERB_SKIP, "b1");
	operate(OB_VERB_DISCARD, "c1");
	operate(OB_VERB_PRIORITY, "c2");
	RETRIED(ob_store_stats(fx.store, NULL, &fx.arena, &stats, &count, &now, &fx.err));
	ck_assert_uint_eq(stats[0].count[OB_VIEW_PENDING], 4);
}

static void tidy_up(void)
{
	const struct ob_cleanup cleanup = { .limit = 99 };
	struct ob_setup_done done;
	uint64_t published, dead;
	bool news;

	RETRIED(ob_store_setup(fx.store, &(struct ob_setup){ 5 }, &done, &fx.err));
	RETRIED(ob_store_check(fx.store, &fx.err));
	hold(1, 1000);
	put_two("a1", "a2", "a");
	put_two("b1", "b2", "b");
	fetch();
	settle("a1", OB_OUTCOME_PUBLISHED);
	settle("b1", OB_OUTCOME_DEAD);
	RETRIED(ob_store_cleanup(fx.store, &cleanup, &published, &dead, &fx.err));
	store_advance_ms(1000);
	RETRIED(ob_store_resize(fx.store, 3, &fx.err));
	RETRIED(ob_store_wake_check(fx.store, &news, &fx.err));
}

/* ---- the sweep ------------------------------------------------------- */

/* Run a scenario with a plan; the end state, which the caller frees. */
static char *run(scenario_fn *scenario, const struct ob_store_fault_plan *plan,
		 struct ob_store_fault_count *ret_count)
{
	struct ob_store *plain, *fault;

	fx.outcome = (struct ob_outcome){ 0 };
	store_begin(1);
	plain = fx.store;
	store_ok(ob_store_fault_new(plain, plan, &fault, &fx.err));
	fx.connections[0] = fault; /* which owns the plain one */
	fx.store = fault;
	scenario();
	*ret_count = ob_store_fault_counted(fault);
	fx.store = plain;
	char *end = store_dump();
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

OB_TEST(claiming_survives_a_fault_anywhere)
{
	sweep(claim_cycle);
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

OB_TEST(cleaning_and_resizing_survive_a_fault_anywhere)
{
	sweep(tidy_up);
}
OB_TEST_END

OB_TEST(a_fault_can_be_kept_to_some_operations)
{
	const struct ob_store_fault_plan plan = {
		.nth = 1,
		.only = UINT32_C(1) << OB_STORE_FAULT_fetch,
	};
	struct ob_store *fault;
	struct ob_partition *partitions;
	size_t count;

	store_begin(1);
	store_ok(ob_store_fault_new(fx.store, &plan, &fault, &fx.err));
	fx.connections[0] = fx.store = fault;
	store_ok(ob_store_partitions(fault, NULL, &fx.arena, &partitions, &count, &fx.err));
	ck_assert_uint_eq(ob_store_fault_counted(fault).calls, 0);

	const uint32_t first = 0;
	const struct ob_fetch some = {
		.target = "default", .partitions = &first, .partition_count = 1, .limit = 1
	};
	ck_assert_int_eq(ob_store_fetch(fault, &some, &fx.batch, &fx.err), OUTBOX_ESTORE);
	ck_assert_int_eq(fx.err.kind, OB_ERR_DOWN);
	ck_assert(ob_store_fault_counted(fault).fired);
	ck_assert_str_eq(ob_store_fault_counted(fault).fired_in, "fetch");
	store_ok(ob_store_fetch(fault, &some, &fx.batch, &fx.err));
}
OB_TEST_END

STORE_CASES(faults, delivering_survives_a_fault_anywhere, claiming_survives_a_fault_anywhere,
	    a_takeover_survives_a_fault_anywhere, operating_survives_a_fault_anywhere,
	    cleaning_and_resizing_survive_a_fault_anywhere, a_fault_can_be_kept_to_some_operations)
