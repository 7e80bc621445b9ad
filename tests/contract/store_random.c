/* SPDX-License-Identifier: MIT */
/*
 * Contract, as a whole: transactions that overlap, commit late and roll back; reads of any size,
 * records that come late or never, takeovers, failures, operators. Whatever the order: what was
 * committed is recorded as delivered exactly once, and first deliveries of a key are in the order
 * in which its transactions committed one after the other.
 */
#include "base/rng.h"
#include "store_harness.h"

enum { WRITERS = 4, MESSAGES_MAX = 2000, KEYS = 5 };

static struct ob_rng rng;

struct message {
	bool committed, rolled_back, discarded;
	int delivered; /* recorded as such */
	int key;
	int after; /* number of messages of its key that had committed when it was pushed */
};

static struct {
	struct message all[MESSAGES_MAX];
	int count;
	int key_order[KEYS][MESSAGES_MAX]; /* those of a key, as they committed */
	int key_count[KEYS];
	struct ob_store *writers[WRITERS];
	bool open[WRITERS];
	int pushed[WRITERS][64];
	int pushed_count[WRITERS];
	uint8_t owner;
} sim;

static uint32_t draw(uint32_t limit)
{
	return (uint32_t)ob_rng_below(&rng, limit);
}

/* ---- producers ------------------------------------------------------- */

static void push_some(int w)
{
	int wanted = 1 + (int)draw(3);

	while (wanted-- > 0 && sim.count < MESSAGES_MAX && sim.pushed_count[w] < 60) {
		int n = sim.count++;
		struct message *m = &sim.all[n];
		char label[16], key[8];

		m->key = (int)draw(KEYS);
		m->after = sim.key_count[m->key];
		(void)snprintf(label, sizeof(label), "%d", n);
		(void)snprintf(key, sizeof(key), "k%d", m->key);
		store_push(sim.writers[w],
			   (struct outbox_message){ .event_type = label, .partition_key = key });
		sim.pushed[w][sim.pushed_count[w]++] = n;
	}
}

static void end_writer(int w, bool commit)
{
	if (commit)
		store_commit(sim.writers[w]);
	else
		store_roll_back(sim.writers[w]);
	for (int i = 0; i < sim.pushed_count[w]; i++) {
		int n = sim.pushed[w][i];
		struct message *m = &sim.all[n];

		m->committed = commit;
		m->rolled_back = !commit;
		if (commit)
			sim.key_order[m->key][sim.key_count[m->key]++] = n;
	}
	sim.pushed_count[w] = 0;
	sim.open[w] = false;
}

static void write_something(void)
{
	int w = store_has(OB_STORE_CONCURRENT_WRITERS) ? (int)draw(WRITERS) : 0;

	if (!sim.open[w]) {
		store_ok(ob_store_tx_begin(sim.writers[w], &fx.err));
		sim.open[w] = true;
		push_some(w);
		/* Where there is one writer, nobody else can write while it is open. */
		if (!store_has(OB_STORE_CONCURRENT_WRITERS))
			end_writer(w, draw(4) > 0);
	} else if (draw(2) == 0) {
		push_some(w);
	} else {
		end_writer(w, draw(4) > 0);
	}
}

/* ---- the worker ------------------------------------------------------ */

static int number_of(const struct ob_message *m)
{
	return (int)strtol(m->event_type.p, NULL, 10);
}

/* What had committed before it was written is delivered, dead, or stands before it. */
static void check_order(int n)
{
	const struct message *m = &sim.all[n];

	for (int i = 0; i < m->after; i++) {
		const struct message *before = &sim.all[sim.key_order[m->key][i]];

		ck_assert_msg(before->delivered > 0 || before->discarded,
			      "%d is delivered before %d of its key", n, sim.key_order[m->key][i]);
	}
}

/*
 * One read, in order, as a worker: a failure of a message parks what follows of its key. Then it is
 * recorded, or it is not: then none of it counts.
 */
static void read_and_record(void)
{
	bool failed[KEYS] = { false }, record = draw(8) > 0;

	store_read_with((struct ob_read){ .limit = 1 + draw(12),
					  .exception_limit = draw(8),
					  .max_bytes = draw(5) == 0 ? 10 : 1 << 20 });
	for (uint32_t i = 0; record && i < fx.batch.count; i++) {
		const struct ob_message *m = &fx.batch.messages[i];
		int n = number_of(m), key = sim.all[n].key;
		char label[16];

		(void)snprintf(label, sizeof(label), "%d", n);
		ck_assert(sim.all[n].committed);
		if (m->held || failed[key]) {
			store_outcome(label, OB_OUTCOME_PARK);
			failed[key] = true;
		} else if (draw(6) == 0) {
			store_outcome(label, OB_OUTCOME_RETRY);
			failed[key] = true;
		} else {
			check_order(n);
			sim.all[n].delivered++;
			ck_assert_int_eq(sim.all[n].delivered, 1);
			store_outcome(label, OB_OUTCOME_PUBLISHED);
		}
	}
	if (record)
		store_record();
	else
		store_forget();
}

static void take_over_anew(void)
{
	store_advance_ms(1000000);
	store_be("main", "default", ++sim.owner);
	store_hold_all(100000);
}

static void discard_something(void)
{
	int n = sim.count > 0 ? (int)draw((uint32_t)sim.count) : 0;
	char label[16];
	struct ob_operate operate = { .verb = OB_VERB_DISCARD,
				      .filter = { .reader = "main", .event_type = label } };
	uint64_t changed, refused;

	(void)snprintf(label, sizeof(label), "%d", n);
	store_ok(ob_store_operate(fx.store, &operate, &changed, &refused, &fx.err));
	if (changed > 0) {
		ck_assert_int_eq(sim.all[n].delivered, 0);
		sim.all[n].discarded = true;
	}
	store_take_over();
}

static void finish(void)
{
	for (int w = 0; w < WRITERS; w++) {
		if (sim.open[w])
			end_writer(w, true);
	}
	for (int i = 0; i < 400; i++) {
		store_advance_ms(10000);
		read_and_record();
	}
	for (int n = 0; n < sim.count; n++) {
		const struct message *m = &sim.all[n];
		bool expected = m->committed && !m->discarded;

		ck_assert_msg(m->delivered == expected, "%d: delivered %d times, expected %d", n,
			      m->delivered, expected);
	}
}

static void run_seed(uint64_t seed, int steps)
{
	memset(&sim, 0, sizeof(sim));
	ob_rng_init(&rng, seed);
	store_begin(1 + draw(4));
	fx.delay_ms = 3000;
	for (int w = 0; w < WRITERS; w++)
		sim.writers[w] = store_open();
	store_hold_all(100000);
	for (int i = 0; i < steps && sim.count < MESSAGES_MAX - 100; i++) {
		uint32_t what = draw(100);

		if (what < 50)
			write_something();
		else if (what < 90)
			read_and_record();
		else if (what < 93)
			take_over_anew();
		else if (what < 96)
			discard_something();
		else
			store_advance_ms(2000);
	}
	finish();
	store_end();
}

OB_TEST(whatever_happens_everything_is_delivered_once_and_in_order)
{
	int seeds = strncmp(fx.backend->name, "memory", 6) == 0 ? 40 : 3;

	for (int seed = 1; seed <= seeds; seed++)
		run_seed((uint64_t)seed, 400);
}
OB_TEST_END

STORE_CASES(random, whatever_happens_everything_is_delivered_once_and_in_order)
