/* SPDX-License-Identifier: MIT */
/* Contract: aggregates, their snapshots, and events of older revisions. */
#include "events_cases.h"
#include "outbox/aggregate.h"

struct account {
	int64_t balance, events;
	const char *owner;
};

struct amount {
	int64_t cents;
};

static const struct outbox_field account_fields[] = {
	OUTBOX_FIELD(struct account, balance, OUTBOX_INTEGER),
	OUTBOX_FIELD(struct account, events, OUTBOX_INTEGER),
	OUTBOX_FIELD(struct account, owner, OUTBOX_TEXT),
	OUTBOX_FIELDS_END,
};
static const struct outbox_field amount_fields[] = {
	OUTBOX_FIELD(struct amount, cents, OUTBOX_INTEGER),
	OUTBOX_FIELDS_END,
};
static const struct outbox_field owner_fields[] = {
	OUTBOX_FIELD(struct account, owner, OUTBOX_TEXT),
	OUTBOX_FIELDS_END,
};

static int applied; /* events that apply() has seen */

static int apply_account(void *state, const struct outbox_event *event, outbox_text *memory,
			 struct outbox_error *err)
{
	struct account *account = state;
	struct amount amount = { 0 };
	int r = 0;

	applied++;
	account->events++;
	if (strcmp(event->event_type, "Opened") == 0)
		return outbox_struct_read(owner_fields, event->payload, event->payload_size,
					  account, memory, err);
	r = outbox_struct_read(amount_fields, event->payload, event->payload_size, &amount, memory,
			       err);
	account->balance += strcmp(event->event_type, "Paid") == 0 ? amount.cents : -amount.cents;
	return r;
}

static const struct outbox_shape shapes[] = {
	{ "Opened", owner_fields },
	{ "Paid", amount_fields },
	{ "Drawn", amount_fields },
	{ NULL, NULL },
};
static const struct outbox_serializer structs = OUTBOX_STRUCT_SERIALIZER(shapes);
static const struct outbox_serializer raw = OUTBOX_RAW_SERIALIZER;
static const struct outbox_serializer *const struct_list[] = { &structs, NULL };
static const struct outbox_serializer *const raw_list[] = { &raw, NULL };
static const struct outbox_serializers by_struct = { .payload = struct_list };
static const struct outbox_serializers by_text = { .payload = raw_list };
static const struct outbox_event_kind kinds[] = {
	{ "Opened", 1 }, { "Paid", 2 }, { "Drawn", 0 }, { NULL, 0 }
};

static struct outbox_aggregate_type account_type = {
	.name = "account",
	.state_size = sizeof(struct account),
	.apply = apply_account,
	.kinds = kinds,
	.serializers = &by_struct,
	.state_fields = account_fields,
	.state_revision = 1,
	.snapshot_every = 4,
};

static int try_load(const struct outbox_load *load, outbox_aggregate **ret)
{
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_aggregate_load(ob, &account_type, "ann", load, ret, &ev_fault);

	ev_end_on(fx.store, false);
	return r;
}

static outbox_aggregate *load_with(struct outbox_load load)
{
	outbox_aggregate *a = NULL;

	applied = 0;
	ck_assert_msg(try_load(&load, &a) == 0, "%s", ev_fault.message);
	return a;
}

static const struct account *state_of(const outbox_aggregate *a)
{
	return outbox_aggregate_state(a);
}

static void record_paid(outbox_aggregate *a, int64_t cents)
{
	const struct amount amount = { cents };

	ck_assert_msg(outbox_aggregate_record(a, "Paid", &amount, NULL, &ev_fault) == 0, "%s",
		      ev_fault.message);
}

static int try_store(outbox_aggregate *a, bool commit)
{
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_aggregate_store(ob, a, NULL, &ev_fault);

	ev_end_on(fx.store, commit && r == 0);
	return r;
}

/* Load, record so many payments of 1, store. */
static void pay(int count)
{
	outbox_aggregate *a = load_with((struct outbox_load){ 0 });

	for (int i = 0; i < count; i++)
		record_paid(a, 1);
	ck_assert_msg(try_store(a, true) == 0, "%s", ev_fault.message);
	outbox_aggregate_free(a);
}

static void open_account(void)
{
	const struct account ann = { .owner = "Ann" };
	outbox_aggregate *a;

	ev_begin();
	a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(outbox_aggregate_version(a), 0);
	ck_assert_int_eq(outbox_aggregate_record(
				 a, "Opened", &ann,
				 &(struct outbox_message){ .correlation_id = "c-1" }, &ev_fault),
			 0);
	ck_assert_int_eq(try_store(a, true), 0);
	outbox_aggregate_free(a);
}

OB_TEST(an_aggregate_records_events_and_stores_them_in_one_append)
{
	open_account();
	outbox_aggregate *a = load_with((struct outbox_load){ 0 });
	ck_assert_str_eq(state_of(a)->owner, "Ann");
	record_paid(a, 100);
	record_paid(a, 20);
	ck_assert_int_eq(outbox_aggregate_version(a), 3);
	ck_assert_int_eq(state_of(a)->balance, 120);
	ck_assert_uint_eq(outbox_aggregate_recorded(a), 2);
	ck_assert_int_eq(try_store(a, true), 0);
	ck_assert_uint_eq(outbox_aggregate_recorded(a), 2);
	outbox_aggregate_free(a);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }),
			 "Opened:1 Paid:2 Paid:3");
	a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(state_of(a)->balance, 120);
	outbox_aggregate_free(a);
}
OB_TEST_END

OB_TEST(an_aggregate_is_stored_once_unless_the_first_was_rolled_back)
{
	open_account();
	outbox_aggregate *a = load_with((struct outbox_load){ 0 });
	record_paid(a, 1);
	ck_assert_int_eq(try_store(a, false), 0);
	ck_assert_int_eq(try_store(a, true), 0);
	ck_assert_int_eq(try_store(a, true), OUTBOX_EDUPID);
	ck_assert_int_eq(outbox_aggregate_record(a, "Paid", &(struct amount){ 1 }, NULL, &ev_fault),
			 OUTBOX_ESTATE);
	outbox_aggregate_free(a);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }),
			 "Opened:1 Paid:2");
}
OB_TEST_END

OB_TEST(two_who_loaded_the_same_version_conflict)
{
	open_account();
	outbox_aggregate *a = load_with((struct outbox_load){ 0 });
	outbox_aggregate *b = load_with((struct outbox_load){ 0 });
	record_paid(a, 1);
	record_paid(b, 2);
	ck_assert_int_eq(try_store(a, true), 0);
	ck_assert_int_eq(try_store(b, true), OUTBOX_ECONFLICT);
	outbox_aggregate_free(a);
	outbox_aggregate_free(b);
}
OB_TEST_END

OB_TEST(a_snapshot_is_kept_when_a_multiple_is_reached_or_passed)
{
	open_account();
	outbox_aggregate *a;
	pay(2); /* 3 */
	a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 0);
	ck_assert_int_eq(try_store(a, true), 0); /* nothing recorded: nothing kept */
	outbox_aggregate_free(a);
	pay(3); /* 6, over 4 */
	a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 6);
	ck_assert_int_eq(applied, 0);
	ck_assert_str_eq(state_of(a)->owner, "Ann");
	ck_assert_int_eq(state_of(a)->balance, 5);
	outbox_aggregate_free(a);
	pay(1); /* 7 */
	a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 6);
	ck_assert_int_eq(applied, 1);
	ck_assert_int_eq(state_of(a)->events, 7);
	outbox_aggregate_free(a);
}
OB_TEST_END

OB_TEST(an_earlier_state_never_uses_a_newer_snapshot)
{
	open_account();
	pay(5); /* 6, with a snapshot */
	outbox_aggregate *a = load_with((struct outbox_load){ .to_version = 3 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 0);
	ck_assert_int_eq(outbox_aggregate_version(a), 3);
	ck_assert_int_eq(state_of(a)->balance, 2);
	ck_assert_int_eq(outbox_aggregate_record(a, "Paid", &(struct amount){ 1 }, NULL, &ev_fault),
			 OUTBOX_ESTATE);
	outbox_aggregate_free(a);
	a = load_with((struct outbox_load){ .to_version = 6 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 6);
	outbox_aggregate_free(a);
	a = load_with((struct outbox_load){ .to_us = 1 });
	ck_assert_int_eq(outbox_aggregate_version(a), 0);
	outbox_aggregate_free(a);
	a = load_with((struct outbox_load){ .no_snapshot = 1 });
	ck_assert_int_eq(applied, 6);
	outbox_aggregate_free(a);
}
OB_TEST_END

OB_TEST(a_snapshot_that_cannot_be_read_is_ignored)
{
	open_account();
	pay(5);
	account_type.state_revision = 2;
	outbox_aggregate *a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 0);
	ck_assert_int_eq(applied, 6);
	ck_assert_int_eq(state_of(a)->balance, 5);
	/* On demand, in its place. */
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_aggregate_snapshot(ob, a, &ev_fault), 0);
	ev_end_on(fx.store, true);
	outbox_aggregate_free(a);
	a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(outbox_aggregate_snapshot_version(a), 6);
	outbox_aggregate_free(a);
	account_type.state_revision = 1;
}
OB_TEST_END

/* ---- upcasters ------------------------------------------------------- */

/* 1: {"euro": 5}; 2: {"cents": 500}. */
static int euro_to_cents(const struct outbox_upcaster *self, const struct outbox_event *event,
			 outbox_upcast *out, struct outbox_error *err)
{
	char text[64];
	const char *digits = strchr(event->payload, ':');

	(void)self;
	(void)err;
	(void)snprintf(text, sizeof(text), "{\"cents\": %ld}", strtol(digits + 1, NULL, 10) * 100);
	outbox_upcast_emit(out, NULL, 0, text, 0);
	return 0;
}

/* A transfer was one event; today it is two. */
static int split(const struct outbox_upcaster *self, const struct outbox_event *event,
		 outbox_upcast *out, struct outbox_error *err)
{
	(void)self;
	(void)event;
	(void)err;
	outbox_upcast_emit(out, "Paid", 1, "{\"euro\": 7}", 0);
	outbox_upcast_emit(out, "Drawn", 1, "{\"cents\": 200}", 0);
	return 0;
}

static int fail_upcast(const struct outbox_upcaster *self, const struct outbox_event *event,
		       outbox_upcast *out, struct outbox_error *err)
{
	(void)self;
	(void)event;
	(void)out;
	(void)snprintf(err->message, sizeof(err->message), "no idea");
	return OUTBOX_EINVAL;
}

static const struct outbox_upcaster upcaster_split = { "Moved", 1, split, NULL };
static const struct outbox_upcaster upcaster_cents = { "Paid", 1, euro_to_cents, NULL };
static const struct outbox_upcaster upcaster_fails = { "Moved", 1, fail_upcast, NULL };
static const struct outbox_upcaster *const forward[] = { &upcaster_split, &upcaster_cents, NULL };
static const struct outbox_upcaster *const turned[] = { &upcaster_cents, &upcaster_split, NULL };
static const struct outbox_upcaster *const failing[] = { &upcaster_fails, NULL };

static void append_old(const char *type, const char *payload, int32_t revision)
{
	const struct outbox_message event = { .event_type = type,
					      .payload = payload,
					      .revision = revision };
	outbox *ob = ev_open_on(fx.store);

	ck_assert_int_eq(outbox_append(ob, &ev_ann, OUTBOX_ANY, &event, 1, NULL, NULL, &ev_fault),
			 0);
	ev_end_on(fx.store, true);
}

OB_TEST(events_of_older_revisions_are_read_as_todays)
{
	ev_begin();
	append_old("Opened", "{\"owner\": \"Ann\"}", 1);
	append_old("Paid", "{\"euro\":5}", 1);
	append_old("Paid", "{\"cents\": 1}", 2);
	append_old("Moved", "{}", 1);
	account_type.upcasters = forward;
	outbox_aggregate *a = load_with((struct outbox_load){ 0 });
	ck_assert_int_eq(state_of(a)->balance, 500 + 1 + 700 - 200);
	ck_assert_int_eq(outbox_aggregate_version(a), 4);
	ck_assert_int_eq(state_of(a)->events, 5);
	outbox_aggregate_free(a);
	/* In the other order what the split makes is never upcast. */
	account_type.upcasters = turned;
	a = NULL;
	ck_assert_int_eq(try_load(NULL, &a), OUTBOX_EEVENT);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "'Paid' has revision 1, and no upcaster"));
	account_type.upcasters = failing;
	ck_assert_int_eq(try_load(NULL, &a), OUTBOX_EEVENT);
	account_type.upcasters = NULL;
}
OB_TEST_END

OB_TEST(unknown_events_and_missing_upcasters_are_named)
{
	outbox_aggregate *a = NULL;

	ev_begin();
	append_old("Unheard", "{}", 1);
	ck_assert_int_eq(try_load(NULL, &a), OUTBOX_EEVENT);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "no event type 'Unheard'"));
	ck_assert_ptr_null(a);
}
OB_TEST_END

OB_TEST(an_event_whose_payload_is_not_what_it_should_be_names_its_version)
{
	outbox_aggregate *a = NULL;

	ev_begin();
	append_old("Opened", "{\"owner\": \"Ann\"}", 1);
	append_old("Paid", "[]", 2);
	ck_assert_int_eq(try_load(NULL, &a), OUTBOX_EPAYLOADJSON);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "'Paid', version 2 of 'ann'"));
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_stream_set_end(ob, &ev_ann, OUTBOX_STREAM_TOMBSTONED, &ev_fault),
			 0);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(try_load(NULL, &a), OUTBOX_EENDED);
}
OB_TEST_END

OB_TEST(records_are_pushed_and_appended_as_one_call)
{
	const struct outbox_record records[] = {
		{ .message = { .event_type = "a" }, .event = "{\"n\":1}" },
		{ .message = { .event_type = "b" }, .event = "{\"n\":2}" },
	};
	struct outbox_record broken[2] = { records[0], records[1] };

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(
		outbox_append_records(ob, &ev_ann, 0, &by_text, records, 2, NULL, NULL, &ev_fault),
		0);
	broken[1].event = "{";
	ck_assert_int_eq(
		outbox_append_records(ob, &ev_ann, 2, &by_text, broken, 2, NULL, NULL, &ev_fault),
		OUTBOX_EPAYLOADJSON);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "event 'b'"));
	ev_end_on(fx.store, true);
	ck_assert_str_eq(ev_read((struct outbox_event_query){ .stream = ev_ann }), "a:1 b:2");
}
OB_TEST_END

STORE_CASES(events_aggregate, an_aggregate_records_events_and_stores_them_in_one_append,
	    an_aggregate_is_stored_once_unless_the_first_was_rolled_back,
	    two_who_loaded_the_same_version_conflict,
	    a_snapshot_is_kept_when_a_multiple_is_reached_or_passed,
	    an_earlier_state_never_uses_a_newer_snapshot, a_snapshot_that_cannot_be_read_is_ignored,
	    events_of_older_revisions_are_read_as_todays,
	    unknown_events_and_missing_upcasters_are_named,
	    an_event_whose_payload_is_not_what_it_should_be_names_its_version,
	    records_are_pushed_and_appended_as_one_call)
