/* SPDX-License-Identifier: MIT */
/* The messages on which connections were lost, by number. */
#include "relay/suspects.h"

#include <stdlib.h>
#include <string.h>

enum { TOGETHER_MAX = 1 << 20 }; /* no limit any more */

int ob_suspects_init(struct ob_suspects *suspects, uint32_t max, struct ob_err *err)
{
	uint32_t size = 16;

	/* Never more than half full. */
	while (size < 2 * max)
		size *= 2;
	*suspects = (struct ob_suspects){ .mask = size - 1, .together = 1 };
	suspects->slots = calloc(size, sizeof(*suspects->slots));
	if (!suspects->slots)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL,
				  "allocating room for %u suspects", max);
	return 0;
}

void ob_suspects_done(struct ob_suspects *suspects)
{
	free(suspects->slots);
	*suspects = (struct ob_suspects){ 0 };
}

static void forget_all(struct ob_suspects *suspects)
{
	memset(suspects->slots, 0, ((size_t)suspects->mask + 1) * sizeof(*suspects->slots));
	suspects->used = suspects->known = suspects->accused = 0;
}

/* Its slot, or the free one where it belongs. */
static struct ob_suspect *find_suspect(const struct ob_suspects *suspects, int64_t seq)
{
	uint64_t hash = (uint64_t)seq * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(hash >> 32) & suspects->mask;

	while (suspects->slots[at].seq != 0 && suspects->slots[at].seq != seq)
		at = (at + 1) & suspects->mask;
	return &suspects->slots[at];
}

bool ob_suspects_has(const struct ob_suspects *suspects, int64_t seq)
{
	return suspects->accused > 0 && find_suspect(suspects, seq)->drops >= OB_SUSPECT_DROPS;
}

uint32_t ob_suspects_company(const struct ob_suspects *suspects, int64_t seq)
{
	if (!ob_suspects_has(suspects, seq))
		return UINT32_MAX;
	return find_suspect(suspects, seq)->drops > OB_SUSPECT_DROPS ? 0 : suspects->together - 1;
}

bool ob_suspects_drop(struct ob_suspects *suspects, int64_t seq, bool alone)
{
	struct ob_suspect *who = find_suspect(suspects, seq);
	bool passed;

	suspects->together = 1;
	if (who->seq == 0) {
		if (suspects->used > suspects->mask / 2) {
			forget_all(suspects);
			who = find_suspect(suspects, seq);
		}
		suspects->used++;
	}
	suspects->known += who->drops == 0;
	suspects->accused += who->drops + 1 == OB_SUSPECT_DROPS;
	who->seq = seq;
	who->drops++;
	passed = who->passes != suspects->passes;
	who->passes = suspects->passes;
	if (!alone || !passed)
		return false;
	if (++who->strikes < OB_SUSPECT_STRIKES)
		return false;
	who->strikes = 0;
	return true;
}

void ob_suspects_pass(struct ob_suspects *suspects, int64_t seq)
{
	struct ob_suspect *who;

	suspects->passes++;
	if (suspects->known == 0)
		return;
	who = find_suspect(suspects, seq);
	if (who->drops == 0)
		return;
	suspects->known--;
	if (who->drops >= OB_SUSPECT_DROPS) {
		suspects->accused--;
		if (suspects->together < TOGETHER_MAX)
			suspects->together *= 2;
	}
	*who = (struct ob_suspect){ .seq = seq };
	/* All forgotten: slots are free again, too. */
	if (suspects->known == 0)
		forget_all(suspects);
}
