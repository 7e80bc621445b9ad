/* SPDX-License-Identifier: MIT */
/* The demonstration as text: a few lines while it runs, a table at its end. */
#include "cli/demo/view.h"

#include "base/when.h"
#include "cli/out/pen.h"

#include <inttypes.h>
#include <stdio.h>

enum { LABEL = 2, VALUE = 14, BAR_MAX = 40, SPARK = 30, TABLE_VALUE = 18, NUMBER = 10, MARK = 31 };

static struct ob_pen pen_of(const struct ob_demo_style *style, struct ob_buf *out)
{
	return (struct ob_pen){
		.out = out,
		.width = style->width,
		.colour = style->colour,
		.ascii = style->ascii,
	};
}

static void label(struct ob_pen *pen, const char *text)
{
	ob_pen_to(pen, LABEL);
	ob_pen_text(pen, OB_INK_DIM, ob_str(text));
	ob_pen_to(pen, VALUE);
}

static void count(struct ob_pen *pen, enum ob_ink ink, uint64_t n, const char *what)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(n, text);
	if (pen->column > VALUE)
		ob_pen_text(pen, OB_INK_PLAIN, OB_STR("   "));
	ob_pen_text(pen, ink, ob_str(text));
	ob_pen_printf(pen, OB_INK_PLAIN, " %s", what);
}

/* ---- before ----------------------------------------------------------- */

void ob_demo_draw_intro(bool chaos, const struct ob_demo_style *style, struct ob_buf *out)
{
	static const char *const lines[] = {
		"A shop with 50 customers writes orders into an SQLite database, each together",
		"with its event in one transaction; one transaction in ten is rolled back. Two",
		"workers deliver the events to a file. At the end every line of it is checked.",
	};
	static const char *const harm[] = {
		"Meanwhile workers are killed (kill -9), or paused until others have taken",
		"over and then let loose again.",
	};
	struct ob_pen pen = pen_of(style, out);

	ob_pen_end(&pen);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		ob_pen_text(&pen, OB_INK_PLAIN, ob_str(lines[i]));
		ob_pen_end(&pen);
	}
	for (size_t i = 0; chaos && i < sizeof(harm) / sizeof(harm[0]); i++) {
		ob_pen_text(&pen, OB_INK_WARN, ob_str(harm[i]));
		ob_pen_end(&pen);
	}
	ob_pen_end(&pen);
}

/* ---- while it runs ---------------------------------------------------- */

static void draw_bar(struct ob_pen *pen, const struct ob_demo_view *view)
{
	size_t room = ob_pen_room(pen) > 2 ? ob_pen_room(pen) - 2 : 0;
	size_t width = room < BAR_MAX ? room : BAR_MAX;
	int64_t done = view->elapsed_us < view->total_us ? view->elapsed_us : view->total_us;
	size_t full = view->total_us > 0 ? (size_t)((int64_t)width * done / view->total_us) : 0;

	ob_pen_to(pen, pen->column + 2);
	for (size_t i = 0; i < width; i++) {
		const char *full_mark = pen->ascii ? "=" : "\xE2\x94\x81";
		const char *empty_mark = pen->ascii ? "-" : "\xE2\x94\x80";

		ob_pen_text(pen, i < full ? OB_INK_GOOD : OB_INK_DIM,
			    ob_str(i < full ? full_mark : empty_mark));
	}
}

static void draw_head(struct ob_pen *pen, const struct ob_demo_view *view)
{
	ob_pen_text(pen, OB_INK_BOLD, OB_STR("outbox demo"));
	ob_pen_to(pen, VALUE);
	ob_pen_printf(pen, OB_INK_PLAIN, "%s", view->phase);
	ob_pen_to(pen, VALUE + 24);
	ob_pen_printf(pen, OB_INK_DIM, "%3" PRId64 " of %" PRId64 " s", view->elapsed_us / 1000000,
		      view->total_us / 1000000);
	draw_bar(pen, view);
	ob_pen_end(pen);
}

static void draw_waiting(struct ob_pen *pen, const struct ob_demo_view *view)
{
	char age[OB_WHEN_SIZE];

	label(pen, "waiting");
	count(pen, OB_INK_BOLD, view->waiting, view->waiting == 1 ? "event" : "events");
	if (view->oldest_us > 0) {
		ob_when_age(view->oldest_us, age);
		ob_pen_printf(pen, OB_INK_PLAIN, ", the oldest for %s", age);
	}
	ob_pen_end(pen);
}

static void draw_worker(struct ob_pen *pen, const struct ob_demo_worker *worker)
{
	static const struct {
		enum ob_ink ink;
		const char *mark, *plain, *text;
	} roles[] = {
		[OB_DEMO_WORKS] = { OB_INK_GOOD, "\xE2\x97\x8F", "*", NULL },
		[OB_DEMO_PAUSED] = { OB_INK_WARN, "\xE2\x97\x8B", "o", "paused" },
		[OB_DEMO_RESUMED] = { OB_INK_GOOD, "\xE2\x97\x8F", "*", "back" },
		[OB_DEMO_LEAVES] = { OB_INK_DIM, "\xE2\x97\x8B", "o", "leaves" },
	};
	char text[64];

	if (roles[worker->role].text)
		(void)snprintf(text, sizeof(text), " %" PRId32 " %s", worker->pid,
			       roles[worker->role].text);
	else
		(void)snprintf(text, sizeof(text), " %" PRId32 " has %" PRIu32 "/16", worker->pid,
			       worker->partitions);
	if (pen->column > VALUE)
		ob_pen_text(pen, OB_INK_PLAIN, OB_STR("   "));
	ob_pen_text(pen, roles[worker->role].ink,
		    ob_str(pen->ascii ? roles[worker->role].plain : roles[worker->role].mark));
	ob_pen_text(pen, worker->role == OB_DEMO_WORKS ? OB_INK_PLAIN : OB_INK_DIM, ob_str(text));
}

size_t ob_demo_draw(const struct ob_demo_view *view, const struct ob_demo_style *style,
		    struct ob_buf *out)
{
	struct ob_pen pen = pen_of(style, out);
	char rate[OB_COUNT_SIZE];

	draw_head(&pen, view);
	label(&pen, "the shop");
	count(&pen, OB_INK_BOLD, view->committed, "events committed");
	count(&pen, OB_INK_BOLD, view->rolled_back, "rolled back");
	ob_pen_end(&pen);

	ob_format_rate(ob_rate_now(&view->rate), rate);
	label(&pen, "the relay");
	count(&pen, OB_INK_BOLD, view->delivered, "events delivered");
	ob_pen_printf(&pen, OB_INK_PLAIN, "   %s  ", rate);
	ob_pen_spark(&pen, view->rate.seconds, view->rate.count, SPARK);
	ob_pen_end(&pen);
	draw_waiting(&pen, view);

	label(&pen, "workers");
	for (size_t i = 0; i < view->worker_count; i++)
		draw_worker(&pen, &view->workers[i]);
	if (view->worker_count == 0)
		ob_pen_text(&pen, OB_INK_DIM, OB_STR("none"));
	ob_pen_end(&pen);
	if (view->chaos) {
		label(&pen, "mishaps");
		count(&pen, OB_INK_BOLD, view->killed, "killed");
		count(&pen, OB_INK_BOLD, view->paused, "paused");
		ob_pen_printf(&pen, OB_INK_WARN, "   %s", view->news);
		ob_pen_end(&pen);
	}
	return pen.lines;
}

void ob_demo_draw_line(const struct ob_demo_view *view, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE] = "", rate[OB_COUNT_SIZE];
	size_t working = 0;

	for (size_t i = 0; i < view->worker_count; i++)
		working += view->workers[i].role == OB_DEMO_WORKS;
	ob_format_rate(ob_rate_now(&view->rate), rate);
	ob_buf_addf(out,
		    "%3" PRId64 " s  committed %" PRIu64 "  rolled back %" PRIu64
		    "  delivered %" PRIu64 "  %s  waiting %" PRIu64,
		    view->elapsed_us / 1000000, view->committed, view->rolled_back, view->delivered,
		    rate, view->waiting);
	if (view->oldest_us > 0) {
		ob_when_age(view->oldest_us, age);
		ob_buf_addf(out, " (oldest %s)", age);
	}
	ob_buf_addf(out, "  workers %zu", working);
	if (view->chaos)
		ob_buf_addf(out, "  killed %" PRIu32 "  paused %" PRIu32, view->killed,
			    view->paused);
	ob_buf_addc(out, '\n');
}

/* ---- after ------------------------------------------------------------ */

bool ob_demo_holds(const struct ob_demo_verdict *verdict)
{
	return ob_audit_holds(verdict->audit, verdict->duplicates_max);
}

static void row(struct ob_pen *pen, const char *name, uint64_t n)
{
	char text[OB_COUNT_SIZE], cell[OB_COUNT_SIZE + NUMBER];

	ob_format_count(n, text);
	(void)snprintf(cell, sizeof(cell), "%*s", NUMBER, text);
	ob_pen_to(pen, LABEL);
	ob_pen_text(pen, OB_INK_PLAIN, ob_str(name));
	ob_pen_to(pen, TABLE_VALUE);
	ob_pen_text(pen, OB_INK_BOLD, ob_str(cell));
}

static void plain_row(struct ob_pen *pen, const char *name, uint64_t n, const char *about)
{
	row(pen, name, n);
	ob_pen_to(pen, MARK + 3);
	ob_pen_text(pen, OB_INK_DIM, ob_str(about));
	ob_pen_end(pen);
}

static void judged_row(struct ob_pen *pen, const char *name, uint64_t n, uint64_t most,
		       const char *about)
{
	const char *good = pen->ascii ? "ok" : "\xE2\x9C\x93";
	const char *bad = pen->ascii ? "NO" : "\xE2\x9C\x97";

	row(pen, name, n);
	ob_pen_to(pen, MARK);
	ob_pen_text(pen, n <= most ? OB_INK_GOOD : OB_INK_BAD, ob_str(n <= most ? good : bad));
	ob_pen_to(pen, MARK + 3);
	ob_pen_text(pen, OB_INK_DIM, ob_str(about));
	ob_pen_end(pen);
}

static void draw_meaning(struct ob_pen *pen, const struct ob_demo_verdict *v)
{
	ob_pen_end(pen);
	if (!ob_demo_holds(v)) {
		ob_pen_text(
			pen, OB_INK_BAD,
			OB_STR("The promises do not hold: this is a bug. What was found first:"));
		ob_pen_end(pen);
		ob_buf_add(pen->out, ob_buf_view(&v->audit->examples));
		return;
	}
	ob_pen_printf(pen, OB_INK_GOOD, "Every committed event arrived%s, in order per customer.",
		      v->audit->duplicates ? "" : " once");
	ob_pen_end(pen);
	ob_pen_text(pen, OB_INK_GOOD, OB_STR("Of what was rolled back, nothing did."));
	ob_pen_end(pen);
	if (v->chaos) {
		ob_pen_printf(pen, OB_INK_PLAIN,
			      "Workers meanwhile: %" PRIu32 " killed, %" PRIu32
			      " paused past their lease.",
			      v->killed, v->paused);
		ob_pen_end(pen);
	}
}

void ob_demo_draw_verdict(const struct ob_demo_verdict *v, const struct ob_demo_style *style,
			  struct ob_buf *out)
{
	const struct ob_audit *a = v->audit;
	struct ob_pen pen = pen_of(style, out);
	char about[96] = "delivered more than once", most[OB_COUNT_SIZE];

	ob_format_count(v->duplicates_max, most);
	if (v->chaos)
		(void)snprintf(about, sizeof(about), "came again after a mishap (bound: %s)", most);
	ob_pen_end(&pen);
	ob_pen_text(&pen, OB_INK_BOLD, OB_STR("The audit"));
	ob_pen_end(&pen);
	plain_row(&pen, "committed", a->committed, "events, as the shop remembers them");
	plain_row(&pen, "rolled back", a->rolled_back, "events of transactions that failed");
	plain_row(&pen, "delivered", a->delivered, "of the committed ones, found in the file");
	judged_row(&pen, "lost", a->lost, 0, "committed, but not in the file");
	judged_row(&pen, "ghosts", a->ghosts, 0, "rolled back, but in the file");
	judged_row(&pen, "out of order", a->out_of_order, 0, "behind a later one of its customer");
	judged_row(&pen, "duplicates", a->duplicates, v->duplicates_max, about);
	if (a->unreadable)
		plain_row(&pen, "torn lines", a->unreadable,
			  "cut off by a kill; readers skip them");
	draw_meaning(&pen, v);
}
