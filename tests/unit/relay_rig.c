/* SPDX-License-Identifier: MIT */
/* The box of relay_rig.h. */
#include "relay_rig.h"

#include <check.h>

static struct rig *the_rig;
static const struct ob_store_ops *memory;

static void ok(int r, const struct ob_err *err)
{
	if (r < 0)
		ck_abort_msg("%s", err->msg);
}

/* Ids that repeat with every run. */
static struct ob_uuid next_id(void *arg)
{
	struct rig *rig = arg;
	struct ob_uuid id = { { 1 } };

	rig->next_id++;
	memcpy(&id.b[8], &rig->next_id, sizeof(rig->next_id));
	return id;
}

static struct ob_memsink_verdict judge(void *arg, const struct ob_delivery *delivery)
{
	struct rig *rig = arg;
	struct ob_memsink_verdict verdict = { .kind = rig->poison_kind, .hung_up = rig->hangs_up };

	if (rig->all_fail)
		return verdict;
	if (rig->silent && ob_str_eq(delivery->body, ob_str(rig->silent)))
		return (struct ob_memsink_verdict){ .silent = true };
	for (uint32_t i = 0; i < rig->poison_count; i++) {
		if (!ob_str_eq(delivery->message->key, ob_str(rig->poison[i])))
			continue;
		verdict.at_send = rig->at_send;
		/* The second of the key, while the first is unconfirmed. */
		if (!rig->at_send)
			return verdict;
		if (ob_str_eq(delivery->body, OB_STR("2"))) {
			rig->poison_count = 0;
			return verdict;
		}
	}
	return (struct ob_memsink_verdict){ 0 };
}

static void listen(void *arg, enum ob_log_level level, const char *line)
{
	struct rig *rig = arg;

	(void)level;
	ob_buf_adds(&rig->said, line);
	ob_buf_adds(&rig->said, "\n");
}

/* Before and after each call. */
static void pass_time(void *arg)
{
	struct rig *rig = arg;

	if (rig->leaser_steps)
		ob_clock_advance_us(&rig->clock, rig->lease_call_us / 2);
}

void rig_init_kind(struct rig *rig, enum ob_memdb_kind kind)
{
	struct ob_err err = OB_ERR_INIT;
	struct ob_reader reader = { .name = OB_STR("default"), .target = OB_STR("default") };
	bool made;

	*rig = (struct rig){ .clock = OB_CLOCK_VIRTUAL(INT64_C(1800000000000000)) };
	rig->kind = kind;
	the_rig = rig;
	rig->said = OB_BUF_INIT(1 << 20);
	rig->relay_log = (struct ob_log){ .fd = -1,
					  .level = OB_LOG_INFO,
					  .format = OB_LOG_LOGFMT,
					  .clock = &rig->clock.clock,
					  .hook = listen,
					  .hook_arg = rig };
	rig->relay = (struct ob_config_relay){
		.name = "default",
		.reads = "default",
		.workers = 1,
		.ordering = OB_ORDER_KEY,
		.batch_size = 50,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 1000,
		.shutdown_timeout_ms = 10000,
		.leasing = { RIG_PARTITIONS, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0 },
	};
	static char destination[] = "{aggregate_type}";

	rig->relay.route.destination = destination;
	rig->db = ob_memdb_new(&(struct ob_memdb_conf){ .kind = kind,
							.clock = &rig->clock.clock,
							.partition_count = RIG_PARTITIONS,
							.new_id = next_id,
							.new_id_arg = rig,
							.pass_time = pass_time,
							.pass_time_arg = rig });
	ok(ob_store_memory_open(rig->db, &rig->writer, &err), &err);
	ok(ob_store_memory_open(rig->db, &rig->side, &err), &err);
	memory = rig->side->ops;
	ok(ob_store_reader_make(rig->side, &reader, &(struct ob_place){ OB_START_BEGINNING, 0 },
				&made, &err),
	   &err);
	ob_memsink_log_init(&rig->log, true);
	rig->poison_kind = OB_ERR_RETRY;
	rig->plan = (struct ob_memsink_plan){
		.log = &rig->log, .sender = "rig", .judge = judge, .judge_arg = rig
	};
}

void rig_init(struct rig *rig)
{
	rig_init_kind(rig, OB_MEMDB_SNAPSHOT);
}

/* ---- what the worker asks its store ---------------------------------- */

static struct rig_node *node_of(const struct ob_store *store)
{
	for (uint32_t i = 0; i < the_rig->node_count; i++) {
		if (the_rig->nodes[i].inner == store)
			return &the_rig->nodes[i];
	}
	ck_abort_msg("a store of no node");
}

static int tap_take_over(struct ob_store *store, const char *reader, const struct ob_uuid *owner,
			 struct ob_owned *owned, size_t count, struct ob_err *err)
{
	struct rig_node *node = node_of(store);

	node->take_overs++;
	if (the_rig->on_take_over)
		the_rig->on_take_over(node);
	return memory->take_over(store, reader, owner, owned, count, err);
}

static int tap_read(struct ob_store *store, struct ob_read *read, struct ob_batch *batch,
		    struct ob_read_done *ret_done, struct ob_err *err)
{
	struct rig_node *node = node_of(store);

	node->reads++;
	if (the_rig->on_read)
		the_rig->on_read(node, read);
	return memory->read(store, read, batch, ret_done, err);
}

static int tap_settle(struct ob_store *store, struct ob_settle *settle, struct ob_err *err)
{
	struct rig_node *node = node_of(store);

	node->settles++;
	node->parts += (uint32_t)settle->part_count;
	for (size_t i = 0; i < settle->change_count; i++)
		node->changes[settle->changes[i].kind]++;
	for (size_t i = 1; i < settle->part_count; i++)
		ck_assert_uint_lt(settle->parts[i - 1].partition, settle->parts[i].partition);
	if (the_rig->on_settle)
		the_rig->on_settle(node, settle);
	return memory->settle(store, settle, err);
}

/* ---- nodes ----------------------------------------------------------- */

static void open_stores(struct rig *rig, struct rig_node *node)
{
	struct ob_err err = OB_ERR_INIT;

	ok(ob_store_memory_open(rig->db, &node->lease_store, &err), &err);
	ok(ob_store_memory_open(rig->db, &node->inner, &err), &err);
	node->ops = *memory;
	node->ops.take_over = tap_take_over;
	node->ops.read = tap_read;
	node->ops.settle = tap_settle;
	node->inner->ops = &node->ops;
	ok(ob_store_fault_new(node->inner, &(struct ob_store_fault_plan){ 0 }, &node->store, &err),
	   &err);
}

struct rig_node *rig_start(struct rig *rig, const struct ob_sink_ops *sink)
{
	return rig_start_at(rig, rig->node_count, sink);
}

struct rig_node *rig_start_at(struct rig *rig, uint32_t at, const struct ob_sink_ops *sink)
{
	struct ob_err err = OB_ERR_INIT;
	struct rig_node *node = &rig->nodes[at];
	struct ob_uuid id = { { 2, (uint8_t)(rig->starts >> 8), (uint8_t)rig->starts } };

	rig->starts++;
	if (at == rig->node_count)
		rig->node_count++;
	*node = (struct rig_node){ 0 };
	open_stores(rig, node);
	ok(ob_memsink_new(sink, &rig->plan, &rig->clock.clock, &node->sink, &err), &err);
	ok(ob_lease_view_init(&node->view, &err), &err);
	ob_metrics_init(&node->metrics, &id);
	ob_leaser_init(&node->leaser,
		       &(struct ob_leaser_conf){
			       .reader = "default",
			       .owner = id,
			       .hostname = "host",
			       .pid = 1,
			       .lease_ttl_ms = rig->relay.leasing.lease_ttl_ms,
			       .lease_renew_ms = rig->relay.leasing.lease_renew_ms,
			       .heartbeat_ttl_ms = rig->relay.leasing.heartbeat_ttl_ms,
			       .store = node->lease_store,
			       .clock = &rig->clock.clock,
			       .view = &node->view,
			       .metrics = &node->metrics,
			       .log = &rig->relay_log,
		       });

	struct ob_worker_conf conf = {
		.relay = &rig->relay,
		.id = id,
		.store = node->store,
		.sink = node->sink,
		.settler = rig->settler,
		.clock = &rig->clock.clock,
		.view = &node->view,
		.metrics = &node->metrics,
		.log = &rig->relay_log,
		.passed_us = &rig->passed_us,
		.end_seq = rig->end_seq,
		.seed = rig->starts,
	};

	ok(ob_worker_new(&conf, &node->worker, &err), &err);
	return node;
}

void rig_kill(struct rig *rig, struct rig_node *node)
{
	(void)rig;
	ob_worker_free(node->worker);
	node->worker = NULL;
	ob_leaser_done(&node->leaser);
	ob_metrics_done(&node->metrics);
	ob_lease_view_done(&node->view);
	ob_sink_free(node->sink);
	ob_store_free(node->store);
	ob_store_free(node->lease_store);
	node->inner = NULL;
}

void rig_done(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->node_count; i++) {
		if (rig->nodes[i].worker)
			rig_kill(rig, &rig->nodes[i]);
	}
	ob_store_free(rig->writer);
	ob_store_free(rig->side);
	ob_memsink_log_done(&rig->log);
	ob_buf_done(&rig->said);
	ob_memdb_free(rig->db);
}

/* ---- messages -------------------------------------------------------- */

void rig_push_message(struct rig *rig, struct outbox_message message)
{
	struct ob_err err = OB_ERR_INIT;
	struct outbox_id id;
	size_t index;

	if (!message.aggregate_type)
		message.aggregate_type = "order";
	if (!message.event_type)
		message.event_type = "OrderPlaced";
	ok(ob_store_tx_begin(rig->writer, &err), &err);
	ok(ob_store_tx_push(rig->writer, &message, 1, &id, &index, &err), &err);
	ok(ob_store_tx_end(rig->writer, true, &err), &err);
}

void rig_push(struct rig *rig, const char *key, const char *payload)
{
	rig_push_message(rig, (struct outbox_message){ .partition_key = key, .payload = payload });
}

void rig_push_many(struct rig *rig, const char *key, int from, int to)
{
	char text[16];

	for (int i = from; i <= to; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		rig_push(rig, key, text);
	}
}

static bool take_partition(void *arg, const struct ob_message *row)
{
	*(uint32_t *)arg = row->partition;
	return false;
}

/* A database of its own tells. */
uint32_t rig_partition(const char *key)
{
	struct outbox_message message = { .aggregate_type = "order",
					  .event_type = "OrderPlaced",
					  .payload = "1",
					  .partition_key = key };
	struct ob_memdb *db =
		ob_memdb_new(&(struct ob_memdb_conf){ .partition_count = RIG_PARTITIONS });
	struct ob_err err = OB_ERR_INIT;
	struct ob_store *store;
	struct outbox_id id;
	uint32_t partition = UINT32_MAX;
	size_t index;

	ok(ob_store_memory_open(db, &store, &err), &err);
	ok(ob_store_tx_begin(store, &err), &err);
	ok(ob_store_tx_push(store, &message, 1, &id, &index, &err), &err);
	ok(ob_store_tx_end(store, true, &err), &err);
	ob_memdb_each(db, take_partition, &partition);
	ob_store_free(store);
	ob_memdb_free(db);
	return partition;
}

const char *rig_key_in(uint32_t partition, const char *prefix, int *n)
{
	static char texts[16][32];
	static unsigned next;
	char *text = texts[next++ % 16];

	do
		(void)snprintf(text, sizeof(texts[0]), "%s%d", prefix, (*n)++);
	while (rig_partition(text) != partition);
	return text;
}

/* ---- running --------------------------------------------------------- */

/* One step of a node; lowers *wake to its own. */
static bool step_node(struct rig_node *node, int64_t *wake)
{
	struct ob_step step;
	int64_t at = INT64_MAX;
	bool worked;

	the_rig->leaser_steps = true;
	worked = !node->leaser_hangs && ob_leaser_step(&node->leaser, &at);
	the_rig->leaser_steps = false;
	if (at < *wake)
		*wake = at;

	uint32_t calls = node->take_overs + node->reads + node->settles;

	ob_worker_step(node->worker, &step);
	if (node->take_overs + node->reads + node->settles > calls + 1)
		ck_abort_msg("more than one call of the store in a step");
	node->state = step.state;
	if (step.wake_us < *wake)
		*wake = step.wake_us;
	return worked || step.worked;
}

void rig_run_ms(struct rig *rig, int64_t ms)
{
	int64_t end = rig->clock.boot_us + ms * 1000;
	uint32_t busy = 0;

	for (;;) {
		int64_t wake = end;
		bool worked = false;

		for (uint32_t i = 0; i < rig->node_count; i++) {
			struct rig_node *node = &rig->nodes[i];

			if (node->worker && !node->paused)
				worked = step_node(node, &wake) || worked;
		}
		/* Each assertion is a system call. */
		if (worked && busy++ > 1000000)
			ck_abort_msg("the relay never rests");
		/* A test may let time pass inside a call. */
		if (rig->clock.boot_us > end)
			return;
		if (worked)
			continue;
		busy = 0;
		if (rig->clock.boot_us >= end)
			return;
		if (wake <= rig->clock.boot_us)
			ck_abort_msg("the relay spins");
		ob_clock_advance_us(&rig->clock, wake - rig->clock.boot_us);
	}
}

uint64_t rig_operate(struct rig *rig, enum ob_verb verb, const char *key)
{
	struct ob_operate operate = { .verb = verb, .filter = { .reader = "default", .key = key } };
	struct ob_err err = OB_ERR_INIT;
	uint64_t changed, refused;

	ok(ob_store_operate(rig->side, &operate, &changed, &refused, &err), &err);
	return changed;
}

static const struct ob_uuid thief = { { 9 } };

void rig_give_back(struct rig *rig)
{
	struct ob_err err = OB_ERR_INIT;

	ok(ob_store_leave(rig->side, "default", &thief, &err), &err);
}

void rig_steal(struct rig *rig, bool give_back)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_owned owned[OB_LANES * RIG_PARTITIONS] = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_lease *leases;
	uint32_t partitions;
	size_t count;

	ok(ob_store_seed(rig->side, "default", &partitions, &err), &err);
	ok(ob_store_free_leases(rig->side, "default", NULL, 0, &err), &err);
	ok(ob_store_take(rig->side, "default", &thief, RIG_PARTITIONS, 3600000, &arena, &leases,
			 &count, &err),
	   &err);
	ck_assert_uint_eq(count, RIG_PARTITIONS);
	for (uint32_t i = 0; i < OB_LANES * RIG_PARTITIONS; i++)
		owned[i] = (struct ob_owned){ .partition = i,
					      .epoch = leases[i % RIG_PARTITIONS].epoch };
	ok(ob_store_take_over(rig->side, "default", &thief, owned, OB_LANES * RIG_PARTITIONS, &err),
	   &err);
	for (size_t i = 0; i < OB_LANES * RIG_PARTITIONS; i++)
		ob_progress_done(&owned[i].progress);
	ob_arena_done(&arena);
	if (give_back)
		rig_give_back(rig);
}

bool rig_said(const struct rig *rig, const char *text)
{
	return strstr(ob_buf_str(&rig->said), text) != NULL;
}

/* ---- asking ---------------------------------------------------------- */

struct counting {
	uint32_t views[OB_VIEW_COUNT], states[OB_STATE_DONE + 1];
	uint32_t exceptions, attempts;
};

static struct counting count_all(struct rig *rig)
{
	struct ob_filter filter = { .reader = "default" };
	struct counting counting = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_batch batch;
	int64_t now;

	ob_batch_init(&batch);
	ok(ob_store_list(rig->side, &filter, &batch, &now, &err), &err);
	for (uint32_t i = 0; i < batch.count; i++) {
		const struct ob_message *message = &batch.messages[i];

		counting.views[message->view]++;
		counting.states[message->state] += message->excepted;
		counting.exceptions += message->excepted;
		counting.attempts += message->attempts;
	}
	ob_batch_done(&batch);
	return counting;
}

uint32_t rig_count(struct rig *rig, enum ob_view view)
{
	return count_all(rig).views[view];
}

uint32_t rig_exceptions(struct rig *rig, enum ob_state state)
{
	return count_all(rig).states[state];
}

uint32_t rig_all_exceptions(struct rig *rig)
{
	return count_all(rig).exceptions;
}

uint32_t rig_attempts(struct rig *rig)
{
	return count_all(rig).attempts;
}

int64_t rig_position(struct rig *rig, uint32_t partition)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_partition *partitions;
	struct ob_err err = OB_ERR_INIT;
	size_t count;
	int64_t pos;

	ok(ob_store_partitions(rig->side, "default", &arena, &partitions, &count, &err), &err);
	ck_assert_uint_lt(partition, count);
	pos = partitions[partition].pos;
	ob_arena_done(&arena);
	return pos;
}

const char *rig_stored(struct rig *rig, const char *key)
{
	static char text[4096];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < rig->log.count; i++) {
		const struct ob_memsink_entry *entry = &rig->log.entries[i];

		if (!ob_str_eq(entry->key, ob_str(key)) || at + entry->body.n + 2 > sizeof(text))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", at ? " " : "",
				       (int)entry->body.n, entry->body.p);
	}
	return text;
}

/* Is the message of entry `at` stored before it? */
static bool is_repeat(const struct ob_memsink_log *log, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (log->entries[i].seq == log->entries[at].seq)
			return true;
	}
	return false;
}

uint32_t rig_delivered(struct rig *rig)
{
	uint32_t n = 0;

	for (size_t i = 0; i < rig->log.count; i++)
		n += !is_repeat(&rig->log, i);
	return n;
}

bool rig_stored_once(struct rig *rig)
{
	return rig_delivered(rig) == rig->log.count;
}

bool rig_stored_in_order(struct rig *rig)
{
	const struct ob_memsink_log *log = &rig->log;

	for (size_t i = 0; i < log->count; i++) {
		if (!log->entries[i].key.p || is_repeat(log, i))
			continue;
		for (size_t before = 0; before < i; before++) {
			if (log->entries[before].seq > log->entries[i].seq &&
			    ob_str_eq(log->entries[before].key, log->entries[i].key))
				return false;
		}
	}
	return true;
}

struct ob_metrics_data rig_metrics(struct rig_node *node)
{
	struct ob_metrics_data data;

	ob_metrics_read(&node->metrics, &data);
	return data;
}
