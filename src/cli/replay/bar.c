/* SPDX-License-Identifier: MIT */
#include "cli/replay/bar.h"

#include "base/when.h"
#include "cli/out/pen.h"

#include <inttypes.h>

enum { CELLS_MAX = 30, CELLS_MIN = 10, TEXT_BYTES = 512 };

unsigned ob_replay_percent(const struct ob_replay_bar *bar)
{
	int64_t all = bar->end - bar->from, done = bar->position - bar->from;

	if (all <= 0 || bar->position >= bar->end)
		return 100;
	if (done <= 0)
		return 0;
	/* Numbers are far below the 2^63 / 100 at which this would overflow. */
	return (unsigned)(done * 100 / all);
}

int64_t ob_replay_left_us(const struct ob_replay_bar *bar, double numbers)
{
	int64_t left = bar->end - bar->position;

	if (left <= 0)
		return 0;
	if (numbers < 0.001)
		return -1;
	return (int64_t)((double)left / numbers * 1e6);
}

static void add_cells(struct ob_buf *out, unsigned percent, size_t cells, bool ascii)
{
	size_t full = percent * cells / 100;

	ob_buf_addc(out, '[');
	for (size_t i = 0; i < cells; i++) {
		if (ascii)
			ob_buf_addc(out, i < full ? '#' : '.');
		else
			ob_buf_adds(out, i < full ? "\xE2\x96\x88" : "\xC2\xB7");
	}
	ob_buf_addc(out, ']');
}

static void add_count(struct ob_buf *out, uint64_t n, const char *what)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(n, text);
	ob_buf_addf(out, "  %s %s", text, what);
}

static void add_figures(const struct ob_replay_bar *bar, struct ob_buf *out)
{
	char text[OB_COUNT_SIZE], left[OB_WHEN_SIZE];

	ob_buf_addf(out, " %3u%%", ob_replay_percent(bar));
	add_count(out, bar->published, "sent");
	if (bar->dead)
		add_count(out, bar->dead, "dead");
	if (bar->waits)
		add_count(out, bar->waits, "waiting");
	ob_format_rate(bar->rate, text);
	ob_buf_addf(out, "  %s", text);
	if (bar->down)
		ob_buf_adds(out, "  the sink is away");
	else if (bar->left_us >= 0 && ob_replay_percent(bar) < 100) {
		ob_when_age(bar->left_us, left);
		ob_buf_addf(out, "  %s left", left);
	}
}

void ob_replay_bar_draw(const struct ob_replay_bar *bar, size_t width, bool ascii,
			struct ob_buf *out)
{
	struct ob_buf figures = OB_BUF_INIT(TEXT_BYTES);
	struct ob_buf line = OB_BUF_INIT((size_t)TEXT_BYTES * 4);
	struct ob_pen pen = { .out = out, .width = width, .ascii = ascii };

	add_figures(bar, &figures);
	size_t used = strlen(bar->name) + 3 + figures.len;
	size_t cells = used + CELLS_MIN < width ? width - used - 1 : 0;
	ob_buf_addf(&line, "%s ", bar->name);
	if (cells >= CELLS_MIN)
		add_cells(&line, ob_replay_percent(bar), cells < CELLS_MAX ? cells : CELLS_MAX,
			  ascii);
	ob_buf_add(&line, ob_buf_view(&figures));
	ob_pen_text(&pen, OB_INK_PLAIN, ob_buf_view(&line));
	ob_buf_done(&line);
	ob_buf_done(&figures);
}
