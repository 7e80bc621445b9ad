/* SPDX-License-Identifier: MIT */
/*
 * Structured log lines on stderr (or any fd): a constant message plus keys.
 *
 *   ob_log(&log, OB_LOG_WARN, "send failed, retrying",
 *          OB_KV("sink", "kafka"), OB_KI("attempt", 3));
 *
 * Formats: logfmt, json, and auto (logfmt with a <N> priority for the journal
 * when stderr is the journal's socket, plain logfmt else). Values are escaped:
 * a line is always one line of valid UTF-8. Only relay, monitor and cli log.
 */
#ifndef OB_BASE_LOG_H
#define OB_BASE_LOG_H

#include "base/buf.h"
#include "base/clock.h"

enum ob_log_level { OB_LOG_ERROR, OB_LOG_WARN, OB_LOG_INFO, OB_LOG_DEBUG };
enum ob_log_format { OB_LOG_AUTO, OB_LOG_LOGFMT, OB_LOG_JSON };

struct ob_log {
	int fd;
	enum ob_log_level level;
	enum ob_log_format format;
	const struct ob_clock *clock;
	/* Set: called instead of writing; `line` has no newline. For embedding and tests. */
	void (*hook)(void *arg, enum ob_log_level level, const char *line);
	void *hook_arg;
};

struct ob_log_kv {
	const char *key;
	struct ob_str text; /* cut after OB_LOG_VALUE_MAX bytes; absent: null */
	int64_t number;
	bool is_number; /* `number` counts, not `text` */
};

enum { OB_LOG_VALUE_MAX = 4096 };

#define OB_KV(k, v) ((struct ob_log_kv){ .key = (k), .text = ob_str(v) })
#define OB_KS(k, s) ((struct ob_log_kv){ .key = (k), .text = (s) })
#define OB_KI(k, n) ((struct ob_log_kv){ .key = (k), .number = (n), .is_number = true })

/* One write() per line; a failing write is ignored (the relay must not die of its log).
 * Thread-safe. */
void ob_log_write(const struct ob_log *log, enum ob_log_level level, const char *msg,
		  const struct ob_log_kv *kvs, size_t count);

/* Change the level while other threads write. */
void ob_log_set_level(struct ob_log *log, enum ob_log_level level);

#define ob_log(log, level, msg, ...) \
	ob_log_write((log), (level), (msg), (const struct ob_log_kv[]){ __VA_ARGS__ }, \
		     sizeof((const struct ob_log_kv[]){ __VA_ARGS__ }) / sizeof(struct ob_log_kv))

#endif
