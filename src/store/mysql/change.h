/* SPDX-License-Identifier: MIT */
/* Changes of exceptions, as statements of a packet. */
#ifndef OB_STORE_MYSQL_CHANGE_H
#define OB_STORE_MYSQL_CHANGE_H

#include "store/mysql/sql.h"

struct my_changes {
	const char *reader;
	const struct ob_change *changes;
	size_t change_count;
	const struct ob_promote *promotes;
	size_t promote_count;
	bool any_state; /* a verb's: whatever the state is */
};

/* For the partitions of @outbox_won: apply the changes, then the promotions. */
void my_changes_add(struct my_packet *p, const struct my_changes *changes);

#endif
