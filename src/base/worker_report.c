/* SPDX-License-Identifier: MIT */
/* The state of a worker as JSON, and back. Whoever may write the table may have written it. */
#include "base/worker_report.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/report_field.h"
#include "base/utf8.h"

#include <string.h>

enum { DECODE_MAX = 64 * 1024 };

void ob_worker_text(char *out, size_t size, struct ob_str text)
{
	static const char dots[] = "\xe2\x80\xa6";
	OB_CLEANUP(ob_buf_done) struct ob_buf clean = OB_BUF_INIT(DECODE_MAX);

	ob_utf8_sanitize(&clean, text, size);
	const char *from = ob_buf_str(&clean);
	size_t n = strlen(from);

	if (n < size) {
		memcpy(out, from, n + 1);
		return;
	}
	n = size - sizeof(dots);
	while (n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80)
		n--;
	/* The dots end it. NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(out, from, n);
	memcpy(out + n, dots, sizeof(dots));
}

/* ---- writing --------------------------------------------------------- */

/* A text that is safe as it is: it came from the functions above, or is our own. */
static void write_text(struct ob_jout *j, const char *key, const char *text)
{
	if (*text)
		ob_jout_text(j, key, ob_str(text));
}

static void write_number(struct ob_jout *j, const char *key, int64_t number)
{
	if (number)
		ob_jout_int(j, key, number);
}

static void write_error(struct ob_jout *j, const char *key, const struct ob_worker_error *error)
{
	if (!error->at_us)
		return;
	ob_jout_begin(j, key, '{');
	ob_jout_int(j, "at_us", error->at_us);
	ob_jout_int(j, "times", error->times);
	write_text(j, "kind", error->kind);
	write_text(j, "text", error->text);
	ob_jout_end(j, '}');
}

static void write_retention(struct ob_jout *j, const struct ob_worker_report *s)
{
	if (!s->retained_us)
		return;
	ob_jout_begin(j, "retention", '{');
	ob_jout_int(j, "at_us", s->retained_us);
	ob_jout_int(j, "rows", (int64_t)s->retained_rows);
	ob_jout_int(j, "partitions", (int64_t)s->retained_parts);
	write_text(j, "held_by", s->retained_held);
	ob_jout_end(j, '}');
}

void ob_worker_report_write(const struct ob_worker_report *s, struct ob_buf *out)
{
	struct ob_jout j = { .b = OB_BUF_INIT(OB_WORKER_REPORT_BYTES) };

	ob_jout_begin(&j, NULL, '{');
	write_text(&j, "version", s->version);
	ob_jout_begin(&j, "sink", '{');
	write_text(&j, "type", s->sink_type);
	write_text(&j, "name", s->sink_name);
	write_text(&j, "text", s->sink_text);
	ob_jout_end(&j, '}');
	ob_jout_begin(&j, "breaker", '{');
	write_text(&j, "state", s->breaker);
	write_number(&j, "alarm", s->alarm);
	write_number(&j, "since_us", s->breaker_since_us);
	write_number(&j, "probe_us", s->probe_us);
	write_text(&j, "why", s->breaker_why);
	ob_jout_end(&j, '}');
	write_error(&j, "sink_error", &s->sink_error);
	write_error(&j, "store_error", &s->store_error);
	ob_field_write_rate(&j, "rate", s->rate);
	write_number(&j, "in_flight", (int64_t)s->in_flight);
	write_number(&j, "queued", (int64_t)s->queued);
	write_number(&j, "unsettled", (int64_t)s->unsettled);
	write_text(&j, "waits", s->waits);
	write_retention(&j, s);
	ob_jout_end(&j, '}');
	/* Quotes double a text: if it does not fit, better nothing than a heartbeat refused. */
	if (!j.b.failed)
		ob_buf_add(out, ob_buf_view(&j.b));
	ob_jout_done(&j);
}

/* ---- reading --------------------------------------------------------- */

static bool is_object(struct ob_str value)
{
	return value.n > 1 && value.p[0] == '{';
}

#define TEXT(name, to) \
	if (ob_field_is(&m, name)) \
	ob_field_read_text(to, sizeof(to), m.value)
#define NUMBER(name, to) \
	if (ob_field_is(&m, name)) \
	to = (__typeof__(to))ob_field_read_number(m.value)

static void read_error(struct ob_worker_error *error, struct ob_str object)
{
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	ob_json_begin(&cursor, object);
	while (ob_json_next(&cursor, &m)) {
		NUMBER("at_us", error->at_us);
		NUMBER("times", error->times);
		TEXT("kind", error->kind);
		TEXT("text", error->text);
	}
}

static void read_sink(struct ob_worker_report *s, struct ob_str object)
{
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	ob_json_begin(&cursor, object);
	while (ob_json_next(&cursor, &m)) {
		TEXT("type", s->sink_type);
		TEXT("name", s->sink_name);
		TEXT("text", s->sink_text);
	}
}

static void read_breaker(struct ob_worker_report *s, struct ob_str object)
{
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	ob_json_begin(&cursor, object);
	while (ob_json_next(&cursor, &m)) {
		TEXT("state", s->breaker);
		TEXT("why", s->breaker_why);
		NUMBER("since_us", s->breaker_since_us);
		NUMBER("probe_us", s->probe_us);
		if (ob_field_is(&m, "alarm"))
			s->alarm = ob_field_read_number(m.value) != 0;
	}
}

static void read_retention(struct ob_worker_report *s, struct ob_str object)
{
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	ob_json_begin(&cursor, object);
	while (ob_json_next(&cursor, &m)) {
		NUMBER("at_us", s->retained_us);
		NUMBER("rows", s->retained_rows);
		NUMBER("partitions", s->retained_parts);
		TEXT("held_by", s->retained_held);
	}
}

static void read_member(struct ob_worker_report *s, struct ob_json_member m)
{
	TEXT("version", s->version);
	NUMBER("in_flight", s->in_flight);
	NUMBER("queued", s->queued);
	NUMBER("unsettled", s->unsettled);
	TEXT("waits", s->waits);
	if (ob_field_is(&m, "rate"))
		s->rate = ob_field_read_rate(m.value);
	if (!is_object(m.value))
		return;
	if (ob_field_is(&m, "sink"))
		read_sink(s, m.value);
	if (ob_field_is(&m, "breaker"))
		read_breaker(s, m.value);
	if (ob_field_is(&m, "sink_error"))
		read_error(&s->sink_error, m.value);
	if (ob_field_is(&m, "store_error"))
		read_error(&s->store_error, m.value);
	if (ob_field_is(&m, "retention"))
		read_retention(s, m.value);
}

bool ob_worker_report_read(struct ob_worker_report *ret, struct ob_str text)
{
	struct ob_json_cursor cursor;
	struct ob_json_member m;

	*ret = (struct ob_worker_report){ 0 };
	if (!text.p || text.n > OB_WORKER_REPORT_BYTES || !ob_json_valid_object(text, NULL))
		return false;
	ob_json_begin(&cursor, text);
	while (ob_json_next(&cursor, &m))
		read_member(ret, m);
	return true;
}

bool ob_worker_report_is_down(const struct ob_worker_report *state)
{
	return state->breaker[0] && strcmp(state->breaker, "closed") != 0;
}

/* ---- for programs ---------------------------------------------------- */

static struct ob_str text_or_null(const char *text)
{
	return *text ? ob_str(text) : OB_STR_NULL;
}

static void error_json(struct ob_jout *j, const char *key, const struct ob_worker_error *error)
{
	if (!error->at_us) {
		ob_jout_raw(j, key, OB_STR("null"));
		return;
	}
	ob_jout_begin(j, key, '{');
	ob_jout_when(j, "at", error->at_us);
	ob_jout_int(j, "times", error->times);
	ob_jout_text(j, "kind", ob_str(error->kind));
	ob_jout_text(j, "text", ob_str(error->text));
	ob_jout_end(j, '}');
}

void ob_worker_report_json(struct ob_jout *j, const struct ob_worker_report *s, bool known)
{
	char rate[32];

	if (!known) {
		ob_jout_raw(j, "state", OB_STR("null"));
		return;
	}
	(void)snprintf(rate, sizeof(rate), "%.1f", s->rate);
	ob_jout_begin(j, "state", '{');
	ob_jout_text(j, "version", text_or_null(s->version));
	ob_jout_text(j, "sink_type", text_or_null(s->sink_type));
	ob_jout_text(j, "sink_name", text_or_null(s->sink_name));
	ob_jout_text(j, "sink", text_or_null(s->sink_text));
	ob_jout_text(j, "breaker", text_or_null(s->breaker));
	ob_jout_bool(j, "alarm", s->alarm);
	ob_jout_when(j, "breaker_since", s->breaker_since_us);
	ob_jout_text(j, "breaker_why", text_or_null(s->breaker_why));
	ob_jout_when(j, "next_probe", s->probe_us);
	error_json(j, "sink_error", &s->sink_error);
	error_json(j, "store_error", &s->store_error);
	ob_jout_raw(j, "rate", ob_str(rate));
	ob_jout_int(j, "in_flight", (int64_t)s->in_flight);
	ob_jout_int(j, "queued", (int64_t)s->queued);
	ob_jout_int(j, "unsettled", (int64_t)s->unsettled);
	ob_jout_when(j, "retained_at", s->retained_us);
	ob_jout_int(j, "retained_rows", (int64_t)s->retained_rows);
	ob_jout_int(j, "retained_partitions", (int64_t)s->retained_parts);
	ob_jout_text(j, "retained_held_by", text_or_null(s->retained_held));
	ob_jout_end(j, '}');
}
