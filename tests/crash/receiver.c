/* SPDX-License-Identifier: MIT */
/*
 * The receiver of the torture: a handler of the exec sink that appends what it takes to
 * events.ndjson, each line with the time, and is trouble otherwise: it refuses for a while, refuses
 * for good, takes its time, says nothing, and hangs up before and after it has taken a message.
 * While there is a file `calm` it behaves. Messages called Poison and Blocker it never takes; those
 * called Doomed, which an operator may discard at any time, go to doomed.ndjson.
 *
 *   receiver SEED REJECTS   REJECTS: 1 when it may refuse any message for good
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MILLE = 1000, LINE_MAX_BYTES = 4096 };

/* Of a thousand messages each. */
enum {
	REFUSE = 40,
	REJECT = 10,
	SLOW = 20,
	SLOW_MS = 60,
	VERY_SLOW = 2,
	VERY_SLOW_MS = 1600, /* longer than others wait for it */
	MUTE = 1,
	LEAVE_BEFORE = 2,
	LEAVE_AFTER = 2,
};

static uint64_t state;

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

/* So many of a thousand times, unless all shall be well. */
static bool strikes(unsigned mille)
{
	return below(MILLE) < mille && access("calm", F_OK) < 0;
}

static void append(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, size) != (ssize_t)size || close(fd) < 0)
		exit(4);
}

/* The line without its end, and the time it came at. */
static void take(const char *line, size_t size, bool doomed)
{
	char text[LINE_MAX_BYTES];
	struct timespec now;

	if (size < 2 || size + 64 > sizeof(text))
		exit(3);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	int n = snprintf(text, sizeof(text), "%.*s,\"received\":%lld}\n", (int)size - 2, line,
			 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	append(doomed ? "doomed.ndjson" : "events.ndjson", text, (size_t)n);
}

static void leave(void)
{
	append("left", ".", 1);
	exit(0);
}

static void answer(const char *word, const char *id)
{
	(void)printf("%s %.36s%s\n", word, id, strcmp(word, "ok") == 0 ? "" : " as it likes");
	if (fflush(stdout) != 0)
		exit(5);
}

static bool is_called(const char *line, const char *event)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "\"event_type\":\"%s\"", event);
	return strstr(line, text) != NULL;
}

/* The word for the message, or NULL for none. */
static const char *judge(const char *line, bool rejects)
{
	if (strikes(LEAVE_BEFORE))
		leave();
	if (strikes(VERY_SLOW))
		(void)poll(NULL, 0, VERY_SLOW_MS);
	else if (strikes(SLOW))
		(void)poll(NULL, 0, (int)below(SLOW_MS));
	if (is_called(line, "Poison") || is_called(line, "Blocker"))
		return "reject";
	if (strikes(REFUSE))
		return "retry";
	if (rejects && strikes(REJECT))
		return "reject";
	return strikes(MUTE) ? NULL : "ok";
}

int main(int argc, char **argv)
{
	static const char before_id[] = "{\"id\":\"";
	const size_t prefix = sizeof(before_id) - 1;
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	if (argc != 3)
		return 2;
	state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + (uint64_t)getpid() + 1;
	while ((n = getline(&line, &size, stdin)) > 0) {
		if ((size_t)n < prefix + 36 || memcmp(line, before_id, prefix) != 0)
			return 3;
		const char *word = judge(line, argv[2][0] == '1');
		if (!word)
			continue;
		if (strcmp(word, "ok") == 0)
			take(line, (size_t)n, is_called(line, "Doomed"));
		if (strcmp(word, "ok") == 0 && strikes(LEAVE_AFTER))
			leave();
		answer(word, line + prefix);
	}
	free(line);
	return 0;
}
