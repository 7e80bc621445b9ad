/* SPDX-License-Identifier: MIT */
/* The audit must see every kind of fault: each is made by hand here. */
#include "cli/demo/audit.h"

#include "run.h"
#include "suite.h"

#include <stdio.h>

static struct ob_audit_journal journal;
static struct ob_audit_lines lines;
static struct ob_audit audit;
static struct ob_err err;

static struct ob_uuid id_of(int n)
{
	struct ob_uuid id = { { 1, 2, 3 } };

	id.b[14] = (uint8_t)(n >> 8);
	id.b[15] = (uint8_t)n;
	return id;
}

static void note(int n, uint32_t key, bool committed)
{
	struct ob_audit_entry entry = { id_of(n), key, committed };

	ck_assert_int_eq(ob_audit_note(&journal, &entry, &err), 0);
}

/* The file as the sink would have written it; it is read from the disk. */
static void deliver(const int *ids, size_t count, const char *tail)
{
	char dir[64], path[80], text[OB_UUID_TEXT_SIZE];

	ob_temp_dir(dir);
	(void)snprintf(path, sizeof(path), "%s/out.ndjson", dir);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < count; i++) {
		struct ob_uuid id = id_of(ids[i]);

		ob_uuid_format(&id, text);
		(void)fprintf(f, "{\"id\":\"%s\",\"payload\":{\"id\":7}}\n", text);
	}
	(void)fputs(tail, f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(ob_audit_read(&lines, path, &err), 0);
	ob_temp_dir_remove(dir);
}

/* Four of two keys, one rolled back: 1 and 3 of key 0, 2 and 5 of key 1. */
static void produce(void)
{
	note(1, 0, true);
	note(2, 1, true);
	note(3, 0, true);
	note(4, 0, false);
	note(5, 1, true);
}

static void judge(void)
{
	ck_assert_int_eq(ob_audit_run(&journal, &lines, &audit, &err), 0);
	ck_assert_uint_eq(audit.delivered + audit.lost, audit.committed);
}

static void end(void)
{
	ob_audit_done(&audit);
	ob_audit_journal_done(&journal);
	ob_audit_lines_done(&lines);
}

static void says(const char *text)
{
	ck_assert_msg(strstr(ob_buf_str(&audit.examples), text) != NULL, "no '%s' in: %s", text,
		      ob_buf_str(&audit.examples));
}

OB_TEST(everything_once_and_in_order_per_key_holds)
{
	produce();
	deliver((int[]){ 2, 1, 5, 3 }, 4, "");
	judge();
	ck_assert_uint_eq(audit.committed, 4);
	ck_assert_uint_eq(audit.rolled_back, 1);
	ck_assert_uint_eq(audit.delivered, 4);
	ck_assert(ob_audit_holds(&audit, 0));
	ck_assert_str_eq(ob_buf_str(&audit.examples), "");
	end();
}
OB_TEST_END

OB_TEST(a_message_that_never_came_is_lost)
{
	produce();
	deliver((int[]){ 1, 2, 5 }, 3, "");
	judge();
	ck_assert_uint_eq(audit.lost, 1);
	ck_assert_uint_eq(audit.out_of_order, 0);
	ck_assert(!ob_audit_holds(&audit, 100));
	says("-000000000003 of key 0 was committed, but never delivered");
	end();
}
OB_TEST_END

OB_TEST(a_rolled_back_message_that_came_is_a_ghost)
{
	produce();
	deliver((int[]){ 1, 2, 3, 4, 5 }, 5, "");
	judge();
	ck_assert_uint_eq(audit.ghosts, 1);
	ck_assert_uint_eq(audit.delivered, 4);
	ck_assert(!ob_audit_holds(&audit, 100));
	says("on line 4 was rolled back, yet delivered");
	end();
}
OB_TEST_END

OB_TEST(a_message_nobody_wrote_is_a_ghost)
{
	produce();
	deliver((int[]){ 1, 2, 3, 5, 99 }, 5, "");
	judge();
	ck_assert_uint_eq(audit.ghosts, 1);
	ck_assert(!ob_audit_holds(&audit, 100));
	says("never written by the producer");
	end();
}
OB_TEST_END

OB_TEST(first_copies_the_wrong_way_round_are_out_of_order)
{
	produce();
	deliver((int[]){ 3, 1, 2, 5 }, 4, "");
	judge();
	ck_assert_uint_eq(audit.out_of_order, 1);
	ck_assert_uint_eq(audit.delivered, 4);
	ck_assert(!ob_audit_holds(&audit, 100));
	says("-000000000001 of key 0 is on line 2, behind a message committed after it");
	end();
}
OB_TEST_END

OB_TEST(a_second_copy_is_a_duplicate_and_never_out_of_order)
{
	produce();
	deliver((int[]){ 1, 2, 3, 1, 3, 5 }, 6, "");
	judge();
	ck_assert_uint_eq(audit.duplicates, 2);
	ck_assert_uint_eq(audit.out_of_order, 0);
	ck_assert(!ob_audit_holds(&audit, 0));
	ck_assert(!ob_audit_holds(&audit, 1));
	ck_assert(ob_audit_holds(&audit, 2));
	says("came again on line 4");
	end();
}
OB_TEST_END

OB_TEST(a_copy_does_not_hide_that_its_first_came_too_late)
{
	produce();
	deliver((int[]){ 3, 1, 3, 2, 5 }, 5, "");
	judge();
	ck_assert_uint_eq(audit.out_of_order, 1);
	ck_assert_uint_eq(audit.duplicates, 1);
	end();
}
OB_TEST_END

OB_TEST(torn_lines_are_counted_and_deliver_nothing)
{
	produce();
	deliver((int[]){ 1, 2, 3 }, 3, "{\"id\":\"01020300-0000-0000-0000-0000000000\n\n{}\n[1]\n");
	judge();
	ck_assert_uint_eq(audit.unreadable, 3);
	ck_assert_uint_eq(audit.lost, 1);
	end();
}
OB_TEST_END

OB_TEST(a_missing_file_means_that_all_is_lost)
{
	produce();
	ck_assert_int_eq(ob_audit_read(&lines, "/nonexistent/out.ndjson", &err), 0);
	judge();
	ck_assert_uint_eq(audit.lost, 4);
	end();
}
OB_TEST_END

OB_TEST(many_faults_are_counted_but_only_a_few_are_told)
{
	static int ids[2000];
	size_t told = 0;

	for (int i = 0; i < 2000; i++) {
		note(i, (uint32_t)i % 7, true);
		ids[i] = 1999 - i;
	}
	deliver(ids, 2000, "");
	judge();
	ck_assert_uint_eq(audit.out_of_order, 2000 - 7);
	for (const char *p = ob_buf_str(&audit.examples); (p = strchr(p, '\n')); p++)
		told++;
	ck_assert_uint_eq(told, 3);
	end();
}
OB_TEST_END

OB_SUITE("audit", everything_once_and_in_order_per_key_holds, a_message_that_never_came_is_lost,
	 a_rolled_back_message_that_came_is_a_ghost, a_message_nobody_wrote_is_a_ghost,
	 first_copies_the_wrong_way_round_are_out_of_order,
	 a_second_copy_is_a_duplicate_and_never_out_of_order,
	 a_copy_does_not_hide_that_its_first_came_too_late,
	 torn_lines_are_counted_and_deliver_nothing, a_missing_file_means_that_all_is_lost,
	 many_faults_are_counted_but_only_a_few_are_told)
