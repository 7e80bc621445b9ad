/* SPDX-License-Identifier: MIT */
/* Contract: which messages a fetch returns, in which order, within which limits. */
#include "store_harness.h"

static void expect_fetch(enum ob_ordering ordering, const char *labels)
{
	store_fetch(1000, ordering);
	ck_assert_str_eq(store_labels(&fx.batch), labels);
}

/* Run a fetch of all partitions with some settings changed. */
static void fetch_with(struct ob_fetch fetch, const char *labels)
{
	uint32_t all[STORE_LEASES_MAX];

	for (uint32_t i = 0; i < fx.partition_count; i++)
		all[i] = i;
	fetch.target = fetch.target ? fetch.target : "default";
	if (!fetch.partitions) {
		fetch.partitions = all;
		fetch.partition_count = fx.partition_count;
	}
	store_ok(ob_store_fetch(fx.store, &fetch, &fx.batch, &fx.err));
	if (labels)
		ck_assert_str_eq(store_labels(&fx.batch), labels);
}

OB_TEST(no_work_is_success_with_an_empty_batch)
{
	store_begin(1);
	expect_fetch(OB_ORDER_KEY, "");
	ck_assert_uint_eq(fx.batch.bytes, 0);
}
OB_TEST_END

OB_TEST(a_fetch_writes_nothing_and_returns_the_same_again)
{
	store_begin(1);
	store_put_key("a", "k");
	store_put_key("b", "k");
	char *before = store_dump();
	expect_fetch(OB_ORDER_KEY, "a b");
	expect_fetch(OB_ORDER_KEY, "a b");
	char *after = store_dump();
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
OB_TEST_END

OB_TEST(a_fetched_message_has_its_fields)
{
	static const char headers[] = "{\"h\": 1}";

	store_begin(4);
	store_put((struct outbox_message){
		.aggregate_type = "order",
		.aggregate_id = "1042",
		.event_type = "placed",
		.payload = "{ \"a\" :1}",
		.headers = headers,
		.id = "0195a1b2-0000-7000-8000-0000000000ff",
		.correlation_id = "corr",
		.causation_id = "caus",
		.sequence_number = 7,
		.occurred_at_us = 1234567,
		.revision = 3,
		.priority = -5,
	});
	store_fetch(10, OB_ORDER_KEY);
	const struct ob_message *m = store_fetched("placed");
	char id[OB_UUID_TEXT_SIZE];
	ob_uuid_format(&m->id, id);
	ck_assert_str_eq(id, "0195a1b2-0000-7000-8000-0000000000ff");
	ck_assert_str_eq(m->aggregate_type.p, "order");
	ck_assert_str_eq(m->aggregate_id.p, "1042");
	ck_assert(ob_str_eq(m->payload, OB_STR("{ \"a\" :1}")));
	ck_assert(ob_str_eq(m->headers, ob_str(headers)));
	ck_assert_str_eq(m->correlation_id.p, "corr");
	ck_assert_str_eq(m->causation_id.p, "caus");
	ck_assert_str_eq(m->key.p, "order:1042");
	ck_assert_str_eq(m->target.p, "default");
	ck_assert_int_eq(m->sequence_number, 7);
	ck_assert_int_eq(m->occurred_at_us, 1234567);
	ck_assert_int_eq(m->created_at_us, fx.start_us);
	ck_assert_int_eq(m->revision, 3);
	ck_assert_int_eq(m->priority, -5);
	ck_assert_uint_lt(m->partition, 4);
	ck_assert_uint_eq(m->attempts, 0);
	ck_assert_int_eq(m->state, OB_STATE_PENDING);
	ck_assert_uint_eq(fx.batch.bytes, m->payload.n + m->headers.n);
}
OB_TEST_END

OB_TEST(absent_fields_stay_absent)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "t", .flags = OUTBOX_TOMBSTONE });
	store_fetch(10, OB_ORDER_KEY);
	const struct ob_message *m = store_fetched("t");
	ck_assert_ptr_null(m->payload.p);
	ck_assert_ptr_null(m->headers.p);
	ck_assert_ptr_null(m->aggregate_id.p);
	ck_assert_ptr_null(m->key.p);
	ck_assert_ptr_null(m->correlation_id.p);
	ck_assert_int_eq(m->sequence_number, 0);
	ck_assert_int_eq(m->revision, 1);
}
OB_TEST_END

OB_TEST(a_delayed_message_is_due_at_its_exact_instant)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "late", .delay_ms = 1000 });
	store_put_key("now", NULL);
	expect_fetch(OB_ORDER_KEY, "now");
	store_advance_ms(999);
	expect_fetch(OB_ORDER_KEY, "now");
	store_advance_ms(1);
	expect_fetch(OB_ORDER_KEY, "late now");
}
OB_TEST_END

OB_TEST(only_rows_of_the_target_are_fetched)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "mine" });
	store_put((struct outbox_message){ .event_type = "other", .target = "audit" });
	expect_fetch(OB_ORDER_KEY, "mine");
	fetch_with((struct ob_fetch){ .target = "audit", .limit = 9, .max_bytes = 999 }, "other");
	fetch_with((struct ob_fetch){ .target = "audi", .limit = 9, .max_bytes = 999 }, "");
}
OB_TEST_END

OB_TEST(an_empty_list_of_partitions_fetches_nothing)
{
	const uint32_t none = 0;

	store_begin(1);
	store_put_key("a", NULL);
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 999 }, "a");
	const struct ob_fetch fetch = {
		.target = "default", .partitions = &none, .limit = 9, .max_bytes = 999
	};
	store_ok(ob_store_fetch(fx.store, &fetch, &fx.batch, &fx.err));
	ck_assert_uint_eq(fx.batch.count, 0);
}
OB_TEST_END

OB_TEST(only_the_given_partitions_are_fetched_in_their_order)
{
	char label[16];
	uint32_t seen = 0;

	store_begin(4);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(label, sizeof(label), "m%d", i);
		store_put_key(label, label);
	}
	for (uint32_t p = 0; p < 4; p++) {
		fetch_with((struct ob_fetch){ .partitions = &p,
					      .partition_count = 1,
					      .limit = 100,
					      .max_bytes = 1 << 20 },
			   NULL);
		for (uint32_t i = 0; i < fx.batch.count; i++)
			ck_assert_uint_eq(fx.batch.messages[i].partition, p);
		seen += fx.batch.count;
	}
	ck_assert_uint_eq(seen, 40);

	const uint32_t two[] = { 3, 1 };
	fetch_with((struct ob_fetch){ .partitions = two,
				      .partition_count = 2,
				      .limit = 100,
				      .max_bytes = 1 << 20 },
		   NULL);
	ck_assert_uint_gt(fx.batch.count, 0);
	for (uint32_t i = 1; i < fx.batch.count; i++) {
		const struct ob_message *a = &fx.batch.messages[i - 1], *b = a + 1;
		ck_assert(a->partition == 3 || b->partition == 1);
		ck_assert(a->partition != b->partition || a->seq < b->seq);
	}
}
OB_TEST_END

OB_TEST(higher_priority_goes_first_and_ties_keep_their_order)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a" });
	store_put((struct outbox_message){ .event_type = "b", .priority = 5 });
	store_put((struct outbox_message){ .event_type = "c", .priority = -1 });
	store_put((struct outbox_message){ .event_type = "d", .priority = 5 });
	store_put((struct outbox_message){ .event_type = "e" });
	expect_fetch(OB_ORDER_KEY, "b d a e c");
}
OB_TEST_END

OB_TEST(the_limit_is_respected)
{
	store_begin(1);
	store_put_key("a", NULL);
	store_put_key("b", NULL);
	store_put_key("c", NULL);
	fetch_with((struct ob_fetch){ .limit = 0, .max_bytes = 999 }, "");
	fetch_with((struct ob_fetch){ .limit = 1, .max_bytes = 999 }, "a");
	fetch_with((struct ob_fetch){ .limit = 2, .max_bytes = 999 }, "a b");
	fetch_with((struct ob_fetch){ .limit = 4, .max_bytes = 999 }, "a b c");
}
OB_TEST_END

OB_TEST(a_limit_of_zero_empties_a_batch_that_had_messages)
{
	store_begin(1);
	store_put_key("a", NULL);
	fetch_with((struct ob_fetch){ .limit = 1, .max_bytes = 999 }, "a");
	fetch_with((struct ob_fetch){ .limit = 0, .max_bytes = 999 }, "");
}
OB_TEST_END

OB_TEST(excluded_messages_are_left_out_and_later_ones_are_not)
{
	int64_t exclude[2];

	store_begin(1);
	store_put_key("a", "k");
	store_put_key("b", "k");
	store_put_key("c", "k");
	store_put_key("d", "k");
	store_fetch(9, OB_ORDER_KEY);
	exclude[0] = store_fetched("a")->seq;
	exclude[1] = store_fetched("c")->seq;
	fetch_with(
		(struct ob_fetch){
			.exclude = exclude, .exclude_count = 2, .limit = 9, .max_bytes = 999 },
		"b d");
	fetch_with(
		(struct ob_fetch){
			.exclude = exclude, .exclude_count = 2, .limit = 1, .max_bytes = 999 },
		"b");
}
OB_TEST_END

OB_TEST(max_bytes_ends_the_batch_but_one_message_always_fits)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "b", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "c", .payload = "1" });
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 1 }, "a");
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 0 }, "a");
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 10 }, "a");
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 19 }, "a");
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 20 }, "a b");
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 21 }, "a b c");
}
OB_TEST_END

OB_TEST(headers_count_towards_max_bytes)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .payload = "1", .headers = "{}" });
	store_put((struct outbox_message){ .event_type = "b", .payload = "2", .headers = "{}" });
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 5 }, "a");
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 6 }, "a b");
}
OB_TEST_END

OB_TEST(nothing_overtakes_a_message_that_does_not_fit)
{
	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .payload = "1" });
	store_put((struct outbox_message){ .event_type = "big", .payload = "\"12345678\"" });
	store_put((struct outbox_message){ .event_type = "c", .payload = "1" });
	fetch_with((struct ob_fetch){ .limit = 9, .max_bytes = 5 }, "a");
}
OB_TEST_END

/* Put `each` messages into every partition, found by trying keys. */
static void fill_partitions(uint32_t each, uint32_t only)
{
	uint32_t have[STORE_LEASES_MAX] = { 0 };
	uint32_t full = 0;
	char key[16];

	for (int i = 0; full < fx.partition_count && i < 2000; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		store_put((struct outbox_message){
			.event_type = key, .partition_key = key, .delay_ms = 1000000 });
		uint32_t p = store_row(key)->partition;
		if (have[p] == each || (only < fx.partition_count && p != only)) {
			store_operate(OB_VERB_DISCARD, key, 1, 0);
			full += only < fx.partition_count && full == 0 ? fx.partition_count - 1 : 0;
			continue;
		}
		full += ++have[p] == each;
	}
	store_advance_ms(1000000);
}

static void count_partitions(uint32_t counts[STORE_LEASES_MAX])
{
	for (uint32_t i = 0; i < STORE_LEASES_MAX; i++)
		counts[i] = 0;
	for (uint32_t i = 0; i < fx.batch.count; i++)
		counts[fx.batch.messages[i].partition]++;
}

OB_TEST(every_partition_with_work_gets_its_fair_share)
{
	uint32_t counts[STORE_LEASES_MAX];

	store_begin(4);
	fill_partitions(6, UINT32_MAX);
	fetch_with((struct ob_fetch){ .limit = 10, .max_bytes = 1 << 20 }, NULL);
	ck_assert_uint_eq(fx.batch.count, 10);
	count_partitions(counts);
	for (int p = 0; p < 4; p++)
		ck_assert_uint_ge(counts[p], 2);
}
OB_TEST_END

OB_TEST(a_limit_below_the_number_of_partitions_gives_one_each)
{
	uint32_t counts[STORE_LEASES_MAX];

	store_begin(4);
	fill_partitions(3, UINT32_MAX);
	fetch_with((struct ob_fetch){ .limit = 3, .max_bytes = 1 << 20 }, NULL);
	ck_assert_uint_eq(fx.batch.count, 3);
	count_partitions(counts);
	ck_assert_uint_eq(counts[0], 1);
	ck_assert_uint_eq(counts[1], 1);
	ck_assert_uint_eq(counts[2], 1);
}
OB_TEST_END

OB_TEST(what_others_leave_of_the_limit_goes_to_a_busy_partition)
{
	store_begin(4);
	fill_partitions(12, 2);
	fetch_with((struct ob_fetch){ .limit = 10, .max_bytes = 1 << 20 }, NULL);
	ck_assert_uint_eq(fx.batch.count, 10);
	for (uint32_t i = 0; i < 10; i++)
		ck_assert_uint_eq(fx.batch.messages[i].partition, 2);
}
OB_TEST_END

OB_TEST(a_failed_message_holds_its_key_only)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put_key("b1", "b");
	store_put_key("free", NULL);
	fx.outcome.delay_ms = 5000;
	store_fetch_settle("a1", OB_OUTCOME_RETRY);
	store_put_key("a2", "a");
	store_put_key("b2", "b");
	expect_fetch(OB_ORDER_KEY, "b1 free b2");
	store_advance_ms(4999);
	expect_fetch(OB_ORDER_KEY, "b1 free b2");
	store_advance_ms(1);
	expect_fetch(OB_ORDER_KEY, "a1 b1 free b2");
}
OB_TEST_END

OB_TEST(a_key_is_held_in_its_own_target_only)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put((struct outbox_message){
		.event_type = "x1", .partition_key = "a", .target = "audit" });
	fx.outcome.delay_ms = 5000;
	store_fetch_settle("a1", OB_OUTCOME_RETRY);
	fetch_with((struct ob_fetch){ .target = "audit", .limit = 9, .max_bytes = 999 }, "x1");
	store_expect_state("x1", OB_STATE_PENDING);
}
OB_TEST_END

OB_TEST(a_message_without_a_key_holds_nothing_and_is_not_held)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("n1", NULL);
	store_put_key("n2", NULL);
	fx.outcome.delay_ms = 5000;
	store_fetch_settle("n1", OB_OUTCOME_RETRY);
	expect_fetch(OB_ORDER_KEY, "n2");
}
OB_TEST_END

OB_TEST(with_partition_order_a_failed_message_holds_its_partition)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put_key("b1", "b");
	store_put_key("free", NULL);
	fx.outcome.delay_ms = 5000;
	fx.settle.ordering = OB_ORDER_PARTITION;
	store_fetch_settle("a1", OB_OUTCOME_RETRY);
	store_put_key("b2", "b");
	expect_fetch(OB_ORDER_PARTITION, "");
	store_advance_ms(5000);
	expect_fetch(OB_ORDER_PARTITION, "a1");
	store_settle("a1", OB_OUTCOME_PUBLISHED);
	expect_fetch(OB_ORDER_PARTITION, "b1 free b2");
}
OB_TEST_END

OB_TEST(with_partition_order_a_message_without_a_key_holds_too)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("n1", NULL);
	store_put_key("a1", "a");
	fx.outcome.delay_ms = 5000;
	fx.settle.ordering = OB_ORDER_PARTITION;
	store_fetch_settle("n1", OB_OUTCOME_RETRY);
	expect_fetch(OB_ORDER_PARTITION, "");
}
OB_TEST_END

OB_TEST(without_order_a_failed_message_holds_nothing)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a1", "a");
	store_put_key("a2", "a");
	fx.outcome.delay_ms = 5000;
	fx.settle.ordering = OB_ORDER_NONE;
	store_fetch_settle("a1", OB_OUTCOME_RETRY);
	store_put_key("a3", "a");
	expect_fetch(OB_ORDER_NONE, "a2 a3");
}
OB_TEST_END

OB_TEST(published_dead_and_parked_rows_are_never_fetched)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("p", "1");
	store_put_key("d", "2");
	store_put_key("f", "3");
	store_put_key("parked", "3");
	store_fetch(9, OB_ORDER_KEY);
	store_settle("p", OB_OUTCOME_PUBLISHED);
	store_settle("d", OB_OUTCOME_DEAD);
	fx.outcome.delay_ms = 1000;
	store_settle("f", OB_OUTCOME_RETRY);
	store_advance_ms(INT64_C(1000) * 3600 * 24 * 365);
	expect_fetch(OB_ORDER_KEY, "f");
}
OB_TEST_END

OB_TEST(a_failed_message_keeps_its_place_when_its_retry_is_due)
{
	store_begin(1);
	store_hold_all(&fx.me, 60000);
	store_put_key("a", "1");
	store_put_key("b", "2");
	store_put_key("c", "3");
	fx.outcome.delay_ms = 10;
	store_fetch_settle("b", OB_OUTCOME_RETRY);
	store_advance_ms(10);
	expect_fetch(OB_ORDER_KEY, "a b c");
	ck_assert_uint_eq(store_fetched("b")->attempts, 1);
	ck_assert_int_eq(store_fetched("b")->state, OB_STATE_FAILED);
}
OB_TEST_END

OB_TEST(a_row_under_a_valid_claim_is_not_fetched)
{
	store_begin(1);
	store_put_key("a", NULL);
	store_put_key("b", NULL);
	store_claim(fx.store, 1, 1, 1000);
	expect_fetch(OB_ORDER_NONE, "b");
	store_advance_ms(1000);
	expect_fetch(OB_ORDER_NONE, "a b");
}
OB_TEST_END

OB_TEST(a_late_commit_of_a_lower_number_is_fetched_first)
{
	store_begin(1);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *slow = store_open();
	store_ok(ob_store_tx_begin(slow, &fx.err));
	store_push(slow, (struct outbox_message){ .event_type = "slow", .partition_key = "k" });
	store_put_key("fast", "k");
	expect_fetch(OB_ORDER_KEY, "fast");
	const int64_t exclude[] = { store_fetched("fast")->seq };
	store_ok(ob_store_tx_end(slow, true, &fx.err));
	expect_fetch(OB_ORDER_KEY, "slow fast");
	fetch_with(
		(struct ob_fetch){
			.exclude = exclude, .exclude_count = 1, .limit = 9, .max_bytes = 999 },
		"slow");
}
OB_TEST_END

STORE_CASES(fetch, no_work_is_success_with_an_empty_batch,
	    a_fetch_writes_nothing_and_returns_the_same_again, a_fetched_message_has_its_fields,
	    absent_fields_stay_absent, a_delayed_message_is_due_at_its_exact_instant,
	    only_rows_of_the_target_are_fetched, an_empty_list_of_partitions_fetches_nothing,
	    only_the_given_partitions_are_fetched_in_their_order,
	    higher_priority_goes_first_and_ties_keep_their_order, the_limit_is_respected,
	    a_limit_of_zero_empties_a_batch_that_had_messages,
	    excluded_messages_are_left_out_and_later_ones_are_not,
	    max_bytes_ends_the_batch_but_one_message_always_fits, headers_count_towards_max_bytes,
	    nothing_overtakes_a_message_that_does_not_fit,
	    every_partition_with_work_gets_its_fair_share,
	    a_limit_below_the_number_of_partitions_gives_one_each,
	    what_others_leave_of_the_limit_goes_to_a_busy_partition,
	    a_failed_message_holds_its_key_only, a_key_is_held_in_its_own_target_only,
	    a_message_without_a_key_holds_nothing_and_is_not_held,
	    with_partition_order_a_failed_message_holds_its_partition,
	    with_partition_order_a_message_without_a_key_holds_too,
	    without_order_a_failed_message_holds_nothing,
	    published_dead_and_parked_rows_are_never_fetched,
	    a_failed_message_keeps_its_place_when_its_retry_is_due,
	    a_row_under_a_valid_claim_is_not_fetched,
	    a_late_commit_of_a_lower_number_is_fetched_first)
