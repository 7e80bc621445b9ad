/* SPDX-License-Identifier: MIT */
/* Every count is bounded, so that asking costs the same with ten messages and ten million. */
#include "operate/snapshot.h"

#include "base/when.h"

#include <inttypes.h>

enum { ARENA_MAX = 256 << 20, NAME_BYTES = 4096 };

static struct ob_snapshot_row *row_of(struct ob_snapshot *s, struct ob_str name)
{
	for (size_t i = 0; i < s->count; i++) {
		if (ob_str_eq(s->rows[i].reader.name, name))
			return &s->rows[i];
	}
	return NULL;
}

static int take_readers(struct ob_snapshot *s, struct ob_store *store, const char *reader,
			struct ob_err *err)
{
	struct ob_reader *readers;
	size_t count;
	int r = ob_store_readers(store, &s->arena, &readers, &count, err);

	if (r < 0)
		return r;
	s->rows = ob_arena_alloc(&s->arena, (count + 1) * sizeof(*s->rows));
	if (!s->rows)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	for (size_t i = 0; i < count; i++) {
		if (!reader || ob_str_eq(readers[i].name, ob_str(reader)))
			s->rows[s->count++] = (struct ob_snapshot_row){ .reader = readers[i] };
	}
	return 0;
}

static int take_stats(struct ob_snapshot *s, struct ob_store *store, const char *reader,
		      struct ob_err *err)
{
	struct ob_stats *stats;
	size_t count;
	int r = ob_store_stats(store, reader, OB_SNAPSHOT_CAP, &s->arena, &stats, &count,
			       &s->now_us, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct ob_snapshot_row *row = row_of(s, stats[i].reader);

		if (row)
			row->stats = &stats[i];
	}
	return r;
}

static int take_leases(struct ob_snapshot *s, struct ob_store *store, const char *reader,
		       struct ob_err *err)
{
	struct ob_partition *partitions;
	size_t count;
	int r = ob_store_partitions(store, reader, &s->arena, &partitions, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct ob_snapshot_row *row = row_of(s, partitions[i].reader);

		if (!row)
			continue;
		row->partitions++;
		row->leased += partitions[i].leased;
	}
	return r;
}

static int take_ends(struct ob_snapshot *s, struct ob_store *store, struct ob_err *err)
{
	struct ob_batch batch;
	int r = 0;

	ob_batch_init(&batch);
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		struct ob_buf name = OB_BUF_INIT(NAME_BYTES);
		struct ob_filter filter = { .newest_first = true, .limit = 1 };
		int64_t now_us;

		ob_buf_add(&name, s->rows[i].reader.name);
		filter.reader = ob_buf_str(&name);
		r = ob_store_list(store, &filter, &batch, &now_us, err);
		if (r == 0 && batch.count)
			s->rows[i].end_seq = batch.messages[0].seq;
		ob_buf_done(&name);
	}
	ob_batch_done(&batch);
	return r;
}

static void keep_newest(struct ob_worker_error *to, const struct ob_worker_error *from)
{
	if (from->at_us > to->at_us)
		*to = *from;
}

static void add_report(struct ob_snapshot_sink *sink, const struct ob_worker_report *report)
{
	bool down = ob_worker_report_is_down(report);
	bool longer =
		down && (sink->down == 0 || report->breaker_since_us < sink->tale.breaker_since_us);

	if (sink->told == 0 || longer)
		sink->tale = *report;
	sink->told++;
	sink->down += down;
	sink->rate += report->rate;
	sink->in_flight += report->in_flight;
	keep_newest(&sink->sink_error, &report->sink_error);
	keep_newest(&sink->store_error, &report->store_error);
	if (report->retained_us > sink->retained_us) {
		sink->retained_us = report->retained_us;
		sink->retained_rows = report->retained_rows;
		sink->retained_parts = report->retained_parts;
	}
}

static int take_workers(struct ob_snapshot *s, struct ob_store *store, const char *reader,
			struct ob_err *err)
{
	int r = ob_store_workers(store, reader, &s->arena, &s->workers, &s->worker_count, err);

	for (size_t i = 0; r == 0 && i < s->worker_count; i++) {
		struct ob_snapshot_row *row = row_of(s, s->workers[i].reader);
		struct ob_worker_report report;

		if (row && ob_worker_report_read(&report, s->workers[i].state))
			add_report(&row->sink, &report);
	}
	return r;
}

const char *ob_report_word(const struct ob_worker_report *report)
{
	if (!report->breaker[0])
		return "-";
	if (!ob_worker_report_is_down(report))
		return "ok";
	if (report->alarm)
		return "most keys fail";
	return strcmp(report->breaker, "half_open") == 0 ? "probing" : "down";
}

void ob_report_down_text(const struct ob_worker_report *report, int64_t now_us, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	ob_buf_adds(out, "sink ");
	ob_buf_adds(out, report->sink_name[0] ? report->sink_name : "-");
	ob_buf_adds(out, report->alarm ? " refuses most keys" : " is down");
	if (report->breaker_since_us) {
		ob_when_age(now_us - report->breaker_since_us, age);
		ob_buf_addf(out, " since %s", age);
	}
	if (report->breaker_why[0])
		ob_buf_addf(out, ": %s", report->breaker_why);
	if (report->probe_us > now_us) {
		ob_when_age(report->probe_us - now_us, age);
		ob_buf_addf(out, "; next try in %s", age);
	}
}

int ob_snapshot_take_readers(struct ob_snapshot *s, struct ob_store *store, const char *reader,
			     struct ob_err *err)
{
	*s = (struct ob_snapshot){ .arena = OB_ARENA_INIT(ARENA_MAX), .store = OB_BUF_INIT(8192) };
	ob_store_describe(store, &s->store);
	int r = take_readers(s, store, reader, err);

	return r < 0 ? r : take_ends(s, store, err);
}

int ob_snapshot_take(struct ob_snapshot *s, struct ob_store *store, const char *reader,
		     struct ob_err *err)
{
	int r = ob_snapshot_take_readers(s, store, reader, err);

	if (r == 0)
		r = take_stats(s, store, reader, err);
	if (r == 0)
		r = take_leases(s, store, reader, err);
	if (r == 0)
		r = take_workers(s, store, reader, err);
	return r;
}

void ob_snapshot_done(struct ob_snapshot *s)
{
	ob_buf_done(&s->store);
	ob_arena_done(&s->arena);
}

int64_t ob_snapshot_lag(const struct ob_snapshot_row *row)
{
	int64_t lag = row->end_seq - row->reader.high_pos;

	return lag > 0 ? lag : 0;
}

bool ob_snapshot_is_left(const struct ob_snapshot_row *row)
{
	return row->reader.workers == 0 && !row->reader.temporary &&
	       row->reader.held_seq <= row->end_seq;
}

void ob_snapshot_left_text(const struct ob_snapshot *s, const struct ob_snapshot_row *row,
			   struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	ob_when_age(s->now_us - row->reader.moved_at_us, age);
	ob_buf_adds(out, "nobody runs reader ");
	ob_buf_add(out, row->reader.name);
	ob_buf_addf(
		out,
		": it stands still since %s, and retention keeps everything from number %" PRId64
		" on for it; start it with 'outbox work', or forget it with 'outbox readers "
		"remove ",
		age, row->reader.held_seq);
	ob_buf_add(out, row->reader.name);
	ob_buf_addc(out, '\'');
}

/* What a program gets of a count that was capped; "capped" lists which these are. */
static uint64_t shown(uint64_t count)
{
	return count < OB_SNAPSHOT_CAP ? count : OB_SNAPSHOT_CAP - 1;
}

static void counts_json(struct ob_jout *j, const struct ob_stats *stats)
{
	for (int view = 0; view < OB_VIEW_PUBLISHED; view++)
		ob_jout_int(j, ob_view_name((enum ob_view)view),
			    stats ? (int64_t)shown(stats->count[view]) : 0);
	ob_jout_int(j, "held_keys", stats ? (int64_t)shown(stats->held_keys) : 0);
	ob_jout_begin(j, "capped", '[');
	for (int view = 0; stats && view < OB_VIEW_PUBLISHED; view++) {
		if (stats->count[view] >= OB_SNAPSHOT_CAP)
			ob_jout_text(j, NULL, ob_str(ob_view_name((enum ob_view)view)));
	}
	if (stats && stats->held_keys >= OB_SNAPSHOT_CAP)
		ob_jout_text(j, NULL, OB_STR("held_keys"));
	ob_jout_end(j, ']');
}

static void error_json(struct ob_jout *j, const char *key, const struct ob_worker_error *error)
{
	ob_jout_text(j, key, error->at_us ? ob_str(error->text) : OB_STR_NULL);
}

/* "sink": null as long as no worker tells. */
static void sink_json(struct ob_jout *j, const struct ob_snapshot_sink *sink)
{
	char rate[32];

	if (sink->told == 0) {
		ob_jout_raw(j, "sink", OB_STR("null"));
		return;
	}
	(void)snprintf(rate, sizeof(rate), "%.1f", sink->rate);
	ob_jout_begin(j, "sink", '{');
	ob_jout_text(j, "name", ob_str(sink->tale.sink_name));
	ob_jout_text(j, "type", ob_str(sink->tale.sink_type));
	ob_jout_text(j, "text", ob_str(sink->tale.sink_text));
	ob_jout_text(j, "breaker", ob_str(sink->tale.breaker));
	ob_jout_bool(j, "down", sink->down > 0);
	ob_jout_when(j, "since", sink->tale.breaker_since_us);
	ob_jout_text(j, "why", sink->down ? ob_str(sink->tale.breaker_why) : OB_STR_NULL);
	ob_jout_when(j, "next_probe", sink->tale.probe_us);
	ob_jout_int(j, "workers_down", (int64_t)sink->down);
	ob_jout_raw(j, "rate", ob_str(rate));
	ob_jout_int(j, "in_flight", (int64_t)sink->in_flight);
	error_json(j, "last_error", &sink->sink_error);
	ob_jout_when(j, "last_error_at", sink->sink_error.at_us);
	error_json(j, "last_store_error", &sink->store_error);
	ob_jout_when(j, "last_store_error_at", sink->store_error.at_us);
	ob_jout_when(j, "retained_at", sink->retained_us);
	ob_jout_int(j, "retained_rows", (int64_t)sink->retained_rows);
	ob_jout_int(j, "retained_partitions", (int64_t)sink->retained_parts);
	ob_jout_end(j, '}');
}

void ob_snapshot_row_json(struct ob_jout *j, const struct ob_snapshot *s,
			  const struct ob_snapshot_row *row)
{
	int64_t oldest = row->stats ? row->stats->oldest_due_us : 0;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "reader", row->reader.name);
	ob_jout_text(j, "reads", row->reader.target);
	ob_jout_text(j, "filter", row->reader.filter);
	ob_jout_bool(j, "temporary", row->reader.temporary);
	ob_jout_when(j, "created_at", row->reader.created_at_us);
	counts_json(j, row->stats);
	ob_jout_int(j, "position", row->reader.high_pos);
	ob_jout_int(j, "low_position", row->reader.low_pos);
	ob_jout_int(j, "end", row->end_seq);
	ob_jout_int(j, "lag", ob_snapshot_lag(row));
	ob_jout_when(j, "moved_at", row->reader.moved_at_us);
	ob_jout_when(j, "oldest_due", oldest);
	if (oldest)
		ob_jout_int(j, "oldest_due_ms", (s->now_us - oldest) / 1000);
	else
		ob_jout_raw(j, "oldest_due_ms", OB_STR("null"));
	ob_jout_int(j, "partitions", (int64_t)row->partitions);
	ob_jout_int(j, "leased", (int64_t)row->leased);
	ob_jout_int(j, "workers", (int64_t)row->reader.workers);
	ob_jout_int(j, "held_from", row->reader.held_seq);
	ob_jout_bool(j, "holds_retention", ob_snapshot_is_left(row));
	sink_json(j, &row->sink);
	ob_jout_end(j, '}');
}

void ob_worker_json(struct ob_jout *j, const struct ob_worker *w)
{
	char id[OB_UUID_TEXT_SIZE];
	struct ob_worker_report report;

	ob_uuid_format(&w->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "reader", w->reader);
	ob_jout_text(j, "hostname", w->hostname);
	ob_jout_int(j, "pid", w->pid);
	ob_jout_when(j, "started_at", w->started_at_us);
	ob_jout_when(j, "heartbeat_until", w->heartbeat_until_us);
	ob_jout_int(j, "published", (int64_t)w->published);
	ob_jout_int(j, "failed", (int64_t)w->failed);
	bool known = ob_worker_report_read(&report, w->state);
	ob_worker_report_json(j, &report, known);
	ob_jout_end(j, '}');
}

void ob_snapshot_json_members(struct ob_jout *j, const struct ob_snapshot *s)
{
	ob_jout_text(j, "store", ob_buf_view(&s->store));
	ob_jout_when(j, "now", s->now_us);
	ob_jout_begin(j, "readers", '[');
	for (size_t i = 0; i < s->count; i++)
		ob_snapshot_row_json(j, s, &s->rows[i]);
	ob_jout_end(j, ']');
	ob_jout_begin(j, "workers", '[');
	for (size_t i = 0; i < s->worker_count; i++)
		ob_worker_json(j, &s->workers[i]);
	ob_jout_end(j, ']');
}

void ob_snapshot_json(struct ob_jout *j, const struct ob_snapshot *s)
{
	ob_jout_begin(j, NULL, '{');
	ob_snapshot_json_members(j, s);
	ob_jout_end(j, '}');
}
