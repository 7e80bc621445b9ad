/* SPDX-License-Identifier: MIT */
/* Targets that messages name and that nobody reads: such messages wait, and nothing says so. */
#ifndef OB_OPERATE_TARGETS_H
#define OB_OPERATE_TARGETS_H

#include "config/config.h"

enum { OB_TARGETS_MAX = 16 };

/* The first so many that differ. */
struct ob_targets {
	struct ob_arena arena;
	const char *names[OB_TARGETS_MAX];
	size_t count;
};

void ob_targets_init(struct ob_targets *targets);
void ob_targets_done(struct ob_targets *targets);
/* Absent is the target of messages that name none. */
void ob_targets_note(struct ob_targets *targets, struct ob_str name);
/* Those of the newest messages of a log; what cannot be read is not noted. */
void ob_targets_note_newest(struct ob_targets *targets, struct ob_store *store);

/*
 * Is there a relay of the configuration, or a reader in the log, for it? Also true where there is
 * none at all: then nobody has begun yet. `config`, `store`: NULL is allowed.
 */
bool ob_target_is_read(const char *name, const struct ob_config *config, struct ob_store *store);

#endif
