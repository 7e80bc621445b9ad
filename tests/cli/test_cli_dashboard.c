/* SPDX-License-Identifier: MIT */
/* The dashboard of outbox work on a pseudo-terminal, as a user's terminal sees it. */
#include "background.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

static struct background worker;

static void finish(void)
{
	kill_now(&worker);
	end();
}

static char screen[1 << 20];

/* Read what the terminal gets until `text` is in it. */
static size_t read_until(int fd, size_t have, const char *text, int ms)
{
	int64_t end = now_ms() + ms;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (memmem(screen, have, text, strlen(text)))
			return have;
		ck_assert_msg(now_ms() < end, "no '%s' on the screen: ...%s", text,
			      have > 1500 ? screen + have - 1500 : screen);
		if (poll(&p, 1, 50) != 1)
			continue;
		ssize_t n = read(fd, screen + have, sizeof(screen) - have);
		if (n <= 0)
			return have;
		have += (size_t)n;
	}
}

/* Columns of the widest line between two cursor movements. */
static size_t widest_line(size_t have)
{
	size_t widest = 0, column = 0;

	for (size_t i = 0; i < have; i++) {
		uint8_t c = (uint8_t)screen[i];

		if (c == 0x1b) {
			i += 2;
			while (i < have && !((screen[i] >= 'A' && screen[i] <= 'Z') ||
					     (screen[i] >= 'a' && screen[i] <= 'z')))
				i++;
			if (screen[i] == 'H')
				column = 0;
		} else if (c == '\r' || c == '\n') {
			column = 0;
		} else if ((c & 0xC0) != 0x80) {
			column++;
			widest = column > widest ? column : widest;
		}
	}
	return widest;
}

static void check_dashboard(int columns, int lines, const char *key)
{
	struct termios during, after;

	start_on_pty(&worker, columns, lines, "work", "--interval-ms", "100", NULL);
	size_t have = read_until(worker.pty, 0, "default", LONG_MS);
	ck_assert_ptr_nonnull(memmem(screen, have, "\033[?1049h", 8));
	push(5, "default");
	have = read_until(worker.pty, have, "published\033[0m \033[1m5", LONG_MS);
	ck_assert_int_eq(tcgetattr(worker.pty, &during), 0);
	ck_assert_uint_eq(during.c_lflag & (ICANON | ECHO), 0);
	if (key)
		ck_assert_int_eq(write(worker.pty, key, 1), 1);
	else
		ck_assert_int_eq(kill(worker.pid, SIGTERM), 0);
	have = read_until(worker.pty, have, "\033[?1049l", LONG_MS);
	ck_assert_uint_le(widest_line(have), (size_t)columns);
	/* the cursor is back, and wrapping, and the keys */
	ck_assert_ptr_nonnull(memmem(screen, have, "\033[?25h", 6));
	ck_assert_ptr_nonnull(memmem(screen, have, "\033[?7h", 5));

	int pty = dup(worker.pty); /* the end closes it */
	ck_assert_int_ge(pty, 0);
	ck_assert_int_eq(wait_end(&worker, LONG_MS), 0);
	ck_assert_int_eq(tcgetattr(pty, &after), 0);
	ck_assert_uint_eq(after.c_lflag & (ICANON | ECHO), ICANON | ECHO);
	(void)close(pty);
}

OB_TEST(the_dashboard_follows_the_size_of_the_terminal)
{
	struct winsize small = { .ws_col = 45, .ws_row = 20 };

	(void)setenv("TERM", "xterm", 1);
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	prepare(file_config);
	/* an hour between frames: only the signal can make another */
	start_on_pty(&worker, 100, 30, "work", "--interval-ms", "3600000", NULL);
	size_t have = read_until(worker.pty, 0, "ends after what is in flight", LONG_MS);
	ck_assert_int_eq(ioctl(worker.pty, TIOCSWINSZ, &small), 0);
	(void)read_until(worker.pty, have, "ends, again", LONG_MS);
	stop(&worker, 0);
	finish();
}
OB_TEST_END

OB_TEST(the_dashboard_gives_the_screen_back)
{
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	prepare(file_config);
	check_dashboard(80, 24, "q");
	check_dashboard(40, 30, NULL);
	check_dashboard(160, 50, "\x03"); /* Ctrl-C */
	finish();
}
OB_TEST_END

OB_TEST(top_shows_a_relay_that_runs_elsewhere)
{
	struct background relay = { 0 };

	(void)setenv("TERM", "xterm", 1);
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	prepare(file_config);
	start(&relay, "work", "--silent", NULL);
	push(3, "default");
	start_on_pty(&worker, 100, 30, "top", "--interval", "200ms", NULL);
	size_t have = read_until(worker.pty, 0, "outbox top", LONG_MS);
	/* Its sink, counters and worker come with the heartbeat. */
	have = read_until(worker.pty, have, "published\033[0m \033[1m3", LONG_MS);
	have = read_until(worker.pty, have, "holds", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "q", 1), 1);
	have = read_until(worker.pty, have, "\033[?1049l", LONG_MS);
	ck_assert_uint_le(widest_line(have), 100);
	ck_assert_int_eq(wait_end(&worker, LONG_MS), 0);
	stop(&relay, 0);
	finish();
}
OB_TEST_END

OB_TEST(top_needs_a_terminal)
{
	prepare(file_config);
	expect(2, "",
	       "outbox: top: it draws on a terminal, and standard output is none; 'outbox status' "
	       "prints the same once\n",
	       "top", NULL);
	finish();
}
OB_TEST_END

OB_TEST(no_colour_and_dumb_terminals_are_respected)
{
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("LC_ALL", "C", 1);
	(void)setenv("NO_COLOR", "1", 1);
	prepare(file_config);
	start_on_pty(&worker, 80, 24, "work", NULL);
	size_t have = read_until(worker.pty, 0, "ends after", LONG_MS);
	for (size_t i = 0; i < have; i++)
		ck_assert_msg((uint8_t)screen[i] < 0x80, "not ASCII: %.*s", (int)have, screen);
	ck_assert_ptr_null(memmem(screen, have, "\033[1m", 4));
	stop(&worker, 0);
	(void)setenv("TERM", "dumb", 1);
	start_on_pty(&worker, 80, 24, "work", NULL);
	have = read_until(worker.pty, 0, "relay started", LONG_MS);
	ck_assert_ptr_null(memchr(screen, '\033', have));
	stop(&worker, 0);
	finish();
}
OB_TEST_END

OB_TEST(a_fatal_end_gives_the_screen_back_and_says_why)
{
	(void)setenv("TERM", "xterm", 1);
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: d/out.ndjson } }\n");
	ck_assert_int_eq(mkdir(path_of("d"), 0700), 0);
	start_on_pty(&worker, 80, 24, "work", "--interval-ms", "100", NULL);
	size_t have = read_until(worker.pty, 0, "default", LONG_MS);
	(void)unlink(path_of("d/out.ndjson"));
	ck_assert_int_eq(rmdir(path_of("d")), 0);
	push(1, "default");
	have = read_until(worker.pty, have, "\033[?1049l", LONG_MS);
	(void)read_until(worker.pty, have, "relay failed and has ended", LONG_MS);
	ck_assert_int_eq(wait_end(&worker, LONG_MS), 1);
	finish();
}
OB_TEST_END

OB_TEST(keys_scroll_sort_pause_and_help_and_a_summary_stays)
{
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("NO_COLOR", "1", 1);
	prepare(file_config);
	push(3, "default");
	start_on_pty(&worker, 80, 24, "work", "--interval-ms", "100", NULL);
	size_t have = read_until(worker.pty, 0, "published 3", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "?", 1), 1);
	have = read_until(worker.pty, have, "stop the picture", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "?s", 2), 2);
	have = read_until(worker.pty, have, "by name", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "p", 1), 1);
	have = read_until(worker.pty, have, "paused", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "q", 1), 1);
	have = read_until(worker.pty, have, "\033[?1049l", LONG_MS);
	(void)read_until(worker.pty, have, "default: 3 published, 0 failed, 0 dead", LONG_MS);
	ck_assert_int_eq(wait_end(&worker, LONG_MS), 0);
	finish();
}
OB_TEST_END

OB_TEST(once_shows_how_far_it_is)
{
	(void)setenv("TERM", "xterm", 1);
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: exec, command: 'sleep 100' } }\n");
	push(1, "default");
	start_on_pty(&worker, 80, 24, "work", "--once", NULL);
	(void)read_until(worker.pty, 0, "default: 0 published, 1 in flight", LONG_MS);
	finish();
}
OB_TEST_END

OB_TEST(every_key_scrolls_by_one)
{
	(void)setenv("TERM", "xterm", 1);
	(void)setenv("NO_COLOR", "1", 1);
	prepare("stores: { main: { url: 'sqlite:x.db' } }\n"
		"sinks: { out: { type: file, path: out.ndjson } }\n"
		"relays: [ { name: a }, { name: b }, { name: c }, { name: d }, { name: e } ]\n");
	start_on_pty(&worker, 80, 8, "work", "--interval-ms", "100", NULL);
	size_t have = read_until(worker.pty, 0, "1 to 3 of 5 relays", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "j\033[B", 4), 4);
	have = read_until(worker.pty, have, "3 to 5 of 5 relays", LONG_MS);
	ck_assert_int_eq(write(worker.pty, "k", 1), 1);
	(void)read_until(worker.pty, have, "2 to 4 of 5 relays", LONG_MS);
	stop(&worker, 0);
	finish();
}
OB_TEST_END

OB_SUITE("cli_dashboard", the_dashboard_follows_the_size_of_the_terminal,
	 the_dashboard_gives_the_screen_back, top_shows_a_relay_that_runs_elsewhere,
	 top_needs_a_terminal, no_colour_and_dumb_terminals_are_respected,
	 a_fatal_end_gives_the_screen_back_and_says_why,
	 keys_scroll_sort_pause_and_help_and_a_summary_stays, once_shows_how_far_it_is,
	 every_key_scrolls_by_one)
