/* SPDX-License-Identifier: MIT */
/* First the rows whoever reads them, then reader by reader: a target may have none, or several. */
#include "cli/operate/lookup.h"

/* A message has one row for each target; more than this is nobody's. */
enum { ROWS_MAX = 1000 };

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
	if (!ob_uuid_parse(ob_str(text), &l->id))
		return ob_cli_usage(cli, "'%s' is not a UUID", text);
	int r = ob_session_open(session, cli);
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
