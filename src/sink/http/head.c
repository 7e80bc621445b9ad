/* SPDX-License-Identifier: MIT */
/*
 * The headers of a webhook. What comes from a message is percent-encoded, so a CR, LF
 * or NUL cannot get into a header, and arrives exactly. Stored headers get a
 * prefix, so that they cannot pose as a header that means something to the
 * receiver or to a proxy; only those of CloudEvents and of tracing go by their own name.
 */
#include "sink/head.h"
#include "base/json.h"
#include "sink/http/request.h"
#include "sink/line.h"

#include <stdio.h>
#include <strings.h>

struct head {
	struct curl_slist *list;
	struct ob_buf line; /* the one in the making */
	size_t bytes;
	bool failed; /* no memory */
};

static void end_line(struct head *head)
{
	struct curl_slist *longer;

	head->bytes += head->line.len + 2;
	/* A line that did not fit is too long anyway: it makes the head so. */
	if (head->line.failed) {
		head->bytes += OB_HTTP_HEAD_MAX;
		ob_buf_clear(&head->line);
		return;
	}
	longer = curl_slist_append(head->list, ob_buf_str(&head->line));
	head->failed |= !longer;
	if (longer)
		head->list = longer;
	ob_buf_clear(&head->line);
}

/* A header of ours: the value holds nothing but printable ASCII. */
static void add_own(struct head *head, const char *name, const char *value)
{
	ob_buf_addf(&head->line, "%s: %s", name, value);
	end_line(head);
}

/* The library drops a header without a value, unless a semicolon stands there. */
static void add_value(struct head *head, struct ob_str value)
{
	ob_buf_adds(&head->line, value.n > 0 ? ": " : ";");
	ob_head_add_value(&head->line, value);
	end_line(head);
}

static void add_text(struct head *head, const char *name, struct ob_str value)
{
	if (!value.p)
		return;
	ob_buf_adds(&head->line, name);
	add_value(head, value);
}

static void add_number(struct head *head, const char *name, int64_t value)
{
	char text[24];

	if (value == 0)
		return;
	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	add_own(head, name, text);
}

static void add_time(struct head *head, const char *name, int64_t us)
{
	char text[OB_LINE_TIME_SIZE];

	if (ob_line_time(us, text))
		add_own(head, name, text);
}

static void add_header(struct head *head, const struct ob_header *header)
{
	struct ob_str name = header->name;

	/* These have an encoding of their own; what is not valid means nothing to anyone. */
	if (ob_head_is_trace(name)) {
		if (header->value.n == 0 || !ob_head_is_printable(header->value))
			return;
		ob_buf_add(&head->line, name);
		ob_buf_adds(&head->line, ": ");
		ob_buf_add(&head->line, header->value);
		end_line(head);
		return;
	}
	if (name.n <= 3 || strncasecmp(name.p, "ce-", 3) != 0)
		ob_buf_adds(&head->line, "outbox-header-");
	ob_head_add_name(&head->line, name);
	add_value(head, header->value);
}

static void add_content_type(struct head *head, const struct ob_delivery *delivery,
			     struct ob_str body)
{
	struct ob_str type = delivery->content_type;

	if (!delivery->body.p)
		add_own(head, "outbox-tombstone", "1");
	if (body.n > 0 && !delivery->body.p) {
		add_own(head, "content-type", "application/json");
	} else if (!delivery->body.p || (type.p && (type.n == 0 || !ob_head_is_printable(type)))) {
		ob_buf_adds(&head->line, "content-type:"); /* none, not the library's own */
		end_line(head);
	} else if (type.p) {
		ob_buf_adds(&head->line, "content-type: ");
		ob_buf_add(&head->line, type);
		end_line(head);
	} else {
		add_own(head, "content-type",
			ob_json_valid(delivery->body, NULL) ? "application/json"
							    : "application/octet-stream");
	}
}

static void add_message(struct head *head, const struct ob_delivery *delivery)
{
	const struct ob_message *m = delivery->message;

	add_text(head, "outbox-destination", delivery->destination);
	add_text(head, "outbox-key", delivery->key);
	add_text(head, "outbox-aggregate-type", m->aggregate_type);
	add_text(head, "outbox-aggregate-id", m->aggregate_id);
	add_text(head, "outbox-event-type", m->event_type);
	add_number(head, "outbox-revision", m->revision);
	add_number(head, "outbox-sequence-number", m->sequence_number);
	add_text(head, "outbox-correlation-id", m->correlation_id);
	add_text(head, "outbox-causation-id", m->causation_id);
	add_time(head, "outbox-occurred-at", m->occurred_at_us);
	add_text(head, "outbox-snapshot", delivery->snapshot);
	for (size_t i = 0; i < delivery->header_count; i++)
		add_header(head, &delivery->headers[i]);
	if (delivery->header_count == 0)
		add_text(head, "outbox-headers", m->headers);
}

static bool add_signature(struct head *head, const struct ob_http_target *target, const char *id,
			  struct ob_str body, int64_t now_s)
{
	struct ob_buf signature = OB_BUF_INIT(2000);

	add_own(head, "webhook-id", id);
	add_number(head, "webhook-timestamp", now_s);
	if (target->signer.count == 0)
		return true;
	bool ok = ob_http_sign(&target->signer, id, now_s, body, &signature);
	add_own(head, "webhook-signature", ob_buf_str(&signature));
	ob_buf_done(&signature);
	return ok;
}

/* What every request has. */
static bool add_common(struct head *head, const struct ob_http_target *target, const char *id,
		       struct ob_str body, int64_t now_s)
{
	bool ok = add_signature(head, target, id, body, now_s);

	if (target->authorization)
		add_own(head, "authorization", target->authorization);
	ob_buf_adds(&head->line, "expect:"); /* no second round trip */
	end_line(head);
	return ok;
}

static int end_head(struct head *head, bool ok, struct curl_slist **ret_list, struct ob_err *err)
{
	ob_buf_done(&head->line);
	if (ok && !head->failed && head->bytes <= OB_HTTP_HEAD_MAX) {
		*ret_list = head->list;
		return 0;
	}
	curl_slist_free_all(head->list);
	if (!ok || head->failed)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "%s",
				  ok ? "no memory for the headers of a request"
				     : "signing a request failed");
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
			  "key, names and headers of the message make more than %d KB of HTTP "
			  "headers",
			  OB_HTTP_HEAD_MAX >> 10);
}

int ob_http_head_make(const struct ob_http_target *target, const struct ob_delivery *delivery,
		      struct ob_str body, int64_t now_s, struct curl_slist **ret_list,
		      struct ob_err *err)
{
	struct head head = { .line = OB_BUF_INIT(OB_HTTP_HEAD_MAX) };
	char id[OB_UUID_TEXT_SIZE];

	ob_uuid_format(&delivery->message->id, id);
	bool ok = add_common(&head, target, id, body, now_s);
	add_content_type(&head, delivery, body);
	add_message(&head, delivery);
	return end_head(&head, ok, ret_list, err);
}

int ob_http_head_make_piece(const struct ob_http_target *target, struct ob_http_batch *batch,
			    int64_t now_s, struct curl_slist **ret_list, struct ob_err *err)
{
	struct head head = { .line = OB_BUF_INIT(OB_HTTP_HEAD_MAX) };
	char id[OB_HTTP_BATCH_ID_SIZE];
	bool ok = ob_http_batch_id(batch, id) &&
		  add_common(&head, target, id, ob_http_batch_body(batch), now_s);

	add_own(&head, "content-type",
		batch->events ? "application/cloudevents-batch+json" : "application/json");
	return end_head(&head, ok, ret_list, err);
}
