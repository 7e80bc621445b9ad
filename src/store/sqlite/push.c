/* SPDX-License-Identifier: MIT */
/* Writing messages into the SQLite store, through the public library on our own connection. */
#include "store/sqlite/push.h"

#include "base/cleanup.h"
#include "store/sqlite/stmt.h"
#include "store/writer.h"

static int open_writer(struct lite_store *s, struct outbox_error *fault)
{
	struct ob_writer_options writer;

	ob_writer_options(&s->base, &writer);
	return outbox_sqlite_open(s->db, &writer.options, &s->writer, fault);
}

int lite_tx_begin(struct ob_store *store, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	int r = lite_begin(s, "pushing", err);

	if (r < 0)
		return r;
	s->in_tx = true;
	return 0;
}

/*
 * The library takes the time from the host, as every writer does. A store that was
 * given another clock says so in its rows.
 */
static int stamp(struct lite_store *s, const struct outbox_message *m, const struct outbox_id *id,
		 struct ob_err *err)
{
	int64_t now = ob_clock_real_us(s->base.clock);
	char text[OB_UUID_TEXT_SIZE];
	struct ob_uuid uuid;

	if (!ob_uuid_parse(ob_str(id->text), &uuid))
		return 0;
	ob_uuid_format(&uuid, text);
	s->now = now;
	int r = lite_run(
		s, LITE_stamp,
		OB_ARGS(s->base.layout->string_id ? OB_ARG_TEXT("id", text)
						  : OB_ARG_UUID("id", &uuid),
			OB_ARG_TEXT("target", m->target ? m->target : "default"),
			OB_ARG_INT("due_at",
				   m->delay_ms ? now + ob_sql_us((int64_t)m->delay_ms) : 0),
			OB_ARG_INT("occurred_at", m->occurred_at_us ? m->occurred_at_us : now)),
		err);
	return r < 0 ? r : 0;
}

static int push_and_stamp(struct lite_store *s, const struct outbox_message *messages, size_t count,
			  struct outbox_id *ret_ids, struct outbox_error *fault, struct ob_err *err)
{
	if (s->base.clock == &ob_clock_system)
		return outbox_push(s->writer, messages, count, ret_ids, fault);

	OB_AUTOFREE struct outbox_id *own = ret_ids ? NULL : calloc(count, sizeof(*own));
	struct outbox_id *ids = ret_ids ? ret_ids : own;
	if (!ids)
		return lite_oom(s, err);
	int r = outbox_push(s->writer, messages, count, ids, fault);
	for (size_t i = 0; i < count && r == 0; i++)
		r = stamp(s, &messages[i], &ids[i], err);
	return r;
}

int lite_tx_push(struct ob_store *store, const struct outbox_message *messages, size_t count,
		 struct outbox_id *ret_ids, size_t *ret_index, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct outbox_error fault = { 0 };

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	int r = s->writer ? 0 : open_writer(s, &fault);
	if (r == 0)
		r = push_and_stamp(s, messages, count, ret_ids, &fault, err);
	return fault.status < 0
		       ? ob_writer_fail(&fault, ob_writer_kind(fault.status), ret_index, err)
		       : r;
}

int lite_tx_end(struct ob_store *store, bool commit, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	bool open = s->in_tx, undone = open && sqlite3_get_autocommit(s->db);

	s->in_tx = false;
	if (!commit) {
		lite_rollback(s);
		return 0;
	}
	if (!open)
		return ob_writer_no_transaction(err);
	if (undone)
		return ob_writer_rolled_back(err);
	return lite_end(s, 0, err);
}

int lite_tx_writer(struct ob_store *store, outbox **ret_writer, struct ob_err *err)
{
	struct lite_store *s = (struct lite_store *)store;
	struct outbox_error fault = { 0 };
	size_t ignored;

	if (!s->in_tx)
		return ob_writer_no_transaction(err);
	if (!s->writer && open_writer(s, &fault) < 0)
		return ob_writer_fail(&fault, ob_writer_kind(fault.status), &ignored, err);
	*ret_writer = s->writer;
	return 0;
}
