/* SPDX-License-Identifier: MIT */
/* outbox demo as a newcomer runs it, and as a script does. */
#include "outbox.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *demo_json(const char *more)
{
	struct ob_run r = outbox(NULL, "demo", "--seconds", "3", "--json", more, NULL);
	json_t *object = json_loads(r.out, 0, NULL);

	ck_assert_str_eq(r.err, "");
	ck_assert_msg(object != NULL, "not one object: %s", r.out);
	ck_assert_msg(r.code == 0, "exit code %d: %s", r.code, r.out);
	ob_run_done(&r);
	return object;
}

static json_int_t number(const json_t *object, const char *name)
{
	ck_assert_msg(json_is_integer(json_object_get(object, name)), "no %s", name);
	return json_integer_value(json_object_get(object, name));
}

static void demand_promises(const json_t *object)
{
	ck_assert(json_is_true(json_object_get(object, "holds")));
	ck_assert_int_gt(number(object, "committed"), 0);
	ck_assert_int_gt(number(object, "rolled_back"), 0);
	ck_assert_int_eq(number(object, "delivered"), number(object, "committed"));
	ck_assert_int_eq(number(object, "lost"), 0);
	ck_assert_int_eq(number(object, "ghosts"), 0);
	ck_assert_int_eq(number(object, "out_of_order"), 0);
}

/* Entries of the directory that demonstrations were told to use. */
static size_t left_behind(void)
{
	DIR *d = opendir(dir);
	size_t count = 0;

	ck_assert_ptr_nonnull(d);
	for (const struct dirent *e; (e = readdir(d));)
		count += strncmp(e->d_name, "outbox-demo.", 12) == 0;
	(void)closedir(d);
	return count;
}

static char tmpdir[80];

static void begin_demo(void)
{
	begin();
	(void)snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", dir);
	set_env(tmpdir);
}

OB_TEST(the_audit_is_one_object_and_nothing_stays_behind)
{
	begin_demo();
	json_t *object = demo_json(NULL);
	demand_promises(object);
	ck_assert_int_eq(number(object, "duplicates"), 0);
	ck_assert(json_is_null(json_object_get(object, "directory")));
	json_decref(object);
	ck_assert_uint_eq(left_behind(), 0);
	end();
}
OB_TEST_END

OB_TEST(chaos_kills_and_the_audit_still_holds)
{
	begin_demo();
	json_t *object = demo_json("--chaos");
	demand_promises(object);
	ck_assert_int_gt(number(object, "killed"), 0);
	ck_assert_int_le(number(object, "duplicates"), number(object, "duplicates_max"));
	json_decref(object);
	end();
}
OB_TEST_END

OB_TEST(what_is_kept_can_be_looked_at)
{
	begin_demo();
	json_t *object = demo_json("--keep");
	const char *kept = json_string_value(json_object_get(object, "directory"));
	char config[256];

	ck_assert_ptr_nonnull(kept);
	(void)snprintf(config, sizeof(config), "%s/outbox.yaml", kept);
	struct ob_run r = outbox(NULL, "config", "check", "--config", config, NULL);
	ck_assert_int_eq(r.code, 0);
	ob_run_done(&r);
	ck_assert_uint_eq(left_behind(), 1);
	json_decref(object);
	end();
}
OB_TEST_END

OB_TEST(without_a_terminal_it_prints_lines_and_the_table)
{
	begin_demo();
	struct ob_run r = outbox(NULL, "demo", "--seconds", "1", NULL);
	ck_assert_int_eq(r.code, 0);
	ck_assert_ptr_null(strchr(r.out, '\033'));
	ck_assert_ptr_nonnull(strstr(r.out, "  0 s  committed "));
	ck_assert_ptr_nonnull(strstr(r.out, "\nThe audit\n"));
	ck_assert_ptr_nonnull(strstr(r.out, "Every committed event arrived once"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_place_that_cannot_be_used_is_named)
{
	begin();
	set_env("TMPDIR=/nonexistent");
	struct ob_run r = outbox(NULL, "demo", "--seconds", "1", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_ptr_nonnull(strstr(r.err, "/nonexistent/outbox-demo."));
	ck_assert_ptr_nonnull(strstr(r.err, "TMPDIR"));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_SUITE("cli-demo", the_audit_is_one_object_and_nothing_stays_behind,
	 chaos_kills_and_the_audit_still_holds, what_is_kept_can_be_looked_at,
	 without_a_terminal_it_prints_lines_and_the_table, a_place_that_cannot_be_used_is_named)
