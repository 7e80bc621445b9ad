/* SPDX-License-Identifier: MIT */
/* First the rows whoever reads them, then reader by reader: a target may have none, or several. */
#include "operate/lookup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* A message has one row for each target; more than this is nobody's. */
enum { ROWS_MAX = 1000, PREFIX_MIN = 4, PREFIX_ROWS = 10000, PAGE = 100 };

bool ob_lookup_reads(const struct ob_lookup *l, const struct ob_reader *reader,
		     const struct ob_message *row)
{
	if (!ob_str_eq(reader->target, row->target))
		return false;
	return l->wanted ? ob_str_eq(reader->name, ob_str(l->wanted)) : !reader->temporary;
}

/* Only the rows of the reader that was asked for. */
static void keep_rows(struct ob_lookup *l, const struct ob_reader *reader)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->rows.count; i++) {
		if (ob_lookup_reads(l, reader, &l->rows.messages[i]))
			l->rows.messages[kept++] = l->rows.messages[i];
	}
	l->rows.count = kept;
}

/* ---- which message is meant ----------------------------------------------- */

/* A number of the log. An id of version 7 begins with 0 for the next thousands of years. */
static bool is_seq(const char *text, int64_t *ret_seq)
{
	size_t n = strspn(text, "0123456789");

	if (n == 0 || text[n] || n > 18 || text[0] == '0')
		return false;
	*ret_seq = strtoll(text, NULL, 10);
	return true;
}

static bool is_prefix(const char *text)
{
	size_t n = strspn(text, "0123456789abcdefABCDEF-");

	return n >= PREFIX_MIN && n < OB_UUID_TEXT && !text[n];
}

static int not_found(struct ob_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int not_found(struct ob_err *err, const char *fmt, ...)
{
	char text[sizeof(err->msg)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return ob_err_set(err, OUTBOX_ENOTFOUND, OB_ERR_FATAL, "%s", text);
}

static int find_seq(struct ob_lookup *l, int64_t seq, struct ob_err *err)
{
	const struct ob_filter filter = { .after_seq = seq > 1 ? seq - 1 : 0, .limit = 1 };
	int r = ob_store_list(l->store, &filter, &l->rows, &l->now_us, err);

	if (r < 0)
		return r;
	if (l->rows.count == 0 || l->rows.messages[0].seq != seq)
		return not_found(err, "no message has the number %" PRId64, seq);
	l->id = l->rows.messages[0].id;
	return 0;
}

/* One page of the newest messages; *ret_found counts those that begin so and differ. */
static int scan_page(struct ob_lookup *l, const char *prefix, struct ob_filter *filter,
		     size_t *ret_found, struct ob_err *err)
{
	int r = ob_store_list(l->store, filter, &l->rows, &l->now_us, err);

	for (uint32_t i = 0; r == 0 && i < l->rows.count; i++) {
		const struct ob_message *m = &l->rows.messages[i];
		char id[OB_UUID_TEXT_SIZE];

		filter->after_seq = m->seq;
		ob_uuid_format(&m->id, id);
		if (strncasecmp(id, prefix, strlen(prefix)) != 0 ||
		    (*ret_found && ob_uuid_eq(&m->id, &l->id)))
			continue;
		l->id = m->id;
		(*ret_found)++;
	}
	return r;
}

/* There is no index by the beginning of an id: the newest messages are looked through. */
static int find_prefix(struct ob_lookup *l, const char *prefix, struct ob_err *err)
{
	struct ob_filter filter = { .newest_first = true, .limit = PAGE };
	size_t found = 0;

	for (int page = 0; page < PREFIX_ROWS / PAGE; page++) {
		int r = scan_page(l, prefix, &filter, &found, err);

		if (r < 0)
			return r;
		if (l->rows.count < PAGE)
			break;
	}
	if (found == 0)
		return not_found(err,
				 "no id begins with %s among the newest %d messages; give the "
				 "whole id",
				 prefix, PREFIX_ROWS);
	if (found > 1)
		return not_found(err, "%zu ids begin with %s: give more of it", found, prefix);
	return 0;
}

static int find_rows(struct ob_lookup *l, const char *text, const char *gone, struct ob_err *err)
{
	const struct ob_filter filter = { .id = &l->id, .limit = ROWS_MAX };
	const struct ob_reader *reader = NULL;
	int r = ob_readers_load(&l->readers, l->store, err);

	if (r == 0)
		r = ob_store_list(l->store, &filter, &l->rows, &l->now_us, err);
	if (r < 0)
		return r;
	if (l->wanted) {
		reader = ob_readers_find(&l->readers, l->wanted);
		if (!reader)
			return ob_readers_unknown(&l->readers, l->wanted, err);
		keep_rows(l, reader);
	}
	if (l->rows.count)
		return 0;
	return not_found(err, "no message %s%s%s%s", text, reader ? " among those of reader " : "",
			 reader ? l->wanted : "", gone);
}

int ob_lookup_check(const char *text, struct ob_err *err)
{
	struct ob_uuid id;
	int64_t seq;

	if (ob_uuid_parse(ob_str(text), &id) || is_seq(text, &seq) || is_prefix(text))
		return 0;
	return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
			  "'%s' is not a UUID, nor the beginning of one (%d characters at least), "
			  "nor a number of the log",
			  text, PREFIX_MIN);
}

int ob_lookup_find(struct ob_lookup *l, struct ob_store *store, const char *text,
		   const char *wanted, const char *gone, struct ob_err *err)
{
	int64_t seq = 0;

	*l = (struct ob_lookup){ .store = store, .wanted = wanted };
	ob_batch_init(&l->rows);
	ob_batch_init(&l->seen);
	int r = ob_lookup_check(text, err);

	if (r == 0 && !ob_uuid_parse(ob_str(text), &l->id))
		r = is_seq(text, &seq) ? find_seq(l, seq, err) : find_prefix(l, text, err);
	return r < 0 ? r : find_rows(l, text, gone, err);
}

int ob_lookup_see(struct ob_lookup *l, const struct ob_reader *reader, const struct ob_message *row,
		  const struct ob_message **ret_message, const char **ret_name, struct ob_err *err)
{
	const char *name = ob_readers_text(&l->readers, reader->name);
	const struct ob_filter filter = { .reader = name, .id = &l->id, .limit = ROWS_MAX };

	if (!name)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	int r = ob_store_list(l->store, &filter, &l->seen, &l->now_us, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < l->seen.count; i++) {
		if (l->seen.messages[i].seq != row->seq)
			continue;
		*ret_name = name;
		*ret_message = &l->seen.messages[i];
		return 0;
	}
	return not_found(err, "the message was removed in this moment");
}

void ob_lookup_done(struct ob_lookup *l)
{
	ob_batch_done(&l->rows);
	ob_batch_done(&l->seen);
	ob_readers_done(&l->readers);
}
