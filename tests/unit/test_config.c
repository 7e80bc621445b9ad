/* SPDX-License-Identifier: MIT */
/* The configuration: every default, every key, variables. */
#include "config_text.h"
#include "suite.h"

#include <stdio.h>

OB_TEST(a_relay_has_its_defaults)
{
	CONFIG c = config_good(BOTH "relays: [ {} ]\n");
	const struct ob_config_relay *r = &c->relays[0];

	ck_assert_uint_eq(c->relay_count, 1);
	ck_assert_str_eq(r->name, "default");
	ck_assert_str_eq(r->reads, "default");
	ck_assert_int_eq(r->start, OB_START_BEGINNING);
	ck_assert_uint_eq(r->type_count, 0);
	ck_assert_uint_eq(r->aggregate_count, 0);
	ck_assert(!r->hold_delayed);
	ck_assert_ptr_eq(r->store, &c->stores[0]);
	ck_assert_ptr_eq(r->sink, &c->sinks[0]);
	ck_assert_uint_eq(r->workers, 1);
	ck_assert_int_eq(r->ordering, OB_ORDER_KEY);
	ck_assert_uint_eq(r->batch_size, 500);
	ck_assert_int_eq(r->batch_bytes, 8 << 20);
	ck_assert_int_eq(r->idle_backoff_ms, 1000);
	ck_assert_int_eq(r->shutdown_timeout_ms, 10000);
	ck_assert_int_eq(r->on_dead, OB_ON_DEAD_RELEASE);
	ck_assert_uint_eq(r->leasing.partition_count, 16);
	ck_assert_int_eq(r->leasing.lease_ttl_ms, 15000);
	ck_assert_int_eq(r->leasing.lease_renew_ms, 5000);
	ck_assert_int_eq(r->leasing.heartbeat_ttl_ms, 20000);
	ck_assert_uint_eq(r->retry.max_attempts, 20);
	ck_assert_int_eq(r->retry.base_delay_ms, 5000);
	ck_assert_int_eq(r->retry.max_backoff_ms, 3600000);
	ck_assert_double_eq_tol(r->retry.multiplier, 2, 1e-9);
	ck_assert_double_eq_tol(r->retry.jitter, 0.25, 1e-9);
	ck_assert_str_eq(r->route.destination, "{aggregate_type}");
}
OB_TEST_END

OB_TEST(a_store_keeps_a_week_by_default)
{
	CONFIG c = config_good(STORE);
	const struct ob_config_retention *r = &c->stores[0].retention;

	ck_assert_int_eq(r->published_ms, INT64_C(168) * 3600000);
	ck_assert_int_eq(r->dead_ms, OB_NEVER_MS);
	ck_assert_int_eq(r->every_ms, 60000);
	ck_assert_uint_eq(r->batch, 10000);
}
OB_TEST_END

OB_TEST(each_store_has_a_retention_of_its_own)
{
	CONFIG c = config_good(
		"stores:\n  a: { url: 'sqlite:a', retention: { published: 0, dead: 7d, "
		"every: 5s, batch: 1 } }\n"
		"  b: { retention: { published: never }, url: 'sqlite:b' }\n"
		"  c: { url: 'sqlite:c', retention: }\n");
	const struct ob_config_retention *a = &c->stores[0].retention;

	ck_assert_int_eq(a->published_ms, 0);
	ck_assert_int_eq(a->dead_ms, INT64_C(7) * 86400000);
	ck_assert_int_eq(a->every_ms, 5000);
	ck_assert_uint_eq(a->batch, 1);
	ck_assert_int_eq(c->stores[1].retention.published_ms, OB_NEVER_MS);
	ck_assert_int_eq(c->stores[1].retention.every_ms, 60000);
	ck_assert_int_eq(c->stores[2].retention.published_ms, INT64_C(168) * 3600000);
}
OB_TEST_END

OB_TEST(several_relays_may_read_one_target)
{
	CONFIG c = config_good(STORE
			       "sinks: { a: { type: stdout }, b: { type: file, path: x } }\n"
			       "relays: [ { name: one, sink: a, reads: shop },\n"
			       "          { name: two, sink: b, reads: shop } ]\n");

	ck_assert_str_eq(c->relays[0].reads, "shop");
	ck_assert_str_eq(c->relays[1].reads, "shop");
	ck_assert_str_eq(c->relays[1].name, "two");
}
OB_TEST_END

OB_TEST(a_reader_begins_where_it_is_told)
{
	CONFIG c = config_good(BOTH
			       "relays: [ { name: a, start: end }, { name: b, start: beginning },\n"
			       "          { name: c, start: '2026-05-01T02:00:00.5+02:00' } ]\n");

	ck_assert_int_eq(c->relays[0].start, OB_START_END);
	ck_assert_int_eq(c->relays[1].start, OB_START_BEGINNING);
	ck_assert_int_eq(c->relays[2].start, OB_START_TIME);
	ck_assert_int_eq(c->relays[2].start_at, INT64_C(1777593600500000));
}
OB_TEST_END

OB_TEST(the_rest_has_its_defaults)
{
	CONFIG c = config_good(STORE);
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
	CONFIG c = config_good(
		STORE
		"sinks: { a: { type: stdout }, b: { type: file, path: x } }\n"
		"relays:\n"
		"  - { name: Größe, store: main, sink: b, workers: 4, ordering: none,\n"
		"      batch_size: 7, batch_bytes: 2KB, idle_backoff_ms: 2s,\n"
		"      shutdown_timeout: 0, on_dead: hold, reads: 'sho p', start: end,\n"
		"      types: [ 'Order*', x ], aggregates: [ order ], hold_delayed: yes,\n"
		"      leasing: { partition_count: 1024, lease_ttl: 30s,\n"
		"                 lease_renew: 100ms, heartbeat_ttl: 1m },\n"
		"      retry: { max_attempts: 1, base_delay: 1ms, multiplier: 1.5,\n"
		"               max_backoff: 30d, jitter: 0 },\n"
		"      route: { destination: 'x.{event_type}.{target}' } }\n"
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
	ck_assert_int_eq(r->on_dead, OB_ON_DEAD_HOLD);
	ck_assert_str_eq(r->reads, "sho p");
	ck_assert_int_eq(r->start, OB_START_END);
	ck_assert_uint_eq(r->type_count, 2);
	ck_assert_str_eq(r->types[0], "Order*");
	ck_assert_str_eq(r->types[1], "x");
	ck_assert_uint_eq(r->aggregate_count, 1);
	ck_assert_str_eq(r->aggregates[0], "order");
	ck_assert(r->hold_delayed);
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
	ck_assert_int_eq(c->relays[1].ordering, OB_ORDER_PARTITION);
	ck_assert_str_eq(c->relays[1].sink->name, "a");
}
OB_TEST_END

OB_TEST(backends_get_their_options_as_text)
{
	CONFIG c = config_good(
		"stores:\n  main: { password: pw, url: 'sqlite:a.db', busy_timeout: 3s }\n"
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
	CONFIG one = config_good(BOTH);
	CONFIG none = config_good(BOTH "relays: []\n");
	CONFIG empty = config_good(BOTH "relays:\nlog:\nlayout:\n");
	CONFIG two = config_good(STORE "sinks: { a: { type: stdout }, b: { type: stdout } }\n");

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
	CONFIG c = config_good("relays: [ { store: main, sink: out } ]\n" SINK STORE);

	ck_assert_str_eq(c->relays[0].store->name, "main");
}
OB_TEST_END

OB_TEST(log_and_layout_are_read)
{
	CONFIG c = config_good(STORE
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
	CONFIG c = config_good(text);
	ck_assert_str_eq(c->stores[0].conf.url, "sqlite:x.db");
	ck_assert_str_eq(c->stores[0].conf.options[0].value, "s3cret");
	ck_assert_uint_eq(c->relays[0].workers, 3);
	ck_assert_str_eq(c->relays[0].name, "${x}");
	ck_assert_int_eq(unlink(path), 0);
	config_bad("stores: { main: { url: '${OB_UNSET}', password: '${file:/nonexistent/x}' } }\n",
		   "c.yaml:1:24: stores.main.url: environment variable 'OB_UNSET' is not set\n");
	config_bad(
		"stores: { main: { url: 'sqlite:a', password: '${file:/nonexistent/x}' } }\n",
		"c.yaml:1:46: stores.main.password: file '/nonexistent/x': cannot be read: No such "
		"file or directory\n");
}
OB_TEST_END

/* Of every kind of key: one that is forgotten would leave a relay as it was after a reload. */
OB_TEST(a_change_anywhere_makes_another_relay)
{
	static const char *const changed[] = {
		"workers: 2",
		"ordering: none",
		"reads: mail",
		"start: end",
		"on_dead: hold",
		"hold_delayed: true",
		"batch_bytes: 1MB",
		"types: [ 'Order*' ]",
		"aggregates: [ order ]",
		"leasing: { lease_ttl: 16s }",
		"leasing: { partition_count: 8 }",
		"retry: { jitter: 0.3 }",
		"route: { destination: x }",
		"route: { headers: { a: b } }",
		"route: { rules: [ { event_type: A, destination: b } ] }",
		"failures: [ { code: '404', then: reject } ]",
	};
	CONFIG plain = config_good(BOTH "relays: [ { name: a } ]\n");
	CONFIG same = config_good("relays:\n- name: 'a' # alike\n" BOTH);

	ck_assert(ob_config_same_relay(&plain->relays[0], &same->relays[0]));
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		char text[512];

		(void)snprintf(text, sizeof(text), BOTH "relays: [ { name: a, %s } ]\n",
			       changed[i]);
		CONFIG other = config_good(text);
		ck_assert_msg(!ob_config_same_relay(&plain->relays[0], &other->relays[0]), "%s",
			      changed[i]);
	}
	CONFIG layout = config_good(BOTH "relays: [ { name: a } ]\nlayout: { table: events }\n");
	ck_assert(!ob_config_same_relay(&plain->relays[0], &layout->relays[0]));
}
OB_TEST_END

OB_SUITE("config", a_relay_has_its_defaults, a_store_keeps_a_week_by_default,
	 each_store_has_a_retention_of_its_own, several_relays_may_read_one_target,
	 a_reader_begins_where_it_is_told, the_rest_has_its_defaults, every_key_of_a_relay_is_read,
	 backends_get_their_options_as_text, one_store_and_one_sink_make_a_relay,
	 relays_before_stores_are_fine, log_and_layout_are_read, variables_and_files_are_put_in,
	 a_change_anywhere_makes_another_relay)
