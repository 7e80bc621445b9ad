/* SPDX-License-Identifier: MIT */
/* Contract: who consumes, how a lease moves, and what the processes of a consumer tell. */
#include "operate/consumers.h"
#include "store_harness.h"

static struct ob_consumer_lease lease_of(uint8_t owner)
{
	return (struct ob_consumer_lease){ .consumer = "billing", .owner = store_uuid(owner) };
}

static void begin_inbox(void)
{
	const struct ob_setup setup = { .partition_count = 4,
					.inbox = true,
					.partitioned = fx.backend->partition_rows > 0,
					.partition_rows = fx.backend->partition_rows };
	struct ob_setup_done done;

	store_begin(0);
	store_ok(ob_store_setup(fx.store, &setup, &done, &fx.err));
	store_ok(ob_consumer_make(fx.store, "billing", OB_STR("redis stream orders"), &fx.err));
}

static int take(struct ob_consumer_lease *lease)
{
	int64_t wait_ms;

	return ob_consumer_take(fx.store, lease, 9000, &wait_ms, &fx.err);
}

static struct ob_consumer_beat beat_of(uint64_t handled, const char *state)
{
	return (struct ob_consumer_beat){
		.handled = handled,
		.duplicates = 2,
		.failed = 1,
		.lag = 40,
		.oldest_us = 5000000,
		.member = { .hostname = OB_STR("host"), .pid = 77, .state = ob_str(state) }
	};
}

static struct ob_consumer_member *members;

/* "1 2-": the owners' numbers, those that are silent with a dash. */
static void expect_members(const char *expected)
{
	struct ob_buf text = OB_BUF_INIT(4096);
	size_t count;

	store_ok(ob_consumer_members(fx.store, "billing", &fx.arena, &members, &count, &fx.err));
	ob_buf_adds(&text, "");
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&text, "%s%u%s", i ? " " : "", members[i].id.b[0],
			    members[i].alive ? "" : "-");
	ck_assert_str_eq(ob_buf_str(&text), expected);
	ob_buf_done(&text);
}

static const struct ob_consumer_row *row(void)
{
	struct ob_consumer_row *rows;
	size_t count;

	store_ok(ob_consumer_list(fx.store, NULL, &fx.arena, &rows, &count, &fx.err));
	ck_assert_uint_eq(count, 1);
	return &rows[0];
}

OB_TEST(a_renewal_writes_the_counts_and_the_report)
{
	struct ob_consumer_lease one = lease_of(1);
	struct ob_consumer_beat beat = beat_of(10, "{\"version\":\"1 Grüße\"}");

	begin_inbox();
	ck_assert_int_eq(take(&one), 1);
	store_ok(ob_consumer_renew(fx.store, &one, 9000, &beat, &fx.err));
	beat = beat_of(5, "{\"lag\":7}");
	store_ok(ob_consumer_renew(fx.store, &one, 9000, &beat, &fx.err));
	ck_assert_uint_eq(row()->handled, 15);
	ck_assert_uint_eq(row()->duplicates, 4);
	ck_assert_uint_eq(row()->failed, 2);
	ck_assert_int_eq(row()->lag, 40);
	ck_assert_int_eq(row()->oldest_us, 5000000);
	ck_assert(row()->held);
	expect_members("1");
	ck_assert(ob_str_eq(members[0].consumer, OB_STR("billing")));
	ck_assert(ob_str_eq(members[0].hostname, OB_STR("host")));
	ck_assert_int_eq(members[0].pid, 77);
	ck_assert_int_eq(members[0].started_at_us, fx.start_us);
	ck_assert_int_eq(members[0].heartbeat_until_us, fx.start_us + 9000000);
	ck_assert(ob_str_eq(members[0].state, OB_STR("{\"lag\":7}")));
}
OB_TEST_END

OB_TEST(who_stands_by_tells_it_too_and_its_counts_are_added)
{
	struct ob_consumer_lease one = lease_of(1), two = lease_of(2);
	const struct ob_consumer_beat beat = beat_of(3, "{}");

	begin_inbox();
	ck_assert_int_eq(take(&one), 1);
	ck_assert_int_eq(take(&two), 0);
	store_ok(ob_consumer_renew(fx.store, &one, 9000, &beat, &fx.err));
	store_advance_ms(1);
	store_ok(ob_consumer_tell(fx.store, &two, 9000, &beat, &fx.err));
	expect_members("1 2");
	ck_assert_uint_eq(row()->handled, 6);
	ck_assert(ob_uuid_eq(&row()->owner, &one.owner));
}
OB_TEST_END

OB_TEST(a_renewal_without_the_lease_is_lost_and_counts_nothing)
{
	struct ob_consumer_lease one = lease_of(1), two = lease_of(2);
	const struct ob_consumer_beat beat = beat_of(3, "{}");

	begin_inbox();
	ck_assert_int_eq(take(&one), 1);
	store_advance_ms(9001);
	ck_assert_int_eq(take(&two), 1);
	ck_assert_int_eq(ob_consumer_renew(fx.store, &one, 9000, &beat, &fx.err), OUTBOX_ELEASE);
	ck_assert_int_eq(fx.err.kind, OB_ERR_LOST);
	ck_assert_uint_eq(row()->handled, 0);
}
OB_TEST_END

OB_TEST(who_leaves_is_forgotten_and_who_falls_silent_only_after_an_hour)
{
	struct ob_consumer_lease one = lease_of(1), two = lease_of(2), three = lease_of(3);
	const struct ob_consumer_beat beat = beat_of(0, "{}");

	begin_inbox();
	ck_assert_int_eq(take(&one), 1);
	store_ok(ob_consumer_renew(fx.store, &one, 9000, &beat, &fx.err));
	store_advance_ms(1);
	store_ok(ob_consumer_tell(fx.store, &two, 9000, &beat, &fx.err));
	store_ok(ob_consumer_release(fx.store, &one, &fx.err));
	expect_members("2");
	ck_assert(!row()->held);
	/* Once more, and of one that was never there. */
	store_ok(ob_consumer_release(fx.store, &one, &fx.err));
	store_advance_ms(9001);
	expect_members("2-");
	store_ok(ob_consumer_tell(fx.store, &three, 9000, &beat, &fx.err));
	expect_members("2- 3");
	store_advance_ms(3600000);
	store_ok(ob_consumer_tell(fx.store, &three, 9000, &beat, &fx.err));
	expect_members("3");
}
OB_TEST_END

OB_TEST(consumers_are_listed_with_their_processes_the_owner_first)
{
	struct ob_consumer_lease one = lease_of(1), two = lease_of(2);
	const struct ob_consumer_beat works =
		beat_of(3,
			"{\"owner\":1,\"rate\":2.5,\"handler_state\":\"down\",\"handler_why\":"
			"\"refused\",\"in_flight\":4}");
	const struct ob_consumer_beat waits = beat_of(0, "no JSON");
	struct ob_buf text = OB_BUF_INIT(4096);
	struct ob_consumers all;

	begin_inbox();
	store_ok(ob_consumer_tell(fx.store, &one, 9000, &waits, &fx.err));
	store_advance_ms(1);
	ck_assert_int_eq(take(&two), 1);
	store_ok(ob_consumer_renew(fx.store, &two, 9000, &works, &fx.err));

	store_ok(ob_consumers_take(&all, fx.store, NULL, &fx.err));
	ck_assert(all.installed);
	ck_assert_uint_eq(all.count, 1);
	const struct ob_consumer_view *view = &all.views[0];
	ck_assert_uint_eq(view->alive, 2);
	ck_assert_uint_eq(view->process_count, 2);
	ck_assert(ob_uuid_eq(&view->processes[0].member.id, &two.owner));
	ck_assert_ptr_eq(view->leader, &view->processes[0]);
	ck_assert(!view->processes[1].told);
	ck_assert_double_eq_tol(view->rate, 2.5, 0.001);
	ck_assert_uint_eq(view->in_flight, 4);
	ck_assert_int_eq(view->leader->report.lag, -1);
	ck_assert_str_eq(ob_consumer_word(view), "handler down");
	ob_consumer_trouble_text(view, &text);
	ck_assert_str_eq(ob_buf_str(&text), "handler down: refused");
	ob_consumers_done(&all);

	store_advance_ms(60000);
	store_ok(ob_consumers_take(&all, fx.store, "billing", &fx.err));
	ck_assert_str_eq(ob_consumer_word(&all.views[0]), "stopped");
	ob_buf_clear(&text);
	ob_consumer_trouble_text(&all.views[0], &text);
	ck_assert_str_eq(ob_buf_str(&text), "no process runs it since 1m00s");
	ob_consumers_done(&all);
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(a_database_without_an_inbox_has_no_consumers)
{
	struct ob_consumers all;

	store_begin(3);
	store_ok(ob_consumers_take(&all, fx.store, NULL, &fx.err));
	ck_assert(!all.installed);
	ck_assert_uint_eq(all.count, 0);
	ob_consumers_done(&all);
}
OB_TEST_END

STORE_CASES(consumers, a_renewal_writes_the_counts_and_the_report,
	    who_stands_by_tells_it_too_and_its_counts_are_added,
	    a_renewal_without_the_lease_is_lost_and_counts_nothing,
	    who_leaves_is_forgotten_and_who_falls_silent_only_after_an_hour,
	    consumers_are_listed_with_their_processes_the_owner_first,
	    a_database_without_an_inbox_has_no_consumers)
