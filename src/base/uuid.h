/* SPDX-License-Identifier: MIT */
/* UUIDs: 16 bytes, their text forms, and version 7 (time-ordered) generation. */
#ifndef OB_BASE_UUID_H
#define OB_BASE_UUID_H

#include "base/buf.h"
#include "base/clock.h"

struct ob_uuid {
	uint8_t b[16];
};

enum { OB_UUID_TEXT = 36, OB_UUID_TEXT_SIZE = 37 };

/* Canonical (8-4-4-4-12) or 32 hex digits, either case; anything else is false. */
bool ob_uuid_parse(struct ob_str text, struct ob_uuid *ret);
/* As a database hands it over: 16 raw bytes, 32 hex or 36 text; absent is false. */
bool ob_uuid_scan(struct ob_str value, struct ob_uuid *ret);
/* The same as ob_uuid_parse(), but only version 7 is accepted. */
bool ob_uuid_parse_v7(struct ob_str text, struct ob_uuid *ret);
/* Canonical lower-case text with a NUL. */
void ob_uuid_format(const struct ob_uuid *id, char out[OB_UUID_TEXT_SIZE]);

bool ob_uuid_eq(const struct ob_uuid *a, const struct ob_uuid *b);
bool ob_uuid_is_nil(const struct ob_uuid *id);
int ob_uuid_version(const struct ob_uuid *id);

/*
 * A generator of version 7 ids that strictly increase: within a millisecond,
 * and when the clock steps back. When the counter of a millisecond is used up
 * it takes the next millisecond's. Not thread-safe.
 */
struct ob_uuid_gen {
	const struct ob_clock *clock;
	uint64_t last_ms;
	uint64_t counter; /* 42 of the 74 bits behind the time; the rest is random in each id */
	uint8_t pool[512];
	size_t pool_left;
};

void ob_uuid_gen_init(struct ob_uuid_gen *gen, const struct ob_clock *clock);
struct ob_uuid ob_uuid_gen_next(struct ob_uuid_gen *gen);

/* The process's generator on the system clock: thread-safe, and safe after fork. */
struct ob_uuid ob_uuid_new(void);

#endif
