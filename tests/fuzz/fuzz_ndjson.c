/* SPDX-License-Identifier: MIT */
/*
 * A line is either refused with a message, or what was cut out of it is what a
 * JSON parser of others finds there.
 */
#include "fuzz.h"

#include "cli/push/ndjson.h"

#include <jansson.h>
#include <stdlib.h>

enum { ARENA_MAX = 64 << 20 };

static const size_t ANY = JSON_DECODE_ANY | JSON_ALLOW_NUL;

/* The member of the line and our copy of its bytes mean the same. */
static void check_raw(const json_t *line, const char *key, const void *bytes, size_t size)
{
	const json_t *member = json_object_get(line, key);

	if (!member || !bytes)
		return;
	json_t *copy = json_loadb(bytes, size, ANY, NULL);
	FUZZ_CHECK(copy && json_equal(copy, member));
	json_decref(copy);
}

static void check_text(const json_t *line, const char *key, const char *text)
{
	const json_t *member = json_object_get(line, key);

	FUZZ_CHECK(!text ||
		   (json_is_string(member) && strcmp(json_string_value(member), text) == 0));
	FUZZ_CHECK(text || !json_is_string(member));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ob_arena arena = OB_ARENA_INIT(ARENA_MAX);
	struct outbox_message m = { 0 };
	struct ob_err err = OB_ERR_INIT;
	struct ob_str text = { (const char *)data, size };

	if (ob_ndjson_read(text, &arena, &m, &err) < 0) {
		FUZZ_CHECK(err.status < 0 && err.msg[0] && !strchr(err.msg, '\n'));
		ob_arena_done(&arena);
		return 0;
	}
	FUZZ_CHECK(m.aggregate_type && m.event_type);
	FUZZ_CHECK(m.payload || (m.flags & OUTBOX_TOMBSTONE));
	/* jansson refuses numbers that it cannot hold: then there is nothing to compare. */
	json_t *line = json_loadb(text.p, text.n, ANY, NULL);
	if (line) {
		check_raw(line, "payload", m.payload, m.payload_size);
		check_raw(line, "headers", m.headers, m.headers_size);
		check_raw(line, "snapshot", m.snapshot, m.snapshot_size);
		check_text(line, "aggregate_type", m.aggregate_type);
		check_text(line, "aggregate_id", m.aggregate_id);
		check_text(line, "partition_key", m.partition_key);
	}
	json_decref(line);
	ob_arena_done(&arena);
	return 0;
}
