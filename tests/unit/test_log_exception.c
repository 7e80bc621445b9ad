/* SPDX-License-Identifier: MIT */
/* What becomes of messages that fail, wait, or are changed by an operator. */
#include "base/message.h"
#include "log/exception.h"
#include "suite.h"

static struct ob_decide by_key = { .ordering = OB_ORDER_KEY };
static struct ob_message message;
static struct ob_change change;
static bool promote;

/* A row of the log, seq 7 of partition 3, with key k. */
static void from_log(void)
{
	message = (struct ob_message){
		.seq = 7, .partition = 3, .key = OB_STR("k"), .available_at_us = 77
	};
}

static void from_exceptions(enum ob_state state, uint32_t attempts)
{
	from_log();
	message.excepted = true;
	message.state = (uint8_t)state;
	message.attempts = attempts;
}

static bool decide(const struct ob_decide *how, enum ob_outcome_kind outcome)
{
	change = (struct ob_change){ .seq = -1 };
	promote = true;
	bool any =
		ob_exception_decide(how, &message, outcome, 500, OB_STR("why"), &change, &promote);

	if (any) {
		ck_assert_int_eq(change.seq, 7);
		ck_assert_uint_eq(change.partition, 3);
		ck_assert_uint_eq(change.was_attempts, message.attempts);
	} else {
		ck_assert(!promote);
	}
	return any;
}

static void check_change(enum ob_change_kind kind, enum ob_state state, uint32_t attempts,
			 enum ob_due due, const char *queue, bool promotes)
{
	ck_assert_int_eq(change.kind, kind);
	ck_assert_int_eq(change.state, state);
	ck_assert_uint_eq(change.attempts, attempts);
	ck_assert_int_eq(change.due, due);
	ck_assert(ob_str_eq(change.queue, ob_str(queue)));
	ck_assert_int_eq(promote, promotes);
}

OB_TEST(the_queue_is_the_key_the_partition_or_none)
{
	from_log();
	ck_assert(ob_str_eq(ob_exception_queue(&by_key, &message), OB_STR("k")));
	by_key.ordering = OB_ORDER_PARTITION;
	ck_assert(ob_str_eq(ob_exception_queue(&by_key, &message), OB_STR("")));
	by_key.ordering = OB_ORDER_NONE;
	ck_assert_ptr_null(ob_exception_queue(&by_key, &message).p);
	/* What stands in a queue is found there, whatever the ordering is by now. */
	from_exceptions(OB_STATE_WAITING, 0);
	message.queue = OB_STR("k");
	ck_assert(ob_str_eq(ob_exception_queue(&by_key, &message), OB_STR("k")));
	ck_assert(decide(&by_key, OB_OUTCOME_PUBLISHED));
	ck_assert(promote);
	by_key.ordering = OB_ORDER_KEY;
	from_log();
	message.key = OB_STR_NULL;
	ck_assert_ptr_null(ob_exception_queue(&by_key, &message).p);
}
OB_TEST_END

OB_TEST(a_published_message_leaves_nothing)
{
	from_log();
	ck_assert(!decide(&by_key, OB_OUTCOME_PUBLISHED));
	from_exceptions(OB_STATE_FAILED, 2);
	ck_assert(decide(&by_key, OB_OUTCOME_PUBLISHED));
	ck_assert_int_eq(change.kind, OB_CHANGE_REMOVE);
	ck_assert(promote);
	message.key = OB_STR_NULL;
	ck_assert(decide(&by_key, OB_OUTCOME_PUBLISHED));
	ck_assert(!promote);
}
OB_TEST_END

OB_TEST(a_failed_message_is_due_again_and_holds_its_key)
{
	from_log();
	ck_assert(decide(&by_key, OB_OUTCOME_RETRY));
	check_change(OB_CHANGE_ADD, OB_STATE_FAILED, 1, OB_DUE_AFTER, "k", false);
	ck_assert_int_eq(change.delay_ms, 500);
	ck_assert(ob_str_eq(change.error, OB_STR("why")));
	from_exceptions(OB_STATE_WAITING, 4);
	ck_assert(decide(&by_key, OB_OUTCOME_RETRY));
	check_change(OB_CHANGE_SET, OB_STATE_FAILED, 5, OB_DUE_AFTER, "k", false);
	/* One that was delayed and held nothing joins its queue. */
	from_exceptions(OB_STATE_DELAYED, 0);
	ck_assert(decide(&by_key, OB_OUTCOME_RETRY));
	check_change(OB_CHANGE_SET, OB_STATE_FAILED, 1, OB_DUE_AFTER, "k", false);
	by_key.ordering = OB_ORDER_NONE;
	from_log();
	ck_assert(decide(&by_key, OB_OUTCOME_RETRY));
	check_change(OB_CHANGE_ADD, OB_STATE_FAILED, 1, OB_DUE_AFTER, NULL, false);
}
OB_TEST_END

OB_TEST(a_dead_message_lets_its_key_go_on)
{
	from_log();
	ck_assert(decide(&by_key, OB_OUTCOME_DEAD));
	check_change(OB_CHANGE_ADD, OB_STATE_DEAD, 1, OB_DUE_NEVER, NULL, false);
	ck_assert(ob_str_eq(change.error, OB_STR("why")));
	from_exceptions(OB_STATE_FAILED, 2);
	ck_assert(decide(&by_key, OB_OUTCOME_DEAD));
	check_change(OB_CHANGE_SET, OB_STATE_DEAD, 3, OB_DUE_NEVER, NULL, true);
}
OB_TEST_END

OB_TEST(a_dead_message_holds_its_key_where_that_is_wanted)
{
	by_key.hold_dead = true;
	from_exceptions(OB_STATE_FAILED, 2);
	ck_assert(decide(&by_key, OB_OUTCOME_DEAD));
	check_change(OB_CHANGE_SET, OB_STATE_DEAD_HOLD, 3, OB_DUE_NEVER, "k", false);
	/* Without a queue there is nothing to hold. */
	message.key = OB_STR_NULL;
	ck_assert(decide(&by_key, OB_OUTCOME_DEAD));
	check_change(OB_CHANGE_SET, OB_STATE_DEAD, 3, OB_DUE_NEVER, NULL, false);
}
OB_TEST_END

OB_TEST(a_parked_message_waits_for_promotion)
{
	from_log();
	ck_assert(decide(&by_key, OB_OUTCOME_PARK));
	check_change(OB_CHANGE_ADD, OB_STATE_WAITING, 0, OB_DUE_NEVER, "k", true);
	ck_assert_ptr_null(change.error.p);
	/* Not rewritten: a failure costs one row, not the length of the queue. */
	from_exceptions(OB_STATE_WAITING, 0);
	ck_assert(!decide(&by_key, OB_OUTCOME_PARK));
	from_exceptions(OB_STATE_FAILED, 3);
	ck_assert(!decide(&by_key, OB_OUTCOME_PARK));
	by_key.hold_delayed = true;
	from_exceptions(OB_STATE_DELAYED, 0);
	ck_assert(!decide(&by_key, OB_OUTCOME_PARK));
}
OB_TEST_END

OB_TEST(a_parked_message_without_a_queue_is_due)
{
	from_log();
	message.key = OB_STR_NULL;
	ck_assert(decide(&by_key, OB_OUTCOME_PARK));
	check_change(OB_CHANGE_ADD, OB_STATE_WAITING, 0, OB_DUE_AFTER, NULL, false);
	ck_assert_int_eq(change.delay_ms, 0);
}
OB_TEST_END

OB_TEST(one_that_was_delayed_without_holding_joins_its_queue_when_parked)
{
	/* Its own row has no queue and is due: left as it is, it would be read over and over. */
	from_exceptions(OB_STATE_DELAYED, 0);
	ck_assert(decide(&by_key, OB_OUTCOME_PARK));
	check_change(OB_CHANGE_SET, OB_STATE_WAITING, 0, OB_DUE_NEVER, "k", true);
}
OB_TEST_END

OB_TEST(a_delayed_message_is_due_at_its_time)
{
	from_log();
	message.delayed = true;
	ck_assert(decide(&by_key, OB_OUTCOME_DELAY));
	check_change(OB_CHANGE_ADD, OB_STATE_DELAYED, 0, OB_DUE_AVAILABLE, NULL, false);
	ck_assert_int_eq(change.available_at_us, 77);
	by_key.hold_delayed = true;
	ck_assert(decide(&by_key, OB_OUTCOME_DELAY));
	check_change(OB_CHANGE_ADD, OB_STATE_DELAYED, 0, OB_DUE_AVAILABLE, "k", false);
	/* Held and not due: parked, and still not sent before its time. */
	ck_assert(decide(&by_key, OB_OUTCOME_PARK));
	check_change(OB_CHANGE_ADD, OB_STATE_DELAYED, 0, OB_DUE_AVAILABLE, "k", false);
}
OB_TEST_END

OB_TEST(a_spilled_message_is_due_at_once)
{
	from_log();
	ck_assert(decide(&by_key, OB_OUTCOME_SPILL));
	check_change(OB_CHANGE_ADD, OB_STATE_WAITING, 0, OB_DUE_AFTER, "k", false);
	ck_assert_int_eq(change.delay_ms, 0);
	from_exceptions(OB_STATE_FAILED, 1);
	ck_assert(!decide(&by_key, OB_OUTCOME_SPILL));
}
OB_TEST_END

/* ---- operator verbs -------------------------------------------------- */

/* For each way a message may be found: does the verb apply, and what becomes of it? */
struct verb_case {
	bool covered, excepted;
	enum ob_state state;
	const char *queue;
	bool allowed[3];         /* retry, skip, discard */
	const char *retry_queue; /* where retry is allowed */
};

static void check_verb(const struct verb_case *c, enum ob_verb verb)
{
	const struct ob_verb_row row = {
		.covered = c->covered,
		.excepted = c->excepted,
		.state = c->state,
		.partition = 3,
		.attempts = 4,
		.seq = 7,
		.queue = ob_str(c->queue),
	};
	uint32_t attempts = c->excepted ? 4 : 0;
	bool allowed = ob_exception_verb(verb, &row, &change, &promote);

	ck_assert_msg(allowed == c->allowed[verb], "verb %d, excepted %d, state %d", verb,
		      c->excepted, c->state);
	if (!allowed)
		return;
	ck_assert_int_eq(change.seq, 7);
	ck_assert_uint_eq(change.partition, 3);
	ck_assert_uint_eq(change.was_attempts, attempts);
	ck_assert_ptr_null(change.error.p);
	if (verb == OB_VERB_RETRY)
		check_change(OB_CHANGE_SET, OB_STATE_WAITING, 0, OB_DUE_AFTER, c->retry_queue,
			     false);
	else
		check_change(c->excepted ? OB_CHANGE_SET : OB_CHANGE_ADD,
			     verb == OB_VERB_SKIP ? OB_STATE_DEAD : OB_STATE_DISCARDED, attempts,
			     OB_DUE_NEVER, NULL, c->excepted && c->queue);
}

OB_TEST(a_verb_applies_where_the_state_allows_it)
{
	static const struct verb_case cases[] = {
		{ .covered = true, .allowed = { false, false, false } },
		{ .covered = false, .allowed = { false, true, true } },
		{ true, true, OB_STATE_WAITING, "k", { false, true, true }, NULL },
		{ true, true, OB_STATE_WAITING, NULL, { false, true, true }, NULL },
		{ true, true, OB_STATE_DELAYED, "k", { false, true, true }, NULL },
		{ true, true, OB_STATE_FAILED, "k", { true, true, true }, "k" },
		{ true, true, OB_STATE_FAILED, NULL, { true, true, true }, NULL },
		{ false, true, OB_STATE_FAILED, "k", { true, true, true }, "k" },
		{ true, true, OB_STATE_DEAD, NULL, { true, false, true }, NULL },
		{ true, true, OB_STATE_DEAD_HOLD, "k", { true, true, true }, "k" },
		{ true, true, OB_STATE_DISCARDED, NULL, { false, false, false }, NULL },
		{ true, true, OB_STATE_DONE, NULL, { false, false, false }, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_verb(&cases[i], OB_VERB_RETRY);
		check_verb(&cases[i], OB_VERB_SKIP);
		check_verb(&cases[i], OB_VERB_DISCARD);
	}
}
OB_TEST_END

OB_SUITE("log_exception", the_queue_is_the_key_the_partition_or_none,
	 a_published_message_leaves_nothing, a_failed_message_is_due_again_and_holds_its_key,
	 a_dead_message_lets_its_key_go_on, a_dead_message_holds_its_key_where_that_is_wanted,
	 a_parked_message_waits_for_promotion, a_parked_message_without_a_queue_is_due,
	 one_that_was_delayed_without_holding_joins_its_queue_when_parked,
	 a_delayed_message_is_due_at_its_time, a_spilled_message_is_due_at_once,
	 a_verb_applies_where_the_state_allows_it)
