/* SPDX-License-Identifier: MIT */
/* Making log lines. All values pass through the JSON string writer, which keeps a line a line. */
#include "base/log.h"

#include "base/json.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 * 1024 };

static const struct {
	const char *name;
	int priority; /* of syslog, as the journal wants it */
} levels[] = {
	[OB_LOG_ERROR] = { "error", 3 },
	[OB_LOG_WARN] = { "warn", 4 },
	[OB_LOG_INFO] = { "info", 6 },
	[OB_LOG_DEBUG] = { "debug", 7 },
};

/* The service manager names the journal's socket by device and inode; is it this fd? */
static bool is_journal(int fd)
{
	const char *text = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!text || fstat(fd, &st) < 0)
		return false;
	(void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(own, text) == 0;
}

static void add_time(struct ob_buf *b, int64_t real_us)
{
	time_t seconds = (time_t)(real_us / 1000000);
	struct tm tm;
	char text[64];

	if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		text[0] = '\0';
	ob_buf_addf(b, "%s.%03dZ", text, (int)(real_us / 1000 % 1000));
}

/* At most OB_LOG_VALUE_MAX bytes, not cutting a character. */
static struct ob_str cut(struct ob_str s)
{
	if (s.n <= OB_LOG_VALUE_MAX)
		return s;
	size_t n = OB_LOG_VALUE_MAX;
	while (n > OB_LOG_VALUE_MAX - 4 && ((uint8_t)s.p[n] & 0xC0) == 0x80)
		n--;
	return (struct ob_str){ s.p, n };
}

/* May the text stand in logfmt without quotes? */
static bool is_bare(struct ob_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if (c <= ' ' || c >= 0x7F || c == '"' || c == '=' || c == '\\')
			return false;
	}
	return s.n > 0;
}

static void add_text(struct ob_buf *b, bool json, struct ob_str text)
{
	text = cut(text);
	if (text.p && !json && is_bare(text) && !ob_str_eq(text, OB_STR("null")))
		ob_buf_add(b, text);
	else
		ob_json_add_string(b, text);
}

static void add_key(struct ob_buf *b, bool json, const char *key)
{
	if (json) {
		ob_buf_addc(b, ',');
		ob_json_add_string(b, ob_str(key));
		ob_buf_addc(b, ':');
	} else {
		ob_buf_addf(b, " %s=", key);
	}
}

static void add_kvs(struct ob_buf *b, bool json, const struct ob_log_kv *kvs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add_key(b, json, kvs[i].key);
		if (kvs[i].is_number)
			ob_buf_addf(b, "%" PRId64, kvs[i].number);
		else
			add_text(b, json, kvs[i].text);
	}
}

static void make_line(struct ob_buf *b, const struct ob_log *log, enum ob_log_level level,
		      const char *msg, const struct ob_log_kv *kvs, size_t count)
{
	bool json = log->format == OB_LOG_JSON;

	ob_buf_clear(b);
	if (!log->hook && log->format == OB_LOG_AUTO && is_journal(log->fd))
		ob_buf_addf(b, "<%d>", levels[level].priority);
	ob_buf_adds(b, json ? "{\"time\":\"" : "time=");
	add_time(b, ob_clock_real_us(log->clock));
	ob_buf_adds(b, json ? "\"" : "");
	add_key(b, json, "level");
	add_text(b, json, ob_str(levels[level].name));
	add_key(b, json, "msg");
	ob_json_add_string(b, cut(ob_str(msg)));
	add_kvs(b, json, kvs, count);
	ob_buf_adds(b, json ? "}" : "");
	ob_buf_adds(b, log->hook ? "" : "\n");
}

void ob_log_set_level(struct ob_log *log, enum ob_log_level level)
{
	__atomic_store_n(&log->level, level, __ATOMIC_RELAXED);
}

void ob_log_write(const struct ob_log *log, enum ob_log_level level, const char *msg,
		  const struct ob_log_kv *kvs, size_t count)
{
	struct ob_buf b = OB_BUF_INIT(LINE_MAX_BYTES);

	if (level > __atomic_load_n(&log->level, __ATOMIC_RELAXED))
		return;
	make_line(&b, log, level, msg, kvs, count);
	if (b.failed) /* too long: the message alone is better than silence */
		make_line(&b, log, level, msg, &OB_KI("keys_dropped", (int64_t)count), 1);
	if (!b.failed && log->hook) {
		log->hook(log->hook_arg, level, ob_buf_str(&b));
	} else if (!b.failed) {
		ssize_t n = write(log->fd, b.data, b.len);
		(void)n; /* there is no other place to complain */
	}
	ob_buf_done(&b);
}
