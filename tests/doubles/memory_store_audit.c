/* SPDX-License-Identifier: MIT */
/* The memory store: what people did. */
#include "doubles/memory_store_impl.h"

void mem_audit_add(struct ob_memdb *db, const struct ob_audit_row *entry, uint64_t more)
{
	for (size_t i = 0; i < db->audit_count; i++) {
		if (ob_str_eq(db->audit[i].plan, entry->plan)) {
			db->audit[i].count += more;
			return;
		}
	}
	db->audit = mem_grow(db->audit, db->audit_count, &db->audit_capacity, sizeof(*db->audit));
	db->audit[db->audit_count++] = (struct ob_audit_row){
		.number = ++db->last_audit,
		.at_us = mem_now(db),
		.who = ob_str(mem_dup(entry->who)),
		.origin = ob_str(mem_dup(entry->origin)),
		.verb = ob_str(mem_dup(entry->verb)),
		.reader = ob_str(mem_dup(entry->reader)),
		.filter = ob_str(mem_dup(entry->filter)),
		.count = entry->count,
		.plan = ob_str(mem_dup(entry->plan)),
		.reason = ob_str(mem_dup(entry->reason)),
	};
}

static void free_entry(const struct ob_audit_row *entry)
{
	const struct ob_str texts[] = { entry->who,    entry->origin, entry->verb,  entry->reader,
					entry->filter, entry->plan,   entry->reason };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free((void *)(uintptr_t)texts[i].p);
}

void mem_audit_prune(struct ob_memdb *db, bool all)
{
	const int64_t day_us = INT64_C(86400000000);
	size_t kept = 0;

	for (size_t i = 0; i < db->audit_count; i++) {
		if (all || db->audit[i].at_us + OB_AUDIT_DAYS * day_us < mem_now(db))
			free_entry(&db->audit[i]);
		else
			db->audit[kept++] = db->audit[i];
	}
	db->audit_count = kept;
}

int mem_audit(struct ob_store *store, const struct ob_audit_row *entry, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	int r = mem_enter(store, &db, err);

	if (r < 0)
		return r;
	mem_audit_add(db, entry, 0);
	mem_committed(store);
	return 0;
}

static bool is_asked(const struct ob_audit_ask *ask, const struct ob_audit_row *entry)
{
	return (ask->before <= 0 || entry->number < ask->before) &&
	       (!ask->reader || ob_str_eq(entry->reader, ob_str(ask->reader))) &&
	       (!ask->verb || ob_str_eq(entry->verb, ob_str(ask->verb)));
}

int mem_audits(struct ob_store *store, const struct ob_audit_ask *ask, struct ob_arena *arena,
	       struct ob_audit_row **ret_entries, size_t *ret_count, struct ob_err *err)
{
	OB_CLEANUP(mem_leave) struct ob_memdb *db = NULL;
	size_t count = 0;
	int r = mem_enter(store, &db, err);

	if (r < 0)
		return r;
	struct ob_audit_row *list = mem_alloc(arena, db->audit_count, sizeof(*list));
	for (size_t i = db->audit_count; i-- > 0 && (ask->limit == 0 || count < ask->limit);) {
		const struct ob_audit_row *from = &db->audit[i];

		if (!is_asked(ask, from))
			continue;
		list[count] = *from;
		list[count].who = mem_copy(arena, from->who.p);
		list[count].origin = mem_copy(arena, from->origin.p);
		list[count].verb = mem_copy(arena, from->verb.p);
		list[count].reader = mem_copy(arena, from->reader.p);
		list[count].filter = mem_copy(arena, from->filter.p);
		list[count].plan = mem_copy(arena, from->plan.p);
		list[count].reason = mem_copy(arena, from->reason.p);
		count++;
	}
	*ret_entries = list;
	*ret_count = count;
	return 0;
}
