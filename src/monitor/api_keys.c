/* SPDX-License-Identifier: MIT */
/* Keys that a failed or dead message holds, and how much waits behind each. */
#include "monitor/api.h"
#include "monitor/routes.h"
#include "operate/readers.h"

#include <stdlib.h>

/* PAGE: all at once: each page walks the exceptions from their beginning. */
enum { PAGE = 10000, SCAN = PAGE, SHOWN = 1000, ARENA_MAX = 64 << 20 };

#define BIT(view) (1U << OB_VIEW_##view)

struct held_key {
	struct ob_str key;
	struct ob_message head; /* its texts are the arena's */
	uint64_t parked;
};

struct taking {
	struct ob_store *store;
	struct ob_arena arena;
	struct held_key *keys;
	size_t count;
	bool capped;
	int64_t now_us;
};

int ob_api_compare(struct ob_str a, struct ob_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int r = n ? memcmp(a.p, b.p, n) : 0;

	return r ? r : a.n < b.n ? -1 : a.n > b.n;
}

/* By key, then by number: the first of a key is its head. */
static int by_key(const void *a, const void *b)
{
	const struct held_key *x = a, *y = b;
	int r = ob_api_compare(x->key, y->key);

	return r ? r : x->head.seq < y->head.seq ? -1 : x->head.seq > y->head.seq;
}

static bool note_head(struct taking *t, const struct ob_message *m)
{
	struct held_key *k = &t->keys[t->count];

	if (!m->key.p || (m->state != OB_STATE_FAILED && m->state != OB_STATE_DEAD_HOLD))
		return true;
	*k = (struct held_key){ .head = *m };
	if (!ob_arena_copy(&t->arena, m->key, &k->key) ||
	    !ob_arena_copy(&t->arena, m->last_error, &k->head.last_error) ||
	    !ob_arena_copy(&t->arena, m->event_type, &k->head.event_type))
		return false;
	t->count++;
	return true;
}

static bool note_parked(struct taking *t, const struct ob_message *m)
{
	size_t low = 0, high = t->count;

	while (m->key.p && low < high) {
		size_t mid = low + (high - low) / 2;
		int r = ob_api_compare(m->key, t->keys[mid].key);

		if (r == 0) {
			t->keys[mid].parked++;
			return true;
		}
		if (r < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return true;
}

static int walk(struct taking *t, const char *reader, unsigned views,
		bool (*note)(struct taking *t, const struct ob_message *m), struct ob_err *err)
{
	struct ob_filter filter = {
		.reader = reader, .views = views, .excepted = true, .limit = PAGE, .brief = true
	};
	struct ob_batch batch;
	uint32_t read = 0;
	int r;

	ob_batch_init(&batch);
	do {
		r = ob_store_list(t->store, &filter, &batch, &t->now_us, err);
		for (uint32_t i = 0; r == 0 && i < batch.count; i++) {
			filter.after_seq = batch.messages[i].seq;
			if (!note(t, &batch.messages[i]))
				r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
		}
		read += batch.count;
	} while (r == 0 && batch.count == PAGE && read < SCAN);
	t->capped = t->capped || read >= SCAN;
	ob_batch_done(&batch);
	return r;
}

static void keep_heads(struct taking *t)
{
	size_t kept = 0;

	qsort(t->keys, t->count, sizeof(*t->keys), by_key);
	for (size_t i = 0; i < t->count; i++) {
		if (kept == 0 || !ob_str_eq(t->keys[kept - 1].key, t->keys[i].key))
			t->keys[kept++] = t->keys[i];
	}
	t->count = kept;
}

static void key_json(struct ob_jout *j, struct ob_str reader, const struct held_key *k)
{
	const struct ob_message *m = &k->head;
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&m->id, id);
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "reader", reader);
	ob_jout_text(j, "key", k->key);
	ob_jout_int(j, "partition", m->partition);
	ob_jout_begin(j, "head", '{');
	ob_jout_text(j, "id", ob_str(id));
	ob_jout_text(j, "state", ob_str(ob_view_name(m->view)));
	ob_jout_int(j, "attempts", m->attempts);
	ob_jout_us(j, "due_us", m->due_us);
	ob_jout_text(j, "last_error", m->last_error);
	ob_jout_text(j, "event_type", m->event_type);
	ob_jout_end(j, '}');
	ob_jout_int(j, "parked", (int64_t)k->parked);
	ob_jout_us(j, "since_us", m->since_us);
	ob_jout_end(j, '}');
}

static int by_since(const void *a, const void *b)
{
	const struct held_key *x = a, *y = b;

	return x->head.since_us < y->head.since_us ? -1 : x->head.since_us > y->head.since_us;
}

/* The keys of one reader, the longest held first. */
static int take_reader(struct taking *t, struct ob_jout *j, struct ob_readers *readers,
		       const struct ob_reader *reader, struct ob_err *err)
{
	const char *name = ob_readers_text(readers, reader->name);

	t->count = 0;
	ob_arena_reset(&t->arena, 1 << 20);
	t->keys = ob_arena_alloc(&t->arena, (SCAN + PAGE) * sizeof(*t->keys));
	if (!name || !t->keys)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	int r = walk(t, name, BIT(FAILED) | BIT(DEAD), note_head, err);
	if (r < 0 || t->count == 0)
		return r;
	keep_heads(t);
	r = walk(t, name, BIT(PARKED), note_parked, err);
	qsort(t->keys, t->count, sizeof(*t->keys), by_since);
	for (size_t i = 0; r == 0 && i < t->count && i < SHOWN; i++)
		key_json(j, reader->name, &t->keys[i]);
	t->capped = t->capped || t->count > SHOWN;
	return r;
}

static int take_keys(struct ob_request *req, struct taking *t, struct ob_err *err)
{
	const char *wanted = ob_request_arg(req, "reader");
	struct ob_readers readers;
	int r = ob_readers_load(&readers, t->store, err);

	if (r == 0 && wanted && !ob_readers_find(&readers, wanted))
		r = ob_readers_unknown(&readers, wanted, err);
	for (size_t i = 0; r == 0 && i < readers.count; i++) {
		const struct ob_reader *reader = &readers.list[i];

		if (wanted ? ob_str_eq(reader->name, ob_str(wanted)) : !reader->temporary)
			r = take_reader(t, &req->out, &readers, reader, err);
	}
	ob_readers_done(&readers);
	return r;
}

void ob_api_keys(struct ob_request *req)
{
	struct taking t = { .arena = OB_ARENA_INIT(ARENA_MAX) };
	struct ob_err err = OB_ERR_INIT;
	struct ob_jout *j = &req->out;
	struct ob_asked asked;

	req->type = "application/json";
	if (!ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	t.store = asked.store;
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "store", ob_str(asked.pool->entry->name));
	ob_jout_begin(j, "keys", '[');
	int r = take_keys(req, &t, &err);
	ob_jout_end(j, ']');
	ob_jout_bool(j, "capped", t.capped);
	ob_jout_int(j, "now_us", t.now_us ? t.now_us : ob_clock_real_us(&ob_clock_system));
	ob_jout_end(j, '}');
	ob_arena_done(&t.arena);
	ob_request_end(req, &asked, r, &err);
}
