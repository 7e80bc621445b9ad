/* SPDX-License-Identifier: MIT */
/*
 * Draws from rich to poor until a frame fits the screen: all workers, then a
 * line about them, then less of each relay, at last one line a relay.
 */
#include "cli/work/dashboard.h"

#include "base/utf8.h"
#include "base/when.h"
#include "cli/out/pen.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	VALUES = 15,    /* the column where values begin behind their labels */
	INDENT = 3,     /* of everything about a relay */
	HOST_MAX = 20,  /* columns of a host's name */
	NARROW = 60,    /* below this labels stand on the left edge */
	FRAME = 1 << 20 /* bytes of a frame */
};

enum detail { DETAIL_LINE, DETAIL_SHORT, DETAIL_SUMMED, DETAIL_WORKERS };

/* What is tried, one after the other. */
static const struct {
	enum detail detail;
	size_t errors;
} attempts[] = {
	{ DETAIL_WORKERS, 5 }, { DETAIL_SUMMED, 5 }, { DETAIL_SUMMED, 3 }, { DETAIL_SHORT, 3 },
	{ DETAIL_SHORT, 1 },   { DETAIL_LINE, 3 },   { DETAIL_LINE, 0 },
};

static const char *glyph(const struct ob_pen *pen, const char *utf8, const char *ascii)
{
	return pen->ascii ? ascii : utf8;
}

static void clock_text(int64_t us, char out[16])
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(out, 16, "%H:%M:%S", &tm) == 0)
		(void)snprintf(out, 16, "-");
}

static void field_count(struct ob_pen *pen, size_t indent, const char *label, enum ob_ink ink,
			uint64_t n)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(n, text);
	ob_pen_field(pen, indent, label, n ? ink : OB_INK_PLAIN, text);
}

/* ---- one relay ------------------------------------------------------- */

static enum ob_ink health(const struct ob_dash_relay *relay)
{
	if (relay->data.breaker == OB_BREAKER_OPEN || relay->data.store_down)
		return OB_INK_BAD;
	if (relay->data.breaker == OB_BREAKER_HALF_OPEN || relay->data.held_keys ||
	    relay->sample.held_keys)
		return OB_INK_WARN;
	return OB_INK_GOOD;
}

static const char *breaker_text(const struct ob_dash_relay *relay)
{
	if (relay->data.store_down)
		return "the store does not answer, nothing is sent";
	if (relay->data.breaker == OB_BREAKER_OPEN)
		return relay->data.alarm ? "open: most keys fail" : "open: the sink is down";
	return relay->data.breaker == OB_BREAKER_HALF_OPEN ? "half-open: probing" : "closed";
}

static void draw_title(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	ob_pen_to(pen, 1);
	ob_pen_text(pen, health(relay), ob_str(glyph(pen, "\xE2\x97\x8F", "*")));
	ob_pen_to(pen, INDENT);
	ob_pen_fit(pen, OB_INK_BOLD, ob_str(relay->name), pen->width / 2);
	ob_pen_to(pen, pen->column + 2);
	/* The sink matters more: the store gets what is left, but at least a third. */
	size_t room = ob_pen_room(pen);
	ob_pen_fit(pen, OB_INK_DIM, ob_str(relay->store), room / 2);
	ob_pen_text(pen, OB_INK_DIM, ob_str(glyph(pen, " \xE2\x86\x92 ", " -> ")));
	ob_pen_text(pen, OB_INK_DIM, ob_str(relay->sink));
	ob_pen_end(pen);
}

static size_t begin_row(struct ob_pen *pen, const char *label)
{
	ob_pen_to(pen, INDENT);
	if (pen->width >= NARROW) {
		ob_pen_text(pen, OB_INK_DIM, ob_str(label));
		ob_pen_to(pen, VALUES);
	}
	return pen->width >= NARROW ? VALUES : INDENT;
}

static void draw_rate(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	char now[OB_COUNT_SIZE], minute[OB_COUNT_SIZE];
	size_t indent = begin_row(pen, "rate");

	ob_format_rate(ob_rate_now(&relay->rate), now);
	ob_format_rate(ob_rate_minute(&relay->rate), minute);
	ob_pen_field(pen, indent, "now", OB_INK_BOLD, now);
	/* In a column of their own, so that the bars do not jump with the numbers. */
	if (pen->width >= NARROW)
		ob_pen_to(pen, indent + 12);
	ob_pen_field(pen, indent, "1m", OB_INK_PLAIN, minute);
	if (pen->width >= NARROW)
		ob_pen_to(pen, indent + 28);
	ob_pen_to(pen, pen->column + 2);
	ob_pen_spark(pen, relay->rate.seconds, relay->rate.count, OB_RATE_SECONDS);
	ob_pen_end(pen);
}

/* All that are dead now, whoever gave them up; as long as the store is silent, those of ours. */
static uint64_t dead_of(const struct ob_dash_relay *relay)
{
	return relay->sample.valid ? relay->sample.dead : relay->data.dead;
}

static void draw_totals(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	size_t indent = begin_row(pen, "delivered");

	field_count(pen, indent, "published", OB_INK_BOLD, relay->data.published);
	field_count(pen, indent, "failed", OB_INK_WARN, relay->data.failed);
	field_count(pen, indent, "dead", OB_INK_BAD, dead_of(relay));
	if (relay->data.lost)
		field_count(pen, indent, "lost leases", OB_INK_WARN, relay->data.lost);
	if (relay->data.store_errors)
		field_count(pen, indent, "store errors", OB_INK_WARN, relay->data.store_errors);
	ob_pen_end(pen);
}

/* "1,234" or "10,000+" */
static void backlog_text(const struct ob_sample *sample, char out[OB_COUNT_SIZE + 1])
{
	char text[OB_COUNT_SIZE];

	ob_format_count(sample->backlog, text);
	(void)snprintf(out, OB_COUNT_SIZE + 1, "%s%s", text, sample->capped ? "+" : "");
}

static void draw_backlog(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	size_t indent = begin_row(pen, "waiting");
	char age[OB_WHEN_SIZE] = "-", backlog[OB_COUNT_SIZE + 1];

	if (relay->sample.valid) {
		ob_when_age(relay->sample.oldest_us, age);
		backlog_text(&relay->sample, backlog);
		ob_pen_field(pen, indent, "backlog",
			     relay->sample.backlog ? OB_INK_BOLD : OB_INK_PLAIN, backlog);
		ob_pen_field(pen, indent, "oldest", OB_INK_PLAIN,
			     relay->sample.oldest_us ? age : "-");
	} else {
		ob_pen_field(pen, indent, "backlog", OB_INK_DIM, "?");
	}
	field_count(pen, indent, "in flight", OB_INK_PLAIN, relay->data.in_flight);
	if (relay->sample.held_keys)
		field_count(pen, indent, "held keys", OB_INK_WARN, relay->sample.held_keys);
	if (relay->sample.delayed)
		field_count(pen, indent, "delayed", OB_INK_PLAIN, relay->sample.delayed);
	ob_pen_end(pen);
}

static void draw_breaker(struct ob_pen *pen, const struct ob_dash_relay *relay, int64_t now_us)
{
	size_t indent = begin_row(pen, "breaker");
	bool closed = relay->data.breaker == OB_BREAKER_CLOSED && !relay->data.store_down;
	enum ob_ink ink = closed ? OB_INK_GOOD : health(relay);
	char since[OB_WHEN_SIZE];

	ob_pen_field(pen, indent, pen->width < NARROW ? "breaker" : "", ink, breaker_text(relay));
	if (relay->data.breaker_since_us && now_us > relay->data.breaker_since_us) {
		ob_when_age(now_us - relay->data.breaker_since_us, since);
		ob_pen_field(pen, indent, "since", OB_INK_PLAIN, since);
	}
	if (relay->data.breaker_opened)
		field_count(pen, indent, "opened", OB_INK_PLAIN, relay->data.breaker_opened);
	ob_pen_end(pen);
}

/* ---- partitions ------------------------------------------------------ */

/* One cell stands for the partitions first..last. */
static void draw_cell(struct ob_pen *pen, const struct ob_dash_relay *relay, uint32_t first,
		      uint32_t last)
{
	uint32_t counts[3] = { 0 };
	uint32_t all = last - first;

	for (uint32_t i = first; i < last; i++)
		counts[relay->sample.owners[i]]++;
	if (counts[OB_DASH_MINE] == all)
		ob_pen_text(pen, OB_INK_GOOD, ob_str(glyph(pen, "\xE2\x96\xA0", "#")));
	else if (counts[OB_DASH_OTHER] == all)
		ob_pen_text(pen, OB_INK_DIM, ob_str(glyph(pen, "\xE2\x96\xA1", "o")));
	else if (counts[OB_DASH_FREE] == all)
		ob_pen_text(pen, OB_INK_WARN, ob_str(glyph(pen, "\xC2\xB7", ".")));
	else
		ob_pen_text(pen, counts[OB_DASH_FREE] ? OB_INK_WARN : OB_INK_PLAIN,
			    ob_str(glyph(pen, "\xE2\x96\xA4", "+")));
}

static void draw_partitions(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	size_t indent = begin_row(pen, "partitions");
	uint32_t count = relay->sample.partition_count;
	char text[64];

	(void)snprintf(text, sizeof(text), "%" PRIu64 " of %" PRIu32, relay->data.partitions,
		       count);
	ob_pen_field(pen, indent, pen->width < NARROW ? "partitions" : "", OB_INK_PLAIN, text);
	ob_pen_to(pen, pen->column + 2);
	size_t room = ob_pen_room(pen);
	uint32_t cells = count < room ? count : (uint32_t)room;
	for (uint32_t i = 0; i < cells; i++)
		draw_cell(pen, relay, (uint32_t)((uint64_t)i * count / cells),
			  (uint32_t)((uint64_t)(i + 1) * count / cells));
	ob_pen_end(pen);
}

/* ---- workers --------------------------------------------------------- */

static void draw_workers_summed(struct ob_pen *pen, const struct ob_dash_relay *relay,
				bool elsewhere)
{
	size_t indent = begin_row(pen, "workers");
	size_t shown = relay->sample.worker_count < OB_DASH_WORKERS ? relay->sample.worker_count
								    : OB_DASH_WORKERS;
	size_t mine = 0;

	for (size_t i = 0; i < shown; i++)
		mine += relay->sample.workers[i].mine;
	field_count(pen, indent, pen->width < NARROW ? "workers" : "alive", OB_INK_PLAIN,
		    relay->sample.worker_count);
	if (!elsewhere)
		field_count(pen, indent, "in this process", OB_INK_PLAIN, mine);
	ob_pen_end(pen);
}

static const char *host_of(const struct ob_dash_worker *worker)
{
	return worker->mine ? "here" : worker->host;
}

/* `host`: the columns of the widest name. */
static void draw_worker(struct ob_pen *pen, const struct ob_dash_worker *worker, size_t host)
{
	char id[OB_UUID_TEXT_SIZE], beat[OB_WHEN_SIZE], text[64];
	bool late = worker->beat_us < 3000000;
	size_t indent = pen->width >= NARROW ? VALUES + 2 : INDENT + 2;

	ob_uuid_format(&worker->id, id);
	ob_when_age(worker->beat_us, beat);
	ob_pen_text(pen, late ? OB_INK_WARN : OB_INK_GOOD,
		    ob_str(glyph(pen, late ? "\xE2\x99\xA1" : "\xE2\x99\xA5", late ? "-" : "+")));
	ob_pen_to(pen, pen->column + 1);
	/* The random end tells workers of one process apart, the beginning is the time. */
	ob_pen_text(pen, OB_INK_PLAIN, ob_str(id + 28));
	ob_pen_to(pen, pen->column + 2);
	size_t next = pen->column + host;
	ob_pen_fit(pen, worker->mine ? OB_INK_PLAIN : OB_INK_DIM, ob_str(host_of(worker)), host);
	ob_pen_to(pen, next);
	(void)snprintf(text, sizeof(text), "%" PRId32, worker->pid);
	ob_pen_field(pen, indent, "pid", OB_INK_PLAIN, text);
	ob_pen_field(pen, indent, "beat", late ? OB_INK_WARN : OB_INK_PLAIN, beat);
	(void)snprintf(text, sizeof(text), "%" PRIu32, worker->partitions);
	ob_pen_field(pen, indent, "holds", OB_INK_PLAIN, text);
	field_count(pen, indent, "sent", OB_INK_PLAIN, worker->published);
	if (worker->told && ob_worker_report_is_down(&worker->report))
		ob_pen_field(pen, indent, "sink", OB_INK_BAD, "down");
	ob_pen_end(pen);
}

static void draw_workers(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	size_t shown = relay->sample.worker_count < OB_DASH_WORKERS ? relay->sample.worker_count
								    : OB_DASH_WORKERS;
	size_t indent = begin_row(pen, "workers");

	size_t host = 0;
	for (size_t i = 0; i < shown; i++) {
		size_t n = ob_utf8_count(ob_str(host_of(&relay->sample.workers[i])));

		host = n > host ? n : host;
	}
	host = host < HOST_MAX ? host : HOST_MAX;
	if (shown == 0)
		ob_pen_field(pen, indent, "", OB_INK_DIM, relay->sample.valid ? "none yet" : "?");
	for (size_t i = 0; i < shown; i++) {
		ob_pen_to(pen, indent);
		draw_worker(pen, &relay->sample.workers[i], host);
	}
	if (relay->sample.worker_count > shown) {
		ob_pen_to(pen, indent);
		ob_pen_printf(pen, OB_INK_DIM, "and %zu more", relay->sample.worker_count - shown);
	}
	if (pen->column)
		ob_pen_end(pen);
}

static void draw_line(struct ob_pen *pen, const struct ob_dash_relay *relay)
{
	char text[OB_COUNT_SIZE], backlog[OB_COUNT_SIZE + 1], age[OB_WHEN_SIZE];
	size_t name = pen->width / 4 > 8 ? pen->width / 4 : 8;

	ob_pen_to(pen, 1);
	ob_pen_text(pen, health(relay), ob_str(glyph(pen, "\xE2\x97\x8F", "*")));
	ob_pen_to(pen, INDENT);
	ob_pen_fit(pen, OB_INK_BOLD, ob_str(relay->name), name);
	ob_pen_to(pen, INDENT + name + 1);
	ob_format_rate(ob_rate_now(&relay->rate), text);
	ob_pen_printf(pen, OB_INK_PLAIN, "%9s", text);
	backlog_text(&relay->sample, backlog);
	ob_pen_text(pen, OB_INK_DIM, OB_STR("  backlog "));
	ob_pen_text(pen, OB_INK_PLAIN, ob_str(relay->sample.valid ? backlog : "?"));
	ob_when_age(relay->sample.oldest_us, age);
	ob_pen_text(pen, OB_INK_DIM, OB_STR("  oldest "));
	ob_pen_text(pen, OB_INK_PLAIN, ob_str(relay->sample.oldest_us ? age : "-"));
	ob_format_count(dead_of(relay), text);
	ob_pen_text(pen, OB_INK_DIM, OB_STR("  dead "));
	ob_pen_text(pen, dead_of(relay) ? OB_INK_BAD : OB_INK_PLAIN, ob_str(text));
	ob_pen_end(pen);
}

static void draw_relay(struct ob_pen *pen, const struct ob_dash *dash,
		       const struct ob_dash_relay *relay, enum detail detail)
{
	if (detail == DETAIL_LINE) {
		draw_line(pen, relay);
		return;
	}
	draw_title(pen, relay);
	draw_rate(pen, relay);
	draw_totals(pen, relay);
	draw_backlog(pen, relay);
	if (detail == DETAIL_SHORT)
		return;
	draw_breaker(pen, relay, dash->now_us);
	draw_partitions(pen, relay);
	if (detail == DETAIL_WORKERS)
		draw_workers(pen, relay);
	else
		draw_workers_summed(pen, relay, dash->elsewhere);
}

/* ---- errors ---------------------------------------------------------- */

/* The newest errors of all relays, oldest first. */
struct error_list {
	const struct ob_last_error *errors[OB_LAST_ERRORS];
	const char *relays[OB_LAST_ERRORS];
	size_t count, max;
};

static void add_error(struct error_list *list, const struct ob_last_error *error, const char *relay)
{
	size_t at = list->count;

	if (list->count == list->max) { /* the oldest makes room */
		if (list->max == 0 || list->errors[0]->at_us >= error->at_us)
			return;
		memmove(list->errors, list->errors + 1, (list->max - 1) * sizeof(const void *));
		memmove(list->relays, list->relays + 1, (list->max - 1) * sizeof(const char *));
		at = --list->count;
	}
	for (; at > 0 && list->errors[at - 1]->at_us > error->at_us; at--) {
		list->errors[at] = list->errors[at - 1];
		list->relays[at] = list->relays[at - 1];
	}
	list->errors[at] = error;
	list->relays[at] = relay;
	list->count++;
}

static void gather_errors(const struct ob_dash *dash, struct error_list *list)
{
	for (size_t i = 0; i < dash->relay_count; i++) {
		const struct ob_metrics_data *data = &dash->relays[i].data;

		for (uint32_t e = 0; e < data->error_count && e < OB_LAST_ERRORS; e++)
			add_error(list, &data->errors[e], dash->relays[i].name);
	}
}

static void draw_error(struct ob_pen *pen, const struct ob_last_error *error, const char *relay)
{
	char when[16], id[OB_UUID_TEXT_SIZE];
	bool wide = pen->width >= NARROW;

	clock_text(error->at_us, when);
	ob_pen_to(pen, INDENT);
	ob_pen_text(pen, OB_INK_DIM, ob_str(when));
	ob_pen_to(pen, pen->column + 2);
	ob_pen_printf(pen, error->kind == OB_ERR_RETRY ? OB_INK_WARN : OB_INK_BAD, "%-6s",
		      ob_err_kind_name(error->kind));
	ob_pen_to(pen, pen->column + 2);
	if (relay && wide) {
		ob_pen_fit(pen, OB_INK_PLAIN, ob_str(relay), 16);
		ob_pen_to(pen, pen->column + 2);
	}
	if (wide && !ob_uuid_is_nil(&error->message)) {
		ob_uuid_format(&error->message, id);
		ob_pen_text(pen, OB_INK_DIM, ob_str(id + 24));
		ob_pen_to(pen, pen->column + 2);
	}
	if (error->times > 1) {
		ob_pen_printf(pen, OB_INK_DIM, "%" PRIu32 " times", error->times);
		ob_pen_to(pen, pen->column + 2);
	}
	ob_pen_text(pen, OB_INK_PLAIN, ob_str(error->text));
	ob_pen_end(pen);
}

static void draw_errors(struct ob_pen *pen, const struct ob_dash *dash, size_t max)
{
	struct error_list list = { .max = max };

	gather_errors(dash, &list);
	if (list.count == 0)
		return;
	ob_pen_rule(pen);
	ob_pen_to(pen, 1);
	ob_pen_text(pen, OB_INK_DIM, OB_STR("last errors"));
	ob_pen_end(pen);
	for (size_t i = 0; i < list.count; i++)
		draw_error(pen, list.errors[i], dash->relay_count > 1 ? list.relays[i] : NULL);
}

/* ---- the frame ------------------------------------------------------- */

static void draw_head(struct ob_pen *pen, const struct ob_dash *dash)
{
	char up[OB_WHEN_SIZE], when[16];

	ob_when_age(dash->up_us, up);
	clock_text(dash->now_us, when);
	ob_pen_to(pen, 1);
	ob_pen_text(pen, OB_INK_BOLD, ob_str(dash->title ? dash->title : "outbox work"));
	if (!dash->elsewhere)
		ob_pen_field(pen, 1, "up", OB_INK_PLAIN, up);
	if (*dash->state)
		ob_pen_field(pen, 1, "", OB_INK_WARN, dash->state);
	if (dash->sorted && *dash->sorted)
		ob_pen_field(pen, 1, "by", OB_INK_PLAIN, dash->sorted);
	if (ob_pen_room(pen) >= 16) {
		ob_pen_to(pen, pen->width - 13);
		ob_pen_printf(pen, OB_INK_DIM, "%s UTC", when);
	}
	ob_pen_end(pen);
}

static void draw_foot(struct ob_pen *pen, bool elsewhere)
{
	const char *quits = elsewhere ? " ends" : " ends after what is in flight; again: at once";

	ob_pen_rule(pen);
	ob_pen_to(pen, 1);
	ob_pen_text(pen, OB_INK_BOLD, OB_STR("q"));
	ob_pen_text(pen, OB_INK_DIM,
		    pen->width >= NARROW || elsewhere ? ob_str(quits)
						      : OB_STR(" ends, again: at once"));
	ob_pen_to(pen, pen->column + 3);
	ob_pen_text(pen, OB_INK_BOLD, OB_STR("?"));
	ob_pen_text(pen, OB_INK_DIM, OB_STR(" keys"));
	ob_pen_end(pen);
}

static void draw_help(struct ob_pen *pen, bool elsewhere)
{
	const char *const keys[][2] = {
		{ "q", elsewhere ? "end; the relays go on"
				 : "end after what is in flight; again: at once" },
		{ "down up", "scroll where not all relays fit; also j k, and by pages" },
		{ "s", "sort by name, rate, backlog, dead; then as they were" },
		{ "p", "stop the picture; the relays go on" },
		{ "?", "these lines" },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		ob_pen_to(pen, INDENT);
		ob_pen_text(pen, OB_INK_BOLD, ob_str(keys[i][0]));
		ob_pen_to(pen, VALUES);
		ob_pen_text(pen, OB_INK_PLAIN, ob_str(keys[i][1]));
		ob_pen_end(pen);
	}
}

/* How many lines are left for relays, and from which one on. */
struct part {
	size_t first, count;
};

static struct part whole(const struct ob_dash *dash)
{
	return (struct part){ 0, dash->relay_count };
}

/* A line a relay, and one that says how many are not shown. */
static struct part cut(const struct ob_dash *dash, size_t height)
{
	const size_t others = 5; /* head, foot and that line */
	size_t count = height > others ? height - others : 1;

	if (count >= dash->relay_count)
		return whole(dash);

	size_t last = dash->relay_count - count;

	return (struct part){ dash->first < last ? dash->first : last, count };
}

static void draw_relays(struct ob_pen *pen, const struct ob_dash *dash, enum detail detail,
			struct part part)
{
	for (size_t i = part.first; i < part.first + part.count; i++) {
		if (i > part.first && detail != DETAIL_LINE)
			ob_pen_end(pen);
		draw_relay(pen, dash, &dash->relays[i], detail);
	}
	if (part.count == dash->relay_count)
		return;
	ob_pen_to(pen, INDENT);
	ob_pen_printf(pen, OB_INK_WARN, "%zu to %zu of %zu relays: down and up show the others",
		      part.first + 1, part.first + part.count, dash->relay_count);
	ob_pen_end(pen);
}

static void draw_whole(struct ob_pen *pen, const struct ob_dash *dash, enum detail detail,
		       size_t errors, struct part part)
{
	draw_head(pen, dash);
	ob_pen_rule(pen);
	if (dash->help)
		draw_help(pen, dash->elsewhere);
	else
		draw_relays(pen, dash, detail, part);
	if (!dash->help)
		draw_errors(pen, dash, errors);
	draw_foot(pen, dash->elsewhere);
}

/* The first `lines` of it, without the last line break. */
static struct ob_str cut_lines(struct ob_str frame, size_t lines)
{
	size_t n = 0;

	for (; n < frame.n; n++) {
		if (frame.p[n] == '\n' && (--lines == 0 || n + 1 == frame.n))
			break;
	}
	return (struct ob_str){ frame.p, n };
}

void ob_dash_draw(const struct ob_dash *dash, const struct ob_dash_style *style, struct ob_buf *out)
{
	struct ob_buf frame = OB_BUF_INIT(FRAME);
	size_t count = sizeof(attempts) / sizeof(attempts[0]);

	if (style->height == 0 || style->width == 0)
		return;
	for (size_t i = 0; i <= count; i++) {
		bool cutting = i == count; /* nothing showed them all */
		size_t at = cutting ? i - 1 : i;
		struct ob_pen pen = { .out = &frame,
				      .width = style->width,
				      .colour = style->colour,
				      .ascii = style->ascii };

		ob_buf_clear(&frame);
		draw_whole(&pen, dash, attempts[at].detail, attempts[at].errors,
			   cutting ? cut(dash, style->height) : whole(dash));
		if (pen.lines <= style->height)
			break;
	}
	ob_buf_add(out, cut_lines(ob_buf_view(&frame), style->height));
	ob_buf_done(&frame);
}
