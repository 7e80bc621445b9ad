/* SPDX-License-Identifier: MIT */
/* Finding rows that may be sent or claimed, and reading rows into a batch. */
#include "store/mysql.h"

/* The result columns of load; a listing has more. */
enum {
	COL_SEQ,
	COL_ID,
	COL_AGGREGATE_TYPE,
	COL_AGGREGATE_ID,
	COL_EVENT_TYPE,
	COL_PAYLOAD,
	COL_HEADERS,
	COL_CORRELATION_ID,
	COL_CAUSATION_ID,
	COL_KEY,
	COL_TARGET,
	COL_SEQUENCE_NUMBER,
	COL_OCCURRED_AT,
	COL_CREATED_AT,
	COL_REVISION,
	COL_PRIORITY,
	COL_ATTEMPTS,
	COL_STATUS,
	COL_PARTITION,
	COL_PARTITION_KEY,
	COL_SNAPSHOT,
	COL_LAST_ERROR,
	COL_LOCKED_BY,
	COL_AVAILABLE_AT,
	COL_PUBLISHED_AT,
	COL_LOCKED_UNTIL,
};

enum { FIRST_LOAD = 8 };

int my_read_message(struct my_store *s, const struct my_query *q, bool all,
		    struct ob_message *ret_message, struct ob_err *err)
{
	struct ob_message m = {
		.seq = my_int(q, COL_SEQ),
		.aggregate_type = my_str(q, COL_AGGREGATE_TYPE),
		.aggregate_id = my_str(q, COL_AGGREGATE_ID),
		.event_type = my_str(q, COL_EVENT_TYPE),
		.payload = my_str(q, COL_PAYLOAD),
		.headers = my_str(q, COL_HEADERS),
		.correlation_id = my_str(q, COL_CORRELATION_ID),
		.causation_id = my_str(q, COL_CAUSATION_ID),
		.key = my_str(q, COL_KEY),
		.target = my_str(q, COL_TARGET),
		.sequence_number = my_int(q, COL_SEQUENCE_NUMBER),
		.occurred_at_us = my_int(q, COL_OCCURRED_AT),
		.created_at_us = my_int(q, COL_CREATED_AT),
		.revision = (int32_t)my_int(q, COL_REVISION),
		.priority = (int32_t)my_int(q, COL_PRIORITY),
		.attempts = (uint32_t)my_int(q, COL_ATTEMPTS),
		.state = (enum ob_state)my_int(q, COL_STATUS),
		.partition = (uint32_t)my_int(q, COL_PARTITION),
	};
	char place[256];

	if (!ob_uuid_scan(my_str(q, COL_ID), &m.id))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "%s: the id of the row with %s %lld is no UUID; correct or "
				  "delete the row",
				  my_place(s, place), s->base.layout->column[OB_COL_seq],
				  (long long)m.seq);
	if (all) {
		m.partition_key = my_str(q, COL_PARTITION_KEY);
		m.snapshot = my_str(q, COL_SNAPSHOT);
		m.last_error = my_str(q, COL_LAST_ERROR);
		m.locked_by = my_str(q, COL_LOCKED_BY);
		m.available_at_us = my_int(q, COL_AVAILABLE_AT);
		m.published_at_us = my_int(q, COL_PUBLISHED_AT);
		m.locked_until_us = my_int(q, COL_LOCKED_UNTIL);
	}
	*ret_message = m;
	return 0;
}

int my_add_message(struct ob_batch *batch, const struct ob_message *from, struct ob_err *err)
{
	struct ob_message *to = ob_batch_add(batch);

	if (!to)
		return my_oom("reading rows", err);
	*to = *from;
	return ob_batch_own(batch, to) ? 0 : my_oom("reading rows", err);
}

/* ---- searching ------------------------------------------------------- */

static void bind_lanes(struct my_query *q, const struct my_searching *search)
{
	int64_t lanes[MY_LANES_MAX * 2], limits[MY_LANES_MAX * 2];
	int64_t priorities[MY_LANES_MAX] = { 0 }, seqs[MY_LANES_MAX] = { 0 };
	size_t size = my_lane_size(search->lanes);

	/* Two parts may name the lanes, each all of them; no row is in partition -1. */
	for (size_t i = 0; i < size; i++) {
		bool used = i < search->lanes;
		uint32_t more = used && search->more ? search->more[search->partitions[i]] : 0;

		lanes[i] = lanes[size + i] = used ? (int64_t)search->partitions[i] : -1;
		limits[i] = limits[size + i] = (int64_t)search->limit + more;
		if (used && search->from) {
			priorities[i] = search->from[search->partitions[i]].priority;
			seqs[i] = search->from[search->partitions[i]].seq;
		}
	}
	my_bind_list(q, "partition", lanes, size * 2);
	my_bind_list(q, "limit", limits, size * 2);
	my_bind_list(q, "level", priorities, size);
	my_bind_list(q, "beyond", priorities, size);
	my_bind_list(q, "last", seqs, size);
}

int my_search(struct my_store *s, const struct my_searching *search, struct my_rows *out,
	      bool *ret_held, struct ob_err *err)
{
	struct my_query *q;
	uint32_t lane_of[OB_PARTITIONS_MAX];
	int r = my_prepare_search(s, search->search, search->lanes, &q, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < search->lanes; i++)
		lane_of[search->partitions[i]] = search->first_lane + (uint32_t)i;
	my_bind_text(q, "target", search->target);
	if (search->token)
		my_bind_uuid(q, "token", search->token);
	bind_lanes(q, search);
	r = my_open(s, q, err);
	while (r >= 0 && (r = my_step(s, q, err)) > 0) {
		if (my_int(q, 3)) {
			*ret_held = true;
			continue;
		}
		struct my_candidate *c = my_rows_add(out);
		if (!c)
			return my_oom("fetching", err);
		*c = (struct my_candidate){
			.seq = my_int(q, 0),
			.priority = my_int(q, 1),
			.partition = (uint32_t)my_int(q, 2),
		};
		c->lane = lane_of[c->partition];
	}
	my_search_done(s, q, out->count);
	return r;
}

/* ---- loading --------------------------------------------------------- */

/* Where the row stands in the piece, or -1. */
static int64_t position_of(struct my_candidate *const *list, size_t count, int64_t seq)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i]->seq == seq)
			return (int64_t)i;
	}
	return -1;
}

static int by_position(const void *a, const void *b)
{
	const struct ob_message *x = a, *y = b;

	return x->locked_until_us < y->locked_until_us ? -1 : 1;
}

/*
 * The rows of one statement come in any order: read all, put them in the order of
 * the list, then take what fits. The field locked_until_us, which fetch leaves
 * zero, holds the position meanwhile.
 */
static int read_piece(struct my_loading *l, struct my_query *q, struct my_candidate *const *list,
		      size_t count, struct ob_batch *piece, struct ob_err *err)
{
	struct ob_message m = { 0 };
	int r = my_open(l->s, q, err);

	while (r >= 0 && (r = my_step(l->s, q, err)) > 0) {
		r = my_read_message(l->s, q, false, &m, err);
		if (r < 0)
			break;
		int64_t at = position_of(list, count, m.seq);
		/* A row that moved to another partition meanwhile is another's. */
		if (at < 0 || m.partition != list[at]->partition)
			continue;
		m.locked_until_us = at;
		r = my_add_message(piece, &m, err);
	}
	if (r == 0 && piece->count)
		qsort(piece->messages, piece->count, sizeof(*piece->messages), by_position);
	return r < 0 ? r : 0;
}

static void end_lane(struct my_loading *l, uint32_t lane)
{
	l->full = true;
	for (size_t i = 0; i < l->count; i++) {
		if (l->token || l->list[i].lane == lane)
			l->list[i].skip = true;
	}
}

static int take_piece(struct my_loading *l, const struct ob_batch *piece,
		      struct my_candidate *const *list, struct ob_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < piece->count && r == 0 && l->batch->count < l->limit; i++) {
		struct ob_message m = piece->messages[i];
		const struct my_candidate *c = list[m.locked_until_us];
		size_t left = l->batch->bytes < l->max_bytes ? l->max_bytes - l->batch->bytes : 0;

		if (c->skip)
			continue;
		if (l->batch->count > 0 && m.payload.n + m.headers.n > left) {
			end_lane(l, c->lane);
			continue;
		}
		m.locked_until_us = 0;
		r = my_add_message(l->batch, &m, err);
	}
	if (piece->count)
		l->s->row_bytes = piece->bytes / piece->count + 1;
	return r;
}

/* As many as should fit into what is left of max_bytes, by what rows weighed lately. */
static size_t piece_size(const struct my_loading *l)
{
	size_t left = l->batch->bytes < l->max_bytes ? l->max_bytes - l->batch->bytes : 0;
	size_t fit = l->s->row_bytes ? left / l->s->row_bytes + 1 : FIRST_LOAD;
	size_t want = l->limit - l->batch->count;

	if (fit > want)
		fit = want;
	return fit > MY_LIST_MAX ? MY_LIST_MAX : fit;
}

static int load_piece(struct my_loading *l, size_t *at, struct ob_err *err)
{
	struct my_candidate *list[MY_LIST_MAX];
	int64_t seqs[MY_LIST_MAX];
	size_t count = 0, size = piece_size(l);
	struct my_query *q;
	struct ob_batch piece;

	for (; *at < l->count && count < size; (*at)++) {
		if (l->list[*at].skip)
			continue;
		seqs[count] = l->list[*at].seq;
		list[count++] = &l->list[*at];
	}
	if (count == 0)
		return 0;
	int r = my_prepare(l->s, l->token ? MY_load_claim : MY_load, count, &q, err);
	if (r < 0)
		return r;
	my_bind_list(q, "seqs", seqs, count);
	if (l->token)
		my_bind_uuid(q, "token", l->token);
	ob_batch_init(&piece);
	r = read_piece(l, q, list, count, &piece, err);
	if (r == 0)
		r = take_piece(l, &piece, list, err);
	ob_batch_done(&piece);
	return r;
}

int my_load(struct my_loading *l, struct ob_err *err)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < l->count && l->batch->count < l->limit)
		r = load_piece(l, &at, err);
	return r;
}
