/* SPDX-License-Identifier: MIT */
/*
 * One delivery as one line of JSON, the same for every sink that speaks lines:
 *
 *   {"id":"0190...","destination":"orders","key":"order:1042",
 *    "aggregate_type":"order","aggregate_id":"1042","event_type":"OrderPlaced",
 *    "revision":1,"sequence_number":3,"correlation_id":"c","causation_id":"d",
 *    "occurred_at":"2026-05-04T03:02:01.000000Z","priority":5,
 *    "headers":{...},"content_type":"...","payload":{...}}
 *
 * The order is fixed; what is absent or zero (a key, a priority ...) is left out.
 *
 * payload: the body as it is when it is valid JSON; only raw line breaks, which
 * can stand between tokens alone, become spaces. A body that is not JSON, or
 * whose content type says something else, is "payload_base64". A tombstone is
 * "payload":null,"tombstone":true.
 * headers: those of the delivery, as strings; when it has none, the stored
 * object as it is (a stored text that is no JSON object: as one string).
 * Text that is not UTF-8 gets U+FFFD for each bad byte.
 */
#ifndef OB_SINK_LINE_H
#define OB_SINK_LINE_H

#include "sink/sink.h"

/* Of body, headers and texts together: far above what a store accepts. */
enum { OB_LINE_INPUT_MAX = 80 << 20 };
/* Escaping makes at most six bytes of one, and a window may hold a few lines more. */
#define OB_LINE_BUF_MAX ((size_t)OB_LINE_INPUT_MAX * 6 + (64 << 20))

/*
 * Append the line with its newline. On failure *out is as before: REJECT when
 * the message is too large for a line, DOWN when memory is short. Allocates
 * nothing once *out has grown to the size of the lines.
 */
int ob_line_add(struct ob_buf *out, const struct ob_delivery *delivery, struct ob_err *err);

/* Append the value of "headers" alone; nothing when there are none. */
void ob_line_add_headers(struct ob_buf *out, const struct ob_delivery *delivery);

/* A time as in the lines; see ob_time_format(). */
enum { OB_LINE_TIME_SIZE = OB_TIME_SIZE };
static inline bool ob_line_time(int64_t us, char out[OB_LINE_TIME_SIZE])
{
	return ob_time_format(us, out);
}

#endif
