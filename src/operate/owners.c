/* SPDX-License-Identifier: MIT */
#include "operate/owners.h"

#include <stdio.h>

enum { ARENA_MAX = 64 << 20 };

int ob_owners_load(struct ob_owners *o, struct ob_store *store, const char *reader,
		   struct ob_err *err)
{
	struct ob_stats *stats;
	size_t count;

	*o = (struct ob_owners){ .arena = OB_ARENA_INIT(ARENA_MAX) };
	/* A cheap question that is answered with the database's clock. */
	int r = ob_store_stats(store, reader, 1, &o->arena, &stats, &count, &o->now_us, err);
	if (r == 0)
		r = ob_store_partitions(store, reader, &o->arena, &o->partitions,
					&o->partition_count, err);
	if (r == 0)
		r = ob_store_workers(store, reader, &o->arena, &o->workers, &o->worker_count, err);
	return r;
}

const struct ob_worker *ob_owners_find(const struct ob_owners *o, const struct ob_uuid *id)
{
	for (size_t i = 0; i < o->worker_count; i++) {
		if (ob_uuid_eq(&o->workers[i].id, id))
			return &o->workers[i];
	}
	return NULL;
}

void ob_owners_done(struct ob_owners *o)
{
	ob_arena_done(&o->arena);
}

void ob_owner_short(const struct ob_uuid *id, char out[OB_OWNER_SHORT_SIZE])
{
	char text[OB_UUID_TEXT_SIZE];

	ob_uuid_format(id, text);
	(void)snprintf(out, OB_OWNER_SHORT_SIZE, "%s",
		       text + OB_UUID_TEXT - (OB_OWNER_SHORT_SIZE - 1));
}

void ob_partition_json(struct ob_jout *j, const struct ob_owners *o, const struct ob_partition *p)
{
	const struct ob_worker *w = ob_owners_find(o, &p->owner);
	bool owned = !ob_uuid_is_nil(&p->owner);
	char id[OB_UUID_TEXT_SIZE], label[8];

	ob_uuid_format(&p->owner, id);
	ob_partition_label(p->number, label);
	ob_jout_begin(j, NULL, '{');
	ob_jout_int(j, "partition", p->number);
	ob_jout_text(j, "label", ob_str(label));
	ob_jout_text(j, "reader", p->reader);
	ob_jout_bool(j, "leased", p->leased);
	ob_jout_text(j, "owner", owned ? ob_str(id) : OB_STR_NULL);
	ob_jout_text(j, "hostname", w ? w->hostname : OB_STR_NULL);
	if (w)
		ob_jout_int(j, "pid", w->pid);
	else
		ob_jout_raw(j, "pid", OB_STR("null"));
	ob_jout_int(j, "epoch", (int64_t)p->epoch);
	ob_jout_when(j, "until", p->until_us);
	ob_jout_int(j, "position", p->pos);
	ob_jout_when(j, "moved_at", p->moved_at_us);
	ob_jout_end(j, '}');
}
