/* SPDX-License-Identifier: MIT */
/* What the cases of the store contract share. */
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

void store_begin(uint32_t partition_count)
{
	const struct ob_setup setup = { .partition_count = partition_count };
	struct ob_setup_done done;

	fx.start_us = INT64_C(1700000000) * 1000000 + 123456;
	fx.clock = OB_CLOCK_VIRTUAL(fx.start_us);
	fx.partition_count = partition_count;
	fx.me = store_uuid(200);
	fx.arena = OB_ARENA_INIT(SIZE_MAX / 2);
	ob_batch_init(&fx.batch);
	ob_batch_init(&fx.look);
	fx.settle = (struct ob_settle){ .target = "default", .owner = fx.me };
	fx.backend->make();
	fx.store = store_open();
	if (partition_count > 0)
		store_ok(ob_store_setup(fx.store, &setup, &done, &fx.err));
}

void store_end(void)
{
	for (size_t i = 0; i < fx.connection_count; i++)
		ob_store_free(fx.connections[i]);
	if (fx.connection_count > 0) {
		fx.backend->drop();
		ob_batch_done(&fx.batch);
		ob_batch_done(&fx.look);
		ob_arena_done(&fx.arena);
	}
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

void store_put(struct outbox_message message)
{
	store_ok(ob_store_tx_begin(fx.store, &fx.err));
	store_push(fx.store, message);
	store_ok(ob_store_tx_end(fx.store, true, &fx.err));
}

void store_put_key(const char *label, const char *key)
{
	store_put((struct outbox_message){ .event_type = label, .partition_key = key });
}

/* ---- taking work out ------------------------------------------------- */

struct ob_uuid store_uuid(uint8_t n)
{
	struct ob_uuid id = { { [0] = n, [6] = 0x40, [8] = 0x80, [15] = n } };

	return id;
}

void store_hold_all(const struct ob_uuid *owner, int64_t ttl_ms)
{
	struct ob_lease *leases;
	size_t count;
	uint32_t all;

	store_ok(ob_store_seed(fx.store, "default", &all, &fx.err));
	ck_assert_uint_eq(all, fx.partition_count);
	store_ok(ob_store_take(fx.store, "default", owner, all, ttl_ms, &fx.arena, &leases, &count,
			       &fx.err));
	ck_assert_uint_eq(count, all);
	ck_assert_uint_le(count, STORE_LEASES_MAX);
	memcpy(fx.leases, leases, count * sizeof(*leases));
	fx.lease_count = count;
	fx.settle.owner = *owner;
	fx.settle.leases = fx.leases;
	fx.settle.lease_count = count;
}

void store_fetch(uint32_t limit, enum ob_ordering ordering)
{
	uint32_t partitions[OB_PARTITIONS_MAX];
	const struct ob_fetch fetch = {
		.target = "default",
		.partitions = partitions,
		.partition_count = fx.partition_count,
		.limit = limit,
		.max_bytes = 1 << 20,
		.ordering = ordering,
	};

	for (uint32_t i = 0; i < fx.partition_count; i++)
		partitions[i] = i;
	store_ok(ob_store_fetch(fx.store, &fetch, &fx.batch, &fx.err));
}

void store_claim(struct ob_store *store, uint8_t token, uint32_t limit, int64_t ttl_ms)
{
	const struct ob_claim claim = {
		.target = "default",
		.token = store_uuid(token),
		.worker = "claimer",
		.limit = limit,
		.max_bytes = 1 << 20,
		.ttl_ms = ttl_ms,
	};

	store_ok(ob_store_claim(store, &claim, &fx.batch, &fx.err));
}

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

static const struct ob_message *find_in(const struct ob_batch *batch, const char *label)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		if (ob_str_eq(batch->messages[i].event_type, ob_str(label)))
			return &batch->messages[i];
	}
	return NULL;
}

const struct ob_message *store_fetched(const char *label)
{
	const struct ob_message *message = find_in(&fx.batch, label);

	ck_assert_msg(message, "'%s' is not in the batch, which has: %s", label,
		      store_labels(&fx.batch));
	return message;
}

void store_settle(const char *label, enum ob_outcome_kind kind)
{
	struct ob_settle settle = fx.settle;
	struct ob_outcome outcome = fx.outcome;

	outcome.message = store_fetched(label);
	outcome.kind = kind;
	settle.outcomes = &outcome;
	settle.outcome_count = 1;
	store_ok(ob_store_settle(fx.store, &settle, NULL, &fx.settled, &fx.err));
}

void store_fetch_settle(const char *label, enum ob_outcome_kind kind)
{
	store_fetch(1000, fx.settle.ordering);
	store_settle(label, kind);
	ck_assert_uint_eq(fx.settled.applied, 1);
}

/* ---- looking --------------------------------------------------------- */

const struct ob_message *store_find(const char *label)
{
	const struct ob_filter filter = { .event_type = label };
	int64_t now;

	store_ok(ob_store_list(fx.store, &filter, &fx.look, &now, &fx.err));
	ck_assert_msg(fx.look.count <= 1, "there is more than one '%s'", label);
	return fx.look.count ? &fx.look.messages[0] : NULL;
}

const struct ob_message *store_row(const char *label)
{
	const struct ob_message *row = store_find(label);

	ck_assert_msg(row, "there is no row '%s'", label);
	return row;
}

void store_expect_state(const char *label, enum ob_state state)
{
	const struct ob_message *row = store_row(label);

	ck_assert_msg(row->state == state, "'%s' has state %d, not %d", label, row->state, state);
}

void store_operate(enum ob_verb verb, const char *label, uint64_t changed, uint64_t refused)
{
	const struct ob_operate operate = { .verb = verb, .filter.event_type = label };
	uint64_t did = 77, did_not = 77;

	store_ok(ob_store_operate(fx.store, &operate, &did, &did_not, &fx.err));
	ck_assert_uint_eq(did, changed);
	ck_assert_uint_eq(did_not, refused);
}

static void dump_rows(struct ob_buf *out)
{
	const struct ob_filter everything = { 0 };
	int64_t now;

	store_ok(ob_store_list(fx.store, &everything, &fx.look, &now, &fx.err));
	for (uint32_t i = 0; i < fx.look.count; i++) {
		const struct ob_message *m = &fx.look.messages[i];

		ob_buf_addf(out, "%s %s state=%d attempts=%u priority=%d due=%lld settled=%lld ",
			    m->target.p, m->event_type.p, m->state, m->attempts, m->priority,
			    (long long)m->available_at_us, (long long)m->published_at_us);
		ob_buf_addf(out, "locked=%lld by=%s error=%s\n", (long long)m->locked_until_us,
			    m->locked_by.p ? m->locked_by.p : "-",
			    m->last_error.p ? m->last_error.p : "-");
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
			    partitions[i].target.p, partitions[i].number, partitions[i].leased,
			    partitions[i].owner.b[0], (unsigned long long)partitions[i].epoch,
			    (long long)partitions[i].until_us);
	store_ok(ob_store_workers(fx.store, NULL, &fx.arena, &workers, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(out, "worker %u until=%lld published=%llu\n", workers[i].id.b[0],
			    (long long)workers[i].heartbeat_until_us,
			    (unsigned long long)workers[i].published);
}

char *store_dump(void)
{
	struct ob_buf out = OB_BUF_INIT(1 << 20);
	struct ob_minute *minutes;
	size_t count;

	dump_rows(&out);
	dump_leases(&out);
	store_ok(ob_store_throughput(fx.store, NULL, 1000, &fx.arena, &minutes, &count, &fx.err));
	for (size_t i = 0; i < count; i++)
		ob_buf_addf(&out, "minute %lld published=%llu failed=%llu\n",
			    (long long)minutes[i].minute_us,
			    (unsigned long long)minutes[i].published,
			    (unsigned long long)minutes[i].failed);
	char *text = ob_buf_take(&out);
	ck_assert_ptr_nonnull(text);
	return text;
}
