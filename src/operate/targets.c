/* SPDX-License-Identifier: MIT */
/* Asks the configuration and the log who reads a target. */
#include "operate/targets.h"

#include "operate/readers.h"

enum { ARENA_MAX = 1 << 20, NEWEST = 20 };

void ob_targets_init(struct ob_targets *targets)
{
	*targets = (struct ob_targets){ .arena = OB_ARENA_INIT(ARENA_MAX) };
}

void ob_targets_done(struct ob_targets *targets)
{
	ob_arena_done(&targets->arena);
}

void ob_targets_note(struct ob_targets *targets, struct ob_str name)
{
	struct ob_str given = name.n ? name : OB_STR("default");
	char *copy;

	for (size_t i = 0; i < targets->count; i++) {
		if (ob_str_eq(ob_str(targets->names[i]), given))
			return;
	}
	if (targets->count == OB_TARGETS_MAX)
		return;
	copy = ob_arena_alloc(&targets->arena, given.n + 1);
	if (!copy)
		return;
	memcpy(copy, given.p, given.n);
	copy[given.n] = '\0';
	targets->names[targets->count++] = copy;
}

void ob_targets_note_newest(struct ob_targets *targets, struct ob_store *store)
{
	const struct ob_filter filter = { .newest_first = true, .limit = NEWEST };
	struct ob_err ignored = OB_ERR_INIT;
	struct ob_batch batch;
	int64_t now_us;

	ob_batch_init(&batch);
	if (ob_store_list(store, &filter, &batch, &now_us, &ignored) >= 0) {
		for (uint32_t i = 0; i < batch.count; i++)
			ob_targets_note(targets, batch.messages[i].target);
	}
	ob_batch_done(&batch);
}

bool ob_target_is_read(const char *name, const struct ob_config *config, struct ob_store *store)
{
	struct ob_readers readers = { 0 };
	struct ob_err ignored = OB_ERR_INIT;
	size_t relays = config ? config->relay_count : 0;
	bool read = false;

	for (size_t i = 0; i < relays; i++)
		read = read || strcmp(config->relays[i].reads, name) == 0;
	if (read || !store)
		return read || relays == 0;
	if (ob_readers_load(&readers, store, &ignored) < 0)
		read = true; /* not to know is no reason to warn */
	for (size_t i = 0; i < readers.count; i++)
		read = read || (!readers.list[i].temporary &&
				ob_str_eq(readers.list[i].target, ob_str(name)));
	read = read || relays + readers.count == 0;
	ob_readers_done(&readers);
	return read;
}
