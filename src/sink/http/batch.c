/* SPDX-License-Identifier: MIT */
/*
 * Messages as one JSON array. Every line ends with a comma, and a piece needs a bracket on both
 * sides: they are written over the commas around it, so no piece is ever copied.
 */
#include "sink/http/batch.h"

#include "sink/line.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	KEEP_BYTES = 2 << 20, /* memory kept between two batches */
	HASH_BYTES = 16,      /* of the hash, that go into the id */
};

bool ob_http_batch_init(struct ob_http_batch *batch, uint32_t max)
{
	if (batch->parts)
		return true;
	batch->parts = calloc(max, sizeof(*batch->parts));
	batch->max = max;
	batch->body = OB_BUF_INIT(OB_LINE_BUF_MAX);
	return batch->parts != NULL;
}

void ob_http_batch_done(struct ob_http_batch *batch)
{
	ob_buf_done(&batch->body);
	free(batch->parts);
	*batch = (struct ob_http_batch){ 0 };
}

void ob_http_batch_clear(struct ob_http_batch *batch)
{
	batch->count = batch->from = batch->size = batch->taken = 0;
	batch->closed = false;
	if (batch->body.cap > KEEP_BYTES) {
		ob_buf_done(&batch->body);
		batch->body = OB_BUF_INIT(OB_LINE_BUF_MAX);
	}
	ob_buf_clear(&batch->body);
}

static void add_part(struct ob_http_batch *batch, const struct ob_delivery *delivery)
{
	batch->parts[batch->count++] = (struct ob_http_part){
		.tag = delivery->tag,
		.id = delivery->message->id,
		.end = batch->body.len,
	};
	ob_http_batch_rest(batch);
}

void ob_http_batch_set(struct ob_http_batch *batch, const struct ob_delivery *delivery)
{
	ob_http_batch_clear(batch);
	add_part(batch, delivery);
}

static bool is_event(const struct ob_delivery *delivery)
{
	return ob_str_eq(delivery->content_type, OB_STR("application/cloudevents+json"));
}

static int add_event(struct ob_buf *body, struct ob_str event, struct ob_err *err)
{
	size_t from = body->len;

	if (event.n > OB_LINE_INPUT_MAX)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "an event of %zu bytes is too large for a batch (at most %d MB)",
				  event.n, OB_LINE_INPUT_MAX >> 20);
	ob_buf_add(body, event);
	ob_buf_addc(body, '\n');
	if (!body->failed)
		return 0;
	body->len = from;
	body->failed = false;
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for an event of %zu bytes",
			  event.n);
}

int ob_http_batch_add(struct ob_http_batch *batch, const struct ob_delivery *delivery,
		      size_t bytes_max, struct ob_err *err)
{
	struct ob_buf *body = &batch->body;
	bool alone = delivery->message->attempts > 0;
	bool event = is_event(delivery);
	size_t from = body->len;

	if (batch->count > 0 && batch->events != event)
		return OB_SINK_FULL;
	if (batch->closed || batch->count == batch->max || (alone && batch->count > 0))
		return OB_SINK_FULL;
	if (batch->count == 0) {
		ob_http_batch_clear(batch);
		ob_buf_addc(body, '[');
		batch->events = event;
	}
	int r = event ? add_event(body, delivery->body, err) : ob_line_add(body, delivery, err);
	if (r < 0)
		return r;
	if (batch->count > 0 && body->len > bytes_max) {
		body->len = from;
		body->data[from] = '\0';
		return OB_SINK_FULL;
	}
	body->data[body->len - 1] = ','; /* for the line's end */
	add_part(batch, delivery);
	batch->closed = alone;
	return 0;
}

/* ---- pieces ---------------------------------------------------------- */

void ob_http_batch_rest(struct ob_http_batch *batch)
{
	batch->size = batch->count - batch->from;
}

bool ob_http_batch_halve(struct ob_http_batch *batch)
{
	if (batch->size < 2)
		return false;
	batch->body.data[batch->parts[batch->from + batch->size - 1].end - 1] = ',';
	batch->size /= 2;
	return true;
}

bool ob_http_batch_next(struct ob_http_batch *batch)
{
	uint32_t rest = batch->count - batch->from - batch->size;
	uint32_t larger = batch->size * 2;

	batch->from += batch->size;
	batch->size = rest < larger ? rest : larger;
	batch->taken = 0;
	return rest > 0;
}

struct ob_str ob_http_batch_body(struct ob_http_batch *batch)
{
	size_t begin = batch->from == 0 ? 0 : batch->parts[batch->from - 1].end - 1;
	size_t end = batch->parts[batch->from + batch->size - 1].end;

	batch->body.data[begin] = '[';
	batch->body.data[end - 1] = ']';
	return (struct ob_str){ batch->body.data + begin, end - begin };
}

static bool hash_ids(const struct ob_http_batch *batch, unsigned char out[EVP_MAX_MD_SIZE])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);

	for (uint32_t i = 0; ok && i < batch->size; i++) {
		const struct ob_uuid *id = &batch->parts[batch->from + i].id;

		ok = EVP_DigestUpdate(ctx, id->b, sizeof(id->b));
	}
	ok = ok && EVP_DigestFinal_ex(ctx, out, NULL);
	EVP_MD_CTX_free(ctx);
	return ok;
}

bool ob_http_batch_id(const struct ob_http_batch *batch, char out[OB_HTTP_BATCH_ID_SIZE])
{
	unsigned char hash[EVP_MAX_MD_SIZE];

	if (batch->size == 1) {
		ob_uuid_format(&batch->parts[batch->from].id, out);
		return true;
	}
	if (!hash_ids(batch, hash))
		return false;
	int at = snprintf(out, OB_HTTP_BATCH_ID_SIZE, "batch-");
	for (int i = 0; i < HASH_BYTES; i++, at += 2)
		(void)snprintf(out + at, OB_HTTP_BATCH_ID_SIZE - (size_t)at, "%02x", hash[i]);
	return true;
}

uint32_t ob_http_batch_take(struct ob_http_batch *batch, const struct ob_err *outcome,
			    struct ob_ack *acks, size_t max)
{
	uint32_t n = 0;

	for (; n < max && batch->taken < batch->size; n++, batch->taken++)
		acks[n] = (struct ob_ack){ .tag = batch->parts[batch->from + batch->taken].tag,
					   .err = *outcome };
	return n;
}
