/* SPDX-License-Identifier: MIT */
/* Payloads come from anywhere: nothing of them reaches a terminal unchecked. */
#include "cli/out/message.h"

#include "base/json.h"
#include "base/utf8.h"
#include "base/when.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* More than this of a payload is not for eyes. */
enum { SHOWN_BYTES = 64 << 10, LINE_CHARS = 4096 };

static void print_text(const char *name, struct ob_str text)
{
	struct ob_buf safe = OB_BUF_INIT((size_t)LINE_CHARS * 4);

	if (text.p) {
		ob_utf8_sanitize(&safe, text, LINE_CHARS);
		printf("%-16s %s\n", name, ob_buf_str(&safe));
	}
	ob_buf_done(&safe);
}

static void print_when(const char *name, int64_t us, int64_t now_us)
{
	char iso[OB_WHEN_SIZE], age[OB_WHEN_SIZE];

	if (!us)
		return;
	ob_when_iso(us, iso);
	ob_when_age(us > now_us ? us - now_us : now_us - us, age);
	printf("%-16s %s  (%s%s%s)\n", name, iso, us > now_us ? "in " : "", age,
	       us > now_us ? "" : " ago");
}

/* Line by line, so that the line breaks of a pretty-printed document survive. */
static void print_lines(struct ob_str text)
{
	while (text.n) {
		const char *nl = memchr(text.p, '\n', text.n);
		size_t n = nl ? (size_t)(nl - text.p) : text.n;
		struct ob_buf safe = OB_BUF_INIT((size_t)SHOWN_BYTES * 4);

		ob_utf8_sanitize(&safe, (struct ob_str){ text.p, n }, SHOWN_BYTES);
		printf("  %s\n", ob_buf_str(&safe));
		ob_buf_done(&safe);
		n += nl ? 1 : 0;
		text.p += n;
		text.n -= n;
	}
}

/* The string that begins at json.p[i], copied; returns where it ends. */
static size_t copy_string(struct ob_buf *out, struct ob_str json, size_t i)
{
	size_t start = i++;

	while (i < json.n && json.p[i] != '"')
		i += json.p[i] == '\\' ? 2 : 1;
	ob_buf_add(out, (struct ob_str){ json.p + start, i - start + 1 });
	return i;
}

/*
 * Lay a valid document out for reading. A parser would change numbers it cannot
 * hold, so the text itself is kept and only the space between values is made.
 */
static void indent_json(struct ob_buf *out, struct ob_str json)
{
	int depth = 0;
	char last = 0; /* the character before, without space */

	for (size_t i = 0; i < json.n && !out->failed; i++) {
		char c = json.p[i];
		bool closes = c == '}' || c == ']', opened = last == '{' || last == '[';

		if (isspace((unsigned char)c))
			continue;
		depth -= closes;
		if (closes != opened || last == ',')
			ob_buf_addf(out, "%s%*s", last ? "\n" : "", depth * 2, "");
		if (c == '"')
			i = copy_string(out, json, i);
		else
			ob_buf_addc(out, c);
		if (c == ':')
			ob_buf_addc(out, ' ');
		depth += c == '{' || c == '[';
		last = c;
	}
}

static void print_body(const char *name, struct ob_str bytes)
{
	struct ob_buf pretty = OB_BUF_INIT((size_t)SHOWN_BYTES * 64);

	if (!bytes.p)
		return;
	printf("%s (%zu bytes)\n", name, bytes.n);
	struct ob_str shown = { bytes.p, bytes.n < SHOWN_BYTES ? bytes.n : SHOWN_BYTES };
	if (shown.n == bytes.n && ob_json_valid(bytes, NULL)) {
		indent_json(&pretty, bytes);
		if (!pretty.failed)
			shown = ob_buf_view(&pretty);
	}
	print_lines(shown);
	if (bytes.n > SHOWN_BYTES)
		printf("  ... %zu bytes more; --json prints all\n", bytes.n - SHOWN_BYTES);
	ob_buf_done(&pretty);
}

static void print_int(const char *name, int64_t value)
{
	printf("%-16s %" PRId64 "\n", name, value);
}

void ob_message_print(const struct ob_message *m, int64_t now_us)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	print_text("id", ob_str(id));
	print_int("seq", m->seq);
	print_text("target", m->target);
	print_text("aggregate_type", m->aggregate_type);
	print_text("aggregate_id", m->aggregate_id);
	print_text("event_type", m->event_type);
	print_int("revision", m->revision);
	if (m->sequence_number)
		print_int("sequence_number", m->sequence_number);
	print_text("key", m->key);
	print_int("partition", m->partition);
	if (m->priority)
		print_int("priority", m->priority);
	print_text("correlation_id", m->correlation_id);
	print_text("causation_id", m->causation_id);
	print_when("occurred_at", m->occurred_at_us, now_us);
	print_when("created_at", m->created_at_us, now_us);
	print_when("available_at", m->available_at_us, now_us);
}

void ob_message_print_state(const char *reader, const struct ob_message *m, int64_t now_us)
{
	print_text("reader", ob_str(reader));
	print_text("state", ob_str(ob_view_name(m->view)));
	if (m->attempts)
		print_int("attempts", m->attempts);
	print_when("due", m->due_us, now_us);
	if (m->excepted)
		print_when("since", m->since_us, now_us);
	print_when("published_at", m->published_at_us, now_us);
	print_text("last_error", m->last_error);
}

void ob_message_print_body(const struct ob_message *m)
{
	print_body("headers", m->headers);
	print_body("snapshot", m->snapshot);
	if (m->payload.p)
		print_body("payload", m->payload);
	else
		printf("payload          none: a tombstone\n");
}
