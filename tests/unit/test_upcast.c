/* SPDX-License-Identifier: MIT */
/* Upcasters: one forward pass, and what it tells. */
#include "outbox/aggregate.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static struct outbox_error error;

static int bump(const struct outbox_upcaster *self, const struct outbox_event *event,
		outbox_upcast *out, struct outbox_error *err)
{
	(void)event;
	(void)err;
	outbox_upcast_emit(out, NULL, 0, self->arg, 0);
	return 0;
}

static int drop(const struct outbox_upcaster *self, const struct outbox_event *event,
		outbox_upcast *out, struct outbox_error *err)
{
	(void)self;
	(void)event;
	(void)out;
	(void)err;
	return 0;
}

static int refuse(const struct outbox_upcaster *self, const struct outbox_event *event,
		  outbox_upcast *out, struct outbox_error *err)
{
	(void)self;
	(void)event;
	(void)out;
	(void)snprintf(err->message, sizeof(err->message), "no idea");
	return OUTBOX_EINVAL;
}

static int rename_and_copy(const struct outbox_upcaster *self, const struct outbox_event *event,
			   outbox_upcast *out, struct outbox_error *err)
{
	(void)self;
	(void)err;
	outbox_upcast_emit(out, "B", 1, event->payload, event->payload_size);
	outbox_upcast_emit(out, "C", 7, "{}", 2);
	return 0;
}

static const struct outbox_event old = { .version = 4,
					 .stream_id = "s",
					 .event_type = "A",
					 .revision = 1,
					 .payload = "{\"r\":1}",
					 .payload_size = 7 };

static struct outbox_upcasted result;
static outbox_upcast *upcast;

static int run(const struct outbox_upcaster *const *list)
{
	outbox_upcast_free(upcast);
	upcast = outbox_upcast_new(list);
	return outbox_upcast_event(upcast, &old, &result, &error);
}

OB_TEST(an_empty_list_changes_nothing)
{
	static const struct outbox_upcaster *const none[] = { NULL };

	ck_assert_int_eq(run(none), 0);
	ck_assert_uint_eq(result.count, 1);
	ck_assert_uint_eq(result.applied, 0);
	ck_assert_str_eq(result.history, "");
	ck_assert_int_eq(result.events[0].revision, 1);
	ck_assert_str_eq(result.events[0].payload, "{\"r\":1}");
	ck_assert_int_eq(run(NULL), 0);
	ck_assert_uint_eq(result.count, 1);
	outbox_upcast_free(upcast);
}
OB_TEST_END

OB_TEST(only_matching_upcasters_apply_in_their_order)
{
	static const struct outbox_upcaster one = { "A", 1, bump, "{\"r\":2}" },
					    two = { "A", 2, bump, "{\"r\":3}" },
					    other = { "Z", 1, refuse, NULL },
					    later = { "A", 9, refuse, NULL };
	static const struct outbox_upcaster *const chain[] = { &other, &one, &later, &two, NULL },
						   *const turned[] = { &two, &one, NULL };

	ck_assert_int_eq(run(chain), 0);
	ck_assert_uint_eq(result.applied, 2);
	ck_assert_int_eq(result.events[0].revision, 3);
	ck_assert_str_eq(result.events[0].payload, "{\"r\":3}");
	ck_assert_int_eq(result.events[0].version, 4);
	ck_assert_str_eq(result.history, "A 1 > A 2, A 2 > A 3");
	ck_assert_int_eq(run(turned), 0);
	ck_assert_int_eq(result.events[0].revision, 2);
	ck_assert_uint_eq(result.applied, 1);
	outbox_upcast_free(upcast);
}
OB_TEST_END

OB_TEST(one_event_may_become_several_or_none)
{
	static const struct outbox_upcaster several = { "A", 1, rename_and_copy, NULL },
					    next = { "B", 1, bump, "{\"b\":2}" },
					    none = { "A", 1, drop, NULL };
	static const struct outbox_upcaster *const list[] = { &several, &next, NULL },
						   *const gone[] = { &none, NULL };

	ck_assert_int_eq(run(list), 0);
	ck_assert_uint_eq(result.count, 2);
	ck_assert_str_eq(result.events[0].event_type, "B");
	ck_assert_int_eq(result.events[0].revision, 2);
	ck_assert_str_eq(result.events[0].payload, "{\"b\":2}");
	ck_assert_str_eq(result.events[1].event_type, "C");
	ck_assert_int_eq(result.events[1].revision, 7);
	ck_assert_int_eq(run(gone), 0);
	ck_assert_uint_eq(result.count, 0);
	ck_assert_uint_eq(result.applied, 1);
	outbox_upcast_free(upcast);
}
OB_TEST_END

OB_TEST(a_failure_names_the_event)
{
	static const struct outbox_upcaster fails = { "A", 1, refuse, NULL };
	static const struct outbox_upcaster *const list[] = { &fails, NULL };

	ck_assert_int_eq(run(list), OUTBOX_EINVAL);
	ck_assert_str_eq(error.message,
			 "upcasting event 'A' of revision 1, version 4 of 's': no idea");
	outbox_upcast_free(upcast);
}
OB_TEST_END

OB_SUITE("upcast", an_empty_list_changes_nothing, only_matching_upcasters_apply_in_their_order,
	 one_event_may_become_several_or_none, a_failure_names_the_event)
