/* SPDX-License-Identifier: MIT */
/* Stores: finding one by its URL, and what the memory store offers beyond the contract. */
#include "store/fault.h"
#include "store/memory.h"
#include "store/store.h"
#include "suite.h"

static struct ob_err err;

static void expect_refused(const char *url, const char *text)
{
	const struct ob_store_backend *backend = NULL;

	err = OB_ERR_INIT;
	ck_assert_int_eq(ob_store_find(url, &backend, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(err.kind, OB_ERR_FATAL);
	ck_assert_ptr_null(backend);
	ck_assert_msg(strstr(err.msg, text), "'%s' is not in: %s", text, err.msg);
	ck_assert_ptr_null(strstr(err.msg, "secret"));
}

OB_TEST(an_unknown_store_is_named_with_what_there_is)
{
	expect_refused("sqllite:x.db", "did you mean 'sqlite'?");
	expect_refused("oracle://user:secret@host/db",
		       "no store of type 'oracle' (known: sqlite, postgres, mysql)");
	expect_refused("memory:", "no store of type 'memory'");
}
OB_TEST_END

OB_TEST(a_url_without_a_type_is_refused_without_showing_it)
{
	expect_refused("secret.db", "begin with its type");
	expect_refused("secret", "has no type");
	expect_refused("", "begin with its type");
	expect_refused(":secret", "begin with its type");
	expect_refused("user secret@host:5432", "begin with its type");
	expect_refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:x",
		       "begin with its type");
}
OB_TEST_END

OB_TEST(every_backend_is_listed_with_help)
{
	for (const struct ob_store_backend *b = ob_store_backends; b->name; b++) {
		ck_assert_ptr_nonnull(b->help);
		ck_assert_ptr_nonnull(b->package);
		if (b->ops)
			ck_assert_str_eq(b->ops->name, b->name);
	}
}
OB_TEST_END

/* ---- the memory store ------------------------------------------------ */

struct log {
	struct ob_buf text;
};

static struct ob_uuid counting_id(void *arg)
{
	uint8_t *n = arg;

	return (struct ob_uuid){ { [6] = 0x70, [8] = 0x80, [15] = ++*n } };
}

static void note(void *arg, const struct ob_memdb_change *change)
{
	static const char *const causes[] = { "pushed",   "claimed",  "settled", "parked",
					      "released", "operated", "cleaned", "moved" };
	struct log *log = arg;

	ob_buf_addf(&log->text, "%s:%s:%d%d:%d>%d", causes[change->cause],
		    change->row->event_type.p, change->existed, change->exists, change->before,
		    change->after);
	if (change->owner)
		ob_buf_addf(&log->text, ":%u/%llu", change->owner->b[0],
			    (unsigned long long)change->epoch);
	ob_buf_addc(&log->text, '\n');
}

static void put(struct ob_store *store, const char *label, struct outbox_id *ret_id)
{
	const struct outbox_message message = {
		.aggregate_type = "t", .event_type = label, .payload = "1", .partition_key = "k"
	};
	size_t index;

	ck_assert_int_eq(ob_store_tx_begin(store, &err), 0);
	ck_assert_int_eq(ob_store_tx_push(store, &message, 1, ret_id, &index, &err), 0);
	ck_assert_int_eq(ob_store_tx_end(store, true, &err), 0);
}

static bool count_row(void *arg, const struct ob_message *row)
{
	int *count = arg;

	ck_assert_str_eq(row->target.p, "default");
	return ++*count < 2;
}

static void settle_first(struct ob_store *store, struct ob_batch *batch,
			 const struct ob_lease *lease)
{
	const struct ob_outcome outcomes[] = {
		{ .message = &batch->messages[0], .kind = OB_OUTCOME_RETRY },
		{ .message = &batch->messages[0], .kind = OB_OUTCOME_PUBLISHED },
	};
	const struct ob_settle settle = {
		.target = "default",
		.owner = { { 9 } },
		.leases = lease,
		.lease_count = 1,
		.outcomes = outcomes,
		.outcome_count = 2,
		.delete_published = true,
	};
	struct ob_settled settled;

	ck_assert_int_eq(ob_store_settle(store, &settle, NULL, &settled, &err), 0);
	ck_assert_uint_eq(settled.applied, 2);
}

OB_TEST(every_change_of_a_row_is_told)
{
	struct ob_clock_virtual clock = OB_CLOCK_VIRTUAL(1000000);
	struct log log = { OB_BUF_INIT(4096) };
	uint8_t ids = 0;
	struct ob_memdb *db = ob_memdb_new(&(struct ob_memdb_conf){ .clock = &clock.clock,
								    .partition_count = 1,
								    .new_id = counting_id,
								    .new_id_arg = &ids,
								    .history = note,
								    .history_arg = &log });
	struct ob_store *store;
	struct outbox_id id;
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);
	struct ob_lease *lease;
	struct ob_batch batch;
	uint32_t partitions;
	size_t leases;
	int rows = 0;

	ck_assert_int_eq(ob_store_memory_open(db, &store, &err), 0);
	put(store, "a", &id);
	ck_assert_str_eq(id.text, "00000000-0000-7000-8000-000000000001");
	put(store, "b", NULL);
	put(store, "c", NULL);
	ob_memdb_each(db, count_row, &rows);
	ck_assert_int_eq(rows, 2);

	ck_assert_int_eq(ob_store_seed(store, "default", &partitions, &err), 0);
	ck_assert_int_eq(ob_store_take(store, "default", &(struct ob_uuid){ { 9 } }, 1, 1000,
				       &arena, &lease, &leases, &err),
			 0);
	ob_batch_init(&batch);
	const struct ob_fetch fetch = { .target = "default",
					.partitions = &(uint32_t){ 0 },
					.partition_count = 1,
					.limit = 1 };
	ck_assert_int_eq(ob_store_fetch(store, &fetch, &batch, &err), 0);
	settle_first(store, &batch, lease);
	ck_assert_str_eq(ob_buf_str(&log.text),
			 "pushed:a:01:0>0\n"
			 "pushed:b:01:0>0\n"
			 "pushed:c:01:0>0\n"
			 "settled:a:11:0>2:9/1\n"
			 "parked:b:11:0>3\n"
			 "parked:c:11:0>3\n"
			 "settled:a:11:2>1:9/1\n"
			 "released:b:11:3>0\n"
			 "released:c:11:3>0\n"
			 "settled:a:10:1>1:9/1\n");
	ob_batch_done(&batch);
	ob_arena_done(&arena);
	ob_store_free(store);
	ob_memdb_free(db);
	ob_buf_done(&log.text);
}
OB_TEST_END

/* ---- the fault decorator --------------------------------------------- */

static int advise(struct ob_store *store, struct ob_buf *out, struct ob_err *unused)
{
	(void)store;
	(void)unused;
	ob_buf_adds(out, "take care\n");
	return 0;
}

static int setup_sql(const struct ob_layout *layout, const struct ob_setup *setup,
		     struct ob_buf *out, struct ob_err *unused)
{
	(void)layout;
	(void)setup;
	(void)unused;
	ob_buf_adds(out, "CREATE");
	return 0;
}

static int grants_sql(const struct ob_layout *layout, struct ob_buf *out, struct ob_err *unused)
{
	return setup_sql(layout, NULL, out, unused);
}

static void nothing_to_close(struct ob_store *store)
{
	(void)store;
}

static const struct ob_store_ops advising = {
	.name = "advising",
	.size = sizeof(struct ob_store),
	.close = nothing_to_close,
	.advise = advise,
	.setup_sql = setup_sql,
	.grants_sql = grants_sql,
};

static struct ob_store *wrapped(const struct ob_store_ops *ops,
				const struct ob_store_fault_plan *plan)
{
	const struct ob_store_conf conf = { .url = "x:" };
	struct ob_store *inner = NULL, *store = NULL;

	ck_assert_int_eq(ob_store_new(ops, &conf, &inner, &err), 0);
	ck_assert_int_eq(ob_store_fault_new(inner, plan, &store, &err), 0);
	return store;
}

/* An operation that is added to the table must not end at the decorator. */
OB_TEST(the_fault_decorator_has_every_operation)
{
	const struct ob_store_fault_plan none = { 0 };
	const size_t first = offsetof(struct ob_store_ops, open);
	const size_t count = (sizeof(struct ob_store_ops) - first) / sizeof(void *);
	struct ob_store *store = wrapped(&advising, &none);
	void *slots[(sizeof(*store->ops) - offsetof(struct ob_store_ops, open)) / sizeof(void *)];

	memcpy(slots, (const char *)store->ops + first, sizeof(slots));
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(slots[i] != NULL, "the operation at offset %zu of the table",
			      first + i * sizeof(void *));
	ck_assert_str_eq(store->ops->name, "advising");
	ob_store_free(store);
}
OB_TEST_END

OB_TEST(advice_passes_the_fault_decorator)
{
	const struct ob_store_fault_plan lost_reply = { .nth = 1,
							.mode = OB_FAULT_AFTER,
							.only = 1 << OB_STORE_FAULT_advise };
	struct ob_buf out = OB_BUF_INIT(100);
	struct ob_store *store = wrapped(&advising, &lost_reply);

	ck_assert_int_eq(ob_store_advise(store, &out, &err), OUTBOX_ESTORE);
	ck_assert_str_eq(ob_buf_str(&out), "");
	ck_assert_int_eq(ob_store_advise(store, &out, &err), 0);
	ck_assert_str_eq(ob_buf_str(&out), "take care\n");
	ob_buf_clear(&out);
	const struct ob_setup setup = { .partition_count = 1 };
	ck_assert_int_eq(ob_store_setup_sql(store->ops, NULL, &setup, &out, &err), 0);
	ck_assert_str_eq(ob_buf_str(&out), "CREATE");
	ob_buf_done(&out);
	ob_store_free(store);
}
OB_TEST_END

OB_SUITE("store", an_unknown_store_is_named_with_what_there_is,
	 a_url_without_a_type_is_refused_without_showing_it, every_backend_is_listed_with_help,
	 every_change_of_a_row_is_told, the_fault_decorator_has_every_operation,
	 advice_passes_the_fault_decorator)
