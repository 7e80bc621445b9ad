/* SPDX-License-Identifier: MIT */
/* The memory store: the journal, exceptions, and what changes them. */
#include "base/utf8.h"
#include "doubles/memory_store_impl.h"

/* ---- the journal ----------------------------------------------------- */

struct mem_batch *mem_newest(const struct mem_reader *reader, uint32_t partition)
{
	const struct mem_journal *journal = &reader->journals[partition];

	return &journal->rows[journal->count - 1];
}

void mem_journal_add(const struct ob_memdb *db, struct mem_reader *reader, uint32_t partition,
		     uint64_t epoch, const struct ob_uuid *owner,
		     const struct ob_progress *progress)
{
	struct mem_journal *journal = &reader->journals[partition];
	uint64_t batch = journal->count ? mem_newest(reader, partition)->batch + 1 : 0;
	struct mem_batch row = {
		.batch = batch, .epoch = epoch, .owner = *owner, .at_us = mem_now(db)
	};

	mem_progress_copy(&row.progress, progress);
	journal->rows =
		mem_grow(journal->rows, journal->count, &journal->capacity, sizeof(*journal->rows));
	journal->rows[journal->count++] = row;
}

static const struct mem_batch *find_batch(const struct mem_reader *reader, uint32_t partition,
					  uint64_t batch)
{
	const struct mem_journal *journal = &reader->journals[partition];

	for (size_t i = journal->count; i-- > 0;) {
		if (journal->rows[i].batch == batch)
			return &journal->rows[i];
	}
	return NULL;
}

static bool is_own(const struct mem_batch *row, const struct ob_uuid *owner, uint64_t epoch)
{
	return row && row->epoch == epoch && ob_uuid_eq(&row->owner, owner);
}

int mem_take_over(struct ob_store *store, const char *name, const struct ob_uuid *owner,
		  struct ob_owned *owned, size_t count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = mem_enter(store, &db, err);
	if (r >= 0)
		r = mem_reader_need(db, name, &reader, err);
	if (r < 0)
		return r;
	if (db->foreign)
		return ob_err_set(err, OUTBOX_ESTORE, OB_ERR_FATAL,
				  "memory store: the progress is of another database: run `outbox "
				  "adopt`");
	for (size_t i = 0; i < count; i++) {
		struct ob_owned *o = &owned[i];
		bool gone = o->partition >= OB_LANES * db->partition_count;
		struct mem_batch *newest = gone ? NULL : mem_newest(reader, o->partition);

		o->lost = gone || newest->epoch > o->epoch;
		if (o->lost)
			continue;
		if (!is_own(newest, owner, o->epoch)) {
			mem_journal_add(db, reader, o->partition, o->epoch, owner,
					&newest->progress);
			mem_tell_taken(db, reader, o->partition, owner);
		}
		newest = mem_newest(reader, o->partition);
		o->batch = newest->batch;
		mem_progress_copy(&o->progress, &newest->progress);
	}
	mem_committed(store);
	return 0;
}

/* ---- exceptions ------------------------------------------------------ */

static size_t exception_place(const struct mem_reader *reader, int64_t seq)
{
	size_t i = 0;

	while (i < reader->exception_count && reader->exceptions[i].seq < seq)
		i++;
	return i;
}

struct mem_exception *mem_exception_find(const struct mem_reader *reader, int64_t seq)
{
	size_t i = exception_place(reader, seq);

	return i < reader->exception_count && reader->exceptions[i].seq == seq
		       ? &reader->exceptions[i]
		       : NULL;
}

struct mem_exception *mem_exception_add(struct mem_reader *reader, int64_t seq)
{
	size_t i = exception_place(reader, seq);

	reader->exceptions = mem_grow(reader->exceptions, reader->exception_count,
				      &reader->exception_capacity, sizeof(*reader->exceptions));
	memmove(&reader->exceptions[i + 1], &reader->exceptions[i],
		(reader->exception_count - i) * sizeof(*reader->exceptions));
	reader->exception_count++;
	reader->exceptions[i] = (struct mem_exception){ .seq = seq };
	return &reader->exceptions[i];
}

void mem_exception_remove(struct mem_reader *reader, int64_t seq)
{
	struct mem_exception *e = mem_exception_find(reader, seq);

	if (!e)
		return;
	free(e->queue);
	free(e->error);
	reader->exception_count--;
	memmove(e, e + 1, (size_t)(&reader->exceptions[reader->exception_count] - e) * sizeof(*e));
}

struct mem_exception *mem_queue_head(const struct mem_reader *reader, uint32_t partition,
				     struct ob_str queue)
{
	for (size_t i = 0; i < reader->exception_count; i++) {
		struct mem_exception *e = &reader->exceptions[i];

		if (e->partition == partition && e->queue && ob_str_eq(ob_str(e->queue), queue))
			return e;
	}
	return NULL;
}

void mem_promote(const struct ob_memdb *db, struct mem_reader *reader, uint32_t partition,
		 struct ob_str queue)
{
	struct mem_exception *head = mem_queue_head(reader, partition, queue);

	if (head && head->state == OB_STATE_WAITING && head->due_us == 0)
		head->due_us = mem_now(db);
}

void mem_promote_all(const struct ob_memdb *db, struct mem_reader *reader)
{
	for (size_t i = 0; i < reader->exception_count; i++) {
		const struct mem_exception *e = &reader->exceptions[i];

		if (e->queue)
			mem_promote(db, reader, e->partition, ob_str(e->queue));
	}
}

void mem_exception_set_queue(struct mem_exception *exception, struct ob_str queue)
{
	char *copy = mem_dup(queue);

	free(exception->queue);
	exception->queue = copy;
}

static void set_error(struct mem_exception *exception, struct ob_str error)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf safe = OB_BUF_INIT(4 * OB_LAST_ERROR_MAX + 1);

	if (!error.p)
		return;
	ob_utf8_sanitize(&safe, error, OB_LAST_ERROR_MAX);
	free(exception->error);
	exception->error = mem_dup(ob_buf_view(&safe));
}

static int64_t due_of(const struct ob_memdb *db, const struct ob_change *change)
{
	switch (change->due) {
	case OB_DUE_AFTER:
		return mem_after(mem_now(db), change->delay_ms);
	case OB_DUE_AVAILABLE:
		return change->available_at_us;
	case OB_DUE_NEVER:
	default:
		return 0;
	}
}

/* Has nobody decided otherwise since the message was read? */
static bool is_as_read(const struct mem_exception *e, const struct ob_change *change)
{
	return e->attempts == change->was_attempts &&
	       (e->state == OB_STATE_WAITING || e->state == OB_STATE_FAILED ||
		e->state == OB_STATE_DELAYED);
}

void mem_apply(const struct ob_memdb *db, struct mem_reader *reader, const struct ob_change *change,
	       bool decided)
{
	struct mem_exception *e = mem_exception_find(reader, change->seq);

	switch (change->kind) {
	case OB_CHANGE_REMOVE:
		mem_exception_remove(reader, change->seq);
		return;
	case OB_CHANGE_ADD:
		if (e)
			return;
		e = mem_exception_add(reader, change->seq);
		e->partition = change->partition;
		break;
	case OB_CHANGE_SET:
		if (!e || (!decided && !is_as_read(e, change)))
			return;
		break;
	}
	e->state = change->state;
	e->attempts = change->attempts;
	e->due_us = due_of(db, change);
	e->since_us = mem_now(db);
	mem_exception_set_queue(e, change->queue);
	set_error(e, change->error);
}

/* ---- settling -------------------------------------------------------- */

static enum ob_settled settle_part(const struct ob_memdb *db, struct mem_reader *reader,
				   const struct ob_uuid *owner, struct ob_settle_part *part)
{
	const struct mem_batch *newest;

	if (part->partition >= OB_LANES * db->partition_count)
		return OB_SETTLE_LOST;
	newest = mem_newest(reader, part->partition);
	if (newest->epoch != part->epoch)
		return OB_SETTLE_LOST;
	if (part->batch > newest->batch) {
		mem_journal_add(db, reader, part->partition, part->epoch, owner, &part->progress);
		return OB_SETTLED;
	}
	if (is_own(find_batch(reader, part->partition, part->batch), owner, part->epoch))
		return OB_SETTLED;
	part->batch = newest->batch;
	return OB_SETTLE_MOVED;
}

static bool is_won(const struct ob_settle *settle, uint32_t partition)
{
	for (size_t i = 0; i < settle->part_count; i++) {
		if (settle->parts[i].partition == partition)
			return settle->parts[i].settled == OB_SETTLED;
	}
	return false;
}

int mem_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;

	int r = mem_enter(store, &db, err);
	if (r >= 0)
		r = mem_reader_need(db, settle->reader, &reader, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < settle->part_count; i++)
		settle->parts[i].settled =
			settle_part(db, reader, &settle->owner, &settle->parts[i]);
	for (size_t i = 0; i < settle->change_count; i++) {
		if (is_won(settle, settle->changes[i].partition))
			mem_apply(db, reader, &settle->changes[i], false);
	}
	for (size_t i = 0; i < settle->promote_count; i++) {
		if (is_won(settle, settle->promotes[i].partition))
			mem_promote(db, reader, settle->promotes[i].partition,
				    settle->promotes[i].queue);
	}
	mem_tell(db, reader, OB_MEMDB_SETTLED, &settle->owner);
	mem_committed(store);
	return 0;
}

/* ---- operator verbs -------------------------------------------------- */

struct decided {
	struct ob_change change;
	char *promote; /* NULL: no queue */
};

/* What the verb does to a row that matches; false: nothing. */
static bool decide(enum ob_verb verb, const struct mem_reader *reader, const struct mem_row *row,
		   bool covered, struct decided *ret)
{
	const struct mem_exception *e = mem_exception_find(reader, row->m.seq);
	const struct ob_verb_row found = {
		.covered = covered,
		.excepted = e,
		.state = e ? e->state : OB_STATE_WAITING,
		.partition = row->m.partition,
		.attempts = e ? e->attempts : 0,
		.seq = row->m.seq,
		.queue = e ? ob_str(e->queue) : OB_STR_NULL,
	};
	bool promote;

	if (!ob_exception_verb(verb, &found, &ret->change, &promote))
		return false;
	/* Applying frees the text of the queue. */
	ret->promote = mem_dup(found.queue);
	if (ret->change.queue.p)
		ret->change.queue = ob_str(ret->promote);
	return true;
}

static void apply_decided(const struct ob_memdb *db, struct mem_reader *reader,
			  struct decided *list, size_t count)
{
	OB_AUTOFREE bool *written = calloc((size_t)OB_LANES * db->partition_count, 1);

	for (size_t i = 0; i < count; i++) {
		uint32_t p = list[i].change.partition;

		if (!written[p]) {
			const struct mem_batch newest = *mem_newest(reader, p);
			mem_journal_add(db, reader, p, newest.epoch, &(struct ob_uuid){ { 0 } },
					&newest.progress);
		}
		written[p] = true;
		mem_apply(db, reader, &list[i].change, true);
	}
	for (size_t i = 0; i < count; i++) {
		if (list[i].promote)
			mem_promote(db, reader, list[i].change.partition, ob_str(list[i].promote));
		free(list[i].promote);
	}
}

int mem_operate(struct ob_store *store, const struct ob_operate *operate, uint64_t *ret_changed,
		uint64_t *ret_refused, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	struct mem_reader *reader;
	uint32_t limit = operate->filter.limit ? operate->filter.limit : UINT32_MAX;
	size_t changed = 0;
	uint64_t refused = 0;

	int r = mem_enter(store, &db, err);
	if (r >= 0)
		r = mem_reader_need(db, operate->filter.reader, &reader, err);
	if (r < 0)
		return r;
	OB_AUTOFREE struct decided *list = calloc(db->row_count + 1, sizeof(*list));
	for (size_t i = 0; i < db->row_count; i++) {
		const struct mem_row *row = db->rows[i];
		bool covered = !row->writer && mem_covered(reader, row);
		struct decided one;

		if (row->writer ||
		    !mem_matches(&operate->filter, reader, row, mem_view(db, reader, row, covered)))
			continue;
		if (!decide(operate->verb, reader, row, covered, &one))
			refused++;
		else if (changed < limit)
			list[changed++] = one;
		else
			free(one.promote);
	}
	apply_decided(db, reader, list, changed);
	mem_tell(db, reader, OB_MEMDB_OPERATED, NULL);
	if (changed > 0 && operate->audit) {
		struct ob_audit_row entry = *operate->audit;

		entry.count = changed;
		mem_audit_add(db, &entry, changed);
	}
	if (changed > 0)
		mem_committed(store);
	*ret_changed = changed;
	*ret_refused = refused;
	return 0;
}
