/* SPDX-License-Identifier: MIT */
/* How outbox consume is: for the service manager, and as a line on a terminal. */
#include "cli/consumers/status.h"

#include "base/clock.h"
#include "base/when.h"
#include "cli/out/grid.h"
#include "cli/out/pen.h"
#include "relay/sdnotify.h"

#include <stdio.h>
#include <unistd.h>

enum { SECOND_US = 1000000, COLUMNS = 80 };

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

void ob_consume_status_begin(struct ob_consume_status *s, bool draw)
{
	*s = (struct ob_consume_status){ .watchdog_us = ob_sd_watchdog_us() / 3,
					 .draws = draw && isatty(STDOUT_FILENO) };
	s->listens = ob_sd_notify("READY=1");
}

static void add_count(struct ob_buf *out, const char *before, uint64_t count, const char *unit)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(count, text);
	ob_buf_addf(out, "%s%s%s", before, text, unit);
}

void ob_consume_status_text(const struct ob_consume_status *s, const struct ob_consume_metrics *m,
			    bool stopping, struct ob_buf *out)
{
	char age[OB_WHEN_SIZE];

	if (stopping)
		ob_buf_adds(out, "stopping, ");
	if (!m->owner)
		ob_buf_adds(out, "standing by, ");
	add_count(out, "", (uint64_t)(ob_rate_now(&s->rate) + 0.5), "/s");
	add_count(out, ", ", m->handled, " handled");
	if (m->lag >= 0)
		add_count(out, ", ", (uint64_t)m->lag, " wait");
	if (m->lag > 0 && m->oldest_us >= 0) {
		ob_when_age(m->oldest_us, age);
		ob_buf_addf(out, " since %s", age);
	}
	if (m->parked_now)
		add_count(out, ", ", m->parked_now, " parked");
	if (m->dead_now)
		add_count(out, ", ", m->dead_now, " dead");
	if (m->full)
		ob_buf_adds(out, ", full");
	if (!m->store_up)
		ob_buf_adds(out, ", store away");
	if (m->source.since_us && !m->source.up)
		ob_buf_adds(out, ", source down");
	if (m->alarm)
		ob_buf_adds(out, ", most keys fail");
	else if (m->handler.since_us && !m->handler.up)
		ob_buf_adds(out, ", handler down");
}

/* The cursor stays at its beginning: a line of the log is written over it. */
static void draw(const char *name, const char *text)
{
	size_t width = ob_terminal_width(), used = strlen(name) + 3;

	if (width == 0)
		width = COLUMNS; /* it does not say */
	printf("\033[K%s: %.*s\r", name, width > used ? (int)(width - used) : 0, text);
	(void)fflush(stdout);
}

void ob_consume_status_alive(struct ob_consume_status *s)
{
	int64_t now = now_us();

	if (!s->watchdog_us || now < s->alive_us)
		return;
	s->alive_us = now + s->watchdog_us;
	(void)ob_sd_notify("WATCHDOG=1");
}

void ob_consume_status_tick(struct ob_consume_status *s, const char *name,
			    const struct ob_consume_metrics *m, bool stopping)
{
	struct ob_buf line = OB_BUF_INIT(sizeof(s->said) - 1);
	int64_t now = now_us();

	ob_consume_status_alive(s);
	if ((!s->listens && !s->draws) || now < s->next_us)
		return;
	s->next_us = now + SECOND_US;
	ob_rate_note(&s->rate, m->handled, now);
	ob_buf_adds(&line, "STATUS=");
	ob_consume_status_text(s, m, stopping, &line);
	if (s->draws)
		draw(name, ob_buf_str(&line) + strlen("STATUS="));
	if (s->listens && !line.failed && strcmp(ob_buf_str(&line), s->said) != 0) {
		(void)snprintf(s->said, sizeof(s->said), "%s", ob_buf_str(&line));
		(void)ob_sd_notify(s->said);
	}
	if (s->listens && stopping)
		(void)ob_sd_more_time();
	ob_buf_done(&line);
}

void ob_consume_status_end(struct ob_consume_status *s)
{
	if (s->draws) {
		printf("\033[K");
		(void)fflush(stdout);
	}
	s->draws = false;
}
