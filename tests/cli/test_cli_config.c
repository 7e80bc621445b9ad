/* SPDX-License-Identifier: MIT */
/* init and config check: a sample that works, and every fault at once. */
#include "outbox.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

OB_TEST(the_sample_is_written_once_and_is_good)
{
	begin();
	expect(0, "wrote outbox.yaml: review it, then run 'outbox setup'\n", "", "init", NULL);
	expect(0,
	       "outbox.yaml: ok\n"
	       "  store  main (sqlite)\n"
	       "  sink   out (file)\n"
	       "  relay  default: main to out\n",
	       "", "config", "check", NULL);
	expect(1, "", "outbox: outbox.yaml is there already; --force writes over it\n", "init",
	       NULL);
	put_file("outbox.yaml", "not: ours\n");
	expect(0, NULL, "", "init", "--force", NULL);
	expect(0, NULL, "", "config", "check", NULL);
	end();
}
OB_TEST_END

OB_TEST(the_sample_goes_where_it_is_told)
{
	begin();
	expect(0, "wrote my.yaml: review it, then run 'outbox -c my.yaml setup'\n", "", "init",
	       "my.yaml", NULL);
	expect(0, "{\"path\":\"other.yaml\"}\n", "", "--config", "other.yaml", "init", "--json",
	       NULL);
	set_env("OUTBOX_CONFIG=my.yaml");
	expect_in_output("my.yaml: ok\n", "config", "check", NULL);
	expect_in_output("other.yaml: ok\n", "config", "check", "-cother.yaml", NULL);
	expect(1, "", "outbox: no/such/dir.yaml: No such file or directory\n", "init",
	       "no/such/dir.yaml", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_file_that_cannot_be_read_is_one_line)
{
	begin();
	expect(1, "", "nope.yaml: cannot be read: No such file or directory\n", "-c", "nope.yaml",
	       "config", "check", NULL);
	expect(1, "", "nope.yaml: cannot be read: No such file or directory\n", "-c", "nope.yaml",
	       "list", NULL);
	ck_assert_int_eq(mkdir(path_of("a.yaml"), 0700), 0);
	expect(1, "", "a.yaml: is a directory, not a file\n", "-c", "a.yaml", "config", "check",
	       NULL);
	put_file("b.yaml", "stores: {}\n");
	ck_assert_int_eq(chmod(path_of("b.yaml"), 0), 0);
	expect(1, "", "b.yaml: cannot be read: Permission denied\n", "-c", "b.yaml", "config",
	       "check", NULL);
	end();
}
OB_TEST_END

static const char faulty[] =
	"stores:\n"
	"  main: { url: \"sqlite:x.db\" }\n"
	"sink: {}\n"
	"relays:\n"
	"  - name: default\n"
	"    workers: many\n"
	"    ordering: key\n"
	"    ordering: key\n";

OB_TEST(all_faults_come_at_once_with_their_places)
{
	begin();
	put_file("bad.yaml", faulty);
	struct ob_run r = outbox(NULL, "-c", "bad.yaml", "config", "check", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.out, "");
	ck_assert_ptr_nonnull(
		strstr(r.err, "bad.yaml:3:1: unknown key 'sink'; did you mean 'sinks'?\n"));
	ck_assert_ptr_nonnull(strstr(r.err, "bad.yaml:6:14: "));
	ck_assert_ptr_nonnull(strstr(r.err, "'many' is not a number"));
	ck_assert_ptr_nonnull(strstr(r.err, "bad.yaml:8:5: "));
	/* every command says the same */
	struct ob_run list = outbox(NULL, "-c", "bad.yaml", "list", NULL);
	ck_assert_str_eq(list.err, r.err);
	ck_assert_int_eq(list.code, 1);
	ob_run_done(&list);
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(faults_are_data_with_json)
{
	begin();
	put_file("bad.yaml", faulty);
	struct ob_run r = outbox(NULL, "-c", "bad.yaml", "config", "check", "--json", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_str_eq(r.err, "");
	json_t *all = json_loads(r.out, 0, NULL);
	ck_assert(json_is_false(json_object_get(all, "ok")));
	json_t *first = json_array_get(json_object_get(all, "faults"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(first, "file")), "bad.yaml");
	ck_assert_int_eq(json_integer_value(json_object_get(first, "line")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(first, "col")), 1);
	ck_assert_str_eq(json_string_value(json_object_get(first, "message")),
			 "unknown key 'sink'; did you mean 'sinks'?");
	json_decref(all);
	ob_run_done(&r);

	expect(1,
	       "{\"ok\":false,\"file\":\"nope.yaml\",\"faults\":[{\"file\":\"nope.yaml\",\"line\":"
	       "0,"
	       "\"col\":0,\"message\":\"cannot be read: No such file or directory\"}]}\n",
	       "", "-c", "nope.yaml", "config", "check", "--json", NULL);
	expect(0, NULL, "", "init", NULL);
	expect(0,
	       "{\"ok\":true,\"file\":\"outbox.yaml\",\"stores\":[\"main\"],\"sinks\":[\"out\"],"
	       "\"relays\":[\"default\"],\"warnings\":[],\"faults\":[]}\n",
	       "", "config", "check", "--json", NULL);
	end();
}
OB_TEST_END

OB_TEST(malformed_yaml_is_told_with_its_place)
{
	begin();
	put_file("bad.yaml", "stores:\n  main: [\n");
	struct ob_run r = outbox(NULL, "-c", "bad.yaml", "config", "check", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_int_eq(strncmp(r.err, "bad.yaml:3:1: ", 14), 0);
	ck_assert_ptr_eq(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
	ob_run_done(&r);
	put_file("bad.yaml", "stores: \x01\n");
	r = outbox(NULL, "-c", "bad.yaml", "config", "check", NULL);
	ck_assert_int_eq(r.code, 1);
	ck_assert_int_eq(strncmp(r.err, "bad.yaml:1:", 11), 0);
	ck_assert_ptr_null(strchr(r.err, '\x01'));
	ob_run_done(&r);
	end();
}
OB_TEST_END

OB_TEST(a_store_is_chosen_by_name)
{
	begin();
	put_file("two.yaml",
		 "stores:\n"
		 "  shop: { url: \"sqlite:shop.db\" }\n"
		 "  crm: { url: \"sqlite:crm.db\" }\n");
	expect(2, "", "outbox: two.yaml has 2 stores: choose one of shop, crm with --store\n", "-c",
	       "two.yaml", "setup", NULL);
	expect(2, "", "outbox: two.yaml has no store 'main'; it has shop, crm\n", "-c", "two.yaml",
	       "setup", "--store", "main", NULL);
	expect(0, NULL, "", "-c", "two.yaml", "setup", "--store", "crm", "--print", NULL);
	expect(1, "",
	       "outbox: the URL of the store: no store of type 'oracle' (known: sqlite, "
	       "postgres, mysql)\n",
	       "setup", "--store", "oracle:x", NULL);
	end();
}
OB_TEST_END

OB_TEST(what_would_fail_later_is_found)
{
	begin();
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks:\n"
		 "  a: { type: exec, command: './no-such-program --fast' }\n"
		 "  b: { type: exec, command: sh -c true }\n"
		 "relays: [ { sink: a } ]\n");
	expect(1, "", "outbox.yaml: sinks.a.command: there is no program './no-such-program'\n",
	       "config", "check", NULL);
	put_file("outbox.yaml",
		 "stores: { main: { url: 'sqlite:x.db' } }\n"
		 "sinks:\n"
		 "  a: { type: http, url: 'https://10.0.0.7/hook' }\n"
		 "  b: { type: http, url: 'https://10.0.0.7/hook', allow_private: true }\n"
		 "  c: { type: http, url: 'https://8.8.8.8/hook' }\n"
		 "relays: [ { sink: a } ]\n");
	expect(1, "",
	       "outbox.yaml: sinks.a.url: its address is private and will be refused; set "
	       "allow_private if that is intended\n",
	       "config", "check", NULL);
	put_file("outbox.yaml", "stores: { main: { url: 'mysql://u@db:99999/shop' } }\n");
	expect(1, "",
	       "outbox.yaml:1:24: stores.main.url: its port is not a number from 1 to 65535\n",
	       "config", "check", NULL);
	end();
}
OB_TEST_END

OB_TEST(a_sample_is_of_the_kinds_that_are_wanted)
{
	begin();
	expect(0, NULL, "", "--store", "postgres", "init", "--sink", "redis", NULL);
	expect_in_output("  store  main (postgres)\n  sink   out (redis)\n", "config", "check",
			 NULL);
	expect(2, "", NULL, "--store", "oracle", "init", "x.yaml", NULL);
	expect(2, "", NULL, "init", "--sink", "fax", "x.yaml", NULL);
	end();
}
OB_TEST_END

OB_SUITE("cli_config", the_sample_is_written_once_and_is_good, the_sample_goes_where_it_is_told,
	 a_file_that_cannot_be_read_is_one_line, all_faults_come_at_once_with_their_places,
	 faults_are_data_with_json, malformed_yaml_is_told_with_its_place,
	 a_store_is_chosen_by_name, what_would_fail_later_is_found,
	 a_sample_is_of_the_kinds_that_are_wanted)
