/* SPDX-License-Identifier: MIT */
/* One line of JSON as a message to push. Pure: bytes in, a message or an error out. */
#ifndef OB_CLI_PUSH_NDJSON_H
#define OB_CLI_PUSH_NDJSON_H

#include "base/arena.h"
#include "base/err.h"

/* A payload of OUTBOX_PAYLOAD_MAX, in Base64 at worst, and room for the rest. */
enum { OB_NDJSON_LINE_MAX = 48 << 20 };

/*
 * Read one object. Texts are decoded into the arena and end with a NUL;
 * payload, headers and snapshot are copied there byte for byte as they
 * are written. A key that is unknown, given twice or of the wrong type, and a text
 * with a NUL in it, and a missing field is OUTBOX_EINVAL; memory is OUTBOX_ENOMEM.
 * Lengths and the id are left to the store. ret: written only on success.
 */
int ob_ndjson_read(struct ob_str line, struct ob_arena *arena, struct outbox_message *ret,
		   struct ob_err *err);

/* The key number `index` and one line about it, for the manual page; NULL behind the last. */
const char *ob_ndjson_key(size_t index, const char **ret_help);

/* A delay may reach this far. */
#define OB_DELAY_MAX_MS (INT64_C(3650) * 86400000)

#endif
