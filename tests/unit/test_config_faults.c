/* SPDX-License-Identifier: MIT */
/* What is wrong with a configuration: every message with its place, all at once. */
#include "config_text.h"
#include "suite.h"

OB_TEST(unknown_keys_are_refused_with_a_guess)
{
	config_bad(
		BOTH "relays:\n  - batch_sizee: 1\n",
		"c.yaml:4:5: unknown key 'batch_sizee' in relays[0]; did you mean 'batch_size'?\n");
	config_bad(STORE "storess: 1\n",
		   "c.yaml:2:1: unknown key 'storess'; did you mean 'stores'?\n");
	config_bad(STORE "schedule: { every: x }\n", "c.yaml:2:1: unknown key 'schedule'\n");
	config_bad(STORE "monitor: { listen: x }\n",
		   "c.yaml:2:20: monitor.listen: 'x' is no address to listen at; write "
		   "127.0.0.1:8025, [::1]:8025 or unix:/run/outbox.sock\n");
	config_bad(RELAY("lease_ttl: 1s"),
		   "c.yaml:5:5: unknown key 'lease_ttl' in relays[0]; it belongs into 'leasing'\n");
	config_bad(RELAY("retry: { jiter: 1 }"),
		   "c.yaml:5:14: unknown key 'jiter' in relays[0].retry; did you mean 'jitter'?\n");
	config_bad(RELAY("leasin: {}"),
		   "c.yaml:5:5: unknown key 'leasin' in relays[0]; did you mean 'leasing'?\n");
	config_bad("stores: { main: { url: 'sqlite:a', bussy_timeout: 1 } }\n",
		   "c.yaml:1:36: unknown key 'bussy_timeout' in stores.main; did you mean "
		   "'busy_timeout'?\n");
	config_bad(STORE "sinks: { out: { type: file, path: a, fsyn: 1 } }\n",
		   "c.yaml:2:38: unknown key 'fsyn' in sinks.out; did you mean 'fsync'?\n");
	config_bad(STORE "layout: { columns: { evnt_type: a, zzzzzzz: b } }\n",
		   "c.yaml:2:22: unknown key 'evnt_type' in layout.columns; did you mean "
		   "'event_type'?\n"
		   "c.yaml:2:36: unknown key 'zzzzzzz' in layout.columns\n");
}
OB_TEST_END

OB_TEST(keys_that_are_gone_say_what_to_write)
{
	config_bad(RELAY("after_publish: delete"),
		   "c.yaml:5:5: relays[0].after_publish is gone: write 'retention: { published: 0 "
		   "}' in the store to keep the table small, or 'published: 168h' to keep what was "
		   "published\n");
	config_bad(RELAY("cleanup: { published_after: 1h }"),
		   "c.yaml:5:5: relays[0].cleanup is gone: write 'retention: { published: 168h, "
		   "dead: never }' in the store\n");
	config_bad(RELAY("claim_ttl: 60s"),
		   "c.yaml:5:5: relays[0].claim_ttl is gone: leave it out; workers share "
		   "partitions by lease ('lease_ttl' in 'leasing')\n");
	config_bad(RELAY("leasing: { enabled: false }"),
		   "c.yaml:5:16: relays[0].leasing.enabled is gone: leave it out; workers always "
		   "share partitions, and with 'ordering: none' messages of one partition do not "
		   "wait for each other\n");
}
OB_TEST_END

OB_TEST(wrong_kinds_of_nodes_are_named)
{
	config_bad(RELAY("workers: { a: 1 }"),
		   "c.yaml:5:14: relays[0].workers expects a number, not a mapping\n");
	config_bad(RELAY("shutdown_timeout: [ 1s ]"),
		   "c.yaml:5:23: relays[0].shutdown_timeout expects a duration, not a list\n");
	config_bad(RELAY("types: x"),
		   "c.yaml:5:12: relays[0].types expects a list, not a text; begin each pattern "
		   "with '- '\n");
	config_bad(RELAY("aggregates: [ a, [ b ], '' ]"),
		   "c.yaml:5:22: relays[0].aggregates[1] expects a text, not a list; put it in "
		   "quotes\n"
		   "c.yaml:5:29: relays[0].aggregates[2] must not be empty\n");
	config_bad("stores: { main: { url: 'sqlite:a', retention: 1h } }\n",
		   "c.yaml:1:47: stores.main.retention expects a mapping, not a text\n");
	config_bad(RELAY("batch_bytes: [ ]"),
		   "c.yaml:5:18: relays[0].batch_bytes expects a size, not a list\n");
	config_bad(RELAY("hold_delayed: []"),
		   "c.yaml:5:19: relays[0].hold_delayed expects true or false, not a list\n");
	config_bad(
		RELAY("route: { destination: {event_type} }"),
		"c.yaml:5:27: relays[0].route.destination expects a text, not a mapping; put it in "
		"quotes\n");
	config_bad(RELAY("workers:"),
		   "c.yaml:5:13: relays[0].workers expects a number, but nothing is there\n");
	config_bad(RELAY("retry: [ 1 ]"),
		   "c.yaml:5:12: relays[0].retry expects a mapping, not a list\n");
	config_bad(RELAY("retry: 5"),
		   "c.yaml:5:12: relays[0].retry expects a mapping, not a text\n");
	config_bad(
		BOTH "relays: { name: a }\n",
		"c.yaml:3:9: relays expects a list, not a mapping; begin each relay with '- '\n");
	config_bad(BOTH "relays: [ a, [ ] ]\n",
		   "c.yaml:3:11: relays[0] expects a mapping, not a text\n"
		   "c.yaml:3:14: relays[1] expects a mapping, not a list\n");
	config_bad("stores: [ a ]\n", "c.yaml:1:9: stores expects a mapping, not a list\n");
	config_bad("stores: { main: 'sqlite:a.db' }\n",
		   "c.yaml:1:17: stores.main expects a mapping, not a text\n");
	config_bad(STORE "sinks: { out: stdout }\n",
		   "c.yaml:2:15: sinks.out expects a mapping, not a text\n");
	config_bad(STORE "layout: { columns: { id: [ ] } }\n",
		   "c.yaml:2:26: layout.columns.id expects a text, not a list; put it in quotes\n");
	config_bad("- a\n",
		   "c.yaml:1:1: the file must be a mapping such as 'stores: ...', not a list\n");
	config_bad("hello\n",
		   "c.yaml:1:1: the file must be a mapping such as 'stores: ...', not a text\n");
}
OB_TEST_END

#define CONSUMER(text) \
	STORE "consumers:\n  - name: billing\n    source: { type: redis, path: p, stream: s }\n  " \
	      "  " text "\n"

OB_TEST(consumers_are_checked_as_a_whole)
{
	config_bad(STORE "consumers: [ { name: a, sql: x } ]\n",
		   "c.yaml:1:1: consumers[0].source is missing: write for example 'source: { type: "
		   "redis, url: \"redis://localhost\", stream: orders }'\n");
	config_bad(STORE "consumers:\n  - name: a\n    sql: x\n    source: { type: ibm }\n",
		   "c.yaml:5:21: consumers[0].source.type: no such source 'ibm'\n");
	config_bad(STORE
		   "consumers:\n  - name: a\n    sql: x\n    source: { type: redis, path: p, "
		   "streem: s, stream: nowhere }\n",
		   "c.yaml:5:37: unknown key 'streem' in consumers[0].source; did you mean "
		   "'stream'?\n");
	config_bad(STORE
		   "consumers:\n  - name: a\n    sql: x\n    source: { type: redis, path: p, "
		   "stream: nowhere }\n",
		   "c.yaml:5:13: consumers[0].source: there is no stream\n");
	config_bad(CONSUMER("dedup: ids"),
		   "c.yaml:3:5: consumers[0] has no handler: write 'sql', 'exec' or 'http'\n");
	config_bad(CONSUMER("sql: 'CALL f(:wrong)'"),
		   "c.yaml:5:10: consumers[0].sql: no value ':wrong'\n");
	config_bad(CONSUMER("sql: x\n    http: { }"),
		   "c.yaml:5:10: consumers[0].sql: a consumer has one handler\n");
	config_bad(CONSUMER("sql: x\n    store: other"),
		   "c.yaml:6:12: consumers[0].store: no store 'other' in 'stores'\n");
	config_bad(
		CONSUMER("http: { }\n    dedup: position"),
		"c.yaml:6:12: consumers[0].dedup: position needs an sql handler, whose transaction "
		"it is written in\n");
	config_bad(CONSUMER("sql: x\n    dedup: position"),
		   "c.yaml:6:12: consumers[0].dedup: the redis source has no positions\n");
	config_bad(
		CONSUMER("sql: x\n    dead_letters: { sink: x, destination: y }"),
		"c.yaml:6:19: consumers[0].dead_letters.sink: no sink 'x' in 'sinks'\n"
		"c.yaml:6:19: consumers[0].dead_letters needs 'on_dead: release': a message that "
		"leaves cannot hold its key\n");
}
OB_TEST_END

OB_TEST(values_out_of_range_say_what_may_stand_there)
{
	config_bad(RELAY("batch_size: lots"),
		   "c.yaml:5:17: relays[0].batch_size: 'lots' is not a number from 1 to 10000\n");
	config_bad(RELAY("workers: 0"),
		   "c.yaml:5:14: relays[0].workers: '0' is not a number from 1 to 256\n");
	config_bad(RELAY("workers: 99999999999999999999999"),
		   "c.yaml:5:14: relays[0].workers: '99999999999999999999999' is not a number from "
		   "1 to "
		   "256\n");
	config_bad(RELAY("workers: -1"),
		   "c.yaml:5:14: relays[0].workers: '-1' is not a number from 1 to 256\n");
	config_bad(RELAY("ordering: keys"),
		   "c.yaml:5:15: relays[0].ordering: 'keys' is not one of key, partition, none\n");
	config_bad(
		"stores: { main: { url: 'sqlite:a', retention: { dead: soon } } }\n",
		"c.yaml:1:55: stores.main.retention.dead: 'soon' is not a duration (such as 15s) "
		"from 1s to 3650d, or never\n");
	config_bad("stores: { main: { url: 'sqlite:a', retention: { published: -1s } } }\n",
		   "c.yaml:1:60: stores.main.retention.published: '-1s' is not a duration (such as "
		   "15s) from 0ms to 3650d, or never\n");
	config_bad(RELAY("start: yesterday"),
		   "c.yaml:5:12: relays[0].start: 'yesterday' is not beginning, end, or a time "
		   "such as 2026-05-01T00:00:00Z\n");
	config_bad(RELAY("reads: ''"),
		   "c.yaml:5:12: relays[0].reads: must be 1 to 255 characters on one line\n");
	config_bad(RELAY("retry: { jitter: nan }"),
		   "c.yaml:5:22: relays[0].retry.jitter: 'nan' is not a number from 0 to 1\n");
	config_bad(RELAY("hold_delayed: maybe"),
		   "c.yaml:5:19: relays[0].hold_delayed: 'maybe' is not true or false\n");
	config_bad(STORE "log: { level: loud }\n",
		   "c.yaml:2:15: log.level: 'loud' is not one of error, warn, info, debug\n");
	config_bad(
		"stores: { main: { url: 'sqlite:a', busy_timeout: 2m } }\n",
		"c.yaml:1:50: stores.main.busy_timeout: '2m' is not a duration (such as 15s) from "
		"1ms to 1m\n");
	config_bad(RELAY("workers: \"1\\n\\e[31m\""),
		   "c.yaml:5:14: relays[0].workers: '1  [31m' is not a number from 1 to 256\n");
}
OB_TEST_END

OB_TEST(duplicate_keys_are_found_everywhere)
{
	config_bad(STORE STORE, "c.yaml:2:1: duplicate key 'stores'; the first is in line 1\n");
	config_bad("stores: { a: { url: 'sqlite:a' }, a: { url: 'sqlite:b' } }\n",
		   "c.yaml:1:35: duplicate key 'a' in stores; the first is in line 1\n");
	config_bad("stores:\n  a:\n    url: 'sqlite:a'\n    url: 'sqlite:b'\n",
		   "c.yaml:4:5: duplicate key 'url' in stores.a; the first is in line 3\n");
	config_bad(RELAY("name: x"),
		   "c.yaml:5:5: duplicate key 'name' in relays[0]; the first is in line 4\n");
	config_bad(STORE "layout: { columns: { id: a, id: b } }\n",
		   "c.yaml:2:29: duplicate key 'id' in layout.columns; the first is in line 2\n");
}
OB_TEST_END

OB_TEST(required_keys_are_missed_at_their_section)
{
	config_bad("stores:\n  main: {}\n", "c.yaml:2:3: stores.main needs 'url'\n");
	config_bad("stores:\n  main:\n", "c.yaml:2:3: stores.main needs 'url'\n");
	config_bad("stores: { main: { url: '' } }\n",
		   "c.yaml:1:24: stores.main.url must not be empty\n");
	config_bad(STORE "sinks:\n  out: { path: x }\n", "c.yaml:3:3: sinks.out needs 'type'\n");
	config_bad(STORE "sinks:\n  out: { type: file }\n", "c.yaml:3:3: sinks.out needs 'path'\n");
	config_bad(STORE "sinks:\n  out: { type: file, path: '' }\n",
		   "c.yaml:3:28: sinks.out.path must not be empty\n");
}
OB_TEST_END

#define NO_STORE "no store: write for example 'stores: { main: { url: \"sqlite:outbox.db\" } }'\n"

OB_TEST(a_file_without_a_store_is_refused)
{
	config_bad("", "c.yaml:1:1: " NO_STORE);
	config_bad("# nothing\n", "c.yaml:1:1: " NO_STORE);
	config_bad("---\n", "c.yaml:1:1: " NO_STORE);
	config_bad("log: {}\nstores:\n", "c.yaml:2:1: " NO_STORE);
	config_bad("log: {}\nstores: {}\n" SINK "relays: [ {} ]\n", "c.yaml:2:1: " NO_STORE);
}
OB_TEST_END

OB_TEST(backends_are_looked_up)
{
	config_bad("stores: { main: { url: 'nosql:a', x: 1 } }\n",
		   "c.yaml:1:24: stores.main.url: no such store\n");
	config_bad(
		"stores: { main: { url: 'sqlite:' } }\n",
		"c.yaml:1:24: stores.main.url: nothing stands behind 'sqlite:'; write for example "
		"sqlite:outbox.db\n");
	config_bad(STORE "sinks: { out: { type: carrier } }\n",
		   "c.yaml:2:23: sinks.out.type: no such sink 'carrier'\n");
}
OB_TEST_END

OB_TEST(a_sink_checks_its_options_together)
{
	config_bad(STORE "sinks: { out: { type: file, path: /nowhere } }\n",
		   "c.yaml:2:15: sinks.out: '/nowhere' is no place\n");
}
OB_TEST_END

OB_TEST(names_are_checked)
{
	config_bad("stores: { Main: { url: 'sqlite:a' } }\n",
		   "c.yaml:1:11: 'Main' is not a name in stores: use a-z, 0-9, '_' and '-', at "
		   "most 64 "
		   "characters\n");
	config_bad(STORE "sinks: { '': { type: stdout } }\n",
		   "c.yaml:2:10: '' is not a name in sinks: use a-z, 0-9, '_' and '-', at most 64 "
		   "characters\n");
	config_bad(BOTH "relays: [ { name: '' } ]\n",
		   "c.yaml:3:19: relays[0].name: must be 1 to 255 characters on one line\n");
	config_bad(BOTH "relays:\n  - name: a\n  - name: b\n  - name: a\n",
		   "c.yaml:6:11: relays[2]: relays[0] has the name 'a' already\n");
	config_bad("stores: { a: { url: 'sqlite:a' }, b: { url: 'sqlite:a' } }\n" SINK
		   "relays: [ { store: a }, { store: b } ]\n",
		   "c.yaml:3:25: relays[1]: relays[0] has the name 'default' already; give this "
		   "one a name\n");
	config_bad(BOTH "relays: [ {}, {} ]\n",
		   "c.yaml:3:15: relays[1]: relays[0] has the name 'default' "
		   "already; give this one a name\n");
}
OB_TEST_END

OB_TEST(two_stores_may_each_have_a_relay_of_the_same_name)
{
	CONFIG config = config_good(
		"stores: { a: { url: 'sqlite:a' }, b: { url: 'sqlite:b' } }\n"
		"sinks: { out: { type: stdout } }\n"
		"relays: [ { store: a }, { store: b } ]\n");

	ck_assert_str_eq(config->relays[0].name, "default");
	ck_assert_str_eq(config->relays[1].name, "default");
}
OB_TEST_END

OB_TEST(a_relay_names_what_exists)
{
	config_bad(
		"stores: { main: { url: 'sqlite:a' }, b: { url: 'sqlite:b' } }\n" SINK
		"relays: [ { store: mian, sink: ot }, { name: x, sink: zzz } ]\n",
		"c.yaml:3:20: relays[0].store: no store 'mian' in 'stores'; did you mean 'main'?\n"
		"c.yaml:3:32: relays[0].sink: no sink 'ot' in 'sinks'\n"
		"c.yaml:3:38: relays[1] needs 'store': there are 2 to choose from\n"
		"c.yaml:3:55: relays[1].sink: no sink 'zzz' in 'sinks'\n");
	config_bad(STORE "relays: [ {} ]\n",
		   "c.yaml:2:11: relays[0] has no sink: 'sinks' is empty\n");
}
OB_TEST_END

OB_TEST(values_must_fit_together)
{
	config_bad(
		RELAY("leasing: { lease_renew: 15s }"),
		"c.yaml:5:29: relays[0].leasing.lease_renew (15s) must be shorter than lease_ttl "
		"(15s); a third of it is good\n");
	config_bad(RELAY("leasing: { lease_ttl: 5s }"),
		   "c.yaml:5:27: relays[0].leasing.lease_renew (5s) must be shorter than lease_ttl "
		   "(5s); a third of it is good\n");
	config_bad(
		RELAY("leasing: { heartbeat_ttl: 5s }"),
		"c.yaml:5:31: relays[0].leasing.heartbeat_ttl (5s) must be longer than lease_renew "
		"(5s)\n");
	config_bad(RELAY("retry: { max_backoff: 4999ms }"),
		   "c.yaml:5:27: relays[0].retry.max_backoff (4999ms) must not be shorter than "
		   "base_delay (5s)\n");
	config_bad(
		RELAY("retry: { base_delay: 2h }"),
		"c.yaml:5:26: relays[0].retry.max_backoff (1h) must not be shorter than base_delay "
		"(2h)\n");
	/* A value that is wrong by itself is compared with nothing. */
	config_bad(RELAY("leasing: { lease_ttl: x, lease_renew: 1m, heartbeat_ttl: 2m }"),
		   "c.yaml:5:27: relays[0].leasing.lease_ttl: 'x' is not a duration (such as 15s) "
		   "from "
		   "1s to 1h\n");
}
OB_TEST_END

OB_TEST(a_layout_is_checked)
{
	config_bad(STORE "layout: { table: 'a;drop' }\n",
		   "c.yaml:2:18: layout: table 'a;drop' is not a name: use letters, digits, '_' "
		   "and '$', "
		   "not a digit first, at most 63 characters\n");
	config_bad(STORE "layout: { columns: { id: ~ } }\n",
		   "c.yaml:2:26: layout.columns: column 'id' cannot be switched off\n");
	config_bad(
		STORE "layout: { columns: { event_type: 'a b' } }\n",
		"c.yaml:2:34: layout.columns: column 'a b' is not a name: use letters, digits, '_' "
		"and '$', not a digit first, at most 63 characters\n");
	config_bad(STORE "layout: { columns: { event_type: PAYLOAD } }\n",
		   "c.yaml:2:11: layout.columns: columns 'event_type' and 'payload' have the same "
		   "name "
		   "'PAYLOAD'\n");
}
OB_TEST_END

OB_TEST(all_faults_come_at_once_in_the_order_of_the_file)
{
	struct ob_err err = OB_ERR_INIT;
	OB_AUTOFREE char *found = config_faults(OB_STR("relays:\n"
						       "  - store: nope\n"
						       "    workers: many\n"
						       "log: { colour: red }\n"
						       "sinks:\n"
						       "  out: { type: file }\n" STORE),
						&err);

	ck_assert_str_eq(found,
			 "c.yaml:2:12: relays[0].store: no store 'nope' in 'stores'\n"
			 "c.yaml:3:14: relays[0].workers: 'many' is not a number from 1 to "
			 "256\n"
			 "c.yaml:4:8: unknown key 'colour' in log\n"
			 "c.yaml:6:3: sinks.out needs 'path'\n");
	ck_assert_str_eq(err.msg, "c.yaml: 4 faults");
}
OB_TEST_END

OB_TEST(fifty_faults_are_enough)
{
	struct ob_buf text = OB_BUF_INIT(100000);
	struct ob_err err = OB_ERR_INIT;

	ob_buf_adds(&text, STORE);
	for (int i = 0; i < 1200; i++)
		ob_buf_addf(&text, "x%d: 1\n", i);
	OB_AUTOFREE char *found = config_faults(ob_buf_view(&text), &err);
	size_t lines = 0;
	for (const char *p = found; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, 51);
	ck_assert_ptr_nonnull(
		strstr(found, "c.yaml:51:1: unknown key 'x49'\nc.yaml: and 1150 more\n"));
	ck_assert_str_eq(err.msg, "c.yaml: 1200 faults");
	ob_buf_done(&text);
}
OB_TEST_END

OB_TEST(secrets_are_never_printed)
{
	ck_assert_int_eq(setenv("OB_SECRET", "hunter2", 1), 0);
	config_bad("stores: { main: { url: 'sqlite:a', pin: '${OB_SECRET}' } }\n",
		   "c.yaml:1:41: stores.main.pin: '****' is not a number from 1 to 9999\n");
	config_bad("stores: { main: { url: '${OB_SECRET}' } }\n",
		   "c.yaml:1:24: stores.main.url: no such store\n");
	config_bad("stores: { main: { url: 'x://u:${OB_SECRET}@h' } }\n",
		   "c.yaml:1:24: stores.main.url: no such store\n");
}
OB_TEST_END

OB_TEST(hostile_input_is_one_line)
{
	struct ob_err err = OB_ERR_INIT;
	size_t n = 2 << 20;
	OB_AUTOFREE char *large = malloc(n);

	ck_assert_ptr_nonnull(large);
	memset(large, '[', n);
	OB_AUTOFREE char *deep = config_faults((struct ob_str){ large, 100000 }, &err);
	ck_assert_str_eq(deep, "c.yaml:1:33: nested too deeply: 32 levels are the most\n");
	OB_AUTOFREE char *big = config_faults((struct ob_str){ large, n }, &err);
	ck_assert_str_eq(big, "c.yaml: is larger than 1024 KB\n");
	OB_AUTOFREE char *nul = config_faults((struct ob_str){ "stores: \0", 9 }, &err);
	ck_assert_str_eq(nul, "c.yaml:1:9: control characters are not allowed\n");
	config_bad("stores: \xff\n", "c.yaml:1:9: invalid leading UTF-8 octet\n");
	config_bad("stores: { main: { url: \"sqlite:\\0\" } }\n",
		   "c.yaml:1:24: a text cannot hold a NUL character\n");
	config_bad("stores: *x\n", "c.yaml:1:9: aliases are not supported: write the value out\n");
}
OB_TEST_END

OB_TEST(there_are_at_most_a_thousand_relays)
{
	struct ob_buf text = OB_BUF_INIT(100000);
	struct ob_err err = OB_ERR_INIT;

	ob_buf_adds(&text, BOTH "relays:\n");
	for (int i = 0; i < 1000; i++)
		ob_buf_addf(&text, "- name: r%d\n", i);
	CONFIG c = config_load(ob_buf_view(&text));
	ck_assert_uint_eq(c->relay_count, 1000);
	ob_buf_adds(&text, "- name: more\n");
	OB_AUTOFREE char *found = config_faults(ob_buf_view(&text), &err);
	ck_assert_str_eq(found, "c.yaml:4:1: relays has more than 1000 entries\n");
	ob_buf_done(&text);
}
OB_TEST_END

OB_SUITE("config faults", unknown_keys_are_refused_with_a_guess,
	 keys_that_are_gone_say_what_to_write, wrong_kinds_of_nodes_are_named,
	 values_out_of_range_say_what_may_stand_there, consumers_are_checked_as_a_whole,
	 duplicate_keys_are_found_everywhere, required_keys_are_missed_at_their_section,
	 a_file_without_a_store_is_refused, backends_are_looked_up,
	 a_sink_checks_its_options_together, names_are_checked,
	 two_stores_may_each_have_a_relay_of_the_same_name, a_relay_names_what_exists,
	 values_must_fit_together, a_layout_is_checked,
	 all_faults_come_at_once_in_the_order_of_the_file, fifty_faults_are_enough,
	 secrets_are_never_printed, hostile_input_is_one_line, there_are_at_most_a_thousand_relays)
