/* SPDX-License-Identifier: MIT */
/* Lines are gathered into chunks; a chunk is one call of the store. */
#include "cli/push/lines.h"

#include "cli/cli.h"
#include "cli/out/lines.h"
#include "cli/push/ndjson.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	CHUNK_MESSAGES = 1000,
	CHUNK_BYTES = 8 << 20,
	ARENA_MAX = 256 << 20, /* a chunk and one message of the largest size, decoded */
};

struct pusher {
	struct ob_store *store;
	struct ob_lines lines;
	struct ob_arena arena; /* what the messages point to */
	size_t count;
	uint64_t total;
	struct ob_targets *targets;
	struct ob_buf *ids;
	struct outbox_message messages[CHUNK_MESSAGES];
	uint64_t line_of[CHUNK_MESSAGES];
	struct outbox_id id_texts[CHUNK_MESSAGES];
};

static int fail_at(const struct pusher *p, uint64_t line, const struct ob_err *err)
{
	return ob_cli_fail("%s:%" PRIu64 ": %s", p->lines.name, line, err->msg);
}

/* Which line it was says more than the number in the call that the store puts first. */
static int fail_push(const struct pusher *p, size_t index, struct ob_err *err)
{
	char prefix[40];

	if (index >= p->count)
		return ob_cli_fail("%s", err->msg);
	int n = snprintf(prefix, sizeof(prefix), "message %zu: ", index);
	if (n > 0 && strncmp(err->msg, prefix, (size_t)n) == 0)
		memmove(err->msg, err->msg + n, strlen(err->msg + n) + 1);
	return fail_at(p, p->line_of[index], err);
}

static bool keep_ids(struct pusher *p)
{
	for (size_t i = 0; p->ids && i < p->count; i++) {
		struct ob_uuid id;

		if (!ob_uuid_parse(ob_str(p->id_texts[i].text), &id))
			return false;
		ob_buf_add(p->ids, (struct ob_str){ (const char *)id.b, sizeof(id.b) });
	}
	return !p->ids || !p->ids->failed;
}

static int flush_chunk(struct pusher *p)
{
	struct ob_err err = OB_ERR_INIT;
	size_t index = SIZE_MAX;

	if (p->count == 0)
		return OB_EXIT_OK;
	if (ob_store_tx_push(p->store, p->messages, p->count, p->id_texts, &index, &err) < 0)
		return fail_push(p, index, &err);
	if (!keep_ids(p))
		return ob_cli_fail("too many messages to keep their ids; push without --json");
	p->total += p->count;
	p->count = 0;
	ob_arena_reset(&p->arena, CHUNK_BYTES);
	return OB_EXIT_OK;
}

static bool is_blank(struct ob_str line)
{
	for (size_t i = 0; i < line.n; i++) {
		if (line.p[i] != ' ' && line.p[i] != '\t')
			return false;
	}
	return true;
}

static int push_line(struct pusher *p, struct ob_str line)
{
	struct ob_err err = OB_ERR_INIT;

	if (is_blank(line))
		return OB_EXIT_OK;
	if (ob_ndjson_read(line, &p->arena, &p->messages[p->count], &err) < 0)
		return fail_at(p, p->lines.number, &err);
	ob_targets_note(p->targets, ob_str(p->messages[p->count].target));
	p->line_of[p->count++] = p->lines.number;
	if (p->count < CHUNK_MESSAGES && p->arena.used < CHUNK_BYTES)
		return OB_EXIT_OK;
	return flush_chunk(p);
}

static int push_all(struct pusher *p)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_str line;
	int got = 1, r = OB_EXIT_OK;

	while (!r && got > 0) {
		got = ob_lines_next(&p->lines, &line, &err);
		if (got < 0)
			r = ob_cli_fail("%s", err.msg);
		else
			r = got ? push_line(p, line) : flush_chunk(p);
	}
	return r;
}

int ob_push_lines(struct ob_store *store, int fd, const char *name, struct ob_buf *ids,
		  struct ob_targets *targets, uint64_t *ret_count)
{
	OB_AUTOFREE struct pusher *p = calloc(1, sizeof(*p));
	struct ob_err err = OB_ERR_INIT;

	if (!p)
		return ob_cli_fail("out of memory");
	p->store = store;
	p->ids = ids;
	p->targets = targets;
	p->arena = OB_ARENA_INIT(ARENA_MAX);
	ob_lines_init(&p->lines, fd, name, OB_NDJSON_LINE_MAX);
	int r = OB_EXIT_OK;
	if (ob_store_tx_begin(store, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else
		r = push_all(p);
	if (r)
		(void)ob_store_tx_end(store, false, &err);
	else if (ob_store_tx_end(store, true, &err) < 0)
		r = ob_cli_fail("%s", err.msg);
	else
		*ret_count = p->total;
	ob_lines_done(&p->lines);
	ob_arena_done(&p->arena);
	return r;
}
