/* SPDX-License-Identifier: MIT */
/* The memory store: the log and write transactions. Numbers are drawn at push, rows show at commit.
 */
#include "doubles/memory_store_impl.h"
#include "lib/check.h"

/* ---- rows ------------------------------------------------------------ */

size_t mem_row_after(const struct ob_memdb *db, int64_t seq)
{
	size_t low = 0, high = db->row_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (db->rows[middle]->m.seq <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct mem_row *mem_row_find(const struct ob_memdb *db, int64_t seq)
{
	size_t i = mem_row_after(db, seq - 1);

	return i < db->row_count && db->rows[i]->m.seq == seq ? db->rows[i] : NULL;
}

void mem_row_free(struct mem_row *row)
{
	free(row->text);
	free(row);
}

static uint64_t fnv1a(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint32_t mem_partition(const struct ob_memdb *db, const struct ob_message *message)
{
	uint64_t hash = message->key.p ? fnv1a(message->key.p, message->key.n)
				       : fnv1a(message->id.b, sizeof(message->id.b));
	uint32_t lane = message->priority == 0 ? 0 : message->priority > 0 ? 1 : 2;

	/* The low bits of FNV-1a depend on the low bits of its input alone. */
	return lane * db->partition_count + (uint32_t)((hash >> 32 ^ hash) % db->partition_count);
}

/* A row with its own copy of the texts. */
static struct mem_row *new_row(const struct ob_message *message)
{
	struct mem_row *row = calloc(1, sizeof(*row));
	struct ob_message *m = row ? &row->m : NULL;
	struct ob_str *const texts[] = {
		&m->aggregate_type, &m->aggregate_id,   &m->event_type,    &m->payload,
		&m->headers,        &m->correlation_id, &m->causation_id,  &m->key,
		&m->target,         &m->snapshot,       &m->partition_key,
	};
	const size_t count = sizeof(texts) / sizeof(texts[0]);
	size_t size = 0;

	if (!row)
		abort();
	*m = *message;
	for (size_t i = 0; i < count; i++)
		size += texts[i]->n + 1;
	char *p = row->text = malloc(size);
	if (!p)
		abort();
	for (size_t i = 0; i < count; i++) {
		if (!texts[i]->p)
			continue;
		memcpy(p, texts[i]->p, texts[i]->n);
		p[texts[i]->n] = '\0';
		texts[i]->p = p;
		p += texts[i]->n + 1;
	}
	return row;
}

/* ---- one message ----------------------------------------------------- */

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
	};
	to->key = to->partition_key;
	if (!to->key.p && from->aggregate_id) {
		ob_buf_clear(key);
		ob_buf_addf(key, "%s:%s", from->aggregate_type, from->aggregate_id);
		to->key = ob_buf_view(key);
	}
	to->partition = mem_partition(db, to);
}

static bool same_id(const struct ob_message *a, const struct ob_message *b)
{
	return ob_uuid_eq(&a->id, &b->id) && ob_str_eq(a->target, b->target);
}

static bool same_sequence(const struct ob_message *a, const struct ob_message *b)
{
	return a->sequence_number && a->sequence_number == b->sequence_number &&
	       ob_str_eq(a->target, b->target) && ob_str_eq(a->aggregate_id, b->aggregate_id) &&
	       ob_str_eq(a->aggregate_type, b->aggregate_type);
}

static int check_unique(const struct mem_store *mem, const struct ob_message *message,
			struct ob_err *err)
{
	for (size_t i = 0; i < mem->db->row_count; i++) {
		const struct mem_row *other = mem->db->rows[i];
		bool id = same_id(&other->m, message);

		if (!id && !same_sequence(&other->m, message))
			continue;
		/* It depends on a commit to come: a database would wait, we do not. */
		if (other->writer && other->writer != mem)
			return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
					  "another transaction is writing the same message");
		if (id)
			return ob_err_set(err, OUTBOX_EDUPID, OB_ERR_REJECT,
					  "a message with this id is already stored");
		return ob_err_set(err, OUTBOX_EDUPSEQUENCE, OB_ERR_REJECT,
				  "this aggregate already has a message with sequence number %lld",
				  (long long)message->sequence_number);
	}
	return 0;
}

static int push_one(struct mem_store *mem, const struct outbox_message *message,
		    struct outbox_id *ret_id, struct ob_err *err)
{
	const struct ob_check_rules rules = { .flags = mem->base.writer_flags };
	OB_CLEANUP(ob_buf_done) struct ob_buf key = OB_BUF_INIT(8 * OUTBOX_TEXT_MAX + 2);
	struct ob_memdb *db = mem->db;
	struct outbox_error fault = { 0 };
	struct ob_push_row push;
	struct ob_message filled;
	bool has_id = false;

	int r = ob_check_message(message, &rules, &push, &has_id, &fault);
	if (r < 0)
		return ob_err_set(err, r, OB_ERR_REJECT, "%s", fault.message);
	if (!has_id)
		push.id = db->conf.new_id(db->conf.new_id_arg);
	fill(db, &push, &key, &filled);
	r = check_unique(mem, &filled, err);
	if (r < 0)
		return r;
	db->rows = mem_grow((void *)db->rows, db->row_count, &db->row_capacity,
			    sizeof(struct mem_row *));
	struct mem_row *row = db->rows[db->row_count++] = new_row(&filled);
	row->txid = mem->txid;
	row->writer = mem;
	if (ret_id)
		ob_uuid_format(&row->m.id, ret_id->text);
	return 0;
}

/* ---- the transaction ------------------------------------------------- */

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
	if (db->conf.kind == OB_MEMDB_PLAIN && db->writer)
		return ob_err_set(err, OUTBOX_EBUSY, OB_ERR_DOWN,
				  "memory store: another transaction writes");
	db->writer = mem;
	mem->in_tx = true;
	return 0;
}

/* The rows of a transaction from number `from` on were never there; their numbers are gone. */
static void forget(struct ob_memdb *db, const struct mem_store *mem, int64_t from)
{
	size_t kept = 0;

	for (size_t i = 0; i < db->row_count; i++) {
		if (db->rows[i]->writer == mem && db->rows[i]->m.seq >= from)
			mem_row_free(db->rows[i]);
		else
			db->rows[kept++] = db->rows[i];
	}
	db->row_count = kept;
}

int mem_tx_push(struct ob_store *store, const struct outbox_message *messages, size_t count,
		struct outbox_id *ret_ids, size_t *ret_index, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_store *mem = mem_of(store);

	int r = mem_enter(store, &db, err);
	if (r < 0)
		return r;
	if (!mem->in_tx)
		return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
				  "no transaction is open on this connection");
	if (mem->txid == 0)
		mem->txid = db->next_txid++;
	int64_t first = db->last_seq + 1;
	for (size_t i = 0; i < count; i++) {
		*ret_index = i;
		r = push_one(mem, &messages[i], ret_ids ? &ret_ids[i] : NULL, err);
		if (r < 0) {
			forget(db, mem, first);
			return r;
		}
	}
	return 0;
}

int mem_tx_end(struct ob_store *store, bool commit, struct ob_err *err)
{
	struct mem_store *mem = mem_of(store);
	OB_CLEANUP(mem_leave) struct ob_memdb *db = mem->db;

	(void)pthread_mutex_lock(&db->lock);
	if (commit && !mem->in_tx)
		return ob_err_set(err, OUTBOX_ENOTRANSACTION, OB_ERR_FATAL,
				  "no transaction is open on this connection");
	if (!commit)
		forget(db, mem, 0);
	for (size_t i = 0; i < db->row_count; i++) {
		if (db->rows[i]->writer != mem)
			continue;
		db->rows[i]->writer = NULL;
		mem_tell_row(db, db->rows[i], OB_MEMDB_PUSHED);
	}
	if (mem->txid > db->ended_txid)
		db->ended_txid = mem->txid;
	if (commit && mem->txid > 0) {
		db->commits++;
		mem->own_commits++;
	}
	if (db->writer == mem)
		db->writer = NULL;
	mem->txid = 0;
	mem->in_tx = false;
	return 0;
}
