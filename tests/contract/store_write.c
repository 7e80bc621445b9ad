/* SPDX-License-Identifier: MIT */
/* Contract: write transactions: what is stored, what is refused, and what a rollback leaves. */
#include "store_harness.h"

static const char id_a[] = "0195a1b2-0000-7000-8000-00000000000a";

static uint32_t count_rows(void)
{
	const struct ob_filter everything = { .reader = "main" };
	int64_t now;

	store_ok(ob_store_list(fx.store, &everything, &fx.look, &now, &fx.err));
	return fx.look.count;
}

static void begin(void)
{
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
}

static void end(bool commit)
{
	store_ok(ob_store_tx_end(fx.store, commit, &fx.err));
}

/* Push `count` messages into the open transaction; the status. */
static int push(struct outbox_message *messages, size_t count, size_t *ret_index)
{
	for (size_t i = 0; i < count; i++)
		messages[i] = store_filled(messages[i]);
	return ob_store_tx_push(fx.store, messages, count, NULL, ret_index, &fx.err);
}

OB_TEST(messages_of_a_transaction_show_at_its_commit_in_order)
{
	struct outbox_message messages[] = { { .event_type = "a" }, { .event_type = "b" } };
	struct outbox_id ids[2];
	size_t index;

	store_begin(1);
	struct ob_store *reader = store_open();
	begin();
	for (size_t i = 0; i < 2; i++)
		messages[i] = store_filled(messages[i]);
	store_ok(ob_store_tx_push(fx.store, messages, 2, ids, &index, &fx.err));
	store_push(fx.store, (struct outbox_message){ .event_type = "c" });

	const struct ob_filter everything = { .reader = "main" };
	int64_t now;
	store_ok(ob_store_list(reader, &everything, &fx.look, &now, &fx.err));
	ck_assert_uint_eq(fx.look.count, 0);
	end(true);
	store_ok(ob_store_list(reader, &everything, &fx.look, &now, &fx.err));
	ck_assert_str_eq(store_labels(&fx.look), "a b c");
	for (size_t i = 0; i < 2; i++) {
		struct ob_uuid id;

		ck_assert(ob_uuid_parse(ob_str(ids[i].text), &id));
		ck_assert(ob_uuid_eq(&id, &fx.look.messages[i].id));
	}
}
OB_TEST_END

OB_TEST(a_rollback_leaves_nothing)
{
	store_begin(1);
	begin();
	store_push(fx.store, (struct outbox_message){ .event_type = "a", .id = id_a });
	end(false);
	ck_assert_uint_eq(count_rows(), 0);
	end(false); /* always allowed */
	store_put((struct outbox_message){ .event_type = "a", .id = id_a });
	ck_assert_uint_eq(count_rows(), 1);
}
OB_TEST_END

OB_TEST(closing_a_store_rolls_back)
{
	store_begin(1);
	struct ob_store *writer = fx.backend->open();
	store_ok(ob_store_tx_begin(writer, &fx.err));
	store_push(writer, (struct outbox_message){ .event_type = "a", .id = id_a });
	ob_store_free(writer);
	ck_assert_uint_eq(count_rows(), 0);
	store_put((struct outbox_message){ .event_type = "a", .id = id_a });
}
OB_TEST_END

OB_TEST(pushing_without_a_transaction_is_refused)
{
	struct outbox_message message = { .event_type = "a" };
	size_t index;

	store_begin(1);
	ck_assert_int_eq(push(&message, 1, &index), OUTBOX_ENOTRANSACTION);
	ck_assert_uint_eq(count_rows(), 0);
}
OB_TEST_END

OB_TEST(no_message_is_success)
{
	size_t index;

	store_begin(1);
	begin();
	store_ok(ob_store_tx_push(fx.store, NULL, 0, NULL, &index, &fx.err));
	end(true);
	ck_assert_uint_eq(count_rows(), 0);
}
OB_TEST_END

OB_TEST(a_bad_message_is_named_and_the_transaction_goes_on)
{
	struct outbox_message messages[] = { { .event_type = "a" },
					     { .event_type = "b", .payload = "{" },
					     { .event_type = "c" } };
	size_t index = 77;

	store_begin(1);
	begin();
	ck_assert_int_eq(push(messages, 3, &index), OUTBOX_EPAYLOADJSON);
	ck_assert_uint_eq(index, 1);
	store_push(fx.store, (struct outbox_message){ .event_type = "d" });
	end(true);
	ck_assert_uint_eq(count_rows(), 1);
	ck_assert_str_eq(store_labels(&fx.look), "d");
}
OB_TEST_END

OB_TEST(what_is_missing_has_its_own_error)
{
	struct outbox_message bad = { .event_type = "e", .payload = "1" };
	size_t index;

	store_begin(1);
	begin();
	ck_assert_int_eq(ob_store_tx_push(fx.store, &bad, 1, NULL, &index, &fx.err),
			 OUTBOX_EAGGREGATETYPE);
	bad = (struct outbox_message){ .aggregate_type = "t", .payload = "1" };
	ck_assert_int_eq(ob_store_tx_push(fx.store, &bad, 1, NULL, &index, &fx.err),
			 OUTBOX_EEVENTTYPE);
	bad = (struct outbox_message){ .aggregate_type = "t", .event_type = "e" };
	ck_assert_int_eq(ob_store_tx_push(fx.store, &bad, 1, NULL, &index, &fx.err),
			 OUTBOX_ENOPAYLOAD);
	bad = store_filled((struct outbox_message){ .headers = "[]" });
	ck_assert_int_eq(ob_store_tx_push(fx.store, &bad, 1, NULL, &index, &fx.err),
			 OUTBOX_EHEADERSJSON);
	bad = store_filled((struct outbox_message){ .id = "no" });
	ck_assert_int_eq(ob_store_tx_push(fx.store, &bad, 1, NULL, &index, &fx.err), OUTBOX_EID);
	end(true);
	ck_assert_uint_eq(count_rows(), 0);
}
OB_TEST_END

OB_TEST(the_same_id_is_a_duplicate_in_one_target_only)
{
	struct outbox_message again[] = { { .event_type = "n" },
					  { .event_type = "b", .id = id_a } };
	size_t index = 77;

	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .id = id_a });
	store_put((struct outbox_message){ .event_type = "x", .id = id_a, .target = "audit" });
	begin();
	ck_assert_int_eq(push(again, 2, &index), OUTBOX_EDUPID);
	ck_assert_uint_eq(index, 1);
	store_push(fx.store, (struct outbox_message){ .event_type = "c" });
	end(true);
	ck_assert_uint_eq(count_rows(), 2);
	ck_assert_str_eq(store_labels(&fx.look), "a c");
}
OB_TEST_END

OB_TEST(a_failed_push_leaves_no_id_behind)
{
	static const char id_b[] = "0195a1b2-0000-7000-8000-00000000000b";
	struct outbox_message messages[] = { { .event_type = "b", .id = id_b },
					     { .event_type = "a", .id = id_a } };
	size_t index;

	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .id = id_a });
	begin();
	ck_assert_int_eq(push(messages, 2, &index), OUTBOX_EDUPID);
	store_ok(push(messages, 1, &index));
	end(true);
	ck_assert_uint_eq(count_rows(), 2);
}
OB_TEST_END

OB_TEST(the_same_id_twice_in_one_push_is_a_duplicate)
{
	struct outbox_message twice[] = { { .event_type = "a", .id = id_a },
					  { .event_type = "b", .id = id_a } };
	size_t index = 77;

	store_begin(1);
	begin();
	ck_assert_int_eq(push(twice, 2, &index), OUTBOX_EDUPID);
	end(true);
	ck_assert_uint_eq(count_rows(), 0);
}
OB_TEST_END

OB_TEST(the_same_sequence_number_of_an_aggregate_is_told_apart)
{
	struct outbox_message one = { .event_type = "a",
				      .aggregate_id = "1",
				      .sequence_number = 5 };
	struct outbox_message same = one, other = one, none = one;
	size_t index;

	store_begin(1);
	store_put(one);
	begin();
	ck_assert_int_eq(push(&same, 1, &index), OUTBOX_EDUPSEQUENCE);
	other.aggregate_id = "2";
	store_ok(push(&other, 1, &index));
	none.sequence_number = 0;
	store_ok(push(&none, 1, &index));
	store_ok(push(&none, 1, &index));
	end(true);
	ck_assert_uint_eq(count_rows(), 4);
}
OB_TEST_END

OB_TEST(payload_checks_can_be_switched_off)
{
	struct outbox_message message = { .event_type = "a", .headers = "{\"x\":1}" };
	size_t index;

	store_begin(1);
	fx.store->writer_flags = OUTBOX_NO_HEADERS_CHECK;
	begin();
	store_ok(push(&message, 1, &index));
	message = store_filled((struct outbox_message){ .payload = "{" });
	ck_assert_int_eq(push(&message, 1, &index), OUTBOX_EPAYLOADJSON);
	end(true);
}
OB_TEST_END

OB_TEST(a_payload_with_odd_bytes_comes_back_unchanged)
{
	static const char odd[] = "{\"a\":\"\\u0000\xC3\xBC\",\"a\":1.0e+2 , \"b\": [ ]}\n";

	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .payload = odd });
	store_hold_all(60000);
	store_read(1, 0);
	ck_assert(ob_str_eq(store_got("a")->payload, ob_str(odd)));
}
OB_TEST_END

OB_TEST(an_id_with_leading_zero_bytes_is_kept)
{
	static const char id[] = "00000000-0000-4000-8000-000000000001";
	char text[OB_UUID_TEXT_SIZE];

	store_begin(1);
	store_put((struct outbox_message){ .event_type = "a", .id = id });
	ob_uuid_format(&store_row("a")->id, text);
	ck_assert_str_eq(text, id);
}
OB_TEST_END

OB_TEST(two_writers_may_be_open_where_the_store_says_so)
{
	store_begin(1);
	if (!store_has(OB_STORE_CONCURRENT_WRITERS))
		return;
	struct ob_store *other = store_open();
	begin();
	store_push(fx.store, (struct outbox_message){ .event_type = "a" });
	store_ok(ob_store_tx_begin(other, &fx.err));
	store_push(other, (struct outbox_message){ .event_type = "b" });
	store_push(fx.store, (struct outbox_message){ .event_type = "c" });
	end(false);
	store_ok(ob_store_tx_end(other, true, &fx.err));
	ck_assert_uint_eq(count_rows(), 1);
	ck_assert_str_eq(store_labels(&fx.look), "b");
}
OB_TEST_END

OB_TEST(the_numbers_of_rolled_back_rows_are_not_a_problem)
{
	store_begin(1);
	store_put_key("a", NULL);
	begin();
	store_push(fx.store, (struct outbox_message){ .event_type = "gone" });
	end(false);
	store_put_key("b", NULL);
	int64_t first = store_row("a")->seq;
	ck_assert_int_gt(store_row("b")->seq, first);
	store_hold_all(60000);
	store_expect_read("a b");
}
OB_TEST_END

STORE_CASES(write, messages_of_a_transaction_show_at_its_commit_in_order, a_rollback_leaves_nothing,
	    closing_a_store_rolls_back, pushing_without_a_transaction_is_refused,
	    no_message_is_success, a_bad_message_is_named_and_the_transaction_goes_on,
	    what_is_missing_has_its_own_error, the_same_id_is_a_duplicate_in_one_target_only,
	    a_failed_push_leaves_no_id_behind, the_same_id_twice_in_one_push_is_a_duplicate,
	    the_same_sequence_number_of_an_aggregate_is_told_apart,
	    payload_checks_can_be_switched_off, a_payload_with_odd_bytes_comes_back_unchanged,
	    an_id_with_leading_zero_bytes_is_kept, two_writers_may_be_open_where_the_store_says_so,
	    the_numbers_of_rolled_back_rows_are_not_a_problem)
