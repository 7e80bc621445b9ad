/* SPDX-License-Identifier: MIT */
/*
 * The messages of one POST. With `batch: 1` it is one message, whose body is the request's;
 * else the body is a JSON array with a line (line.h) for each of them, or with the CloudEvents
 * that the route's envelope has made of them.
 *
 * A batch goes out in pieces: all of it at first, and in halves where the receiver
 * refuses the content, until what it refuses stands alone. A piece has one
 * outcome, which is that of each of its messages.
 */
#ifndef OB_SINK_HTTP_BATCH_H
#define OB_SINK_HTTP_BATCH_H

#include "sink/sink.h"

enum { OB_HTTP_BATCH_ID_SIZE = 48 };

struct ob_http_part {
	uint64_t tag;
	struct ob_uuid id;
	size_t end; /* of its line, behind the comma */
};

/* All zero is unused. */
struct ob_http_batch {
	struct ob_http_part *parts;
	uint32_t max, count;
	uint32_t from, size; /* the piece */
	uint32_t taken;      /* of the piece's outcomes */
	bool closed;         /* takes no more */
	bool events;         /* its messages are structured CloudEvents, and go as they are */
	struct ob_buf body;  /* "[{...},{...}," */
};

/* Room for so many messages, once. */
bool ob_http_batch_init(struct ob_http_batch *batch, uint32_t max);
void ob_http_batch_done(struct ob_http_batch *batch);

/* Empty it, and make it that one message, which has a request of its own. */
void ob_http_batch_set(struct ob_http_batch *batch, const struct ob_delivery *delivery);
void ob_http_batch_clear(struct ob_http_batch *batch);
/*
 * Add a message: 0, OB_SINK_FULL, or an error of ob_line_add(). An empty one is never full. A
 * message that has failed before stays alone: where a batch fails, nobody knows which
 * message is to blame, and the others must not be charged for it again and again.
 */
int ob_http_batch_add(struct ob_http_batch *batch, const struct ob_delivery *delivery,
		      size_t bytes_max, struct ob_err *err);

/* The piece is everything that is left. */
void ob_http_batch_rest(struct ob_http_batch *batch);
/* The content was refused: the piece is its first half now. False: it is one message. */
bool ob_http_batch_halve(struct ob_http_batch *batch);
/* The piece is over: a larger one of the rest. False: nothing is left. */
bool ob_http_batch_next(struct ob_http_batch *batch);
/* The piece as a JSON array; borrowed until the next call. */
struct ob_str ob_http_batch_body(struct ob_http_batch *batch);
/*
 * What names the piece: the id of its only message, else "batch-" and a hash of its
 * messages' ids. The same for the same messages, and for no others: a receiver that
 * remembers it drops nothing that it has not had. False when the library fails.
 */
bool ob_http_batch_id(const struct ob_http_batch *batch, char out[OB_HTTP_BATCH_ID_SIZE]);
/* Outcomes of the piece, each with that error; returns how many. */
uint32_t ob_http_batch_take(struct ob_http_batch *batch, const struct ob_err *outcome,
			    struct ob_ack *acks, size_t max);

#endif
