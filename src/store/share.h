/* SPDX-License-Identifier: MIT */
/* What the stores share in a read. */
#ifndef OB_STORE_SHARE_H
#define OB_STORE_SHARE_H

#include "store/store.h"

/* Is this exception in the caller's memory? */
bool ob_read_excludes(const struct ob_read *read, int64_t seq);
/* Index of the partition in read->parts, or -1. */
int ob_read_find(const struct ob_read *read, uint32_t partition);

#endif
