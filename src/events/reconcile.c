/* SPDX-License-Identifier: MIT */
/* Reconciling a reader with its filter, anywhere in history. */
#include "events/reconcile.h"

#include "base/cleanup.h"

#include <stdlib.h>

enum { PAGE = 1000, SEQS_MAX = 1 << 30 };

static int find_reader(struct ob_store *store, const char *name, struct ob_arena *arena,
		       const struct ob_reader **ret, struct ob_err *err)
{
	struct ob_reader *readers = NULL;
	size_t count = 0;
	int r = ob_store_readers(store, arena, &readers, &count, err);

	for (size_t i = 0; i < count && r >= 0; i++) {
		if (ob_str_eq(readers[i].name, ob_str(name))) {
			*ret = &readers[i];
			return 0;
		}
	}
	return r < 0 ? r
		     : ob_err_set(
			       err, OUTBOX_ENOTFOUND, OB_ERR_FATAL,
			       "there is no reader '%.100s': its relay makes it when it first runs",
			       name);
}

/* Numbers of what is selected now and was not: published by its place alone. */
static int collect_missing(struct ob_store *store, const struct ob_reconcile *what, const char *was,
			   const char *is, struct ob_buf *seqs, struct ob_err *err)
{
	struct ob_filter filter = { .reader = what->relay->name,
				    .views = 1u << OB_VIEW_PUBLISHED,
				    .from_seq = what->from_seq,
				    .limit = PAGE,
				    .brief = true };
	struct ob_batch batch;
	int64_t now_us;
	int r = 0;

	ob_batch_init(&batch);
	do {
		r = ob_store_list(store, &filter, &batch, &now_us, err);
		for (uint32_t i = 0; i < batch.count && r >= 0; i++) {
			const struct ob_message *m = &batch.messages[i];

			filter.after_seq = m->seq;
			if (!m->excepted &&
			    ob_config_filter_selects(is, m->event_type, m->aggregate_type) &&
			    !ob_config_filter_selects(was, m->event_type, m->aggregate_type))
				ob_buf_add(seqs, (struct ob_str){ (const char *)&m->seq,
								  sizeof(m->seq) });
		}
	} while (r >= 0 && batch.count == PAGE);
	ob_batch_done(&batch);
	if (r >= 0 && seqs->failed)
		r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	return r < 0 ? r : 0;
}

int ob_reconcile_run(struct ob_store *store, const struct ob_reconcile *what, uint64_t *ret_count,
		     struct ob_err *err)
{
	OB_CLEANUP(ob_arena_done) struct ob_arena arena = OB_ARENA_INIT(16 << 20);
	OB_CLEANUP(ob_buf_done) struct ob_buf seqs = OB_BUF_INIT(SEQS_MAX);
	OB_CLEANUP(ob_buf_done) struct ob_buf is = OB_BUF_INIT(1000);
	const struct ob_reader *reader = NULL;
	uint64_t refused;
	int r = find_reader(store, what->relay->name, &arena, &reader, err);

	if (r < 0)
		return r;
	char *stored = ob_arena_alloc(&arena, reader->filter.n + 1);
	if (!stored)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	if (reader->filter.n > 0)
		memcpy(stored, reader->filter.p, reader->filter.n);
	ob_config_filter_text(what->relay, &is);
	const char *was = what->old_filter ? what->old_filter : stored;
	if (strcmp(was, ob_buf_str(&is)) == 0) {
		*ret_count = 0;
		return 0;
	}
	r = collect_missing(store, what, was, ob_buf_str(&is), &seqs, err);
	*ret_count = seqs.len / sizeof(int64_t);
	if (r < 0 || what->dry_run)
		return r;
	const int64_t none = 0;
	const struct ob_operate operate = {
		.verb = OB_VERB_DELIVER,
		.seqs = seqs.len ? (const int64_t *)(const void *)seqs.data : &none,
		.seq_count = *ret_count,
		.ordering = (enum ob_ordering)what->relay->ordering,
		.new_filter = ob_buf_str(&is),
		.filter = { .reader = what->relay->name },
	};
	return ob_store_operate(store, &operate, ret_count, &refused, err);
}
