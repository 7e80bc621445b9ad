/* SPDX-License-Identifier: MIT */
/* What the cases of the store contract share: the database, writing and looking. */
#include "store_harness.h"

struct store_fixture fx;

/* ---- the database ---------------------------------------------------- */

struct ob_store *store_open(void)
{
	ck_assert_uint_lt(fx.connection_count, STORE_CONNECTIONS_MAX);
	struct ob_store *store = fx.backend->open();
	fx.connections[fx.connection_count++] = store;
	return store;
}

void store_close(struct ob_store *store)
{
	for (size_t i = 0; i < fx.connection_count; i++) {
		if (fx.connections[i] == store)
			fx.connections[i] = NULL;
	}
	ob_store_free(store);
}

void store_begin(uint32_t partition_count)
{
	const struct ob_setup setup = { .partition_count = partition_count,
					.partitioned = fx.backend->partition_rows > 0,
					.partition_rows = fx.backend->partition_rows };
	struct ob_setup_done done;

	fx.start_us = INT64_C(1700000000) * 1000000 + 123456;
	fx.clock = OB_CLOCK_VIRTUAL(fx.start_us);
	fx.partition_count = partition_count;
	fx.arena = OB_ARENA_INIT(SIZE_MAX / 2);
	ob_batch_init(&fx.batch);
	ob_batch_init(&fx.look);
	fx.decide = (struct ob_decide){ .ordering = OB_ORDER_KEY };
	fx.delay_ms = 5000;
	fx.error = OB_STR("why");
	store_be("main", "default", 200);
	fx.backend->make();
	fx.store = store_open();
	if (partition_count == 0)
		return;
	store_ok(ob_store_setup(fx.store, &setup, &done, &fx.err));
	ck_assert(store_make_reader("main", "default", (struct ob_place){ OB_START_BEGINNING, 0 }));
}

void store_end(void)
{
	if (fx.connection_count == 0)
		return;
	store_be("main", "default", 200); /* drops what the worker holds */
	for (size_t i = 0; i < fx.connection_count; i++)
		ob_store_free(fx.connections[i]);
	fx.backend->drop();
	ob_batch_done(&fx.batch);
	ob_batch_done(&fx.look);
	ob_arena_done(&fx.arena);
	fx.connection_count = 0;
}

void store_advance_ms(int64_t ms)
{
	ob_clock_advance_us(&fx.clock, ms * 1000);
	if (fx.backend->advance)
		fx.backend->advance(ms);
	ob_arena_reset(&fx.arena, SIZE_MAX);
}

bool store_has(unsigned cap)
{
	return fx.store->ops->caps & cap;
}

struct ob_uuid store_uuid(uint8_t n)
{
	struct ob_uuid id = { { [0] = n, [6] = 0x40, [8] = 0x80, [15] = n } };

	return id;
}

bool store_make_reader(const char *name, const char *target, struct ob_place place)
{
	const struct ob_reader reader = { .name = ob_str(name),
					  .target = ob_str(target),
					  .filter = OB_STR("") };
	bool made = false;

	store_ok(ob_store_reader_make(fx.store, &reader, &place, &made, &fx.err));
	return made;
}

/* ---- writing --------------------------------------------------------- */

struct outbox_message store_filled(struct outbox_message message)
{
	if (!message.aggregate_type)
		message.aggregate_type = "order";
	if (!message.event_type)
		message.event_type = "e";
	if (!message.payload && !(message.flags & OUTBOX_TOMBSTONE))
		message.payload = "{}";
	return message;
}

void store_push(struct ob_store *store, struct outbox_message message)
{
	size_t index;

	message = store_filled(message);
	store_ok(ob_store_tx_push(store, &message, 1, NULL, &index, &fx.err));
}

void store_commit(struct ob_store *store)
{
	store_ok(ob_store_tx_end(store, true, &fx.err));
}

void store_roll_back(struct ob_store *store)
{
	store_ok(ob_store_tx_end(store, false, &fx.err));
}

void store_put(struct outbox_message message)
{
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_push(fx.store, message);
	store_commit(fx.store);
}

void store_put_key(const char *label, const char *key)
{
	store_put((struct outbox_message){ .event_type = label, .partition_key = key });
}

static void push_all(struct ob_store *store, const char *labels)
{
	char label[32], key[2] = "";

	for (const char *p = labels; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");

		ck_assert_uint_lt(n, sizeof(label));
		memcpy(label, p, n);
		label[n] = '\0';
		key[0] = label[0];
		store_push(store,
			   (struct outbox_message){ .event_type = label, .partition_key = key });
		p += n;
	}
}

void store_open_with(struct ob_store *store, const char *labels)
{
	store_ok(ob_store_tx_begin(store, &fx.err));
	push_all(store, labels);
}

void store_put_all(const char *labels)
{
	store_open_with(fx.store, labels);
	store_commit(fx.store);
}

/* ---- looking --------------------------------------------------------- */

const char *store_labels(const struct ob_batch *batch)
{
	static struct ob_buf text;

	text.max = 1 << 20;
	ob_buf_clear(&text);
	ob_buf_adds(&text, "");
	for (uint32_t i = 0; i < batch->count; i++) {
		ob_buf_adds(&text, i ? " " : "");
		ob_buf_add(&text, batch->messages[i].event_type);
	}
	ck_assert(!text.failed);
	return ob_buf_str(&text);
}

static void list(struct ob_filter filter)
{
	int64_t now;

	filter.reader = fx.reader;
	store_ok(ob_store_list(fx.store, &filter, &fx.look, &now, &fx.err));
}

const struct ob_message *store_find(const char *label)
{
	list((struct ob_filter){ .event_type = label });
	ck_assert_msg(fx.look.count <= 1, "there is more than one '%s'", label);
	return fx.look.count ? &fx.look.messages[0] : NULL;
}

const struct ob_message *store_row(const char *label)
{
	const struct ob_message *row = store_find(label);

	ck_assert_msg(row, "there is no row '%s'", label);
	return row;
}

void store_expect_view(const char *label, enum ob_view view)
{
	const struct ob_message *row = store_row(label);

	ck_assert_msg(row->view == view, "'%s' is %s, not %s", label, ob_view_name(row->view),
		      ob_view_name(view));
}

void store_expect_state(const char *label, enum ob_state state)
{
	const struct ob_message *row = store_row(label);

	ck_assert_msg(row->excepted, "'%s' has no exception", label);
	ck_assert_msg(row->state == state, "'%s' has state %d, not %d", label, row->state, state);
}

void store_expect_rows(const char *labels)
{
	list((struct ob_filter){ 0 });
	ck_assert_str_eq(store_labels(&fx.look), labels);
}

void store_operate(enum ob_verb verb, const char *label, uint64_t changed, uint64_t refused)
{
	const struct ob_operate operate = {
		.verb = verb, .filter = { .reader = fx.reader, .event_type = label }
	};
	uint64_t did = 77, did_not = 77;

	store_ok(ob_store_operate(fx.store, &operate, &did, &did_not, &fx.err));
	ck_assert_uint_eq(did, changed);
	ck_assert_uint_eq(did_not, refused);
}

size_t store_journal_count(void)
{
	return fx.backend->journal_count ? fx.backend->journal_count() : 0;
}

/* ---- everything as text ---------------------------------------------- */

static void dump_rows(struct ob_buf *out, const char *reader)
{
	const struct ob_filter everything = { .reader = reader };
	int64_t now;

	store_ok(ob_store_list(fx.store, &everything, &fx.look, &now, &fx.err));
	for (uint32_t i = 0; i < fx.look.count; i++) {
		const struct ob_message *m = &fx.look.messages[i];

		ob_buf_addf(out, "%s: %s %s attempts=%u due=%lld since=%lld published=%lld ",
			    reader, m->event_type.p, ob_view_name(m->view), m->attempts,
			    (long long)m->due_us, (long long)m->since_us,
			    (long long)m->published_at_us);
		ob_buf_addf(out, "p=%u state=%d error=%s\n", m->partition,
			    m->excepted ? m->state : -1, m->last_error.p ? m->last_error.p : "-");
	}
}

/* A position, as the number of rows up to it: numbers themselves may differ after a rollback. */
static unsigned rows_up_to(int64_t pos)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < fx.look.count; i++)
		count += fx.look.messages[i].seq <= pos;
	return count;
}

static void dump_readers(struct ob_buf *out)
{
	struct ob_reader *readers;
	size_t count;

	store_ok(ob_store_readers(fx.store, &fx.arena, &readers, &count, &fx.err));
	for (size_t i = 0; i < count; i++) {
		const struct ob_reader *r = &readers[i];

		dump_rows(out, r->name.p);
		ob_buf_addf(out, "reader %s of %s low=%u high=%u moved=%lld ", r->name.p,
			    r->target.p, rows_up_to(r->low_pos), rows_up_to(r->high_pos),
			    (long long)r->moved_at_us);
		ob_buf_addf(out, "workers=%u exceptions=%llu\n", r->workers,
			    (unsigned long long)r->exceptions);
	}
}

static void dump_leases(struct ob_buf *out)
{
	struct ob_partition *partitions;
	struct ob_worker *workers;
	size_t count;

	store_ok(ob_store_partitions(fx.store, NULL, &fx.arena, &partitions, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(out, "%s p%u leased=%d owner=%u epoch=%llu until=%lld\n",
			    partitions[i].reader.p, partitions[i].number, partitions[i].leased,
			    partitions[i].owner.b[0], (unsigned long long)partitions[i].epoch,
			    (long long)partitions[i].until_us);
	store_ok(ob_store_workers(fx.store, NULL, &fx.arena, &workers, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(out, "worker %u until=%lld published=%llu %s\n", workers[i].id.b[0],
			    (long long)workers[i].heartbeat_until_us,
			    (unsigned long long)workers[i].published, workers[i].state.p);
}

static void dump_audit(struct ob_buf *out)
{
	struct ob_audit_row *entries;
	size_t count;

	store_ok(ob_store_audits(fx.store, &(struct ob_audit_ask){ .limit = 1000 }, &fx.arena,
				 &entries, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(out, "audit %s %s %llu\n", entries[i].plan.p, entries[i].verb.p,
			    (unsigned long long)entries[i].count);
}

char *store_dump(void)
{
	struct ob_buf out = OB_BUF_INIT(1 << 20);
	struct ob_minute *minutes;
	size_t count;

	dump_readers(&out);
	dump_leases(&out);
	store_ok(ob_store_throughput(fx.store, NULL, 1000, &fx.arena, &minutes, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&out, "minute %lld published=%llu failed=%llu\n",
			    (long long)minutes[i].minute_us,
			    (unsigned long long)minutes[i].published,
			    (unsigned long long)minutes[i].failed);
	dump_audit(&out);
	ob_buf_addf(&out, "journal %zu\n", store_journal_count());
	char *text = ob_buf_take(&out);
	ck_assert_ptr_nonnull(text);
	return text;
}

void store_expect_same(char *before, char *after)
{
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
}
