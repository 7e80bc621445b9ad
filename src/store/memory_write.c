/* SPDX-License-Identifier: MIT */
/* The memory store: write transactions. Numbers are drawn at push, rows show at commit. */
#include "base/json.h"
#include "base/utf8.h"
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

/* ---- one message ----------------------------------------------------- */

static struct ob_str sized(const void *text, size_t size)
{
	return text && size ? (struct ob_str){ text, size } : ob_str(text);
}

static int check_json(const struct outbox_message *msg, unsigned flags, struct ob_err *err)
{
	struct ob_str payload = sized(msg->payload, msg->payload_size);
	struct ob_str headers = sized(msg->headers, msg->headers_size);
	struct ob_str snapshot = sized(msg->snapshot, msg->snapshot_size);
	bool check = !(flags & (OUTBOX_NO_PAYLOAD_CHECK | OUTBOX_BINARY_PAYLOAD));
	int status = 0;

	if (payload.p && check && !ob_json_valid(payload, NULL))
		status = OUTBOX_EPAYLOADJSON;
	else if (headers.p && !(flags & OUTBOX_NO_HEADERS_CHECK) &&
		 !ob_json_valid_object(headers, NULL))
		status = OUTBOX_EHEADERSJSON;
	else if (snapshot.p && check && !ob_json_valid(snapshot, NULL))
		status = OUTBOX_ESNAPSHOTJSON;
	return status ? ob_err_set(err, status, OB_ERR_REJECT, "%s", "not valid JSON") : 0;
}

static int check_texts(const struct outbox_message *msg, struct ob_err *err)
{
	const char *const texts[] = {
		msg->aggregate_type, msg->aggregate_id,   msg->event_type,   msg->partition_key,
		msg->target,         msg->correlation_id, msg->causation_id,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!texts[i])
			continue;
		if (!ob_utf8_valid(ob_str(texts[i])))
			return ob_err_set(err, OUTBOX_ETEXT, OB_ERR_REJECT,
					  "a text is not valid UTF-8");
		if (ob_utf8_count(ob_str(texts[i])) > OUTBOX_TEXT_MAX)
			return ob_err_set(err, OUTBOX_ETOOLONG, OB_ERR_REJECT,
					  "a text is longer than %d characters", OUTBOX_TEXT_MAX);
	}
	return 0;
}

static int check_message(const struct outbox_message *msg, unsigned flags, struct ob_err *err)
{
	struct ob_uuid id;

	if (!msg->aggregate_type || !*msg->aggregate_type)
		return ob_err_set(err, OUTBOX_EAGGREGATETYPE, OB_ERR_REJECT,
				  "aggregate_type is missing");
	if (!msg->event_type || !*msg->event_type)
		return ob_err_set(err, OUTBOX_EEVENTTYPE, OB_ERR_REJECT, "event_type is missing");
	if (!msg->payload && !(msg->flags & OUTBOX_TOMBSTONE))
		return ob_err_set(err, OUTBOX_ENOPAYLOAD, OB_ERR_REJECT, "payload is missing");
	int r = check_json(msg, flags, err);
	if (r < 0)
		return r;
	if (msg->id && (!ob_uuid_parse(ob_str(msg->id), &id) || ob_uuid_is_nil(&id)))
		return ob_err_set(err, OUTBOX_EID, OB_ERR_REJECT,
				  "id is not a UUID, or is the nil UUID");
	return check_texts(msg, err);
}

/* The row as it will be stored; `key` holds the text of a made key. */
static void fill(struct ob_memdb *db, const struct outbox_message *from, struct ob_buf *key,
		 struct ob_message *to)
{
	int64_t now = mem_now(db);
	int64_t delay = from->delay_ms > INT64_MAX ? INT64_MAX : (int64_t)from->delay_ms;

	*to = (struct ob_message){
		.seq = ++db->last_seq,
		.aggregate_type = ob_str(from->aggregate_type),
		.aggregate_id = ob_str(from->aggregate_id),
		.event_type = ob_str(from->event_type),
		.payload = sized(from->payload, from->payload_size),
		.headers = sized(from->headers, from->headers_size),
		.snapshot = sized(from->snapshot, from->snapshot_size),
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
	if (!from->id || !ob_uuid_parse(ob_str(from->id), &to->id))
		to->id = db->conf.new_id(db->conf.new_id_arg);
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

static int push_one(struct mem_store *mem, const struct outbox_message *message, struct ob_buf *key,
		    struct mem_rows *rows, struct ob_err *err)
{
	struct ob_message filled;

	fill(mem->db, message, key, &filled);
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
	for (size_t i = 0; i < count; i++) {
		*ret_index = i;
		r = check_message(&messages[i], store->writer_flags, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < count; i++) {
		*ret_index = i;
		r = push_one(mem, &messages[i], &key, &rows, err);
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
	mem->in_tx = false;
	return 0;
}
