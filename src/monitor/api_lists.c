/* SPDX-License-Identifier: MIT */
/* Throughput, partitions, the doctor, the audit. */
#include "monitor/api.h"
#include "monitor/assets.h"
#include "monitor/routes.h"
#include "operate/doctor.h"
#include "operate/owners.h"
#include "operate/readers.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAY_MINUTES = 1440, ARENA_MAX = 64 << 20, AUDIT_PAGE = 100 };

/* ---- throughput ------------------------------------------------------ */

static int by_minute(const void *a, const void *b)
{
	const struct ob_minute *x = a, *y = b;

	return x->minute_us < y->minute_us ? -1 : x->minute_us > y->minute_us;
}

/* Several stores have the same minutes. */
static size_t merge(struct ob_minute *points, size_t count)
{
	size_t kept = 0;

	qsort(points, count, sizeof(*points), by_minute);
	for (size_t i = 0; i < count; i++) {
		if (kept && points[kept - 1].minute_us == points[i].minute_us) {
			points[kept - 1].published += points[i].published;
			points[kept - 1].failed += points[i].failed;
		} else {
			points[kept++] = points[i];
		}
	}
	return kept;
}

static void throughput_json(struct ob_request *req, int64_t minutes, const struct ob_minute *points,
			    size_t count)
{
	struct ob_jout *j = &req->out;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(ob_request_arg(req, "store")));
	ob_jout_text(j, "reader", ob_str(ob_request_arg(req, "reader")));
	ob_jout_int(j, "minutes", minutes);
	ob_jout_int(j, "now_us", ob_clock_real_us(&ob_clock_system));
	ob_jout_begin(j, "points", '[');
	for (size_t i = 0; i < count; i++) {
		ob_jout_begin(j, NULL, '{');
		ob_jout_int(j, "minute_us", points[i].minute_us);
		ob_jout_int(j, "published", (int64_t)points[i].published);
		ob_jout_int(j, "failed", (int64_t)points[i].failed);
		ob_jout_end(j, '}');
	}
	ob_jout_end(j, ']');
	ob_jout_end(j, '}');
}

/* The points of one store at the end of the list; false: answered. */
static bool add_points(struct ob_request *req, struct ob_pool *pool, int64_t minutes,
		       struct ob_arena *arena, struct ob_minute *points, size_t *count)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_minute *found;
	struct ob_asked asked;
	size_t n = 0;

	if (!ob_request_store(req, pool->entry->name, &asked))
		return false;
	int r = ob_store_throughput(asked.store, ob_request_arg(req, "reader"), (uint32_t)minutes,
				    arena, &found, &n, &err);
	for (size_t i = 0; r == 0 && i < n && i < DAY_MINUTES + 1; i++)
		points[(*count)++] = found[i];
	ob_request_end(req, &asked, r, &err);
	return r == 0;
}

void ob_api_throughput(struct ob_request *req)
{
	const char *store = ob_request_arg(req, "store");
	size_t stores = ob_watch_count(req->monitor->watch), count = 0;
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	int64_t minutes;

	req->type = "application/json";
	if (!ob_request_int(req, "minutes", 1, DAY_MINUTES, 60, &minutes))
		return;
	struct ob_minute *points = calloc(stores * (DAY_MINUTES + 1) + 1, sizeof(*points));
	struct ob_pool *only = store ? ob_monitor_pool(req->monitor, store) : NULL;
	bool ok = points != NULL;
	if (store && !only) {
		ob_request_fail(req, 404, "not_found", "no store '%.80s'", store);
		ok = false;
	}
	for (size_t i = 0; ok && i < stores; i++) {
		if (!only || only == &req->monitor->pools[i])
			ok = add_points(req, &req->monitor->pools[i], minutes, &arena, points,
					&count);
	}
	if (ok)
		throughput_json(req, minutes, points, merge(points, count));
	free(points);
	ob_arena_done(&arena);
}

/* ---- partitions ------------------------------------------------------ */

static void never_or(struct ob_jout *j, const char *key, int64_t ms)
{
	if (ms == OB_NEVER_MS)
		ob_jout_null(j, key);
	else
		ob_jout_int(j, key, ms);
}

static void retention_json(struct ob_jout *j, const struct ob_config_retention *retention,
			   const struct ob_snapshot *s)
{
	const struct ob_snapshot_row *most = NULL;

	for (size_t i = 0; i < s->count; i++) {
		if (ob_snapshot_is_left(&s->rows[i]) &&
		    (!most || s->rows[i].reader.held_seq < most->reader.held_seq))
			most = &s->rows[i];
	}
	ob_jout_begin(j, "retention", '{');
	never_or(j, "published_ms", retention->published_ms);
	never_or(j, "dead_ms", retention->dead_ms);
	ob_jout_int(j, "every_ms", retention->every_ms);
	ob_jout_text(j, "held_by", most ? most->reader.name : OB_STR_NULL);
	ob_jout_us(j, "held_since_us", most ? most->reader.moved_at_us : 0);
	ob_jout_end(j, '}');
}

static void reader_json(struct ob_jout *j, const struct ob_snapshot_row *row)
{
	const struct ob_reader *r = &row->reader;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "reader", r->name);
	ob_jout_text(j, "target", r->target);
	ob_jout_bool(j, "temporary", r->temporary);
	ob_jout_us(j, "created_us", r->created_at_us);
	ob_jout_int(j, "low_pos", r->low_pos);
	ob_jout_int(j, "high_pos", r->high_pos);
	ob_jout_int(j, "end_seq", row->end_seq);
	ob_jout_us(j, "moved_us", r->moved_at_us);
	ob_jout_int(j, "held_seq", r->held_seq);
	ob_jout_bool(j, "left", ob_snapshot_is_left(row));
	ob_jout_int(j, "workers", r->workers);
	ob_jout_end(j, '}');
}

/*
 * What becomes of it: it is made ahead, the one that is filled, kept, or retention may drop it once
 * its rows are old enough: every reader has passed it.
 */
static const char *part_fate(const struct ob_table_part *part, int64_t last, int64_t held)
{
	return part->rest           ? "rest"
	       : part->low > last   ? "ahead"
	       : part->high > last  ? "filling"
	       : part->high <= held ? "may go"
				    : "kept";
}

static void parts_json(struct ob_jout *j, const struct ob_config_retention *retention,
		       const struct ob_table_parts *parts, const struct ob_readers *all)
{
	/* Without a reader nothing may go. */
	int64_t held = all->count && retention->published_ms != OB_NEVER_MS ? INT64_MAX : 0;

	for (size_t i = 0; i < all->count; i++) {
		if (all->list[i].held_seq < held)
			held = all->list[i].held_seq;
	}
	ob_jout_begin(j, "table_partitions", '[');
	for (size_t i = 0; i < parts->count; i++) {
		const struct ob_table_part *part = &parts->list[i];

		ob_jout_begin(j, NULL, '{');
		ob_jout_text(j, "name", part->name);
		if (!part->rest) {
			ob_jout_int(j, "from_seq", part->low);
			ob_jout_int(j, "to_seq", part->high - 1);
		}
		ob_jout_text(j, "state", ob_str(part_fate(part, parts->last, held)));
		ob_jout_end(j, '}');
	}
	ob_jout_end(j, ']');
}

static void partitions_json(struct ob_request *req, const struct ob_config_store *entry,
			    const struct ob_owners *owners, const struct ob_snapshot *s,
			    const struct ob_table_parts *parts, const struct ob_readers *all)
{
	struct ob_jout *j = &req->out;

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(entry->name));
	ob_jout_int(j, "now_us", owners->now_us);
	ob_jout_begin(j, "partitions", '[');
	for (size_t i = 0; i < owners->partition_count; i++)
		ob_partition_json(j, owners, &owners->partitions[i]);
	ob_jout_end(j, ']');
	ob_jout_begin(j, "readers", '[');
	for (size_t i = 0; i < s->count; i++)
		reader_json(j, &s->rows[i]);
	ob_jout_end(j, ']');
	retention_json(j, &entry->retention, s);
	parts_json(j, &entry->retention, parts, all);
	ob_jout_end(j, '}');
}

void ob_api_partitions(struct ob_request *req)
{
	const char *reader = ob_request_arg(req, "reader");
	struct ob_snapshot snapshot = { 0 };
	struct ob_owners owners = { 0 };
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_table_parts parts = { 0 };
	struct ob_readers all = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;

	req->type = "application/json";
	if (!ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	int r = ob_owners_load(&owners, asked.store, reader, &err);
	if (r == 0)
		r = ob_snapshot_take_readers(&snapshot, asked.store, reader, &err);
	if (r == 0)
		r = ob_store_parts(asked.store, &arena, &parts, &err);
	if (r == 0 && parts.count)
		r = ob_readers_load(&all, asked.store, &err);
	if (r == 0)
		partitions_json(req, asked.pool->entry, &owners, &snapshot, &parts, &all);
	ob_readers_done(&all);
	ob_arena_done(&arena);
	ob_snapshot_done(&snapshot);
	ob_owners_done(&owners);
	ob_request_end(req, &asked, r, &err);
}

/* ---- doctor ---------------------------------------------------------- */

void ob_api_doctor(struct ob_request *req)
{
	struct ob_monitor *m = req->monitor;

	req->type = "application/json";
	(void)pthread_mutex_lock(&m->lock);
	if (m->doctor.len)
		ob_buf_add(&req->out.b, ob_buf_view(&m->doctor));
	else
		ob_buf_adds(&req->out.b, "null");
	(void)pthread_mutex_unlock(&m->lock);
}

static void run_doctor(struct ob_monitor *m, struct ob_jout *j)
{
	const struct ob_doctor doctor = { .config = m->config };
	struct ob_findings findings;

	ob_findings_init(&findings);
	ob_doctor_run(&doctor, &findings);
	ob_jout_begin(j, NULL, '{');
	ob_jout_int(j, "at_us", ob_clock_real_us(&ob_clock_system));
	ob_findings_json(j, &findings);
	ob_jout_bool(j, "running", false);
	ob_jout_end(j, '}');
	ob_findings_done(&findings);
}

/* One at a time: it opens every store and sink. */
void ob_api_doctor_run(struct ob_request *req)
{
	struct ob_monitor *m = req->monitor;
	struct ob_jout j = OB_JOUT_INIT;

	req->type = "application/json";
	(void)pthread_mutex_lock(&m->lock);
	bool busy = m->doctor_runs;
	m->doctor_runs = true;
	(void)pthread_mutex_unlock(&m->lock);
	if (busy) {
		ob_request_fail(req, 409, "busy", "the doctor runs already");
		return;
	}
	run_doctor(m, &j);
	(void)pthread_mutex_lock(&m->lock);
	m->doctor_runs = false;
	ob_buf_clear(&m->doctor);
	ob_buf_add(&m->doctor, ob_buf_view(&j.b));
	(void)pthread_mutex_unlock(&m->lock);
	ob_buf_add(&req->out.b, ob_buf_view(&j.b));
	ob_jout_done(&j);
}

/* ---- audit ----------------------------------------------------------- */

/* What is not there is "" in the table. */
static struct ob_str or_null(struct ob_str text)
{
	return text.n ? text : OB_STR_NULL;
}

static void audit_json(struct ob_jout *j, const struct ob_audit_row *row)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_int(j, "id", row->number);
	ob_jout_int(j, "at_us", row->at_us);
	ob_jout_text(j, "who", row->who);
	ob_jout_text(j, "origin", row->origin);
	ob_jout_text(j, "verb", row->verb);
	ob_jout_text(j, "reader", or_null(row->reader));
	ob_jout_text(j, "filter", or_null(row->filter));
	ob_jout_int(j, "count", (int64_t)row->count);
	ob_jout_text(j, "plan", or_null(row->plan));
	ob_jout_text(j, "reason", or_null(row->reason));
	ob_jout_end(j, '}');
}

static void audits_json(struct ob_request *req, const char *store, const struct ob_audit_row *rows,
			size_t count)
{
	struct ob_jout *j = &req->out;
	char next[24] = "";

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(store));
	ob_jout_begin(j, "entries", '[');
	for (size_t i = 0; i < count; i++)
		audit_json(j, &rows[i]);
	ob_jout_end(j, ']');
	if (count == AUDIT_PAGE)
		(void)snprintf(next, sizeof(next), "%lld", (long long)rows[count - 1].number);
	ob_jout_text(j, "next", next[0] ? ob_str(next) : OB_STR_NULL);
	ob_jout_end(j, '}');
}

void ob_api_audit(struct ob_request *req)
{
	struct ob_audit_ask ask = { .reader = ob_request_arg(req, "reader"),
				    .verb = ob_request_arg(req, "verb"),
				    .limit = AUDIT_PAGE };
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct ob_err err = OB_ERR_INIT;
	struct ob_audit_row *rows;
	struct ob_asked asked;
	size_t count = 0;

	req->type = "application/json";
	if (!ob_request_int(req, "before", 1, INT64_MAX, 0, &ask.before) ||
	    !ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	int r = ob_store_audits(asked.store, &ask, &arena, &rows, &count, &err);
	if (r == 0)
		audits_json(req, asked.pool->entry->name, rows, count);
	ob_arena_done(&arena);
	ob_request_end(req, &asked, r, &err);
}

void ob_api_openapi(struct ob_request *req)
{
	const struct ob_asset *asset = ob_asset_find("openapi.json");

	req->type = "application/json";
	ob_buf_add(&req->out.b, (struct ob_str){ (const char *)asset->raw, asset->size });
}
