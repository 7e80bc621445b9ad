/* SPDX-License-Identifier: MIT */
#include "base/count.h"

#include <inttypes.h>

void ob_count_add(struct ob_buf *out, uint64_t count, const char *thing)
{
	ob_buf_addf(out, "%" PRIu64 " %s%s", count, thing, count == 1 ? "" : "s");
}
