/* SPDX-License-Identifier: MIT */
/* The box of relay_rig.h. */
#include "relay_rig.h"

#include <check.h>

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

void rig_init(struct rig *rig)
{
	struct ob_err err = OB_ERR_INIT;

	*rig = (struct rig){ .clock = OB_CLOCK_VIRTUAL(INT64_C(1800000000000000)) };
	rig->relay = (struct ob_config_relay){
		.name = "default",
		.workers = 1,
		.ordering = OB_ORDER_KEY,
		.batch_size = 50,
		.batch_bytes = 1 << 20,
		.idle_backoff_ms = 1000,
		.shutdown_timeout_ms = 10000,
		.claim_ttl_ms = 60000,
		.leasing = { true, 8, 15000, 5000, 20000 },
		.retry = { 3, 5000, 3600000, 2, 0 },
		.cleanup = { OB_NEVER_MS, OB_NEVER_MS, 3600000, 1000 },
	};
	static char destination[] = "{aggregate_type}";

	rig->relay.route.destination = destination;
	rig->db = ob_memdb_new(&(struct ob_memdb_conf){ .clock = &rig->clock.clock,
							.partition_count = 8,
							.new_id = next_id,
							.new_id_arg = rig });
	ck_assert_ptr_nonnull(rig->db);
	ok(ob_store_memory_open(rig->db, &rig->writer, &err), &err);
	ob_memsink_log_init(&rig->log, true);
	rig->poison_kind = OB_ERR_RETRY;
	rig->plan = (struct ob_memsink_plan){
		.log = &rig->log, .sender = "rig", .judge = judge, .judge_arg = rig
	};
}

struct rig_node *rig_start(struct rig *rig, const struct ob_sink_ops *sink)
{
	struct ob_err err = OB_ERR_INIT;
	struct rig_node *node = &rig->nodes[rig->node_count];
	struct ob_uuid id = { { 2, (uint8_t)rig->node_count } };
	bool leasing = rig->relay.leasing.enabled;

	rig->node_count++;
	*node = (struct rig_node){ 0 };
	ok(ob_store_memory_open(rig->db, &node->store, &err), &err);
	ok(ob_store_memory_open(rig->db, &node->lease_store, &err), &err);
	ok(ob_memsink_new(sink, &rig->plan, &rig->clock.clock, &node->sink, &err), &err);
	ok(ob_lease_view_init(&node->view, &err), &err);
	ob_metrics_init(&node->metrics, &id);
	ob_leaser_init(&node->leaser,
		       &(struct ob_leaser_conf){
			       .target = "default",
			       .owner = id,
			       .hostname = "host",
			       .pid = 1,
			       .lease_ttl_ms = rig->relay.leasing.lease_ttl_ms,
			       .lease_renew_ms = rig->relay.leasing.lease_renew_ms,
			       .heartbeat_ttl_ms = rig->relay.leasing.heartbeat_ttl_ms,
			       .leasing = leasing,
			       .store = node->lease_store,
			       .clock = &rig->clock.clock,
			       .view = &node->view,
			       .metrics = &node->metrics,
		       });

	struct ob_worker_conf conf = {
		.relay = &rig->relay,
		.id = id,
		.store = node->store,
		.sink = node->sink,
		.settler = rig->settler,
		.clock = &rig->clock.clock,
		.view = leasing ? &node->view : NULL,
		.metrics = &node->metrics,
		.seed = rig->node_count,
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
}

void rig_done(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->node_count; i++) {
		if (rig->nodes[i].worker)
			rig_kill(rig, &rig->nodes[i]);
	}
	ob_store_free(rig->writer);
	ob_memsink_log_done(&rig->log);
	ob_memdb_free(rig->db);
}

void rig_push(struct rig *rig, const char *key, const char *payload)
{
	struct ob_err err = OB_ERR_INIT;
	struct outbox_message message = {
		.aggregate_type = "order",
		.event_type = "OrderPlaced",
		.payload = payload,
		.partition_key = key,
	};
	struct outbox_id id;
	size_t index;

	ok(ob_store_tx_begin(rig->writer, &err), &err);
	ok(ob_store_tx_push(rig->writer, &message, 1, &id, &index, &err), &err);
	ok(ob_store_tx_end(rig->writer, true, &err), &err);
}

void rig_push_many(struct rig *rig, const char *key, int from, int to)
{
	char text[16];

	for (int i = from; i <= to; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		rig_push(rig, key, text);
	}
}

/* One step of a node; lowers *wake to its own. */
static bool step_node(struct rig_node *node, int64_t *wake)
{
	struct ob_step step;
	int64_t at;
	bool worked = ob_leaser_step(&node->leaser, &at);

	if (at < *wake)
		*wake = at;
	ob_worker_step(node->worker, &step);
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
		ck_assert_msg(!worked || busy++ < 1000000, "the relay never rests");
		if (worked)
			continue;
		busy = 0;
		if (rig->clock.boot_us >= end)
			return;
		ck_assert_msg(wake > rig->clock.boot_us, "the relay spins");
		ob_clock_advance_us(&rig->clock, wake - rig->clock.boot_us);
	}
}

struct counting {
	enum ob_state state;
	uint32_t rows, attempts;
};

static bool count_row(void *arg, const struct ob_message *row)
{
	struct counting *counting = arg;

	counting->rows += row->state == counting->state;
	counting->attempts += row->attempts;
	return true;
}

uint32_t rig_count(struct rig *rig, enum ob_state state)
{
	struct counting counting = { .state = state };

	ob_memdb_each(rig->db, count_row, &counting);
	return counting.rows;
}

uint32_t rig_attempts(struct rig *rig)
{
	struct counting counting = { 0 };

	ob_memdb_each(rig->db, count_row, &counting);
	return counting.attempts;
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

struct ob_metrics_data rig_metrics(struct rig_node *node)
{
	struct ob_metrics_data data;

	ob_metrics_read(&node->metrics, &data);
	return data;
}
