/* SPDX-License-Identifier: MIT */
/* First the rows whoever reads them, then reader by reader: a target may have none, or several. */
#include "cli/operate/lookup.h"

#include <inttypes.h>
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

static int find_seq(struct ob_lookup *l, int64_t seq)
{
	const struct ob_filter filter = { .after_seq = seq > 1 ? seq - 1 : 0, .limit = 1 };
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_list(l->session->store, &filter, &l->rows, &l->now_us, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (l->rows.count == 0 || l->rows.messages[0].seq != seq)
		return ob_cli_fail("no message has the number %" PRId64, seq);
	l->id = l->rows.messages[0].id;
	return OB_EXIT_OK;
}

/* One page of the newest messages; *ret_found counts those that begin so and differ. */
static int scan_page(struct ob_lookup *l, const char *prefix, struct ob_filter *filter,
		     size_t *ret_found)
{
	struct ob_err err = OB_ERR_INIT;

	if (ob_store_list(l->session->store, filter, &l->rows, &l->now_us, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	for (uint32_t i = 0; i < l->rows.count; i++) {
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
	return OB_EXIT_OK;
}

/* There is no index by the beginning of an id: the newest messages are looked through. */
static int find_prefix(struct ob_lookup *l, const char *prefix)
{
	struct ob_filter filter = { .newest_first = true, .limit = PAGE };
	size_t found = 0;
	int r = OB_EXIT_OK;

	for (int page = 0; !r && page < PREFIX_ROWS / PAGE; page++) {
		r = scan_page(l, prefix, &filter, &found);
		if (l->rows.count < PAGE)
			break;
	}
	if (!r && found == 0)
		return ob_cli_fail(
			"no id begins with %s among the newest %d messages; give the "
			"whole id",
			prefix, PREFIX_ROWS);
	if (!r && found > 1)
		return ob_cli_fail("%zu ids begin with %s: give more of it", found, prefix);
	return r;
}

static int find_rows(struct ob_lookup *l, const char *text, const char *gone)
{
	const struct ob_filter filter = { .id = &l->id, .limit = ROWS_MAX };
	const struct ob_reader *reader = NULL;
	struct ob_err err = OB_ERR_INIT;

	if (ob_readers_load(&l->readers, l->session->store, &err) < 0 ||
	    ob_store_list(l->session->store, &filter, &l->rows, &l->now_us, &err) < 0)
		return ob_cli_fail("%s", err.msg);
	if (l->wanted) {
		reader = ob_readers_find(&l->readers, l->wanted);
		if (!reader)
			return ob_readers_unknown(&l->readers, l->wanted);
		keep_rows(l, reader);
	}
	if (l->rows.count)
		return OB_EXIT_OK;
	return ob_cli_fail("no message %s%s%s%s", text, reader ? " among those of reader " : "",
			   reader ? l->wanted : "", gone);
}

int ob_lookup_find(struct ob_lookup *l, const struct ob_cli *cli, struct ob_session *session,
		   const char *text, const char *wanted, const char *gone)
{
	*l = (struct ob_lookup){ .session = session, .wanted = wanted };
	*session = (struct ob_session){ 0 };
	ob_batch_init(&l->rows);
	ob_batch_init(&l->seen);
	int64_t seq = 0;
	bool whole = ob_uuid_parse(ob_str(text), &l->id);
	if (!whole && !is_seq(text, &seq) && !is_prefix(text))
		return ob_cli_usage(cli,
				    "'%s' is not a UUID, nor the beginning of one (%d characters "
				    "at least), nor a number of the log",
				    text, PREFIX_MIN);
	int r = ob_session_open(session, cli);
	if (!r && !whole)
		r = seq ? find_seq(l, seq) : find_prefix(l, text);
	return r ? r : find_rows(l, text, gone);
}

const struct ob_message *ob_lookup_see(struct ob_lookup *l, const struct ob_reader *reader,
				       const struct ob_message *row, const char **ret_name)
{
	const char *name = ob_readers_text(&l->readers, reader->name);
	const struct ob_filter filter = { .reader = name, .id = &l->id, .limit = ROWS_MAX };
	struct ob_err err = OB_ERR_INIT;

	if (!name) {
		(void)ob_cli_fail("out of memory");
		return NULL;
	}
	if (ob_store_list(l->session->store, &filter, &l->seen, &l->now_us, &err) < 0) {
		(void)ob_cli_fail("%s", err.msg);
		return NULL;
	}
	*ret_name = name;
	for (uint32_t i = 0; i < l->seen.count; i++) {
		if (l->seen.messages[i].seq == row->seq)
			return &l->seen.messages[i];
	}
	(void)ob_cli_fail("the message was removed in this moment");
	return NULL;
}

void ob_lookup_done(struct ob_lookup *l)
{
	ob_batch_done(&l->rows);
	ob_batch_done(&l->seen);
	ob_readers_done(&l->readers);
	ob_session_done(l->session);
}
