/* SPDX-License-Identifier: MIT */
/* outbox bench: plausible figures, and hands off what is not its own. */
#include "outbox.h"

#include <dirent.h>
#include <jansson.h>
#include <string.h>

static char tmpdir[80];

static void begin_bench(void)
{
	begin();
	(void)snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", dir);
	set_env(tmpdir);
}

static size_t left_behind(void)
{
	DIR *d = opendir(dir);
	size_t count = 0;

	ck_assert_ptr_nonnull(d);
	for (const struct dirent *e; (e = readdir(d));)
		count += strncmp(e->d_name, "outbox-bench.", 13) == 0;
	(void)closedir(d);
	return count;
}

static void put_config(void)
{
	put_file("outbox.yaml",
		 "stores:\n"
		 "  main: { url: \"sqlite:outbox.db\" }\n"
		 "sinks:\n"
		 "  out: { type: file, path: out.ndjson }\n"
		 "  trash: { type: file, path: trash.ndjson }\n"
		 "relays:\n"
		 "  - { name: default, sink: out }\n"
		 "  - { name: trash, sink: trash, reads: bench_trash }\n");
	expect(0, NULL, "", "setup", NULL);
}

static void check_figures(const char *text)
{
	static const char *const names[] = { "push_single_per_second", "push_batch_per_second",
					     "drain_per_second",       "latency_p50_us",
					     "latency_p99_us",         "latency_max_us" };
	json_t *object = json_loads(text, 0, NULL);

	ck_assert_msg(object != NULL, "not one object: %s", text);
	ck_assert_str_eq(json_string_value(json_object_get(object, "store")), "sqlite");
	ck_assert_int_eq(json_integer_value(json_object_get(object, "messages")), 300);
	ck_assert_int_eq(json_integer_value(json_object_get(object, "size")), 100);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(json_integer_value(json_object_get(object, names[i])) > 0, "%s: %s",
			      names[i], text);
	json_decref(object);
}

OB_TEST(without_a_configuration_it_leaves_nothing_behind)
{
	begin_bench();
	struct ob_run r =
		outbox(NULL, "bench", "--messages", "300", "--size", "100", "--json", NULL);
	ck_assert_msg(r.code == 0, "exit code %d: %s", r.code, r.err);
	ck_assert_str_eq(r.err, "");
	check_figures(r.out);
	ob_run_done(&r);
	ck_assert_uint_eq(left_behind(), 0);
	end();
}
OB_TEST_END

OB_TEST(a_relay_of_its_own_is_measured_and_the_rows_of_others_stay)
{
	begin_bench();
	put_config();
	expect(0, NULL, "", "push", "--type", "order", "--aggregate", "1", "--event", "OrderPlaced",
	       "--payload", "{}", NULL);
	struct ob_run r = outbox(NULL, "bench", "--config", "outbox.yaml", "--relay", "trash",
				 "--messages", "300", "--size", "100", "--json", NULL);
	ck_assert_msg(r.code == 0, "exit code %d: %s", r.code, r.err);
	check_figures(r.out);
	ob_run_done(&r);
	/* The message of another relay waits as before; no reader of the bench keeps anything. */
	expect(0, "no reader yet: 'outbox work' makes one when a relay first starts\n", "",
	       "readers", "list", NULL);
	expect(0, "default: 1 published, 0 failed, 0 dead\n", "", "work", "--once", "--relay",
	       "default", NULL);
	/* And again: what the first one pushed is not delivered by the second. */
	r = outbox(NULL, "bench", "--config", "outbox.yaml", "--relay", "trash", "--messages",
		   "300", "--size", "100", "--json", NULL);
	ck_assert_msg(r.code == 0, "exit code %d: %s", r.code, r.err);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(what_is_a_users_own_is_refused)
{
	begin_bench();
	put_config();
	expect(1, "",
	       "outbox: relay default reads default: give it a target of its own, such as 'reads: "
	       "bench_default'\n",
	       "bench", "--config", "outbox.yaml", "--relay", "default", NULL);
	expect(1, "", "outbox: outbox.yaml has no relay 'other'\n", "bench", "--config",
	       "outbox.yaml", "--relay", "other", NULL);
	expect(1, "",
	       "outbox: outbox.yaml has 2 relays: name one that is meant for this with --relay\n",
	       "bench", "--config", "outbox.yaml", NULL);
	expect(2, "", "outbox: bench: --relay names a relay of a configuration: give --config\n",
	       "bench", "--relay", "trash", NULL);
	put_file("one.yaml",
		 "stores:\n"
		 "  main: { url: \"sqlite:outbox.db\" }\n"
		 "sinks:\n"
		 "  out: { type: file, path: out.ndjson }\n");
	expect(0, NULL, "", "work", "--once", "--relay", "trash", NULL);
	expect(1, "",
	       "outbox: reader trash is in use: stop its relay and forget it with 'outbox readers "
	       "remove trash', then measure\n",
	       "bench", "--config", "outbox.yaml", "--relay", "trash", NULL);
	expect(0, NULL, "", "push", "--type", "order", "--event", "OrderPlaced", "--payload", "{}",
	       NULL);
	expect(1, "",
	       "outbox: the outbox has messages, and bench does not touch what is yours: give it a "
	       "relay with 'reads: bench_...' and name it with --relay\n",
	       "bench", "--config", "one.yaml", NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli-bench", without_a_configuration_it_leaves_nothing_behind,
	 a_relay_of_its_own_is_measured_and_the_rows_of_others_stay, what_is_a_users_own_is_refused)
