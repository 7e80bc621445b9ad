/* SPDX-License-Identifier: MIT */
/* The memory store: write transactions. Numbers are drawn at push, rows show at commit. */
#include "lib/check.h"
#include "store/memory_impl.h"

int mem_tx_begin(struct ob_store *store, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_store *mem = mem_of(store);

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	if (mem->in_tx)
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				  "memory store: a transaction is open already");
	mem->in_tx = true;
	return 0;
}

/* ---- writers --------------------------------------------------------- */

/* Before its first number a transaction gets an identity, and is listed under it until it ends. */
static int enlist(struct mem_store *mem, struct ob_err *err)
{
	struct ob_memdb *db = mem->db;

	if (mem->writer > 0)
		return 0;
	if (db->writer_count == OB_MARK_WRITERS_MAX)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "memory store: too many transactions write at once");
	mem->writer = ++db->last_writer;
	db->writers[db->writer_count++] = mem->writer;
	return 0;
}

static void delist(struct mem_store *mem)
{
	struct ob_memdb *db = mem->db;
	size_t kept = 0;

	for (size_t i = 0; i < db->writer_count; i++) {
		if (db->writers[i] != mem->writer)
			db->writers[kept++] = db->writers[i];
	}
	db->writer_count = kept;
	mem->writer = 0;
}

/* ---- one message ----------------------------------------------------- */

static int check_message(struct ob_store *store, const struct outbox_message *message,
			 struct ob_push_row *ret_row, bool *ret_has_id, struct ob_err *err)
{
	const struct ob_check_rules rules = { .flags = store->writer_flags };
	struct outbox_error fault = { 0 };

	int r = ob_check_message(message, &rules, ret_row, ret_has_id, &fault);
	return r < 0 ? ob_err_set(err, r, OB_ERR_REJECT, "%s", fault.message) : 0;
}

/* The row as it will be stored; `key` holds the text of a made key. */
static void fill(struct ob_memdb *db, const struct ob_push_row *row, struct ob_buf *key,
		 struct ob_message *to)
{
	const struct outbox_message *from = row->message;
	int64_t now = mem_now(db);
	int64_t delay = from->delay_ms > INT64_MAX ? INT64_MAX : (int64_t)from->delay_ms;

	*to = (struct ob_message){
		.seq = ++db->last_seq,
		.id = row->id,
		.aggregate_type = ob_str(from->aggregate_type),
		.aggregate_id = ob_str(from->aggregate_id),
		.event_type = ob_str(from->event_type),
		.payload = row->payload,
		.headers = row->headers,
		.snapshot = row->snapshot,
		.correlation_id = ob_str(from->correlation_id),
		.causation_id = ob_str(from->causation_id),
		.partition_key = ob_str(from->partition_key),
		.target = ob_str(from->target ? from->target : "default"),
		.sequence_number = from->sequence_number,
		.occurred_at_us = from->occurred_at_us ? from->occurred_at_us : now,
		.created_at_us = now,
		.available_at_us = delay ? mem_after(now, delay) : 0,
		.revision = from->revision ? from->revision : 1,
		.priority = from->priority,
		.state = OB_STATE_PENDING,
	};
	to->key = to->partition_key;
	if (!to->key.p && from->aggregate_id) {
		ob_buf_clear(key);
		ob_buf_addf(key, "%s:%s", from->aggregate_type, from->aggregate_id);
		to->key = ob_buf_view(key);
	}
}

static int check_unique(const struct mem_store *mem, const struct ob_message *message,
			struct ob_err *err)
{
	const struct mem_row *by_id = mem_row_by_id(mem->db, &message->id, message->target);
	const struct mem_row *by_seq = mem_row_by_sequence(mem->db, message);
	const struct mem_row *other = by_id ? by_id : by_seq;

	if (!other)
		return 0;
	/* Whether it is a duplicate depends on a commit to come: a database would wait, we do not.
	 */
	if (other->writer && other->writer != mem)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "another transaction is writing the same message");
	if (by_id)
		return ob_err_set(err, OUTBOX_EDUPID, OB_ERR_REJECT,
				  "a message with this id is already stored");
	return ob_err_set(err, OUTBOX_EDUPSEQUENCE, OB_ERR_REJECT,
			  "this aggregate already has a message with sequence number %lld",
			  (long long)message->sequence_number);
}

static int push_one(struct mem_store *mem, const struct ob_push_row *push, struct ob_buf *key,
		    struct mem_rows *rows, struct ob_err *err)
{
	struct ob_message filled;

	fill(mem->db, push, key, &filled);
	int r = key->failed ? mem_oom(err) : check_unique(mem, &filled, err);
	if (r < 0)
		return r;

	struct mem_row *row = mem_row_new(&filled);
	if (!row)
		return mem_oom(err);
	row->writer = mem;
	if (!mem_row_index(mem->db, row)) {
		mem_row_free(row);
		return mem_oom(err);
	}
	TAILQ_INSERT_TAIL(rows, row, all_link);
	return 0;
}

/* ---- the transaction ------------------------------------------------- */

static void forget(struct ob_memdb *db, struct mem_rows *rows)
{
	struct mem_row *row;

	while ((row = TAILQ_FIRST(rows))) {
		TAILQ_REMOVE(rows, row, all_link);
		mem_row_unindex(db, row);
		mem_row_free(row);
	}
}

static void write_ids(const struct mem_rows *rows, struct outbox_id *ret_ids)
{
	for (struct mem_row *row = TAILQ_FIRST(rows); row; row = TAILQ_NEXT(row, all_link))
		ob_uuid_format(&row->m.id, (ret_ids++)->text);
}

int mem_tx_push(struct ob_store *store, const struct outbox_message *messages, size_t count,
		struct outbox_id *ret_ids, size_t *ret_index, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	OB_CLEANUP(ob_buf_done) struct ob_buf key = OB_BUF_INIT(8 * OUTBOX_TEXT_MAX + 2);
	struct mem_store *mem = mem_of(store);
	struct mem_rows rows = TAILQ_HEAD_INITIALIZER(rows);

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	if (!mem->in_tx)
		return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
				  "no transaction is open on this connection");
	struct ob_push_row *pushes = mem_scratch(store, count, sizeof(*pushes));
	if (!pushes)
		return mem_oom(err);
	for (size_t i = 0; i < count; i++) {
		bool has_id = false;

		*ret_index = i;
		r = check_message(store, &messages[i], &pushes[i], &has_id, err);
		if (r < 0)
			return r;
		if (!has_id)
			pushes[i].id = db->conf.new_id(db->conf.new_id_arg);
	}
	r = enlist(mem, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		*ret_index = i;
		r = push_one(mem, &pushes[i], &key, &rows, err);
		if (r < 0) {
			forget(db, &rows);
			return r;
		}
	}
	if (ret_ids)
		write_ids(&rows, ret_ids);
	TAILQ_CONCAT(&mem->pushed, &rows, all_link);
	return 0;
}

int mem_tx_end(struct ob_store *store, bool commit, struct ob_err *err)
{
	struct mem_store *mem = mem_of(store);
	OB_CLEANUP(mem_leave) struct ob_memdb *locked = mem->db;
	struct mem_row *row;

	(void)pthread_mutex_lock(&mem->db->lock);
	if (commit && !mem->in_tx)
		return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
				  "no transaction is open on this connection");
	if (commit && !TAILQ_EMPTY(&mem->pushed))
		mem_committed(mem);
	if (!commit)
		forget(locked, &mem->pushed);
	while ((row = TAILQ_FIRST(&mem->pushed))) {
		TAILQ_REMOVE(&mem->pushed, row, all_link);
		mem_row_commit(locked, row);
	}
	delist(mem);
	mem->in_tx = false;
	return 0;
}
