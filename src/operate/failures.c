/* SPDX-License-Identifier: MIT */
/*
 * The groups are made here, over a bounded list of failures: the same on every database, and
 * without a statement that reads more the more there is.
 */
#include "operate/failures.h"

#include "operate/cause.h"
#include "operate/readers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* PAGE: all at once: each page walks the exceptions from their beginning. */
enum { PAGE = OB_FAILURES_SCAN, ARENA_MAX = 256 << 20, CAUSE_MAX = 4096, TABLE = 1 << 15 };

#define BIT(view) (1U << OB_VIEW_##view)

static const char *const names[] = {
#define X(name, text) [OB_FAILURES_##name] = (text),
	OB_FAILURES_MAP(X)
#undef X
};

/* One failure, until the groups are complete. */
struct member {
	struct group *group;
	struct ob_uuid id;
};

struct group {
	struct ob_failure_group shown;
	struct group *next; /* of the same place in the table */
	struct ob_uuid *ids;
	size_t id_count;
};

/* A key that a failure holds, and the first group that does. */
struct held {
	struct ob_str reader, key;
	struct group *group;
	struct held *next;
};

struct taking {
	struct ob_failures *f;
	const struct ob_failures_ask *ask;
	const struct ob_config *config;
	struct ob_store *store;
	struct group *groups[TABLE];
	struct held *held[TABLE];
	struct member *members;
	size_t member_count, member_room;
	struct ob_buf cause;
};

/* ---- names ----------------------------------------------------------- */

const char *ob_failures_by_name(enum ob_failures_by by)
{
	return names[by];
}

int ob_failures_by_parse(const char *name)
{
	for (int by = 0; by < OB_FAILURES_COUNT; by++) {
		if (strcmp(names[by], name) == 0)
			return by;
	}
	return -1;
}

int ob_failures_by_of(const char *id)
{
	const char *dash = strchr(id, '-');
	char word[16];

	if (!dash || (size_t)(dash - id) >= sizeof(word))
		return -1;
	(void)snprintf(word, sizeof(word), "%.*s", (int)(dash - id), id);
	return ob_failures_by_parse(word);
}

/* ---- groups ---------------------------------------------------------- */

static uint64_t hash_text(uint64_t h, struct ob_str text)
{
	for (size_t i = 0; i < text.n; i++)
		h = (h ^ (unsigned char)text.p[i]) * UINT64_C(1099511628211);
	return (h ^ (text.p ? 0xff : 0xfe)) * UINT64_C(1099511628211);
}

static struct ob_str sink_of(const struct ob_config *config, struct ob_str reader)
{
	for (size_t i = 0; config && i < config->relay_count; i++) {
		if (ob_str_eq(ob_str(config->relays[i].name), reader) && config->relays[i].sink)
			return ob_str(config->relays[i].sink->name);
	}
	return OB_STR_NULL;
}

static bool is_group(const struct ob_failure_group *a, const struct ob_failure_group *b)
{
	return ob_str_eq(a->reader, b->reader) && ob_str_eq(a->cause, b->cause) &&
	       ob_str_eq(a->event_type, b->event_type) && ob_str_eq(a->key, b->key);
}

/* What the message has in common with others of its group; the texts are borrowed. */
static struct ob_failure_group common_of(struct taking *t, struct ob_str reader,
					 const struct ob_message *m)
{
	struct ob_failure_group g = { .reader = reader, .sink = sink_of(t->config, reader) };

	switch (t->ask->by) {
	case OB_FAILURES_CAUSE:
		ob_buf_clear(&t->cause);
		ob_cause_of(m->last_error, &t->cause);
		g.cause = m->last_error.p ? ob_buf_view(&t->cause) : OB_STR_NULL;
		g.event_type = m->event_type;
		break;
	case OB_FAILURES_TYPE:
		g.event_type = m->event_type;
		break;
	case OB_FAILURES_KEY:
		g.key = m->key;
		break;
	case OB_FAILURES_RELAY:
	case OB_FAILURES_SINK:
	case OB_FAILURES_COUNT:
		break;
	}
	return g;
}

static struct group *find_group(struct taking *t, struct ob_str reader, const struct ob_message *m)
{
	struct ob_failure_group like = common_of(t, reader, m);
	struct ob_arena *arena = &t->f->arena;
	uint64_t h = hash_text(UINT64_C(14695981039346656037), ob_str(names[t->ask->by]));

	h = hash_text(h, like.reader);
	h = hash_text(h, like.cause);
	h = hash_text(h, like.event_type);
	h = hash_text(h, like.key);
	struct group **place = &t->groups[h % TABLE];
	for (struct group *g = *place; g; g = g->next) {
		if (is_group(&g->shown, &like))
			return g;
	}
	struct group *g = ob_arena_alloc(arena, sizeof(*g));
	if (!g || !ob_arena_copy(arena, like.cause, &like.cause) ||
	    !ob_arena_copy(arena, like.event_type, &like.event_type) ||
	    !ob_arena_copy(arena, like.key, &like.key))
		return NULL;
	*g = (struct group){ .shown = like, .next = *place };
	(void)snprintf(g->shown.id, sizeof(g->shown.id), "%s-%016" PRIx64, names[t->ask->by], h);
	*place = g;
	t->f->count++;
	return g;
}

static struct held **held_place(struct taking *t, struct ob_str reader, struct ob_str key)
{
	uint64_t h = hash_text(hash_text(UINT64_C(14695981039346656037), reader), key);

	return &t->held[h % TABLE];
}

static struct held *find_held(struct taking *t, struct ob_str reader, struct ob_str key)
{
	for (struct held *h = *held_place(t, reader, key); h; h = h->next) {
		if (ob_str_eq(h->reader, reader) && ob_str_eq(h->key, key))
			return h;
	}
	return NULL;
}

/* A key is counted once, in the group of the first message that holds it. */
static bool note_held(struct taking *t, struct ob_str reader, const struct ob_message *m,
		      struct group *g)
{
	bool holds = m->state == OB_STATE_FAILED || m->state == OB_STATE_DEAD_HOLD;

	if (!holds || !m->key.p || find_held(t, reader, m->key))
		return true;
	struct held *h = ob_arena_alloc(&t->f->arena, sizeof(*h));
	struct held **place = held_place(t, reader, m->key);
	if (!h || !ob_arena_copy(&t->f->arena, m->key, &h->key))
		return false;
	h->reader = reader;
	h->group = g;
	h->next = *place;
	*place = h;
	g->shown.keys_held++;
	return true;
}

static bool add_member(struct taking *t, struct group *g, const struct ob_uuid *id)
{
	if (!t->ask->ids)
		return true;
	if (t->member_count == t->member_room) {
		size_t room = t->member_room ? t->member_room * 2 : 256;
		struct member *more = reallocarray(t->members, room, sizeof(*more));

		if (!more)
			return false;
		t->members = more;
		t->member_room = room;
	}
	t->members[t->member_count++] = (struct member){ g, *id };
	return true;
}

static bool add_failure(struct taking *t, struct ob_str reader, const struct ob_message *m)
{
	struct group *g = find_group(t, reader, m);

	if (!g || !note_held(t, reader, m, g) || !add_member(t, g, &m->id))
		return false;
	struct ob_failure_group *s = &g->shown;
	s->failed += m->view == OB_VIEW_FAILED;
	s->dead += m->view == OB_VIEW_DEAD;
	if (!s->first_us || m->since_us < s->first_us)
		s->first_us = m->since_us;
	if (m->since_us > s->last_us)
		s->last_us = m->since_us;
	if (m->view == OB_VIEW_FAILED && m->due_us &&
	    (!s->next_due_us || m->due_us < s->next_due_us))
		s->next_due_us = m->due_us;
	if (s->sample_count < OB_FAILURES_SAMPLE)
		s->sample[s->sample_count++] = m->id;
	return true;
}

static bool add_parked(struct taking *t, struct ob_str reader, const struct ob_message *m)
{
	struct held *h = m->key.p ? find_held(t, reader, m->key) : NULL;

	if (h)
		h->group->shown.parked++;
	return true;
}

/* ---- reading --------------------------------------------------------- */

typedef bool add_fn(struct taking *t, struct ob_str reader, const struct ob_message *m);

/* Pages of the reader's messages of these states, OB_FAILURES_SCAN at most. */
static int walk(struct taking *t, struct ob_str reader, const char *name, unsigned views,
		add_fn *add, struct ob_err *err)
{
	struct ob_filter filter = {
		.reader = name, .views = views, .excepted = true, .limit = PAGE, .brief = true
	};
	struct ob_batch batch;
	uint32_t read = 0;
	int r = 0;

	ob_batch_init(&batch);
	do {
		r = ob_store_list(t->store, &filter, &batch, &t->f->now_us, err);
		for (uint32_t i = 0; r == 0 && i < batch.count; i++) {
			filter.after_seq = batch.messages[i].seq;
			if (!add(t, reader, &batch.messages[i]))
				r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
		}
		read += batch.count;
	} while (r == 0 && batch.count == PAGE && read < OB_FAILURES_SCAN);
	if (views & (BIT(FAILED) | BIT(DEAD)))
		t->f->scanned += read;
	t->f->capped = t->f->capped || read >= OB_FAILURES_SCAN;
	ob_batch_done(&batch);
	return r;
}

static int take_reader(struct taking *t, struct ob_readers *readers, const struct ob_reader *reader,
		       struct ob_err *err)
{
	unsigned views = t->ask->views ? t->ask->views : BIT(FAILED) | BIT(DEAD);
	const char *name = ob_readers_text(readers, reader->name);
	size_t groups = t->f->count;
	struct ob_str copy;

	if (!name || !ob_arena_copy(&t->f->arena, reader->name, &copy))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	int r = walk(t, copy, name, views, add_failure, err);
	if (r == 0 && t->f->count > groups)
		r = walk(t, copy, name, BIT(PARKED), add_parked, err);
	return r;
}

static int take_readers(struct taking *t, struct ob_err *err)
{
	struct ob_readers readers;
	const struct ob_reader *only = NULL;
	int r = ob_readers_load(&readers, t->store, err);

	if (r == 0 && t->ask->reader)
		r = ob_readers_choose(&readers, t->ask->reader, &only, err);
	for (size_t i = 0; r == 0 && i < readers.count; i++) {
		const struct ob_reader *reader = &readers.list[i];

		if (only ? reader == only : !reader->temporary)
			r = take_reader(t, &readers, reader, err);
	}
	ob_readers_done(&readers);
	return r;
}

/* ---- the whole ------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	const struct ob_failure_group *x = a, *y = b;
	uint64_t m = x->failed + x->dead, n = y->failed + y->dead;

	if (m != n)
		return m > n ? -1 : 1;
	if (x->last_us != y->last_us)
		return x->last_us > y->last_us ? -1 : 1;
	return strcmp(x->id, y->id);
}

static bool hand_out_ids(struct taking *t)
{
	for (size_t i = 0; i < t->member_count; i++) {
		struct group *g = t->members[i].group;

		if (!g->ids) {
			uint64_t room = g->shown.failed + g->shown.dead;

			g->ids = ob_arena_alloc(&t->f->arena, room * sizeof(*g->ids));
			if (!g->ids)
				return false;
			g->shown.ids = g->ids;
		}
		g->ids[g->id_count++] = t->members[i].id;
	}
	return true;
}

static int finish(struct taking *t, struct ob_err *err)
{
	struct ob_failures *f = t->f;
	size_t count = 0;

	f->groups = ob_arena_alloc(&f->arena, (f->count + 1) * sizeof(*f->groups));
	if (!f->groups || !hand_out_ids(t))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	for (size_t i = 0; i < TABLE; i++) {
		for (const struct group *g = t->groups[i]; g; g = g->next)
			f->groups[count++] = g->shown;
	}
	qsort(f->groups, count, sizeof(*f->groups), by_size);
	return 0;
}

int ob_failures_take(struct ob_failures *f, struct ob_store *store, const struct ob_config *config,
		     const struct ob_failures_ask *ask, struct ob_err *err)
{
	struct taking *t = calloc(1, sizeof(*t));

	*f = (struct ob_failures){ .arena = OB_ARENA_INIT(ARENA_MAX), .by = ask->by };
	if (!t)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	t->f = f;
	t->ask = ask;
	t->config = config;
	t->store = store;
	t->cause = OB_BUF_INIT(CAUSE_MAX);
	int r = take_readers(t, err);
	if (r == 0)
		r = finish(t, err);
	ob_buf_done(&t->cause);
	free(t->members);
	free(t);
	return r;
}

void ob_failures_done(struct ob_failures *f)
{
	ob_arena_done(&f->arena);
}

const struct ob_failure_group *ob_failures_find(const struct ob_failures *f, const char *id)
{
	for (size_t i = 0; i < f->count; i++) {
		if (strcmp(f->groups[i].id, id) == 0)
			return &f->groups[i];
	}
	return NULL;
}

/* ---- for programs ---------------------------------------------------- */

static void filter_json(struct ob_jout *j, const struct ob_failure_group *g)
{
	ob_jout_begin(j, "filter", '{');
	ob_jout_text(j, "reader", g->reader);
	ob_jout_text(j, "event", g->event_type);
	ob_jout_text(j, "key", g->key);
	ob_jout_end(j, '}');
}

void ob_failure_group_json(struct ob_jout *j, const struct ob_failure_group *g)
{
	char id[OB_UUID_TEXT_SIZE];

	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "group", ob_str(g->id));
	ob_jout_text(j, "cause", g->cause);
	ob_jout_text(j, "event_type", g->event_type);
	ob_jout_text(j, "reader", g->reader);
	ob_jout_text(j, "sink", g->sink);
	ob_jout_text(j, "key", g->key);
	ob_jout_begin(j, "states", '{');
	ob_jout_int(j, "failed", (int64_t)g->failed);
	ob_jout_int(j, "dead", (int64_t)g->dead);
	ob_jout_end(j, '}');
	ob_jout_int(j, "count", (int64_t)(g->failed + g->dead));
	ob_jout_when(j, "first", g->first_us);
	ob_jout_when(j, "last", g->last_us);
	ob_jout_when(j, "next_due", g->next_due_us);
	ob_jout_int(j, "keys_held", (int64_t)g->keys_held);
	ob_jout_int(j, "parked", (int64_t)g->parked);
	ob_jout_begin(j, "sample", '[');
	for (size_t i = 0; i < g->sample_count; i++) {
		ob_uuid_format(&g->sample[i], id);
		ob_jout_text(j, NULL, ob_str(id));
	}
	ob_jout_end(j, ']');
	filter_json(j, g);
	ob_jout_end(j, '}');
}

void ob_failures_json(struct ob_jout *j, const struct ob_failures *f)
{
	ob_jout_begin(j, NULL, '{');
	ob_jout_text(j, "by", ob_str(ob_failures_by_name(f->by)));
	ob_jout_begin(j, "groups", '[');
	for (size_t i = 0; i < f->count; i++)
		ob_failure_group_json(j, &f->groups[i]);
	ob_jout_end(j, ']');
	ob_jout_bool(j, "capped", f->capped);
	ob_jout_int(j, "scanned", (int64_t)f->scanned);
	ob_jout_end(j, '}');
}
