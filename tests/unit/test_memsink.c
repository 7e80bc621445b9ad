/* SPDX-License-Identifier: MIT */
/* The memory sink does what its plan says: other tests believe it. */
#include "doubles/memory_sink.h"
#include "suite.h"

struct scene {
	struct ob_clock_virtual clock;
	struct ob_memsink_log log;
	struct ob_memsink_plan plan;
	struct ob_sink *sink;
	struct ob_message messages[16];         /* by tag */
	struct ob_memsink_verdict verdicts[16]; /* by tag */
	struct ob_ack acks[16];
};

static struct ob_memsink_verdict judge(void *arg, const struct ob_delivery *delivery)
{
	return ((struct scene *)arg)->verdicts[delivery->tag];
}

static void scene_init(struct scene *s, const struct ob_sink_ops *ops)
{
	struct ob_err err = OB_ERR_INIT;

	*s = (struct scene){ .clock = OB_CLOCK_VIRTUAL(0) };
	ob_memsink_log_init(&s->log, false);
	s->plan = (struct ob_memsink_plan){
		.log = &s->log, .sender = "w1", .judge = judge, .judge_arg = s
	};
	ck_assert_int_eq(ob_memsink_new(ops, &s->plan, &s->clock.clock, &s->sink, &err), 0);
}

static void scene_done(struct scene *s)
{
	ob_sink_free(s->sink);
	ob_memsink_log_done(&s->log);
}

static void open_sink(struct scene *s)
{
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_sink_open(s->sink, &err), 0);
}

static int send_tag(struct scene *s, uint64_t tag, const char *key)
{
	struct ob_delivery d = { .tag = tag,
				 .message = &s->messages[tag],
				 .destination = OB_STR("d"),
				 .key = OB_STR("given"),
				 .body = OB_STR("{}") };
	struct ob_err err = OB_ERR_INIT;

	ck_assert_uint_lt(tag, sizeof(s->messages) / sizeof(s->messages[0]));
	s->messages[tag].key = ob_str(key);
	int r = ob_sink_send(s->sink, &d, &err);

	return r < 0 ? -(int)err.kind : r;
}

static int poll_all(struct scene *s)
{
	struct ob_err err = OB_ERR_INIT;

	return ob_sink_poll(s->sink, 0, s->acks, 16, &err);
}

static void check_log(const struct scene *s, size_t count, const uint64_t *tags)
{
	ck_assert_uint_eq(s->log.count, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(s->log.entries[i].tag, tags[i]);
}

OB_TEST(ordered_stores_nothing_of_a_key_behind_a_failure)
{
	struct scene s;

	scene_init(&s, &ob_sink_memory_ordered);
	open_sink(&s);
	s.verdicts[1].kind = OB_ERR_RETRY;
	ck_assert_int_eq(send_tag(&s, 0, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 1, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 2, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 3, "b"), 0);
	check_log(&s, 2, (const uint64_t[]){ 0, 3 });
	ck_assert_int_eq(poll_all(&s), 4);
	ck_assert_int_eq(s.acks[1].err.kind, OB_ERR_RETRY);
	ck_assert_int_eq(s.acks[2].err.kind, OB_ERR_RETRY);
	ck_assert_uint_eq(s.acks[2].tag, 2);
	ck_assert_int_eq(s.acks[3].err.kind, OB_ERR_NONE);
	ck_assert_int_eq(send_tag(&s, 4, "a"), 0); /* all fetched: usable again */
	check_log(&s, 3, (const uint64_t[]){ 0, 3, 4 });
	scene_done(&s);
}
OB_TEST_END

OB_TEST(ordered_goes_on_behind_a_rejected_message)
{
	struct scene s;

	scene_init(&s, &ob_sink_memory_ordered);
	open_sink(&s);
	s.verdicts[0].kind = OB_ERR_REJECT;
	ck_assert_int_eq(send_tag(&s, 0, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 1, "a"), 0);
	check_log(&s, 1, (const uint64_t[]){ 1 });
	ck_assert_int_eq(poll_all(&s), 2);
	scene_done(&s);
}
OB_TEST_END

OB_TEST(unordered_stores_what_comes_behind_a_failure)
{
	struct scene s;

	scene_init(&s, &ob_sink_memory);
	open_sink(&s);
	s.verdicts[0].kind = OB_ERR_RETRY;
	ck_assert_int_eq(send_tag(&s, 0, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 1, "a"), 0);
	check_log(&s, 1, (const uint64_t[]){ 1 });
	scene_done(&s);
}
OB_TEST_END

OB_TEST(a_lost_acknowledgement_is_stored_and_down)
{
	struct scene s;

	scene_init(&s, &ob_sink_memory);
	open_sink(&s);
	s.verdicts[0] = (struct ob_memsink_verdict){ .kind = OB_ERR_DOWN, .stored = true };
	s.verdicts[1].silent = true;
	s.verdicts[2] = (struct ob_memsink_verdict){ .kind = OB_ERR_REJECT, .at_send = true };
	ck_assert_int_eq(send_tag(&s, 0, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 1, "b"), 0);
	ck_assert_int_eq(send_tag(&s, 2, "c"), -OB_ERR_REJECT);
	check_log(&s, 2, (const uint64_t[]){ 0, 1 });
	ck_assert_int_eq(poll_all(&s), 1);
	ck_assert_int_eq(s.acks[0].err.kind, OB_ERR_DOWN);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(poll_all(&s), 0);
	ob_sink_reset(s.sink);
	ck_assert_int_eq(poll_all(&s), 0);
	scene_done(&s);
}
OB_TEST_END

OB_TEST(outcomes_wait_for_polls_and_for_the_clock)
{
	struct scene s;

	scene_init(&s, &ob_sink_memory);
	open_sink(&s);
	s.plan.ack_polls = 3;
	ck_assert_int_eq(send_tag(&s, 0, "a"), 0);
	ck_assert_int_eq(poll_all(&s), 0);
	ck_assert_int_eq(poll_all(&s), 0);
	ck_assert_int_eq(poll_all(&s), 1);
	s.plan.ack_polls = 0;
	s.plan.ack_delay_us = 1000;
	ck_assert_int_eq(send_tag(&s, 1, "a"), 0);
	ck_assert_int_eq(send_tag(&s, 2, "a"), 0);
	ck_assert_int_eq(poll_all(&s), 0);
	ob_clock_advance_us(&s.clock, 1000);
	s.plan.acks_per_poll = 1;
	ck_assert_int_eq(poll_all(&s), 1);
	ck_assert_int_eq(poll_all(&s), 1);
	scene_done(&s);
}
OB_TEST_END

OB_TEST(down_fails_everything_until_opened_again)
{
	struct scene s;
	struct ob_err err = OB_ERR_INIT;

	scene_init(&s, &ob_sink_memory);
	open_sink(&s);
	s.plan.store_late = true;
	ck_assert_int_eq(send_tag(&s, 0, "a"), 0);
	s.plan.down = true;
	ck_assert_int_eq(send_tag(&s, 1, "b"), -OB_ERR_DOWN);
	ck_assert_int_eq(poll_all(&s), 1);
	ck_assert_int_eq(s.acks[0].err.kind, OB_ERR_DOWN);
	ck_assert_int_lt(ob_sink_open(s.sink, &err), 0);
	s.plan.down = false;
	ck_assert_int_eq(send_tag(&s, 1, "b"), -OB_ERR_DOWN);
	open_sink(&s);
	ck_assert_int_eq(send_tag(&s, 1, "b"), 0);
	ck_assert_int_eq(poll_all(&s), 1);
	check_log(&s, 1, (const uint64_t[]){ 1 });
	ck_assert_str_eq(s.log.entries[0].sender, "w1");
	scene_done(&s);
}
OB_TEST_END

/* The outcomes of 16 sends to two keys; each key's must come in order. */
static void shuffled(uint64_t seed, uint64_t tags[16])
{
	uint64_t last[2] = { 0, 0 };
	struct scene s;

	scene_init(&s, &ob_sink_memory_ordered);
	s.plan.shuffle = seed;
	open_sink(&s);
	for (uint64_t i = 0; i < 16; i++)
		ck_assert_int_eq(send_tag(&s, i, i % 2 ? "a" : "b"), 0);
	ck_assert_int_eq(poll_all(&s), 16);
	for (uint64_t i = 0; i < 16; i++) {
		tags[i] = s.acks[i].tag;
		ck_assert_uint_ge(tags[i], last[tags[i] % 2]);
		last[tags[i] % 2] = tags[i];
	}
	scene_done(&s);
}

OB_TEST(a_seed_shuffles_outcomes_the_same_way_and_keeps_keys_in_order)
{
	uint64_t none[16], one[16], again[16];

	shuffled(0, none);
	shuffled(7, one);
	shuffled(7, again);
	ck_assert_mem_ne(none, one, sizeof(one));
	ck_assert_mem_eq(one, again, sizeof(one));
}
OB_TEST_END

OB_SUITE("memsink", ordered_stores_nothing_of_a_key_behind_a_failure,
	 ordered_goes_on_behind_a_rejected_message, unordered_stores_what_comes_behind_a_failure,
	 a_lost_acknowledgement_is_stored_and_down, outcomes_wait_for_polls_and_for_the_clock,
	 down_fails_everything_until_opened_again,
	 a_seed_shuffles_outcomes_the_same_way_and_keeps_keys_in_order)
