/* SPDX-License-Identifier: MIT */
/* failures: groups by cause, type and key. */
#include "database.h"

#include <stdio.h>

static void begin_with_failures(void)
{
	begin_database();
	row(1, "order", "1", FAILED);
	row(2, "order", "1", PARKED);
	row(3, "order", "1", PARKED);
	row(4, "order", "2", FAILED);
	row(5, "order", "3", DEAD);
	row(6, "user", "7", DEAD_HOLD);
	row(7, "user", "7", PARKED);
	row(8, "user", "8", PUBLISHED);
	sql("UPDATE outbox_exceptions SET last_error = 'HTTP 422: order ' || seq WHERE seq < 6");
	sql("UPDATE outbox_exceptions SET last_error = 'no such user 7' WHERE seq = 6");
}

/* What jq would be asked for, of the output of a command that must succeed. */
static void expect_part(const char *part, const char *by)
{
	struct ob_run r = outbox(NULL, "failures", "--json", "--by", by, NULL);

	ck_assert_int_eq(r.code, 0);
	ck_assert_msg(strstr(r.out, part) != NULL, "no %s in %s", part, r.out);
	ob_run_done(&r);
}

OB_TEST(errors_that_differ_in_numbers_are_one_cause)
{
	begin_with_failures();
	expect_part("\"cause\":\"HTTP #: order #\"", "cause");
	expect_part("\"states\":{\"failed\":2,\"dead\":1},\"count\":3", "cause");
	expect_part("\"keys_held\":2,\"parked\":2,\"sample\":[\"" ID(1) "\",\"" ID(4) "\",\"" ID(
			    5) "\"]",
		    "cause");
	expect_part("\"cause\":\"no such user #\"", "cause");
	expect_part("\"states\":{\"failed\":0,\"dead\":1},\"count\":1", "cause");
	expect_part("\"capped\":false,\"scanned\":4}", "cause");
	end();
}
OB_TEST_END

OB_TEST(groups_can_be_made_by_key_type_and_relay)
{
	begin_with_failures();
	expect_part("\"key\":\"order:1\",\"states\":{\"failed\":1,\"dead\":0},\"count\":1", "key");
	expect_part("\"key\":\"user:7\",\"states\":{\"failed\":0,\"dead\":1},\"count\":1", "key");
	expect_part("\"cause\":null,\"event_type\":null,\"reader\":\"default\"", "relay");
	expect_part("\"states\":{\"failed\":2,\"dead\":2},\"count\":4", "relay");
	expect_part("\"states\":{\"failed\":2,\"dead\":2},\"count\":4", "type");
	end();
}
OB_TEST_END

OB_TEST(one_state_can_be_asked_for)
{
	begin_with_failures();
	struct ob_run r =
		outbox(NULL, "failures", "--json", "--by", "relay", "--state", "dead", NULL);
	ck_assert(strstr(r.out, "\"states\":{\"failed\":0,\"dead\":2},\"count\":2"));
	ob_run_done(&r);
	r = outbox(NULL, "failures", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert(strstr(r.out, "GROUP"));
	ck_assert(strstr(r.out, "HTTP #: order #"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(without_failures_it_says_so)
{
	begin_database();
	expect(0, "no message has failed\n", "", "failures", NULL);
	expect(0, "{\"by\":\"cause\",\"groups\":[],\"capped\":false,\"scanned\":0}\n", "",
	       "failures", "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(wrong_words_are_refused)
{
	begin_database();
	expect(2, "", "outbox: failures: --by: 'color' is none of cause, type, relay, sink, key\n",
	       "failures", "--by", "color", NULL);
	expect(2, "", "outbox: failures: --state: 'parked' is neither failed nor dead\n",
	       "failures", "--state", "parked", NULL);
	expect(1, "", "outbox: no reader 'nobody'; there is default\n", "failures", "--reader",
	       "nobody", NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_failures", errors_that_differ_in_numbers_are_one_cause,
	 groups_can_be_made_by_key_type_and_relay, one_state_can_be_asked_for,
	 without_failures_it_says_so, wrong_words_are_refused)
