/* SPDX-License-Identifier: MIT */
/* The configuration: every default, every message with its place, all at once. */
#include "base/cleanup.h"
#include "config/config.h"
#include "suite.h"

#include <sys/stat.h>

#define STORE "stores: { main: { url: 'sqlite:a.db' } }\n"
#define SINK  "sinks: { out: { type: stdout } }\n"
#define BOTH  STORE SINK

OB_DEFINE_CLEANUP(struct ob_config *, ob_config_free)
#define CONFIG OB_CLEANUP(ob_config_freep) struct ob_config *

enum { FAULTS_MAX = 256 * 1024 };

static struct ob_config *load(struct ob_str text)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_MAX);
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_config_parse(text, "c.yaml", &faults, &config, &err) == 0, "%s%s",
		      ob_buf_str(&faults), err.msg);
	ck_assert_uint_eq(faults.len, 0);
	ob_buf_done(&faults);
	return config;
}

static struct ob_config *good(const char *text)
{
	return load(ob_str(text));
}

/* The faults of a text; the caller frees. */
static char *faults_of(struct ob_str text, struct ob_err *err)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_MAX);
	struct ob_config *config = NULL;

	ck_assert_int_eq(ob_config_parse(text, "c.yaml", &faults, &config, err), OUTBOX_ECONFIG);
	ck_assert_ptr_null(config);
	ck_assert(!faults.failed);
	return ob_buf_take(&faults);
}

static void bad(const char *text, const char *expected)
{
	struct ob_err err = OB_ERR_INIT;
	OB_AUTOFREE char *found = faults_of(ob_str(text), &err);

	ck_assert_str_eq(found, expected);
}

/* A relay with one wrong line in it, which is line 5 at column 5. */
#define RELAY(line) BOTH "relays:\n  - name: r\n    " line "\n"

OB_TEST(a_relay_has_its_defaults)
{
	CONFIG c = good(BOTH "relays: [ {} ]\n");
	const struct ob_config_relay *r = &c->relays[0];

	ck_assert_uint_eq(c->relay_count, 1);
	ck_assert_str_eq(r->name, "default");
	ck_assert_ptr_eq(r->store, &c->stores[0]);
	ck_assert_ptr_eq(r->sink, &c->sinks[0]);
	ck_assert_uint_eq(r->workers, 1);
	ck_assert_int_eq(r->ordering, OB_ORDER_KEY);
	ck_assert_uint_eq(r->batch_size, 500);
	ck_assert_int_eq(r->batch_bytes, 8 << 20);
	ck_assert_int_eq(r->idle_backoff_ms, 1000);
	ck_assert_int_eq(r->shutdown_timeout_ms, 10000);
	ck_assert_int_eq(r->after_publish, OB_AFTER_KEEP);
	ck_assert_int_eq(r->on_dead, OB_ON_DEAD_RELEASE);
	ck_assert_int_eq(r->claim_ttl_ms, 60000);
	ck_assert(r->leasing.enabled);
	ck_assert_uint_eq(r->leasing.partition_count, 16);
	ck_assert_int_eq(r->leasing.lease_ttl_ms, 15000);
	ck_assert_int_eq(r->leasing.lease_renew_ms, 5000);
	ck_assert_int_eq(r->leasing.heartbeat_ttl_ms, 20000);
	ck_assert_uint_eq(r->retry.max_attempts, 8);
	ck_assert_int_eq(r->retry.base_delay_ms, 5000);
	ck_assert_int_eq(r->retry.max_backoff_ms, 3600000);
	ck_assert_double_eq_tol(r->retry.multiplier, 2, 1e-9);
	ck_assert_double_eq_tol(r->retry.jitter, 0.25, 1e-9);
	ck_assert_str_eq(r->route.destination, "{aggregate_type}");
	ck_assert_int_eq(r->cleanup.published_after_ms, INT64_C(168) * 3600000);
	ck_assert_int_eq(r->cleanup.dead_after_ms, OB_NEVER_MS);
	ck_assert_int_eq(r->cleanup.every_ms, 3600000);
	ck_assert_uint_eq(r->cleanup.batch, 5000);
}
OB_TEST_END

OB_TEST(the_rest_has_its_defaults)
{
	CONFIG c = good(STORE);
	struct ob_layout dflt;

	ob_layout_default(&dflt);
	ck_assert_str_eq(c->path, "c.yaml");
	ck_assert_int_eq(c->log_level, OB_LOG_INFO);
	ck_assert_int_eq(c->log_format, OB_LOG_AUTO);
	ck_assert_uint_eq(c->writer_flags, 0);
	ck_assert_mem_eq(&c->layout, &dflt, sizeof(dflt));
	ck_assert_uint_eq(c->store_count, 1);
	ck_assert_str_eq(c->stores[0].conf.url, "sqlite:a.db");
	ck_assert_uint_eq(c->stores[0].conf.option_count, 0);
	ck_assert_ptr_eq(c->stores[0].conf.layout, &c->layout);
	ck_assert_uint_eq(c->sink_count, 0);
	ck_assert_uint_eq(c->relay_count, 0);
}
OB_TEST_END

OB_TEST(every_key_of_a_relay_is_read)
{
	CONFIG c = good(STORE
			"sinks: { a: { type: stdout }, b: { type: file, path: x } }\n"
			"relays:\n"
			"  - { name: Größe, store: main, sink: b, workers: 4, ordering: none,\n"
			"      batch_size: 7, batch_bytes: 2KB, idle_backoff_ms: 2s,\n"
			"      shutdown_timeout: 0, after_publish: delete, on_dead: hold,\n"
			"      claim_ttl: 2m,\n"
			"      leasing: { enabled: off, partition_count: 1024, lease_ttl: 30s,\n"
			"                 lease_renew: 100ms, heartbeat_ttl: 1m },\n"
			"      retry: { max_attempts: 1, base_delay: 1ms, multiplier: 1.5,\n"
			"               max_backoff: 30d, jitter: 0 },\n"
			"      route: { destination: 'x.{event_type}.{target}' },\n"
			"      cleanup: { published_after: never, dead_after: 7d, every: 1m,\n"
			"                 batch: 1 } }\n"
			"  - { name: other, sink: a, ordering: partition }\n");
	const struct ob_config_relay *r = &c->relays[0];

	ck_assert_uint_eq(c->relay_count, 2);
	ck_assert_str_eq(r->name, "Größe");
	ck_assert_str_eq(r->sink->name, "b");
	ck_assert_uint_eq(r->workers, 4);
	ck_assert_int_eq(r->ordering, OB_ORDER_NONE);
	ck_assert_uint_eq(r->batch_size, 7);
	ck_assert_int_eq(r->batch_bytes, 2048);
	ck_assert_int_eq(r->idle_backoff_ms, 2000);
	ck_assert_int_eq(r->shutdown_timeout_ms, 0);
	ck_assert_int_eq(r->after_publish, OB_AFTER_DELETE);
	ck_assert_int_eq(r->on_dead, OB_ON_DEAD_HOLD);
	ck_assert_int_eq(r->claim_ttl_ms, 120000);
	ck_assert(!r->leasing.enabled);
	ck_assert_uint_eq(r->leasing.partition_count, 1024);
	ck_assert_int_eq(r->leasing.lease_ttl_ms, 30000);
	ck_assert_int_eq(r->leasing.lease_renew_ms, 100);
	ck_assert_int_eq(r->leasing.heartbeat_ttl_ms, 60000);
	ck_assert_uint_eq(r->retry.max_attempts, 1);
	ck_assert_int_eq(r->retry.base_delay_ms, 1);
	ck_assert_double_eq_tol(r->retry.multiplier, 1.5, 1e-9);
	ck_assert_int_eq(r->retry.max_backoff_ms, INT64_C(30) * 86400000);
	ck_assert_double_eq_tol(r->retry.jitter, 0, 1e-9);
	ck_assert_str_eq(r->route.destination, "x.{event_type}.{target}");
	ck_assert_int_eq(r->cleanup.published_after_ms, OB_NEVER_MS);
	ck_assert_int_eq(r->cleanup.dead_after_ms, INT64_C(7) * 86400000);
	ck_assert_int_eq(r->cleanup.every_ms, 60000);
	ck_assert_uint_eq(r->cleanup.batch, 1);
	ck_assert_int_eq(c->relays[1].ordering, OB_ORDER_PARTITION);
	ck_assert_str_eq(c->relays[1].sink->name, "a");
}
OB_TEST_END

OB_TEST(backends_get_their_options_as_text)
{
	CONFIG c =
		good("stores:\n  main: { password: pw, url: 'sqlite:a.db', busy_timeout: 3s }\n"
		     "sinks: { out: { type: file, path: x.ndjson, max_size: 64KB } }\n");
	const struct ob_store_conf *conf = &c->stores[0].conf;

	ck_assert_uint_eq(conf->option_count, 2);
	ck_assert_str_eq(conf->options[0].name, "busy_timeout");
	ck_assert_str_eq(conf->options[0].value, "3s");
	ck_assert_str_eq(conf->options[1].name, "password");
	ck_assert_str_eq(conf->options[1].value, "pw");
	ck_assert_str_eq(c->sinks[0].ops->name, "file");
	ck_assert_uint_eq(c->sinks[0].option_count, 2);
	ck_assert_str_eq(c->sinks[0].options[0].value, "x.ndjson");
	ck_assert_uint_eq(c->relay_count, 1);
}
OB_TEST_END

OB_TEST(one_store_and_one_sink_make_a_relay)
{
	CONFIG one = good(BOTH);
	CONFIG none = good(BOTH "relays: []\n");
	CONFIG empty = good(BOTH "relays:\nlog:\nlayout:\n");
	CONFIG two = good(STORE "sinks: { a: { type: stdout }, b: { type: stdout } }\n");

	ck_assert_uint_eq(one->relay_count, 1);
	ck_assert_str_eq(one->relays[0].name, "default");
	ck_assert_ptr_eq(one->relays[0].sink, &one->sinks[0]);
	ck_assert_uint_eq(none->relay_count, 0);
	ck_assert_uint_eq(empty->relay_count, 1);
	ck_assert_uint_eq(two->relay_count, 0);
}
OB_TEST_END

OB_TEST(relays_before_stores_are_fine)
{
	CONFIG c = good("relays: [ { store: main, sink: out } ]\n" SINK STORE);

	ck_assert_str_eq(c->relays[0].store->name, "main");
}
OB_TEST_END

OB_TEST(log_and_layout_are_read)
{
	CONFIG c = good(STORE
			"log: { level: debug, format: json }\n"
			"layout:\n  table: shop.events\n  id_type: string\n"
			"  payload_type: binary\n  validate_payload: no\n"
			"  validate_headers: false\n"
			"  columns: { event_type: kind, headers: ~, snapshot: null, "
			"causation_id: }\n");

	ck_assert_int_eq(c->log_level, OB_LOG_DEBUG);
	ck_assert_int_eq(c->log_format, OB_LOG_JSON);
	ck_assert_str_eq(c->layout.schema, "shop");
	ck_assert_str_eq(c->layout.table[OB_TABLE_meta], "events_meta");
	ck_assert_str_eq(c->layout.column[OB_COL_event_type], "kind");
	ck_assert_str_eq(c->layout.column[OB_COL_headers], "");
	ck_assert_str_eq(c->layout.column[OB_COL_snapshot], "");
	ck_assert_str_eq(c->layout.column[OB_COL_causation_id], "");
	ck_assert(c->layout.string_id);
	ck_assert(c->layout.binary_payload);
	ck_assert_uint_eq(c->writer_flags, OUTBOX_NO_PAYLOAD_CHECK | OUTBOX_NO_HEADERS_CHECK |
						   OUTBOX_STRING_ID | OUTBOX_BINARY_PAYLOAD);
}
OB_TEST_END

OB_TEST(unknown_keys_are_refused_with_a_guess)
{
	bad(BOTH "relays:\n  - batch_sizee: 1\n",
	    "c.yaml:4:5: unknown key 'batch_sizee' in relays[0]; did you mean 'batch_size'?\n");
	bad(STORE "storess: 1\n", "c.yaml:2:1: unknown key 'storess'; did you mean 'stores'?\n");
	bad(STORE "monitor: { listen: x }\n", "c.yaml:2:1: unknown key 'monitor'\n");
	bad(RELAY("lease_ttl: 1s"),
	    "c.yaml:5:5: unknown key 'lease_ttl' in relays[0]; it belongs into 'leasing'\n");
	bad(RELAY("retry: { jiter: 1 }"),
	    "c.yaml:5:14: unknown key 'jiter' in relays[0].retry; did you mean 'jitter'?\n");
	bad(RELAY("leasin: {}"),
	    "c.yaml:5:5: unknown key 'leasin' in relays[0]; did you mean 'leasing'?\n");
	bad("stores: { main: { url: 'sqlite:a', bussy_timeout: 1 } }\n",
	    "c.yaml:1:36: unknown key 'bussy_timeout' in stores.main; did you mean "
	    "'busy_timeout'?\n");
	bad(STORE "sinks: { out: { type: file, path: a, fsyn: 1 } }\n",
	    "c.yaml:2:38: unknown key 'fsyn' in sinks.out; did you mean 'fsync'?\n");
	bad(STORE "layout: { columns: { evnt_type: a, zzzzzzz: b } }\n",
	    "c.yaml:2:22: unknown key 'evnt_type' in layout.columns; did you mean 'event_type'?\n"
	    "c.yaml:2:36: unknown key 'zzzzzzz' in layout.columns\n");
}
OB_TEST_END

OB_TEST(wrong_kinds_of_nodes_are_named)
{
	bad(RELAY("workers: { a: 1 }"),
	    "c.yaml:5:14: relays[0].workers expects a number, not a mapping\n");
	bad(RELAY("claim_ttl: [ 1s ]"),
	    "c.yaml:5:16: relays[0].claim_ttl expects a duration, not a list\n");
	bad(RELAY("batch_bytes: [ ]"),
	    "c.yaml:5:18: relays[0].batch_bytes expects a size, not a list\n");
	bad(RELAY("leasing: { enabled: [] }"),
	    "c.yaml:5:25: relays[0].leasing.enabled expects true or false, not a list\n");
	bad(RELAY("route: { destination: {event_type} }"),
	    "c.yaml:5:27: relays[0].route.destination expects a text, not a mapping; put it in "
	    "quotes\n");
	bad(RELAY("workers:"),
	    "c.yaml:5:13: relays[0].workers expects a number, but nothing is there\n");
	bad(RELAY("retry: [ 1 ]"), "c.yaml:5:12: relays[0].retry expects a mapping, not a list\n");
	bad(RELAY("retry: 5"), "c.yaml:5:12: relays[0].retry expects a mapping, not a text\n");
	bad(BOTH "relays: { name: a }\n",
	    "c.yaml:3:9: relays expects a list, not a mapping; begin each relay with '- '\n");
	bad(BOTH "relays: [ a, [ ] ]\n",
	    "c.yaml:3:11: relays[0] expects a mapping, not a text\n"
	    "c.yaml:3:14: relays[1] expects a mapping, not a list\n");
	bad("stores: [ a ]\n", "c.yaml:1:9: stores expects a mapping, not a list\n");
	bad("stores: { main: 'sqlite:a.db' }\n",
	    "c.yaml:1:17: stores.main expects a mapping, not a text\n");
	bad(STORE "sinks: { out: stdout }\n",
	    "c.yaml:2:15: sinks.out expects a mapping, not a text\n");
	bad(STORE "layout: { columns: { id: [ ] } }\n",
	    "c.yaml:2:26: layout.columns.id expects a text, not a list; put it in quotes\n");
	bad("- a\n", "c.yaml:1:1: the file must be a mapping such as 'stores: ...', not a list\n");
	bad("hello\n",
	    "c.yaml:1:1: the file must be a mapping such as 'stores: ...', not a text\n");
}
OB_TEST_END

OB_TEST(values_out_of_range_say_what_may_stand_there)
{
	bad(RELAY("batch_size: lots"),
	    "c.yaml:5:17: relays[0].batch_size: 'lots' is not a number from 1 to 10000\n");
	bad(RELAY("workers: 0"),
	    "c.yaml:5:14: relays[0].workers: '0' is not a number from 1 to 256\n");
	bad(RELAY("workers: 99999999999999999999999"),
	    "c.yaml:5:14: relays[0].workers: '99999999999999999999999' is not a number from 1 to "
	    "256\n");
	bad(RELAY("workers: -1"),
	    "c.yaml:5:14: relays[0].workers: '-1' is not a number from 1 to 256\n");
	bad(RELAY("ordering: keys"),
	    "c.yaml:5:15: relays[0].ordering: 'keys' is not one of key, partition, none\n");
	bad(RELAY("cleanup: { dead_after: soon }"),
	    "c.yaml:5:28: relays[0].cleanup.dead_after: 'soon' is not a duration (such as 15s) "
	    "from 1s to 3650d, or never\n");
	bad(RELAY("retry: { jitter: nan }"),
	    "c.yaml:5:22: relays[0].retry.jitter: 'nan' is not a number from 0 to 1\n");
	bad(RELAY("leasing: { enabled: maybe }"),
	    "c.yaml:5:25: relays[0].leasing.enabled: 'maybe' is not true or false\n");
	bad(STORE "log: { level: loud }\n",
	    "c.yaml:2:15: log.level: 'loud' is not one of error, warn, info, debug\n");
	bad("stores: { main: { url: 'sqlite:a', busy_timeout: 2m } }\n",
	    "c.yaml:1:50: stores.main.busy_timeout: '2m' is not a duration (such as 15s) from "
	    "1ms to 1m\n");
	bad(RELAY("workers: \"1\\n\\e[31m\""),
	    "c.yaml:5:14: relays[0].workers: '1  [31m' is not a number from 1 to 256\n");
}
OB_TEST_END

OB_TEST(duplicate_keys_are_found_everywhere)
{
	bad(STORE STORE, "c.yaml:2:1: duplicate key 'stores'; the first is in line 1\n");
	bad("stores: { a: { url: 'sqlite:a' }, a: { url: 'sqlite:b' } }\n",
	    "c.yaml:1:35: duplicate key 'a' in stores; the first is in line 1\n");
	bad("stores:\n  a:\n    url: 'sqlite:a'\n    url: 'sqlite:b'\n",
	    "c.yaml:4:5: duplicate key 'url' in stores.a; the first is in line 3\n");
	bad(RELAY("name: x"),
	    "c.yaml:5:5: duplicate key 'name' in relays[0]; the first is in line 4\n");
	bad(STORE "layout: { columns: { id: a, id: b } }\n",
	    "c.yaml:2:29: duplicate key 'id' in layout.columns; the first is in line 2\n");
}
OB_TEST_END

OB_TEST(required_keys_are_missed_at_their_section)
{
	bad("stores:\n  main: {}\n", "c.yaml:2:3: stores.main needs 'url'\n");
	bad("stores:\n  main:\n", "c.yaml:2:3: stores.main needs 'url'\n");
	bad("stores: { main: { url: '' } }\n", "c.yaml:1:24: stores.main.url must not be empty\n");
	bad(STORE "sinks:\n  out: { path: x }\n", "c.yaml:3:3: sinks.out needs 'type'\n");
	bad(STORE "sinks:\n  out: { type: file }\n", "c.yaml:3:3: sinks.out needs 'path'\n");
	bad(STORE "sinks:\n  out: { type: file, path: '' }\n",
	    "c.yaml:3:28: sinks.out.path must not be empty\n");
}
OB_TEST_END

#define NO_STORE "no store: write for example 'stores: { main: { url: \"sqlite:outbox.db\" } }'\n"

OB_TEST(a_file_without_a_store_is_refused)
{
	bad("", "c.yaml:1:1: " NO_STORE);
	bad("# nothing\n", "c.yaml:1:1: " NO_STORE);
	bad("---\n", "c.yaml:1:1: " NO_STORE);
	bad("log: {}\nstores:\n", "c.yaml:2:1: " NO_STORE);
	bad("log: {}\nstores: {}\n" SINK "relays: [ {} ]\n", "c.yaml:2:1: " NO_STORE);
}
OB_TEST_END

OB_TEST(backends_are_looked_up)
{
	bad("stores: { main: { url: 'nosql:a', x: 1 } }\n",
	    "c.yaml:1:24: stores.main.url: no such store\n");
	bad("stores: { main: { url: 'sqlite:' } }\n",
	    "c.yaml:1:24: stores.main.url: nothing stands behind 'sqlite:'; write for example "
	    "sqlite:outbox.db\n");
	bad(STORE "sinks: { out: { type: carrier } }\n",
	    "c.yaml:2:23: sinks.out.type: no such sink 'carrier'\n");
}
OB_TEST_END

OB_TEST(a_sink_checks_its_options_together)
{
	bad(STORE "sinks: { out: { type: file, path: /nowhere } }\n",
	    "c.yaml:2:15: sinks.out: '/nowhere' is no place\n");
}
OB_TEST_END

OB_TEST(names_are_checked)
{
	bad("stores: { Main: { url: 'sqlite:a' } }\n",
	    "c.yaml:1:11: 'Main' is not a name in stores: use a-z, 0-9, '_' and '-', at most 64 "
	    "characters\n");
	bad(STORE "sinks: { '': { type: stdout } }\n",
	    "c.yaml:2:10: '' is not a name in sinks: use a-z, 0-9, '_' and '-', at most 64 "
	    "characters\n");
	bad(BOTH "relays: [ { name: '' } ]\n",
	    "c.yaml:3:19: relays[0].name: must be 1 to 255 characters on one line\n");
	bad(BOTH "relays:\n  - name: a\n  - name: b\n  - name: a\n",
	    "c.yaml:6:11: relays[2]: relays[0] has the name 'a' already\n");
	bad(BOTH "relays: [ {}, {} ]\n",
	    "c.yaml:3:15: relays[1]: relays[0] has the name 'default' "
	    "already; give this one a name\n");
}
OB_TEST_END

OB_TEST(two_stores_may_each_have_a_relay_of_the_same_name)
{
	CONFIG config =
		good("stores: { a: { url: 'sqlite:a' }, b: { url: 'sqlite:b' } }\n"
		     "sinks: { out: { type: stdout } }\n"
		     "relays: [ { store: a }, { store: b } ]\n");

	ck_assert_str_eq(config->relays[0].name, "default");
	ck_assert_str_eq(config->relays[1].name, "default");
}
OB_TEST_END

OB_TEST(a_relay_names_what_exists)
{
	bad("stores: { main: { url: 'sqlite:a' }, b: { url: 'sqlite:b' } }\n" SINK
	    "relays: [ { store: mian, sink: ot }, { name: x, sink: zzz } ]\n",
	    "c.yaml:3:20: relays[0].store: no store 'mian' in 'stores'; did you mean 'main'?\n"
	    "c.yaml:3:32: relays[0].sink: no sink 'ot' in 'sinks'\n"
	    "c.yaml:3:38: relays[1] needs 'store': there are 2 to choose from\n"
	    "c.yaml:3:55: relays[1].sink: no sink 'zzz' in 'sinks'\n");
	bad(STORE "relays: [ {} ]\n", "c.yaml:2:11: relays[0] has no sink: 'sinks' is empty\n");
}
OB_TEST_END

OB_TEST(values_must_fit_together)
{
	bad(RELAY("leasing: { lease_renew: 15s }"),
	    "c.yaml:5:29: relays[0].leasing.lease_renew (15s) must be shorter than lease_ttl "
	    "(15s); a third of it is good\n");
	bad(RELAY("leasing: { lease_ttl: 5s }"),
	    "c.yaml:5:27: relays[0].leasing.lease_renew (5s) must be shorter than lease_ttl "
	    "(5s); a third of it is good\n");
	bad(RELAY("leasing: { heartbeat_ttl: 5s }"),
	    "c.yaml:5:31: relays[0].leasing.heartbeat_ttl (5s) must be longer than lease_renew "
	    "(5s)\n");
	bad(RELAY("retry: { max_backoff: 4999ms }"),
	    "c.yaml:5:27: relays[0].retry.max_backoff (4999ms) must not be shorter than "
	    "base_delay (5s)\n");
	bad(RELAY("retry: { base_delay: 2h }"),
	    "c.yaml:5:26: relays[0].retry.max_backoff (1h) must not be shorter than base_delay "
	    "(2h)\n");
	bad(RELAY("leasing: { enabled: false }"),
	    "c.yaml:5:25: relays[0]: with leasing off nothing keeps an order; set 'ordering: "
	    "none', or leave leasing on\n");
	bad(RELAY("ordering: partition\n    leasing: { enabled: no }"),
	    "c.yaml:5:15: relays[0]: with leasing off nothing keeps an order; set 'ordering: "
	    "none', or leave leasing on\n");
	/* A value that is wrong by itself is compared with nothing. */
	bad(RELAY("leasing: { lease_ttl: x, lease_renew: 1m, heartbeat_ttl: 2m }"),
	    "c.yaml:5:27: relays[0].leasing.lease_ttl: 'x' is not a duration (such as 15s) from "
	    "1s to 1h\n");
}
OB_TEST_END

OB_TEST(a_destination_names_fields_that_exist)
{
	bad(RELAY("route: { destination: 'a.{evnt_type}' }"),
	    "c.yaml:5:27: relays[0].route.destination: no field '{evnt_type}'; did you mean "
	    "'{event_type}'?\n");
	bad(RELAY("route: { destination: 'a.{payload}' }"),
	    "c.yaml:5:27: relays[0].route.destination: no field '{payload}'\n");
	bad(RELAY("route: { destination: 'a.{event_type' }"),
	    "c.yaml:5:27: relays[0].route.destination: a '{' without its '}'\n");
	bad(RELAY("route: { destination: 'a}' }"),
	    "c.yaml:5:27: relays[0].route.destination: a '}' without its '{'\n");
	bad(RELAY("route: { destination: '{{target}}' }"),
	    "c.yaml:5:27: relays[0].route.destination: a '{' without its '}'\n");
	bad(RELAY("route: { destination: '' }"),
	    "c.yaml:5:27: relays[0].route.destination: must not be empty\n");
}
OB_TEST_END

OB_TEST(a_layout_is_checked)
{
	bad(STORE "layout: { table: 'a;drop' }\n",
	    "c.yaml:2:18: layout: table 'a;drop' is not a name: use letters, digits, '_' and '$', "
	    "not a digit first, at most 63 characters\n");
	bad(STORE "layout: { columns: { id: ~ } }\n",
	    "c.yaml:2:26: layout.columns: column 'id' cannot be switched off\n");
	bad(STORE "layout: { columns: { event_type: 'a b' } }\n",
	    "c.yaml:2:34: layout.columns: column 'a b' is not a name: use letters, digits, '_' "
	    "and '$', not a digit first, at most 63 characters\n");
	bad(STORE "layout: { columns: { event_type: PAYLOAD } }\n",
	    "c.yaml:2:11: layout.columns: columns 'event_type' and 'payload' have the same name "
	    "'PAYLOAD'\n");
}
OB_TEST_END

OB_TEST(all_faults_come_at_once_in_the_order_of_the_file)
{
	struct ob_err err = OB_ERR_INIT;
	OB_AUTOFREE char *found = faults_of(OB_STR("relays:\n"
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
	OB_AUTOFREE char *found = faults_of(ob_buf_view(&text), &err);
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

OB_TEST(variables_and_files_are_put_in)
{
	char path[] = "/tmp/outbox-config-XXXXXX";
	OB_AUTOCLOSE int fd = mkstemp(path);
	char text[400];

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "s3cret\n", 7), 7);
	ck_assert_int_eq(setenv("OB_DB", "sqlite:x.db", 1), 0);
	ck_assert_int_eq(setenv("OB_N", "3", 1), 0);
	(void)snprintf(text, sizeof(text),
		       "stores: { main: { url: '${OB_DB}', password: '${file:%s}' } }\n" SINK
		       "relays: [ { workers: '${OB_N}' , name: '$${x}'} ]\n",
		       path);
	CONFIG c = good(text);
	ck_assert_str_eq(c->stores[0].conf.url, "sqlite:x.db");
	ck_assert_str_eq(c->stores[0].conf.options[0].value, "s3cret");
	ck_assert_uint_eq(c->relays[0].workers, 3);
	ck_assert_str_eq(c->relays[0].name, "${x}");
	ck_assert_int_eq(unlink(path), 0);
	bad("stores: { main: { url: '${OB_UNSET}', password: '${file:/nonexistent/x}' } }\n",
	    "c.yaml:1:24: stores.main.url: environment variable 'OB_UNSET' is not set\n");
	bad("stores: { main: { url: 'sqlite:a', password: '${file:/nonexistent/x}' } }\n",
	    "c.yaml:1:46: stores.main.password: file '/nonexistent/x': cannot be read: No such "
	    "file or directory\n");
}
OB_TEST_END

OB_TEST(secrets_are_never_printed)
{
	ck_assert_int_eq(setenv("OB_SECRET", "hunter2", 1), 0);
	bad("stores: { main: { url: 'sqlite:a', pin: '${OB_SECRET}' } }\n",
	    "c.yaml:1:41: stores.main.pin: '****' is not a number from 1 to 9999\n");
	bad("stores: { main: { url: '${OB_SECRET}' } }\n",
	    "c.yaml:1:24: stores.main.url: no such store\n");
	bad("stores: { main: { url: 'x://u:${OB_SECRET}@h' } }\n",
	    "c.yaml:1:24: stores.main.url: no such store\n");
}
OB_TEST_END

/* ---- hostile input --------------------------------------------------- */

OB_TEST(hostile_input_is_one_line)
{
	struct ob_err err = OB_ERR_INIT;
	size_t n = 2 << 20;
	OB_AUTOFREE char *large = malloc(n);

	ck_assert_ptr_nonnull(large);
	memset(large, '[', n);
	OB_AUTOFREE char *deep = faults_of((struct ob_str){ large, 100000 }, &err);
	ck_assert_str_eq(deep, "c.yaml:1:33: nested too deeply: 32 levels are the most\n");
	OB_AUTOFREE char *big = faults_of((struct ob_str){ large, n }, &err);
	ck_assert_str_eq(big, "c.yaml: is larger than 1024 KB\n");
	OB_AUTOFREE char *nul = faults_of((struct ob_str){ "stores: \0", 9 }, &err);
	ck_assert_str_eq(nul, "c.yaml:1:9: control characters are not allowed\n");
	bad("stores: \xff\n", "c.yaml:1:9: invalid leading UTF-8 octet\n");
	bad("stores: { main: { url: \"sqlite:\\0\" } }\n",
	    "c.yaml:1:24: a text cannot hold a NUL character\n");
	bad("stores: *x\n", "c.yaml:1:9: aliases are not supported: write the value out\n");
}
OB_TEST_END

OB_TEST(there_are_at_most_a_thousand_relays)
{
	struct ob_buf text = OB_BUF_INIT(100000);
	struct ob_err err = OB_ERR_INIT;

	ob_buf_adds(&text, BOTH "relays:\n");
	for (int i = 0; i < 1000; i++)
		ob_buf_addf(&text, "- name: r%d\n", i);
	CONFIG c = load(ob_buf_view(&text));
	ck_assert_uint_eq(c->relay_count, 1000);
	ob_buf_adds(&text, "- name: more\n");
	OB_AUTOFREE char *found = faults_of(ob_buf_view(&text), &err);
	ck_assert_str_eq(found, "c.yaml:4:1: relays has more than 1000 entries\n");
	ob_buf_done(&text);
}
OB_TEST_END

/* ---- files, and what is made from the tables ------------------------- */

static void load_fails(const char *path, const char *faults_expected, const char *msg)
{
	struct ob_buf faults = OB_BUF_INIT(FAULTS_MAX);
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_config_load(path, &faults, &config, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(ob_buf_str(&faults), faults_expected);
	ck_assert_str_eq(err.msg, msg);
	ck_assert_ptr_null(config);
	ob_buf_done(&faults);
}

OB_TEST(a_file_that_cannot_be_read_is_one_line)
{
	load_fails("/nonexistent/o.yaml",
		   "/nonexistent/o.yaml: cannot be read: No such file or directory\n",
		   "/nonexistent/o.yaml: 1 fault");
	load_fails("/tmp", "/tmp: is a directory, not a file\n", "/tmp: 1 fault");
	load_fails("/dev/null", "/dev/null: is not a regular file\n", "/dev/null: 1 fault");
}
OB_TEST_END

OB_TEST(the_sample_loads_from_a_file)
{
	char path[] = "/tmp/outbox-config-XXXXXX";
	OB_AUTOCLOSE int fd = mkstemp(path);
	struct ob_buf text = OB_BUF_INIT(1 << 20), faults = OB_BUF_INIT(FAULTS_MAX);
	CONFIG c = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_ge(fd, 0);
	ob_config_sample(&text);
	ck_assert(!text.failed);
	ck_assert_int_eq(write(fd, text.data, text.len), (int)text.len);
	ck_assert_msg(ob_config_load(path, &faults, &c, &err) == 0, "%s", ob_buf_str(&faults));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_str_eq(c->path, path);
	ck_assert_str_eq(c->stores[0].conf.url, "sqlite:outbox.db");
	ck_assert_str_eq(c->sinks[0].options[0].value, "outbox.ndjson");
	ck_assert_str_eq(c->relays[0].route.destination, "{aggregate_type}");
	ob_buf_done(&text);
	ob_buf_done(&faults);
}
OB_TEST_END

/* Uncomment every key of the sample: what it shows as a default must be one. */
OB_TEST(every_commented_default_of_the_sample_loads)
{
	struct ob_buf text = OB_BUF_INIT(1 << 20);
	size_t uncommented = 0;

	ob_config_sample(&text);
	for (char *p = text.data; (p = strchr(p, '#')); p++) {
		bool line_start = p[-(p > text.data)] == ' ' || p == text.data;

		if (line_start && p[1] >= 'a' && p[1] <= 'z') {
			*p = ' ';
			uncommented++;
		}
	}
	ck_assert_uint_gt(uncommented, 25);
	/* One more space each: put the indentation right again. */
	struct ob_buf fixed = OB_BUF_INIT(1 << 20);
	for (char *line = text.data, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t spaces = strspn(line, " ");

		line += spaces % 2;
		ob_buf_add(&fixed, (struct ob_str){ line, (size_t)(end + 1 - line) });
	}
	/* The stub's secrets have no default that may stand there. */
	char *pin = strstr(fixed.data, "    pin:");
	ck_assert_ptr_nonnull(pin);
	*pin = '#';
	CONFIG c = load(ob_buf_view(&fixed));
	CONFIG dflt = good(BOTH);
	ck_assert_int_eq(c->relays[0].cleanup.dead_after_ms, OB_NEVER_MS);
	ck_assert_int_eq(c->relays[0].batch_bytes, dflt->relays[0].batch_bytes);
	ck_assert_str_eq(c->layout.column[OB_COL_event_type], "kind");
	ob_buf_done(&text);
	ob_buf_done(&fixed);
}
OB_TEST_END

OB_TEST(a_url_alone_makes_a_configuration)
{
	struct ob_err err = OB_ERR_INIT;
	CONFIG c = NULL;
	struct ob_config *none = NULL;

	ck_assert_int_eq(ob_config_of_store("sqlite:a.db", &c, &err), 0);
	ck_assert_ptr_null(c->path);
	ck_assert_str_eq(ob_config_find_store(c, NULL)->name, "main");
	ck_assert_str_eq(ob_config_find_store(c, "main")->conf.url, "sqlite:a.db");
	ck_assert_ptr_null(ob_config_find_store(c, "other"));
	ck_assert_int_eq(c->log_level, OB_LOG_INFO);
	ck_assert_int_eq(ob_config_of_store("a.db", &none, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "the URL of the store: no such store");
	ck_assert_ptr_null(none);
	CONFIG two = good("stores: { a: { url: 'sqlite:a' }, b: { url: 'sqlite:b' } }\n");
	ck_assert_ptr_null(ob_config_find_store(two, NULL));
	ck_assert_str_eq(ob_config_find_store(two, "b")->conf.url, "sqlite:b");
	ob_config_free(NULL);
}
OB_TEST_END

OB_TEST(the_reference_names_every_key)
{
	struct ob_buf text = OB_BUF_INIT(1 << 20);
	static const char *const rows[] = {
		"| `url` | a text | *required* |",
		"| `batch_bytes` ↻ | a size (such as 64KB) from 1KB to 1GB | `8MB` |",
		"| `ordering` | one of key, partition, none | `key` |",
		"| A \\| in a help. |",
		"| `headers` | yes |",
		"### The sink `file`",
	};

	ob_config_reference(&text);
	ck_assert(!text.failed);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(strstr(ob_buf_str(&text), rows[i]) != NULL, "%s", rows[i]);
	ob_buf_done(&text);
}
OB_TEST_END

OB_SUITE("config", a_relay_has_its_defaults, two_stores_may_each_have_a_relay_of_the_same_name,
	 the_rest_has_its_defaults, every_key_of_a_relay_is_read,
	 backends_get_their_options_as_text, one_store_and_one_sink_make_a_relay,
	 relays_before_stores_are_fine, log_and_layout_are_read,
	 unknown_keys_are_refused_with_a_guess, wrong_kinds_of_nodes_are_named,
	 values_out_of_range_say_what_may_stand_there, duplicate_keys_are_found_everywhere,
	 required_keys_are_missed_at_their_section, a_file_without_a_store_is_refused,
	 backends_are_looked_up, a_sink_checks_its_options_together, names_are_checked,
	 a_relay_names_what_exists, values_must_fit_together, a_destination_names_fields_that_exist,
	 a_layout_is_checked, all_faults_come_at_once_in_the_order_of_the_file,
	 fifty_faults_are_enough, variables_and_files_are_put_in, secrets_are_never_printed,
	 hostile_input_is_one_line, there_are_at_most_a_thousand_relays,
	 a_file_that_cannot_be_read_is_one_line, the_sample_loads_from_a_file,
	 every_commented_default_of_the_sample_loads, a_url_alone_makes_a_configuration,
	 the_reference_names_every_key)
