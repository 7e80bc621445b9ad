/* SPDX-License-Identifier: MIT */
/*
 * The terminal while the dashboard is on it: another screen, no cursor, no
 * wrapping, keys without Enter. All of it is undone on the way out, and when
 * somebody stops us with Ctrl-Z.
 */
#include "cli/work/work.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

enum { FRAME_BYTES = 2 << 20, WIDTH_MIN = 20, WIDTH_MAX = 500, HEIGHT_MAX = 500 };

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

bool ob_screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* The first of these that is set counts, as for the C library. */
bool ob_screen_speaks_utf8(void)
{
	const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

/* All of it, also when the terminal takes only a part; one that hangs is given up. */
static void put(const char *bytes, size_t n)
{
	while (n) {
		ssize_t w = write(STDOUT_FILENO, bytes, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0 && errno == EAGAIN) {
			struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };

			if (poll(&fd, 1, 1000) == 1)
				continue;
		}
		if (w <= 0)
			return;
		bytes += w;
		n -= (size_t)w;
	}
}

static void put_text(const char *text)
{
	put(text, strlen(text));
}

static void measure(struct ob_screen *screen)
{
	struct winsize size = { 0 };

	screen->style.width = 80;
	screen->style.height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		screen->style.width = size.ws_col;
		screen->style.height = size.ws_row;
	}
	if (screen->style.width < WIDTH_MIN)
		screen->style.width = WIDTH_MIN; /* the terminal cuts what is too long */
	if (screen->style.width > WIDTH_MAX)
		screen->style.width = WIDTH_MAX;
	if (screen->style.height > HEIGHT_MAX)
		screen->style.height = HEIGHT_MAX;
}

/* Ctrl-C and Ctrl-Z stay signals; other keys come one by one, unseen. */
static void enter(struct ob_screen *screen)
{
	struct termios raw = screen->saved;

	if (screen->has_keys) {
		raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	screen->is_raw = screen->has_keys;
	put_text("\033[?1049h\033[?25l\033[?7l\033[2J");
	measure(screen);
	ob_buf_clear(&screen->frame);
}

static void leave(const struct ob_screen *screen)
{
	if (screen->is_raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->saved);
	put_text("\033[0m\033[?7h\033[?25h\033[?1049l");
}

int ob_screen_open(struct ob_screen *screen, struct ob_err *err)
{
	sigset_t set, quiet;

	*screen = (struct ob_screen){ .signal_fd = -1, .frame = OB_BUF_INIT(FRAME_BYTES) };
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGTSTP);
	screen->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (screen->signal_fd < 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "opening a signalfd");
	quiet = set;
	/* Else putting the terminal back from the background would stop us. */
	(void)sigaddset(&quiet, SIGTTOU);
	(void)pthread_sigmask(SIG_BLOCK, &quiet, NULL);
	screen->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen->saved) == 0;
	screen->style.colour = !is_set("NO_COLOR");
	screen->style.ascii = !ob_screen_speaks_utf8();
	screen->open = true;
	enter(screen);
	return 0;
}

void ob_screen_close(struct ob_screen *screen)
{
	if (!screen->open)
		return;
	leave(screen);
	(void)close(screen->signal_fd);
	ob_buf_done(&screen->frame);
	screen->open = false;
}

/*
 * Every line is written over the one before, so nothing flickers. Its place is cleared
 * first: behind a line as wide as the screen the cursor still stands on the last character.
 */
void ob_screen_show(struct ob_screen *screen, struct ob_str frame)
{
	struct ob_buf out = OB_BUF_INIT(FRAME_BYTES);
	size_t lines = 1;

	if (ob_str_eq(frame, ob_buf_view(&screen->frame)))
		return;
	ob_buf_adds(&out, "\033[H\033[K");
	for (size_t i = 0; i < frame.n; i++) {
		if (frame.p[i] == '\n')
			ob_buf_adds(&out, "\r\n\033[K");
		else
			ob_buf_addc(&out, frame.p[i]);
		lines += frame.p[i] == '\n';
	}
	if (lines < screen->style.height)
		ob_buf_adds(&out, "\r\n\033[J");
	if (!out.failed)
		put(out.data, out.len);
	ob_buf_clear(&screen->frame);
	ob_buf_add(&screen->frame, frame);
	ob_buf_done(&out);
}

static void suspend(struct ob_screen *screen)
{
	leave(screen);
	(void)kill(getpid(), SIGSTOP);
	/* ... until somebody says fg */
	if (screen->has_keys)
		(void)tcgetattr(STDIN_FILENO, &screen->saved);
	enter(screen);
}

/* What a key sends, and what it asks for. */
static const struct {
	const char *sent;
	unsigned event;
	int lines, pages; /* to go down */
} bindings[] = {
	{ "\033[A", OB_SCREEN_SCROLL, -1, 0 },  { "\033[B", OB_SCREEN_SCROLL, 1, 0 },
	{ "\033OA", OB_SCREEN_SCROLL, -1, 0 },  { "\033OB", OB_SCREEN_SCROLL, 1, 0 },
	{ "\033[5~", OB_SCREEN_SCROLL, 0, -1 }, { "\033[6~", OB_SCREEN_SCROLL, 0, 1 },
	{ "k", OB_SCREEN_SCROLL, -1, 0 },       { "j", OB_SCREEN_SCROLL, 1, 0 },
	{ "p", OB_SCREEN_PAUSE, 0, 0 },         { " ", OB_SCREEN_PAUSE, 0, 0 },
	{ "s", OB_SCREEN_SORT, 0, 0 },          { "?", OB_SCREEN_HELP, 0, 0 },
	{ "h", OB_SCREEN_HELP, 0, 0 },          { "q", OB_SCREEN_QUIT, 0, 0 },
	{ "\f", OB_SCREEN_REDRAW, 0, 0 }, /* Ctrl-L: something else wrote on the screen */
};

unsigned ob_screen_keys(const char *keys, size_t n, int page, int *scroll)
{
	unsigned events = 0;

	for (size_t i = 0, step; i < n; i += step) {
		step = 1;
		for (size_t b = 0; b < sizeof(bindings) / sizeof(bindings[0]); b++) {
			size_t size = strlen(bindings[b].sent);

			if (size <= n - i && memcmp(bindings[b].sent, keys + i, size) == 0) {
				events |= bindings[b].event;
				*scroll += bindings[b].lines + bindings[b].pages * page;
				step = size;
				break;
			}
		}
	}
	return events;
}

unsigned ob_screen_read(struct ob_screen *screen)
{
	struct signalfd_siginfo info;
	unsigned events = 0;
	char keys[64];

	screen->scroll = 0;

	while (read(screen->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			suspend(screen);
		measure(screen);
		ob_buf_clear(&screen->frame);
		put_text("\033[2J");
		events |= OB_SCREEN_REDRAW;
	}
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	if (!screen->has_keys || poll(&fd, 1, 0) != 1)
		return events;
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
	if (n <= 0)
		screen->has_keys = n < 0 && (errno == EINTR || errno == EAGAIN);
	events |= ob_screen_keys(keys, n > 0 ? (size_t)n : 0, (int)screen->style.height / 2,
				 &screen->scroll);
	if (events & OB_SCREEN_REDRAW)
		ob_buf_clear(&screen->frame);
	return events;
}

/* ---- log lines that wait ------------------------------------------------------ */

enum { HELD_LINES = 20 };

struct ob_held_log {
	pthread_mutex_t lock; /* guards the lines */
	char *lines[HELD_LINES];
	size_t next, count;
};

int ob_held_log_new(struct ob_held_log **ret_held, struct ob_err *err)
{
	struct ob_held_log *held = calloc(1, sizeof(*held));

	if (!held)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	(void)pthread_mutex_init(&held->lock, NULL);
	*ret_held = held;
	return 0;
}

/* The newest lines that somebody should read; the dashboard shows the rest. */
void ob_held_log_hook(void *held_log, enum ob_log_level level, const char *line)
{
	struct ob_held_log *held = held_log;

	if (level > OB_LOG_WARN)
		return;
	(void)pthread_mutex_lock(&held->lock);
	free(held->lines[held->next]);
	held->lines[held->next] = strdup(line);
	held->next = (held->next + 1) % HELD_LINES;
	held->count += held->count < HELD_LINES;
	(void)pthread_mutex_unlock(&held->lock);
}

void ob_held_log_flush(struct ob_held_log *held)
{
	(void)pthread_mutex_lock(&held->lock);
	for (size_t i = 0; i < held->count; i++) {
		size_t at = (held->next + HELD_LINES - held->count + i) % HELD_LINES;

		if (held->lines[at])
			(void)fprintf(stderr, "%s\n", held->lines[at]);
	}
	held->count = 0;
	(void)pthread_mutex_unlock(&held->lock);
}

void ob_held_log_free(struct ob_held_log *held)
{
	if (!held)
		return;
	for (size_t i = 0; i < HELD_LINES; i++)
		free(held->lines[i]);
	(void)pthread_mutex_destroy(&held->lock);
	free(held);
}
