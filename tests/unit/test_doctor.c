/* SPDX-License-Identifier: MIT */
/* Every answer of every check that can be given without a server, and the page that lists them. */
#include "operate/doctor.h"
#include "sink/kafka/kafka.h"
#include "sink/nats/nats.h"
#include "sink/redis/redis.h"
#include "store/mysql/diagnose.h"
#include "store/postgres/diagnose.h"
#include "store/sqlite/diagnose.h"
#include "suite.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>

static struct ob_findings found;

static void again(void)
{
	ob_findings_done(&found);
	ob_findings_init(&found);
}

/* Demand a finding of that code and level; its text must hold this. Then forget them all. */
static void expect_level(const char *code, enum ob_level level, const char *text)
{
	for (size_t i = 0; i < found.count; i++) {
		if (strcmp(found.list[i].check->code, code) != 0)
			continue;
		ck_assert_msg(found.list[i].level == level && strstr(found.list[i].text.p, text),
			      "%s: %s: %s", code, ob_level_name(found.list[i].level),
			      found.list[i].text.p);
		again();
		return;
	}
	ck_abort_msg("no finding %s", code);
}

static void expect_all_ok(size_t count)
{
	ck_assert_uint_eq(found.count, count);
	for (size_t i = 0; i < found.count; i++)
		ck_assert_msg(found.list[i].level == OB_LEVEL_OK, "%s", found.list[i].text.p);
	again();
}

OB_TEST(findings_count_and_have_a_worst_level)
{
	static const struct ob_check check = { "c", "It is checked.", "do it" };

	again();
	ck_assert_int_eq(ob_findings_worst(&found), OB_LEVEL_OK);
	found.subject = "main";
	ob_finding_add(&found, &check, OB_LEVEL_OK, "a %d", 1);
	ob_finding_add(&found, &check, OB_LEVEL_ERROR, "b");
	ob_finding_add(&found, &check, OB_LEVEL_WARNING, "c");
	ck_assert_int_eq(ob_findings_worst(&found), OB_LEVEL_ERROR);
	ck_assert_uint_eq(ob_findings_count(&found, OB_LEVEL_WARNING), 1);
	ck_assert_str_eq(found.list[0].text.p, "a 1");
	ck_assert_str_eq(found.list[0].subject.p, "main");
	for (int i = 0; i < OB_FINDINGS_MAX + 10; i++)
		ob_finding_add(&found, &check, OB_LEVEL_OK, "more");
	ck_assert(found.failed && found.count <= OB_FINDINGS_MAX);
	again();
}
OB_TEST_END

OB_TEST(clocks_that_differ_are_told_and_a_slow_question_is_not)
{
	again();
	ob_doctor_judge_clock(10000000, 10500000, 11000000, &found);
	expect_level("clock_skew", OB_LEVEL_OK, "agree");
	ob_doctor_judge_clock(10000000, 15000000, 20000000, &found);
	expect_level("clock_skew", OB_LEVEL_OK, "agree");
	ob_doctor_judge_clock(10000000, 14000000, 11000000, &found);
	expect_level("clock_skew", OB_LEVEL_WARNING, "3 s ahead of that of this host");
	ob_doctor_judge_clock(10000000, 1000000, 11000000, &found);
	expect_level("clock_skew", OB_LEVEL_WARNING, "9 s behind that of this host");
}
OB_TEST_END

OB_TEST(sqlite_answers)
{
	const struct lite_health good = { .wal = true, .synchronous = true, .bytes = 1000000 };
	struct lite_health h = good;

	again();
	lite_judge(&h, &found);
	expect_all_ok(4);
	h.wal = false;
	lite_judge(&h, &found);
	expect_level("journal_mode", OB_LEVEL_WARNING, "not WAL");
	h = good;
	h.synchronous = false;
	lite_judge(&h, &found);
	expect_level("synchronous", OB_LEVEL_WARNING, "normal");
	h = good;
	h.bytes = 300000000;
	h.free_bytes = 160000000;
	lite_judge(&h, &found);
	expect_level("bloat", OB_LEVEL_WARNING, "160 MB of the file's 300 MB");
	h = good;
	h.wal_bytes = 600000000;
	lite_judge(&h, &found);
	expect_level("wal_size", OB_LEVEL_WARNING, "600 MB");
}
OB_TEST_END

static void judge_pg(const struct pg_health *h)
{
	pg_judge_server(h, &found);
}

OB_TEST(postgres_answers)
{
	const struct pg_health good = { .fsync = true,
					.synchronous_commit = true,
					.full_page_writes = true };
	struct pg_health h = good;

	again();
	judge_pg(&h);
	expect_all_ok(6);
	h.fsync = false;
	judge_pg(&h);
	expect_level("fsync", OB_LEVEL_WARNING, "power cut");
	h = good;
	h.synchronous_commit = false;
	judge_pg(&h);
	expect_level("synchronous_commit", OB_LEVEL_WARNING, "off");
	h = good;
	h.full_page_writes = false;
	judge_pg(&h);
	expect_level("full_page_writes", OB_LEVEL_WARNING, "off");
	h = good;
	h.prepared = 2;
	h.prepared_s = 7200;
	judge_pg(&h);
	expect_level("prepared_transactions", OB_LEVEL_WARNING,
		     "2 prepared transaction(s) are open");
	h = good;
	h.oldest_s = 400;
	h.oldest_pid = 77;
	h.oldest_state = OB_STR("idle in transaction");
	judge_pg(&h);
	expect_level("oldest_transaction", OB_LEVEL_WARNING,
		     "(pid 77, idle in transaction) is open");
	h = good;
	h.hidden = 3;
	judge_pg(&h);
	expect_level("oldest_transaction", OB_LEVEL_OK, "not 3 session(s)");
	h = good;
	h.pooled = true;
	judge_pg(&h);
	expect_level("pooler", OB_LEVEL_WARNING, "a pooler");
	h.listen_url = true;
	judge_pg(&h);
	expect_level("pooler", OB_LEVEL_OK, "listen_url goes past it");
	h = good;
	h.default_part = "outbox";
	h.part_last = 10;
	h.part_top = 21;
	judge_pg(&h);
	expect_level("table_partitions", OB_LEVEL_OK, "up to number 20");
	h.part_last = 21;
	judge_pg(&h);
	expect_level("table_partitions", OB_LEVEL_WARNING, "outrun");
}
OB_TEST_END

OB_TEST(postgres_tables_answer)
{
	const struct pg_table_health good = { .name = OB_STR("outbox"),
					      .live = 1000000,
					      .dead = 20000,
					      .vacuum_s = 60,
					      .frozen_age = 100000000,
					      .freeze_max = 200000000 };
	struct pg_table_health t = good;

	again();
	pg_judge_table(&t, &found);
	ck_assert_uint_eq(found.count, 0);
	t.dead = 600000;
	pg_judge_table(&t, &found);
	expect_level("bloat", OB_LEVEL_WARNING, "600000 dead rows and 1000000 live");
	t.vacuum_s = -1;
	pg_judge_table(&t, &found);
	expect_level("bloat", OB_LEVEL_WARNING, "never vacuumed");
	t = good;
	t.frozen_age = 260000000;
	pg_judge_table(&t, &found);
	expect_level("vacuum_age", OB_LEVEL_WARNING, "autovacuum does not get to it");
	t.frozen_age = 1600000000;
	pg_judge_table(&t, &found);
	expect_level("vacuum_age", OB_LEVEL_ERROR, "no more writes");
}
OB_TEST_END

OB_TEST(mysql_answers)
{
	const struct my_health good = {
		.flush_log = 1, .sync_binlog = 1, .log_bin = true, .sees_statements = true
	};
	struct my_health h = good;

	again();
	my_judge(&h, &found);
	expect_all_ok(8);
	h.flush_log = 2;
	my_judge(&h, &found);
	expect_level("flush_log", OB_LEVEL_WARNING, "is 2");
	h = good;
	h.log_bin = false;
	my_judge(&h, &found);
	expect_level("log_bin", OB_LEVEL_WARNING, "the binary log is off");
	h = good;
	h.keeps_escapes = true;
	my_judge(&h, &found);
	expect_level("json_table", OB_LEVEL_WARNING, "a quote or a backslash");
	h = good;
	h.sync_binlog = 0;
	my_judge(&h, &found);
	expect_level("sync_binlog", OB_LEVEL_WARNING, "is 0");
	h = good;
	h.cluster = 3;
	my_judge(&h, &found);
	expect_level("galera", OB_LEVEL_WARNING, "Galera");
	h = good;
	h.prepared = 1;
	my_judge(&h, &found);
	expect_level("prepared_transactions", OB_LEVEL_WARNING, "1 XA transaction(s)");
	h = good;
	h.oldest_s = 900;
	h.oldest_id = 12;
	my_judge(&h, &found);
	expect_level("oldest_transaction", OB_LEVEL_WARNING, "(connection 12) is open for 15m00s");
	h = good;
	h.not_purged = 2000000;
	my_judge(&h, &found);
	expect_level("purge", OB_LEVEL_WARNING, "2000000 transactions");
	h = good;
	h.sees_statements = false;
	my_judge(&h, &found);
	expect_level("process_right", OB_LEVEL_WARNING, "does not see the statements of others");
	h = good;
	h.part_last = 10;
	h.part_top = 21;
	my_judge(&h, &found);
	expect_level("table_partitions", OB_LEVEL_OK, "up to number 20");
	h.part_last = 21;
	my_judge(&h, &found);
	expect_level("table_partitions", OB_LEVEL_WARNING, "outrun");
}
OB_TEST_END

OB_TEST(kafka_answers)
{
	const struct ob_kafka_topic_health good = { .name = "orders",
						    .partitions = 6,
						    .copies = 3,
						    .in_sync = 3,
						    .min_insync = 2,
						    .max_bytes = 2000000 };
	struct ob_kafka_topic_health h = good;

	again();
	ob_kafka_judge(&h, 1000000, &found);
	expect_all_ok(2);
	h.partitions = 0;
	ob_kafka_judge(&h, 1000000, &found);
	expect_level("kafka_destination", OB_LEVEL_WARNING, "topic orders is not there");
	h = good;
	h.leaderless = 2;
	ob_kafka_judge(&h, 1000000, &found);
	expect_level("kafka_leader", OB_LEVEL_ERROR, "2 of 6 partitions");
	h = good;
	h.copies = h.in_sync = 1;
	ob_kafka_judge(&h, 1000000, &found);
	expect_level("kafka_copies", OB_LEVEL_WARNING, "one copy");
	h = good;
	h.min_insync = 1;
	ob_kafka_judge(&h, 1000000, &found);
	expect_level("kafka_copies", OB_LEVEL_WARNING, "min.insync.replicas is 1");
	h = good;
	h.in_sync = 2;
	ob_kafka_judge(&h, 1000000, &found);
	expect_level("kafka_copies", OB_LEVEL_WARNING, "of which 2 are up to date");
	h = good;
	h.max_bytes = 1000;
	ob_kafka_judge(&h, 1000000, &found);
	expect_level("kafka_limits", OB_LEVEL_WARNING, "at most 1000 bytes");
}
OB_TEST_END

OB_TEST(nats_answers)
{
	const struct ob_nats_stream_health good = { .subject = "o", .stream = "S", .replicas = 3 };
	struct ob_nats_stream_health h = good;

	again();
	ob_nats_judge(&h, &found);
	expect_all_ok(3);
	h.stream = NULL;
	ob_nats_judge(&h, &found);
	expect_level("nats_destination", OB_LEVEL_WARNING, "messages to it wait");
	h.fails = true;
	ob_nats_judge(&h, &found);
	expect_level("nats_destination", OB_LEVEL_WARNING, "messages to it fail");
	h = good;
	h.in_memory = true;
	ob_nats_judge(&h, &found);
	expect_level("nats_storage", OB_LEVEL_WARNING, "in memory");
	h = good;
	h.replicas = 1;
	ob_nats_judge(&h, &found);
	expect_level("nats_copies", OB_LEVEL_WARNING, "one copy");
	h = good;
	h.drops_old = true;
	ob_nats_judge(&h, &found);
	expect_all_ok(3);
	h.bounded = true;
	ob_nats_judge(&h, &found);
	expect_level("nats_limits", OB_LEVEL_WARNING, "drops its oldest");
}
OB_TEST_END

OB_TEST(what_relays_tell_is_judged)
{
	struct ob_worker workers[] = {
		{ .hostname = OB_STR("a"), .state = OB_STR("{\"version\":\"1.0\"}") },
		{ .hostname = OB_STR("b"), .state = OB_STR("") },
		{ .hostname = OB_STR("c"), .state = OB_STR("{\"version\":\"1.0\"}") },
	};
	struct ob_snapshot_row row = { .reader = { .name = OB_STR("mail") },
				       .sink = { .told = 1 } };
	struct ob_snapshot s = {
		.rows = &row, .count = 1, .workers = workers, .worker_count = 3, .now_us = 100000000
	};

	again();
	ob_doctor_judge_reports(&s, &found);
	expect_all_ok(2);
	workers[2].state = OB_STR("{\"version\":\"1.1\"}");
	ob_doctor_judge_reports(&s, &found);
	expect_level("version_skew", OB_LEVEL_WARNING,
		     "a relay on a has version 1.0, one on c version 1.1");
	row.sink.down = 1;
	row.sink.tale = (struct ob_worker_report){ .sink_name = "hook",
						   .breaker = "open",
						   .breaker_since_us = 40000000,
						   .breaker_why = "refused" };
	ob_doctor_judge_reports(&s, &found);
	expect_level("sink_down", OB_LEVEL_WARNING,
		     "reader mail: sink hook is down since 1m00s: refused");
	row.sink.told = 0;
	s.worker_count = 0;
	ob_doctor_judge_reports(&s, &found);
	ck_assert_uint_eq(found.count, 0);
	again();
}
OB_TEST_END

OB_TEST(redis_answers)
{
	const struct ob_redis_health good = { .version = OB_STR("7.0.15"),
					      .role = OB_STR("master"),
					      .policy = OB_STR("noeviction"),
					      .aof = OB_STR("1"),
					      .fsync = OB_STR("everysec") };
	struct ob_redis_health h = good;

	again();
	ob_redis_judge(&h, &found);
	expect_all_ok(4);
	h.policy = OB_STR("allkeys-lru");
	ob_redis_judge(&h, &found);
	expect_level("redis_eviction", OB_LEVEL_WARNING, "allkeys-lru");
	h = good;
	h.aof = OB_STR("0");
	ob_redis_judge(&h, &found);
	expect_level("redis_persistence", OB_LEVEL_WARNING, "appendonly is off");
	h = good;
	h.fsync = OB_STR("no");
	ob_redis_judge(&h, &found);
	expect_level("redis_persistence", OB_LEVEL_WARNING, "appendfsync is no");
	h = good;
	h.version = OB_STR("4.0.9");
	ob_redis_judge(&h, &found);
	expect_level("redis_version", OB_LEVEL_ERROR, "has no streams");
	h = good;
	h.role = OB_STR("slave");
	ob_redis_judge(&h, &found);
	expect_level("redis_role", OB_LEVEL_ERROR, "replica");
	h = (struct ob_redis_health){ 0 };
	ob_redis_judge(&h, &found);
	expect_all_ok(0);
}
OB_TEST_END

/* ---- the page -------------------------------------------------------- */

static void write_table(struct ob_buf *out)
{
	const struct ob_check *checks;
	const char *name;

	ob_buf_adds(out, "| code | of | what should be | else |\n|---|---|---|---|\n");
	for (size_t i = 0; (checks = ob_doctor_checks(i, &name)); i++) {
		for (; checks->code; checks++)
			ob_buf_addf(out, "| `%s` | %s | %s | %s |\n", checks->code,
				    name[0] ? name : "all", checks->what, checks->advice);
	}
}

/* OUTBOX_UPDATE_DOCS=1 writes what should stand there to standard output. */
OB_TEST(the_page_lists_every_check)
{
	struct ob_buf want = OB_BUF_INIT(1 << 20), page = OB_BUF_INIT(1 << 20);
	struct ob_err err = OB_ERR_INIT;
	char path[4096];

	write_table(&want);
	if (getenv("OUTBOX_UPDATE_DOCS"))
		(void)fputs(ob_buf_str(&want), stderr);
	(void)snprintf(path, sizeof(path), "%s/operate.md", getenv("DOCS") ? getenv("DOCS") : "");
	ck_assert_msg(ob_file_read(path, 1 << 20, &page, &err) == 0, "%s", err.msg);
	ck_assert_msg(strstr(ob_buf_str(&page), ob_buf_str(&want)) != NULL,
		      "docs/operate.md does not hold the table that this test prints with "
		      "OUTBOX_UPDATE_DOCS=1");
	ob_buf_done(&want);
	ob_buf_done(&page);
}
OB_TEST_END

OB_SUITE("doctor", findings_count_and_have_a_worst_level,
	 clocks_that_differ_are_told_and_a_slow_question_is_not, sqlite_answers, postgres_answers,
	 postgres_tables_answer, mysql_answers, redis_answers, kafka_answers, nats_answers,
	 what_relays_tell_is_judged, the_page_lists_every_check)
