/* SPDX-License-Identifier: MIT */
/* What consumers have handled, who consumes, and how far. */
#include "store/inbox.h"
#include "base/cleanup.h"
#include "store/sql/ops.h"

/* A member that has been silent for so long is forgotten. */
enum { SILENT_MS = 3600000 };

int ob_inbox_exists(struct ob_store *store, bool *ret_exists, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_PEEK, "finding the tables of consumers");
	size_t there = OB_SQL_ADD0(&q, inbox_there);
	int r = ob_sql_commit(&q, err);
	if (r == 0)
		*ret_exists = ob_sql_count(&q, there) == 0 || ob_sql_value(&q, there);
	return r;
}

/* ---- what was handled ------------------------------------------------ */

int ob_inbox_tx_add(struct ob_store *store, const char *consumer, struct ob_str id, bool *ret_new,
		    struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_JOIN, "writing the inbox");
	size_t added =
		OB_SQL_ADD(&q, inbox_add, OB_ARG_TEXT("consumer", consumer), OB_ARG_STR("id", id));
	int r = ob_sql_commit(&q, err);
	if (r == 0)
		*ret_new = ob_sql_changed(&q, added) > 0;
	return r;
}

int ob_inbox_purge(struct ob_store *store, int64_t age_ms, uint32_t limit, uint64_t *ret_removed,
		   struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "removing old rows of the inbox");
	size_t gone =
		OB_SQL_ADD(&q, inbox_purge, OB_ARG_MS("age", age_ms), OB_ARG_INT("limit", limit));
	int r = ob_sql_commit(&q, err);
	if (r == 0)
		*ret_removed = ob_sql_changed(&q, gone);
	return r;
}

/* ---- who consumes ---------------------------------------------------- */

int ob_inbox_explain(int r, struct ob_err *err)
{
	char why[200];

	if (r != OUTBOX_ESCHEMA)
		return r;
	(void)snprintf(why, sizeof(why), "%.199s", err->msg);
	return ob_err_set(err, OUTBOX_ESCHEMA, OB_ERR_FATAL,
			  "the tables of consumers are missing: run `outbox setup --inbox` (%s)",
			  why);
}

int ob_consumer_make(struct ob_store *store, const char *consumer, struct ob_str source,
		     struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "making a consumer");
	(void)OB_SQL_ADD(&q, consumer_make, OB_ARG_TEXT("consumer", consumer),
			 OB_ARG_STR("source", source));
	return ob_inbox_explain(ob_sql_commit(&q, err), err);
}

int ob_consumer_take(struct ob_store *store, struct ob_consumer_lease *lease, int64_t ttl_ms,
		     int64_t *ret_wait_ms, struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("consumer", lease->consumer),
		OB_ARG_UUID("owner", &lease->owner),
		OB_ARG_MS("ttl", ttl_ms),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "taking the consumer's lease");
	(void)ob_sql_add(&q, OB_SQL_consumer_take, args);
	size_t state = ob_sql_add(&q, OB_SQL_consumer_state, args);
	size_t now = OB_SQL_ADD0(&q, time);
	int r = ob_sql_commit(&q, err);
	struct ob_sql_rows rows = ob_sql_rows(&q, state);
	if (r < 0)
		return r;
	if (!ob_sql_next(&rows))
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_DOWN,
				  "the row of consumer '%.100s' is gone", lease->consumer);
	if (ob_sql_int(&rows, 1)) {
		lease->epoch = (uint64_t)ob_sql_int(&rows, 0);
		return 1;
	}
	int64_t until = ob_sql_time(&rows, 3);
	int64_t left = until - ob_sql_value_time(&q, now);
	*ret_wait_ms = left > 0 ? left / 1000 + 1 : 0;
	return 0;
}

static int lost(const struct ob_consumer_lease *lease, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ELEASE, OB_ERR_LOST,
			  "another process has taken consumer '%.100s' over", lease->consumer);
}

/* An unknown number is NULL. */
static struct ob_sql_arg known(const char *name, int64_t value)
{
	return value < 0 ? OB_ARG_TEXT(name, NULL) : OB_ARG_INT(name, value);
}

/* The statements of a beat; returns the index of the first. */
static size_t add_beat(struct ob_sql *q, enum ob_sql_id count_in,
		       const struct ob_consumer_lease *lease, int64_t ttl_ms,
		       const struct ob_consumer_beat *beat)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("consumer", lease->consumer),
		OB_ARG_UUID("owner", &lease->owner),
		OB_ARG_INT("epoch", lease->epoch),
		OB_ARG_MS("ttl", ttl_ms),
		OB_ARG_INT("handled", beat->handled),
		OB_ARG_INT("duplicates", beat->duplicates),
		OB_ARG_INT("failed", beat->failed),
		known("lag", beat->lag),
		known("oldest", beat->oldest_us),
		OB_ARG_STR("hostname",
			   beat->member.hostname.p ? beat->member.hostname : OB_STR("")),
		OB_ARG_INT("pid", beat->member.pid),
		OB_ARG_STR("state", beat->member.state.p ? beat->member.state : OB_STR("")),
		OB_ARG_MS("age", SILENT_MS),
		{ .name = NULL },
	};
	size_t first = ob_sql_add(q, count_in, args);

	(void)ob_sql_add(q, OB_SQL_member_beat, args);
	(void)ob_sql_add(q, OB_SQL_members_forget, args);
	return first;
}

int ob_consumer_renew(struct ob_store *store, const struct ob_consumer_lease *lease, int64_t ttl_ms,
		      const struct ob_consumer_beat *beat, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "renewing the consumer's lease");
	size_t kept = add_beat(&q, OB_SQL_consumer_renew, lease, ttl_ms, beat);
	int r = ob_sql_commit(&q, err);
	if (r < 0)
		return r;
	return ob_sql_changed(&q, kept) ? 0 : lost(lease, err);
}

int ob_consumer_tell(struct ob_store *store, const struct ob_consumer_lease *lease, int64_t ttl_ms,
		     const struct ob_consumer_beat *beat, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "writing the consumer's report");
	(void)add_beat(&q, OB_SQL_consumer_count, lease, ttl_ms, beat);
	return ob_inbox_explain(ob_sql_commit(&q, err), err);
}

int ob_consumer_release(struct ob_store *store, const struct ob_consumer_lease *lease,
			struct ob_err *err)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_TEXT("consumer", lease->consumer),
		OB_ARG_UUID("owner", &lease->owner),
		OB_ARG_INT("epoch", lease->epoch),
		{ .name = NULL },
	};
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_WRITE, "releasing the consumer's lease");
	(void)ob_sql_add(&q, OB_SQL_consumer_release, args);
	(void)ob_sql_add(&q, OB_SQL_member_leave, args);
	return ob_sql_commit(&q, err);
}

int ob_consumer_tx_fence(struct ob_store *store, const struct ob_consumer_lease *lease,
			 struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_JOIN, "checking the consumer's lease");
	size_t found = OB_SQL_ADD(&q, consumer_fence, OB_ARG_TEXT("consumer", lease->consumer),
				  OB_ARG_INT("epoch", lease->epoch));
	int r = ob_sql_flush(&q, err);
	if (r == 0 && !ob_sql_value(&q, found))
		r = lost(lease, err);
	return ob_sql_end(&q, r, err);
}

static const struct ob_sql_column consumer_columns[] = {
	OB_SQL_COLUMN(struct ob_consumer_row, name, STR),
	OB_SQL_COLUMN(struct ob_consumer_row, source, STR),
	OB_SQL_COLUMN(struct ob_consumer_row, owner, UUID),
	OB_SQL_COLUMN(struct ob_consumer_row, epoch, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, held, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, updated_at_us, TIME),
	OB_SQL_COLUMN(struct ob_consumer_row, handled, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, duplicates, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, failed, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, lag, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, oldest_us, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, parked, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, dead, INT),
	OB_SQL_COLUMN(struct ob_consumer_row, parked_since_us, TIME),
	OB_SQL_COLUMN(struct ob_consumer_row, now_us, TIME),
};

int ob_consumer_list(struct ob_store *store, const char *consumer, struct ob_arena *arena,
		     struct ob_consumer_row **ret_rows, size_t *ret_count, struct ob_err *err)
{
	static const struct ob_sql_map map =
		OB_SQL_MAP_OF(struct ob_consumer_row, consumer_columns);
	struct ob_consumer_row *rows = ob_sql_list(store, "listing consumers", OB_SQL_consumer_list,
						   OB_ARGS(OB_ARG_TEXT("consumer", consumer)), &map,
						   arena, ret_count, err);

	if (!rows)
		return ob_inbox_explain(err->status, err);
	*ret_rows = rows;
	return 0;
}

static const struct ob_sql_column member_columns[] = {
	OB_SQL_COLUMN(struct ob_consumer_member, consumer, STR),
	OB_SQL_COLUMN(struct ob_consumer_member, id, UUID),
	OB_SQL_COLUMN(struct ob_consumer_member, hostname, STR),
	OB_SQL_COLUMN(struct ob_consumer_member, pid, INT),
	OB_SQL_COLUMN(struct ob_consumer_member, started_at_us, TIME),
	OB_SQL_COLUMN(struct ob_consumer_member, heartbeat_until_us, TIME),
	OB_SQL_COLUMN(struct ob_consumer_member, alive, INT),
	OB_SQL_COLUMN(struct ob_consumer_member, state, STR),
};

int ob_consumer_members(struct ob_store *store, const char *consumer, struct ob_arena *arena,
			struct ob_consumer_member **ret_members, size_t *ret_count,
			struct ob_err *err)
{
	static const struct ob_sql_map map =
		OB_SQL_MAP_OF(struct ob_consumer_member, member_columns);
	struct ob_consumer_member *members = ob_sql_list(
		store, "listing members of consumers", OB_SQL_members,
		OB_ARGS(OB_ARG_TEXT("consumer", consumer)), &map, arena, ret_count, err);

	if (!members)
		return ob_inbox_explain(err->status, err);
	*ret_members = members;
	return 0;
}

/* ---- positions ------------------------------------------------------- */

int ob_positions_read(struct ob_store *store, const char *consumer, struct ob_str source,
		      struct ob_arena *arena, struct ob_position **ret_positions, size_t *ret_count,
		      struct ob_err *err)
{
	static const struct ob_sql_column columns[] = {
		OB_SQL_COLUMN(struct ob_position, part, STR),
		OB_SQL_COLUMN(struct ob_position, position, STR),
	};
	static const struct ob_sql_map map = OB_SQL_MAP_OF(struct ob_position, columns);
	struct ob_position *rows = ob_sql_list(
		store, "reading positions", OB_SQL_positions,
		OB_ARGS(OB_ARG_TEXT("consumer", consumer), OB_ARG_STR("source", source)), &map,
		arena, ret_count, err);

	if (!rows)
		return err->status;
	*ret_positions = rows;
	return 0;
}

int ob_position_tx_set(struct ob_store *store, const char *consumer, struct ob_str source,
		       const struct ob_position *position, struct ob_err *err)
{
	OB_CLEANUP(ob_sql_done) struct ob_sql q;

	ob_sql_begin(&q, store, OB_SQL_JOIN, "writing a position");
	(void)OB_SQL_ADD(&q, position_set, OB_ARG_TEXT("consumer", consumer),
			 OB_ARG_STR("source", source), OB_ARG_STR("part", position->part),
			 OB_ARG_STR("position", position->position));
	return ob_sql_commit(&q, err);
}
