/* SPDX-License-Identifier: MIT */
/* JSON for programs: one value, always on one line, whatever is in it. */
#ifndef OB_BASE_JOUT_H
#define OB_BASE_JOUT_H

#include "base/buf.h"

/* Commas are set by the writer. `key` is NULL inside an array and at the top. */
struct ob_jout {
	struct ob_buf b;
	bool comma;
};

/* Room for a payload, headers and a snapshot, each of the largest size and escaped. */
#define OB_JOUT_INIT ((struct ob_jout){ .b = OB_BUF_INIT((size_t)768 << 20) })

void ob_jout_begin(struct ob_jout *j, const char *key, char bracket);
void ob_jout_end(struct ob_jout *j, char bracket);
/* Absent becomes null. */
void ob_jout_text(struct ob_jout *j, const char *key, struct ob_str text);
void ob_jout_int(struct ob_jout *j, const char *key, int64_t value);
void ob_jout_bool(struct ob_jout *j, const char *key, bool value);
/* A number of microseconds since 1970 as an ISO 8601 text; 0 becomes null. */
void ob_jout_when(struct ob_jout *j, const char *key, int64_t us);
/* Valid JSON as it is, but its line breaks become spaces. */
void ob_jout_raw(struct ob_jout *j, const char *key, struct ob_str json);
void ob_jout_base64(struct ob_jout *j, const char *key, struct ob_str bytes);
void ob_jout_done(struct ob_jout *j);

#endif
