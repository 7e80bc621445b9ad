/* SPDX-License-Identifier: MIT */
/* The doctor on the readers of a log. */
#include "base/cleanup.h"
#include "base/when.h"
#include "operate/doctor.h"
#include "operate/targets.h"

#include <inttypes.h>

enum { ARENA_MAX = 16 << 20, LINE_BYTES = 2048 };

#define SECOND_US INT64_C(1000000)
#define SKEW_US   (2 * SECOND_US)
#define LATE_US   (300 * SECOND_US)

static const struct ob_check *check_of(enum ob_doctor_check check)
{
	return &ob_doctor_table[check];
}

/* ---- the clock ------------------------------------------------------- */

void ob_doctor_judge_clock(int64_t before_us, int64_t db_us, int64_t after_us,
			   struct ob_findings *out)
{
	/* Within the time that the question took nothing can be said. */
	int64_t skew = db_us < before_us  ? db_us - before_us
		       : db_us > after_us ? db_us - after_us
					  : 0;
	int64_t by = skew < 0 ? -skew : skew;

	if (by < SKEW_US)
		ob_finding_add(out, check_of(OB_DOCTOR_CLOCK_SKEW), OB_LEVEL_OK,
			       "the clocks agree to %" PRId64 " ms",
			       (after_us - before_us + by) / 1000 + 1);
	else
		ob_finding_add(out, check_of(OB_DOCTOR_CLOCK_SKEW), OB_LEVEL_WARNING,
			       "the database's clock is %" PRId64 " s %s that of this host",
			       by / SECOND_US, skew < 0 ? "behind" : "ahead of");
}

static int ask_clock(struct ob_store *store, struct ob_findings *out, struct ob_err *err)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_stats *stats;
	int64_t now_us, before = ob_clock_real_us(&ob_clock_system);
	size_t count;
	int r = ob_store_stats(store, NULL, 1, &arena, &stats, &count, &now_us, err);

	if (r == 0)
		ob_doctor_judge_clock(before, now_us, ob_clock_real_us(&ob_clock_system), out);
	ob_arena_done(&arena);
	return r;
}

/* ---- readers --------------------------------------------------------- */

static bool judge_reader(const struct ob_snapshot *s, const struct ob_snapshot_row *row,
			 struct ob_findings *out)
{
	int n = (int)row->reader.name.n;
	const char *name = row->reader.name.p;
	size_t before = out->count;
	char age[OB_WHEN_SIZE];

	ob_when_age(s->now_us - row->reader.moved_at_us, age);
	if (ob_snapshot_is_left(row))
		ob_finding_add(out, check_of(OB_DOCTOR_READER_LEFT), OB_LEVEL_WARNING,
			       "nobody runs reader %.*s, which stands still since %s: retention "
			       "keeps everything from number %" PRId64 " on for it",
			       n, name, age, row->reader.held_seq);
	if (row->reader.workers > row->partitions && row->partitions > 0)
		ob_finding_add(out, check_of(OB_DOCTOR_PARTITIONS), OB_LEVEL_WARNING,
			       "reader %.*s has %u workers and %" PRIu64
			       " partitions: the others have nothing to do",
			       n, name, row->reader.workers, row->partitions);
	if (!row->stats)
		return false;
	if (row->stats->oldest_due_us && s->now_us - row->stats->oldest_due_us >= LATE_US) {
		ob_when_age(s->now_us - row->stats->oldest_due_us, age);
		ob_finding_add(out, check_of(OB_DOCTOR_OLDEST_DUE), OB_LEVEL_WARNING,
			       "a message of reader %.*s is due for %s", n, name, age);
	}
	if (row->stats->count[OB_VIEW_DEAD] > 0)
		ob_finding_add(out, check_of(OB_DOCTOR_DEAD), OB_LEVEL_WARNING,
			       "%s%" PRIu64 " message(s) of reader %.*s are dead, %" PRIu64
			       " key(s) are held",
			       row->stats->count[OB_VIEW_DEAD] >= OB_SNAPSHOT_CAP ? "at least "
										  : "",
			       row->stats->count[OB_VIEW_DEAD], n, name, row->stats->held_keys);
	return out->count == before;
}

void ob_doctor_judge_readers(const struct ob_snapshot *s, struct ob_findings *out)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct ob_reader *reader = &s->rows[i].reader;

		if (judge_reader(s, &s->rows[i], out))
			ob_finding_add(out, check_of(OB_DOCTOR_OLDEST_DUE), OB_LEVEL_OK,
				       "reader %.*s keeps up, and nothing of it is dead",
				       (int)reader->name.n, reader->name.p);
	}
}

static void judge_sinks(const struct ob_snapshot *s, struct ob_findings *out)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf text = OB_BUF_INIT(LINE_BYTES);

	for (size_t i = 0; i < s->count; i++) {
		const struct ob_snapshot_row *row = &s->rows[i];

		if (row->sink.told == 0)
			continue;
		ob_buf_clear(&text);
		ob_report_down_text(&row->sink.tale, s->now_us, &text);
		if (row->sink.down)
			ob_finding_add(out, check_of(OB_DOCTOR_SINK_DOWN), OB_LEVEL_WARNING,
				       "reader %.*s: %s", (int)row->reader.name.n,
				       row->reader.name.p, ob_buf_str(&text));
		else
			ob_finding_add(out, check_of(OB_DOCTOR_SINK_DOWN), OB_LEVEL_OK,
				       "the sink of reader %.*s is up", (int)row->reader.name.n,
				       row->reader.name.p);
	}
}

static void judge_versions(const struct ob_snapshot *s, struct ob_findings *out)
{
	struct ob_worker_report first = { .version = "" }, one;
	const struct ob_worker *of = NULL;

	for (size_t i = 0; i < s->worker_count; i++) {
		if (!ob_worker_report_read(&one, s->workers[i].state) || !one.version[0])
			continue;
		if (of && strcmp(first.version, one.version) != 0) {
			ob_finding_add(out, check_of(OB_DOCTOR_VERSION_SKEW), OB_LEVEL_WARNING,
				       "a relay on %.*s has version %s, one on %.*s version %s",
				       (int)of->hostname.n, of->hostname.p, first.version,
				       (int)s->workers[i].hostname.n, s->workers[i].hostname.p,
				       one.version);
			return;
		}
		first = one;
		of = &s->workers[i];
	}
	if (of)
		ob_finding_add(out, check_of(OB_DOCTOR_VERSION_SKEW), OB_LEVEL_OK,
			       "all relays have version %s", first.version);
}

void ob_doctor_judge_reports(const struct ob_snapshot *s, struct ob_findings *out)
{
	judge_sinks(s, out);
	judge_versions(s, out);
}

static void judge_relays(const struct ob_doctor *doctor, const struct ob_config_store *entry,
			 const struct ob_snapshot *s, struct ob_findings *out)
{
	for (size_t i = 0; i < doctor->config->relay_count; i++) {
		const struct ob_config_relay *relay = &doctor->config->relays[i];
		uint32_t workers = 0;
		bool left = false;

		if (relay->store != entry)
			continue;
		for (size_t k = 0; k < s->count; k++) {
			if (!ob_str_eq(s->rows[k].reader.name, ob_str(relay->name)))
				continue;
			workers = s->rows[k].reader.workers;
			left = ob_snapshot_is_left(&s->rows[k]); /* that is told already */
		}
		if (workers > 0)
			ob_finding_add(out, check_of(OB_DOCTOR_RELAY_STOPPED), OB_LEVEL_OK,
				       "relay %s has %u worker(s)", relay->name, workers);
		else if (!left)
			ob_finding_add(out, check_of(OB_DOCTOR_RELAY_STOPPED), OB_LEVEL_WARNING,
				       "no worker runs relay %s", relay->name);
	}
}

static void judge_targets(const struct ob_doctor *doctor, struct ob_store *store,
			  struct ob_findings *out)
{
	size_t before = out->count;
	struct ob_targets targets;

	ob_targets_init(&targets);
	ob_targets_note_newest(&targets, store);
	for (size_t i = 0; i < targets.count; i++) {
		if (!ob_target_is_read(targets.names[i], doctor->config, store))
			ob_finding_add(out, check_of(OB_DOCTOR_TARGET_UNREAD), OB_LEVEL_WARNING,
				       "nobody reads target '%.200s': its messages wait for ever",
				       targets.names[i]);
	}
	if (out->count == before)
		ob_finding_add(out, check_of(OB_DOCTOR_TARGET_UNREAD), OB_LEVEL_OK,
			       "every target of the newest messages has a reader");
	ob_targets_done(&targets);
}

void ob_doctor_readers(const struct ob_doctor *doctor, const struct ob_config_store *entry,
		       struct ob_store *store, struct ob_findings *out)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_snapshot s;
	int r = ask_clock(store, out, &err);

	if (r == 0) {
		r = ob_snapshot_take(&s, store, NULL, &err);
		if (r == 0) {
			ob_doctor_judge_readers(&s, out);
			ob_doctor_judge_reports(&s, out);
			judge_relays(doctor, entry, &s, out);
			judge_targets(doctor, store, out);
		}
		ob_snapshot_done(&s);
	}
	if (r < 0)
		ob_finding_add(out, check_of(OB_DOCTOR_STORE_SETTINGS), OB_LEVEL_ERROR, "%s",
			       err.msg);
}
