/* SPDX-License-Identifier: MIT */
/*
 * Workers under everything at once, drawn from a seed: crashes, pauses, thieves, operators, store
 * calls that fail or lose their reply, sinks that refuse, hang and go away. What must hold in the
 * end: every message was delivered, and the first copies of a key in order.
 */
#include "base/rng.h"
#include "fake_settler.h"
#include "suite.h"

enum { NODES = 4, STEPS = 60, KEYS = 5 };

static struct rig rig;
static struct fake_settler fakes[NODES];
static struct ob_rng rng;
static struct ob_store *slow; /* a writer that takes its time */
static bool slow_open;
static uint32_t pushed;
static int payload;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)ob_rng_below(&rng, below);
}

static bool one_in(uint32_t n)
{
	return draw(n) == 0;
}

/* ---- messages -------------------------------------------------------- */

static void push_one(struct ob_store *store, const char *prefix, uint64_t delay_ms)
{
	struct ob_err err = OB_ERR_INIT;
	char key[16], text[16];
	uint32_t k = draw(KEYS);
	struct outbox_id id;
	size_t index;

	(void)snprintf(key, sizeof(key), "%s%u", prefix, k);
	(void)snprintf(text, sizeof(text), "%d", ++payload);

	/* A key stays in its lane: order is not promised between lanes. */
	struct outbox_message message = { .aggregate_type = "order",
					  .event_type = "OrderPlaced",
					  .partition_key = key,
					  .payload = text,
					  .delay_ms = delay_ms,
					  .priority = k == 0   ? 1
						      : k == 1 ? -1
							       : 0 };

	ck_assert_int_ge(ob_store_tx_push(store, &message, 1, &id, &index, &err), 0);
	pushed++;
}

static void push_some(void)
{
	struct ob_err err = OB_ERR_INIT;

	for (uint32_t n = draw(12); n > 0; n--) {
		/* One writer at a time, where the database is so. */
		if (slow_open && rig.kind == OB_MEMDB_PLAIN)
			return;
		ck_assert_int_ge(ob_store_tx_begin(rig.writer, &err), 0);
		push_one(rig.writer, "k", one_in(8) ? draw(3000) + 1 : 0);
		ck_assert_int_ge(ob_store_tx_end(rig.writer, true, &err), 0);
	}
}

/* Keys of its own: of what two writers insert at the same time, nobody promises the order. */
static void push_slowly(void)
{
	struct ob_err err = OB_ERR_INIT;

	if (!slow_open) {
		ck_assert_int_ge(ob_store_tx_begin(slow, &err), 0);
		for (uint32_t n = draw(30) + 1; n > 0; n--)
			push_one(slow, "s", 0);
	} else {
		ck_assert_int_ge(ob_store_tx_end(slow, true, &err), 0);
	}
	slow_open = !slow_open;
}

/* ---- nodes ----------------------------------------------------------- */

static struct rig_node *any_node(void)
{
	struct rig_node *node = &rig.nodes[draw(rig.node_count)];

	return node->worker ? node : NULL;
}

static void start_node(const struct ob_sink_ops *sink)
{
	uint32_t at = rig.node_count;

	if (at == NODES) {
		/* In the place of one that died. */
		for (at = 0; at < NODES && rig.nodes[at].worker; at++)
			;
		if (at == NODES)
			return;
	}
	rig.settler = one_in(2) ? &fakes[at].base : NULL;
	rig_start_at(&rig, at, sink);
}

static void break_store(struct rig_node *node)
{
	static const enum ob_store_fault_op ops[] = { OB_STORE_FAULT_take_over, OB_STORE_FAULT_read,
						      OB_STORE_FAULT_settle };

	ob_store_fault_arm(
		node->store,
		&(struct ob_store_fault_plan){ .nth = draw(3) + 1,
					       .mode = one_in(2) ? OB_FAULT_AFTER : OB_FAULT_BEFORE,
					       .only = UINT64_C(1) << ops[draw(3)] });
}

static void break_node(const struct ob_sink_ops *sink)
{
	struct rig_node *node = any_node();

	if (!node || one_in(4)) {
		start_node(sink);
		return;
	}
	switch (draw(6)) {
	case 0:
		rig_kill(&rig, node);
		break;
	case 1:
		node->paused = !node->paused;
		break;
	case 2:
		node->leaser_hangs = !node->leaser_hangs;
		break;
	case 3:
		ob_worker_stop(node->worker, one_in(2) ? OB_STOP_DRAIN : OB_STOP_NOW);
		break;
	default:
		break_store(node);
		break;
	}
}

/* Now and then a settle is the last deed of a worker for long. */
static void freeze(struct rig_node *at, const struct ob_settle *settle)
{
	(void)settle;
	at->paused = at->paused || one_in(50);
}

/* A worker that has stopped leaves. */
static void bury(void)
{
	for (uint32_t i = 0; i < rig.node_count; i++) {
		struct rig_node *node = &rig.nodes[i];
		struct ob_err err = OB_ERR_INIT;

		if (!node->worker || node->state == OB_WORKER_RUNNING)
			continue;
		ck_assert_int_eq(node->state, OB_WORKER_STOPPED);
		if (one_in(2))
			(void)ob_leaser_leave(&node->leaser, &err);
		rig_kill(&rig, node);
	}
}

/* ---- the sink -------------------------------------------------------- */

static void break_sink(void)
{
	static const char *const names[] = { "k0", "k1", "k2", "k3", "k4", "s0", "s1", "s2" };

	switch (draw(6)) {
	case 0:
		rig.plan.down = !rig.plan.down;
		break;
	case 1:
		rig.poison_count = draw(4);
		rig.poison_kind = one_in(4) ? OB_ERR_DOWN : OB_ERR_RETRY;
		for (uint32_t i = 0; i < rig.poison_count; i++)
			rig.poison[i] = names[draw(8)];
		break;
	case 2:
		rig.all_fail = one_in(3);
		break;
	case 3:
		rig.plan.ack_delay_us = one_in(3) ? 3000000 : draw(20000);
		break;
	case 4:
		rig.plan.acks_per_poll = draw(3);
		break;
	default:
		for (uint32_t i = 0; i < NODES; i++)
			fakes[i].hold = one_in(3);
		break;
	}
}

static void heal(void)
{
	struct ob_err err = OB_ERR_INIT;

	rig.plan.down = rig.all_fail = false;
	rig.poison_count = 0;
	rig.plan.ack_delay_us = rig.plan.acks_per_poll = 0;
	for (uint32_t i = 0; i < NODES; i++) {
		fakes[i].hold = false;
		fakes[i].fail = OB_ERR_NONE;
	}
	for (uint32_t i = 0; i < rig.node_count; i++)
		rig.nodes[i].paused = rig.nodes[i].leaser_hangs = false;
	if (slow_open)
		ck_assert_int_ge(ob_store_tx_end(slow, true, &err), 0);
	slow_open = false;
}

/* ---- all of it ------------------------------------------------------- */

static void one_step(const struct ob_sink_ops *sink)
{
	switch (draw(10)) {
	case 0:
	case 1:
		break_sink();
		break;
	case 2:
	case 3:
		break_node(sink);
		break;
	case 4:
		if (one_in(3))
			rig_steal(&rig, true);
		break;
	case 5:
		push_slowly();
		break;
	default:
		push_some();
		break;
	}
	rig_run_ms(&rig, one_in(8) ? draw(20000) : draw(100));
	bury();
}

static void play(uint64_t seed)
{
	struct ob_err err = OB_ERR_INIT;
	const struct ob_sink_ops *sink;

	ob_rng_init(&rng, seed);
	rig_init_kind(&rig, (enum ob_memdb_kind)draw(3));
	rig.relay.batch_size = draw(10) + 2;
	rig.relay.hold_delayed = true;
	rig.relay.ordering = one_in(4) ? OB_ORDER_PARTITION : OB_ORDER_KEY;
	rig.relay.on_dead = one_in(2) ? OB_ON_DEAD_HOLD : OB_ON_DEAD_RELEASE;
	rig.relay.retry.max_attempts = 0;
	rig.relay.retry.base_delay_ms = 500;
	rig.relay.retry.max_backoff_ms = 2000;
	rig.plan.window = draw(8) + 1;
	rig.plan.store_late = one_in(2);
	rig.plan.shuffle = one_in(2) ? seed : 0;
	sink = one_in(2) ? &ob_sink_memory : &ob_sink_memory_ordered;
	pushed = 0;
	ck_assert_int_ge(ob_store_memory_open(rig.db, &slow, &err), 0);
	for (uint32_t i = 0; i < NODES; i++) {
		fakes[i] = (struct fake_settler){ 0 };
		fake_settler_init(&fakes[i], rig.db);
	}
	rig.on_settle = freeze;
	start_node(sink);
	for (int i = 0; i < STEPS; i++)
		one_step(sink);
	rig.on_settle = NULL;
	heal();
	start_node(sink);
	rig_run_ms(&rig, 60000);
	bury();
	start_node(sink);
	rig_run_ms(&rig, 60000);

	ck_assert_msg(rig_delivered(&rig) == pushed, "seed %d: %u of %u are delivered", (int)seed,
		      rig_delivered(&rig), pushed);
	ck_assert_msg(rig_stored_in_order(&rig), "seed %d: out of order", (int)seed);
	ck_assert_msg(rig_count(&rig, OB_VIEW_PUBLISHED) == pushed, "seed %d: %u of %u recorded",
		      (int)seed, rig_count(&rig, OB_VIEW_PUBLISHED), pushed);
	/* One that was out before the position had passed it stays until retention. */
	ck_assert_msg(rig_all_exceptions(&rig) == rig_exceptions(&rig, OB_STATE_DONE),
		      "seed %d: exceptions are left", (int)seed);
	for (uint32_t i = 0; i < rig.node_count; i++) {
		if (rig.nodes[i].worker)
			rig_kill(&rig, &rig.nodes[i]);
	}
	for (uint32_t i = 0; i < NODES; i++)
		fake_settler_done(&fakes[i]);
	ob_store_free(slow);
	rig_done(&rig);
}

/* RANDOM_FROM and RANDOM_SEEDS choose others. */
static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? (int)strtol(text, NULL, 10) : otherwise;
}

/* The seeds in ten parts, each with a time limit of its own. */
static void play_part(int part)
{
	int each = number("RANDOM_SEEDS", 100) / 10;
	int from = number("RANDOM_FROM", 1) + part * each;

	for (int seed = from; seed < from + each; seed++)
		play((uint64_t)seed);
}

#define PART(n) \
	OB_TEST(everything_is_delivered_in_order_whatever_happens_##n) \
	{ \
		play_part(n); \
	} \
	OB_TEST_END

PART(0)
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(7)
PART(8)
PART(9)

#define NAME(n) everything_is_delivered_in_order_whatever_happens_##n

OB_SUITE("worker random", NAME(0), NAME(1), NAME(2), NAME(3), NAME(4), NAME(5), NAME(6), NAME(7),
	 NAME(8), NAME(9))
