/* SPDX-License-Identifier: MIT */
/* The worker of a case: it holds partitions, reads, gives outcomes, records. */
#include "store_harness.h"

void store_be(const char *reader, const char *target, uint8_t owner)
{
	for (size_t i = 0; i < fx.part_count; i++) {
		ob_progress_done(&fx.parts[i].recorded);
		ob_progress_done(&fx.parts[i].reading);
	}
	fx.part_count = fx.change_count = fx.promote_count = 0;
	fx.reader = reader;
	fx.target = target;
	fx.me = store_uuid(owner);
}

/* ---- holding --------------------------------------------------------- */

void store_take_over(void)
{
	struct ob_owned owned[STORE_PARTS_MAX] = { 0 };

	for (size_t i = 0; i < fx.part_count; i++) {
		owned[i].partition = fx.parts[i].partition;
		owned[i].epoch = fx.parts[i].epoch;
	}
	store_ok(ob_store_take_over(fx.store, fx.reader, &fx.me, owned, fx.part_count, &fx.err));
	for (size_t i = 0; i < fx.part_count; i++) {
		struct store_part *part = &fx.parts[i];

		ck_assert(!owned[i].lost);
		part->batch = owned[i].batch;
		ob_progress_set(&part->recorded, &owned[i].progress);
		ob_progress_set(&part->reading, &owned[i].progress);
		ob_progress_done(&owned[i].progress);
	}
}

void store_hold_all(int64_t ttl_ms)
{
	struct ob_lease *leases;
	size_t count;
	uint32_t all;

	store_be(fx.reader, fx.target, fx.me.b[0]);
	store_ok(ob_store_seed(fx.store, fx.reader, &all, &fx.err));
	ck_assert_uint_eq(all, fx.partition_count);
	ck_assert_uint_le(OB_LANES * all, STORE_PARTS_MAX);
	store_ok(ob_store_take(fx.store, fx.reader, &fx.me, all, ttl_ms, &fx.arena, &leases, &count,
			       &fx.err));
	ck_assert_uint_eq(count, all);
	for (uint32_t lane = 0; lane < OB_LANES; lane++) {
		for (uint32_t i = 0; i < all; i++)
			fx.parts[fx.part_count++] =
				(struct store_part){ .partition = lane * all + leases[i].partition,
						     .epoch = leases[i].epoch };
	}
	store_take_over();
}

/* ---- reading --------------------------------------------------------- */

void store_read_with(struct ob_read read)
{
	struct ob_read_part parts[STORE_PARTS_MAX];

	if (!read.parts) {
		for (size_t i = 0; i < fx.part_count; i++)
			parts[i] = (struct ob_read_part){ .partition = fx.parts[i].partition,
							  .from = fx.parts[i].reading };
		read.parts = parts;
		read.part_count = fx.part_count;
	}
	read.reader = read.reader ? read.reader : fx.reader;
	read.target = read.target ? read.target : fx.target;
	read.ordering = fx.decide.ordering;
	store_ok(ob_store_read(fx.store, &read, &fx.batch, &fx.done, &fx.err));
	if (read.parts != parts || (read.limit == 0 && read.exception_limit == 0))
		return;
	for (size_t i = 0; i < fx.part_count; i++) {
		ck_assert_int_eq(parts[i].reached,
				 !ob_progress_equal(&parts[i].after, &parts[i].from));
		ob_progress_set(&fx.parts[i].reading, &parts[i].after);
		ob_progress_done(&parts[i].after);
	}
}

void store_read(uint32_t limit, uint32_t exception_limit)
{
	store_read_with((struct ob_read){
		.limit = limit, .exception_limit = exception_limit, .max_bytes = 1 << 20 });
}

const char *store_read_all(uint32_t limit)
{
	static struct ob_buf text;
	int reads = 0;

	text.max = 1 << 20;
	ob_buf_clear(&text);
	do {
		ck_assert_int_lt(++reads, 1000);
		store_read(limit, 0);
		ck_assert_uint_le(fx.batch.count, limit);
		ob_buf_addf(&text, "%s%s", text.len > 0 && fx.batch.count > 0 ? " " : "",
			    store_labels(&fx.batch));
	} while (fx.done.more);
	return ob_buf_str(&text);
}

void store_expect_read(const char *labels)
{
	store_read(1000, 1000);
	ck_assert_str_eq(store_labels(&fx.batch), labels);
	ck_assert(!fx.done.more_exceptions);
}

void store_forget(void)
{
	for (size_t i = 0; i < fx.part_count; i++)
		ob_progress_set(&fx.parts[i].reading, &fx.parts[i].recorded);
}

const struct ob_message *store_got(const char *label)
{
	for (uint32_t i = 0; i < fx.batch.count; i++) {
		if (ob_str_eq(fx.batch.messages[i].event_type, ob_str(label)))
			return &fx.batch.messages[i];
	}
	ck_abort_msg("'%s' was not read, but: %s", label, store_labels(&fx.batch));
}

/* ---- recording ------------------------------------------------------- */

static void give_outcome(const struct ob_message *message, enum ob_outcome_kind kind)
{
	bool promote = false;

	ck_assert_uint_lt(fx.change_count, STORE_CHANGES_MAX);
	if (ob_exception_decide(&fx.decide, message, kind, fx.delay_ms, fx.error,
				&fx.changes[fx.change_count], &promote))
		fx.change_count++;
	if (promote)
		fx.promotes[fx.promote_count++] =
			(struct ob_promote){ message->partition,
					     ob_exception_queue(&fx.decide, message) };
}

void store_outcome(const char *label, enum ob_outcome_kind kind)
{
	give_outcome(store_got(label), kind);
}

void store_park_flagged(void)
{
	for (uint32_t i = 0; i < fx.batch.count; i++) {
		const struct ob_message *m = &fx.batch.messages[i];

		if (!m->excepted && (m->held || m->delayed))
			give_outcome(m, m->held ? OB_OUTCOME_PARK : OB_OUTCOME_DELAY);
	}
}

void store_try_record(enum ob_settled *ret_settled)
{
	struct ob_settle_part parts[STORE_PARTS_MAX];
	struct ob_settle settle = {
		.reader = fx.reader,
		.owner = fx.me,
		.parts = parts,
		.part_count = fx.part_count,
		.changes = fx.changes,
		.change_count = fx.change_count,
		.promotes = fx.promotes,
		.promote_count = fx.promote_count,
	};

	for (size_t i = 0; i < fx.part_count; i++)
		parts[i] = (struct ob_settle_part){ .partition = fx.parts[i].partition,
						    .epoch = fx.parts[i].epoch,
						    .batch = fx.parts[i].batch + 1,
						    .progress = fx.parts[i].reading };
	store_ok(ob_store_settle(fx.store, &settle, &fx.err));
	for (size_t i = 0; i < fx.part_count; i++) {
		ret_settled[i] = parts[i].settled;
		if (parts[i].settled == OB_SETTLE_LOST)
			continue;
		/* MOVED: the newest that is there, so that the next number is one above it. */
		fx.parts[i].batch = parts[i].batch;
		if (parts[i].settled == OB_SETTLED)
			ob_progress_set(&fx.parts[i].recorded, &fx.parts[i].reading);
	}
	fx.change_count = fx.promote_count = 0;
}

void store_record(void)
{
	enum ob_settled settled[STORE_PARTS_MAX];

	store_try_record(settled);
	for (size_t i = 0; i < fx.part_count; i++)
		ck_assert_int_eq(settled[i], OB_SETTLED);
}

void store_settle(const char *label, enum ob_outcome_kind kind)
{
	bool found = false;

	store_read(1000, 1000);
	store_park_flagged();
	for (uint32_t i = 0; i < fx.batch.count; i++) {
		const struct ob_message *m = &fx.batch.messages[i];
		bool is = ob_str_eq(m->event_type, ob_str(label));

		found = found || is;
		if (!m->held && !m->delayed)
			give_outcome(m, is ? kind : OB_OUTCOME_PUBLISHED);
	}
	ck_assert_msg(found, "'%s' was not read, but: %s", label, store_labels(&fx.batch));
	store_record();
}

char *store_deliver(void)
{
	struct ob_buf text = OB_BUF_INIT(1 << 20);
	int rounds = 0;

	ob_buf_adds(&text, "");
	do {
		ck_assert_int_lt(++rounds, 1000);
		store_read(1000, 1000);
		store_park_flagged();
		for (uint32_t i = 0; i < fx.batch.count; i++) {
			const struct ob_message *m = &fx.batch.messages[i];

			if (!m->excepted && (m->held || m->delayed))
				continue;
			give_outcome(m, OB_OUTCOME_PUBLISHED);
			ob_buf_addf(&text, "%s%s", text.len > 0 ? " " : "", m->event_type.p);
		}
		store_record();
	} while (fx.batch.count > 0 || fx.done.more || fx.done.more_exceptions);
	return ob_buf_take(&text);
}
