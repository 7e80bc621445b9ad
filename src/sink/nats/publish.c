/* SPDX-License-Identifier: MIT */
/*
 * Messages with their headers. What comes from a message is encoded in headers, so no byte of
 * it can be taken for anything else.
 */
#include "base/utf8.h"
#include "sink/head.h"
#include "sink/line.h"
#include "sink/nats/nats.h"

#include <inttypes.h>
#include <strings.h>

/* ---- subjects -------------------------------------------------------- */

static int bad_subject(struct ob_str subject, const char *why, struct ob_err *err)
{
	struct ob_buf shown = OB_BUF_INIT(1000);

	ob_utf8_sanitize(&shown, subject, 100);
	(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT, "the subject '%s' %s",
			 ob_buf_str(&shown), why);
	ob_buf_done(&shown);
	return err->status;
}

/* "$JS", "$JS.API" ... but not "$JSON" */
static bool is_below(struct ob_str subject, const char *root)
{
	size_t n = strlen(root);

	return subject.n >= n && memcmp(subject.p, root, n) == 0 &&
	       (subject.n == n || subject.p[n] == '.');
}

int ob_nats_subject_check(struct ob_str subject, struct ob_err *err)
{
	char before = '.';

	if (subject.n == 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "the destination is empty: nats needs a subject");
	if (subject.n > OB_NATS_SUBJECT_MAX)
		return bad_subject(subject, "is longer than 1024 bytes", err);
	for (size_t i = 0; i < subject.n; i++) {
		char c = subject.p[i];

		if (c == '.' && before == '.')
			return bad_subject(subject, "has an empty part between its dots", err);
		if (c == '*' || c == '>')
			return bad_subject(subject, "has a wildcard", err);
		if ((c >= 0 && c <= ' ') || c == 0x7f)
			return bad_subject(subject, "has a space or a control character", err);
		before = c;
	}
	if (before == '.')
		return bad_subject(subject, "ends with a dot", err);
	if (!ob_utf8_valid(subject))
		return bad_subject(subject, "is not valid UTF-8", err);
	if (is_below(subject, "$JS") || is_below(subject, "$SYS"))
		return bad_subject(subject, "belongs to the server", err);
	return 0;
}

/* ---- headers --------------------------------------------------------- */

struct head {
	natsMsg *msg;
	struct ob_buf *text; /* a name and its value in the making, each with its NUL */
	size_t bytes;        /* as the library will write them */
	natsStatus status;
	bool has_id; /* the id is among them */
};

static struct head begin_head(natsMsg *msg, struct ob_buf *text)
{
	return (struct head){ .msg = msg, .text = text, .bytes = sizeof("NATS/1.0\r\n\r\n") - 1 };
}

/* What a server finds the id by. */
static const char id_name[] = "Nats-Msg-Id";

/*
 * A nats-server (seen with 2.9) takes the first place in the headers that reads Nats-Msg-Id for the
 * header of that name, be it the end of another name or a part of a value, and then finds no
 * id: nothing is deduplicated. The library writes headers in any order, so no other text may read
 * so. As everywhere in headers, %XX stands for a byte.
 */
static void hide_id_name(struct ob_buf *text, size_t *value)
{
	size_t n = sizeof(id_name) - 1;
	struct ob_buf safe = OB_BUF_INIT(text->max);
	const char *from = text->data, *end = text->data + text->len, *at;

	while ((at = memmem(from, (size_t)(end - from), id_name, n))) {
		ob_buf_add(&safe, (struct ob_str){ from, (size_t)(at - from) });
		ob_buf_adds(&safe, "%4E");
		if ((size_t)(at - text->data) < *value)
			*value += 2;
		from = at + 1;
	}
	ob_buf_add(&safe, (struct ob_str){ from, (size_t)(end - from) });
	ob_buf_clear(text);
	ob_buf_add(text, ob_buf_view(&safe));
	text->failed |= safe.failed;
	ob_buf_done(&safe);
}

/* The text holds a name and, from `value` on, its value. */
static void add_made(struct head *head, size_t value)
{
	struct ob_buf *text = head->text;

	ob_buf_addc(text, '\0');
	if (head->has_id && !text->failed &&
	    memmem(text->data, text->len, id_name, sizeof(id_name) - 1))
		hide_id_name(text, &value);
	if (text->failed) { /* then it is too long */
		head->bytes += OB_NATS_HEAD_MAX;
	} else {
		head->bytes += text->len + 2; /* ": " and the line's end for two NULs */
		if (head->status == NATS_OK && head->bytes <= OB_NATS_HEAD_MAX)
			head->status = natsMsgHeader_Add(head->msg, text->data, text->data + value);
	}
	ob_buf_clear(text);
}

static size_t end_name(struct head *head)
{
	ob_buf_addc(head->text, '\0');
	return head->text->len;
}

/* A value of ours, or one that is printable. */
static void add_plain(struct head *head, struct ob_str name, struct ob_str value)
{
	ob_buf_add(head->text, name);
	size_t at = end_name(head);
	ob_buf_add(head->text, value);
	add_made(head, at);
}

static void add_text(struct head *head, struct ob_str name, struct ob_str value)
{
	if (!value.p)
		return;
	ob_buf_add(head->text, name);
	size_t at = end_name(head);
	ob_head_add_value(head->text, value);
	add_made(head, at);
}

static void add_number(struct head *head, struct ob_str name, int64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, value);
	if (value != 0)
		add_plain(head, name, ob_str(digits));
}

static bool begins(struct ob_str name, const char *with)
{
	size_t n = strlen(with);

	return name.n >= n && strncasecmp(name.p, with, n) == 0;
}

/*
 * By its own name, unless that is empty or means something to the server ("Nats-Rollup"
 * empties a stream) or could be taken for one of ours.
 */
static void add_header(struct head *head, const struct ob_header *header)
{
	struct ob_str name = header->name;

	if (ob_head_is_trace(name)) {
		/* what is not valid means nothing to anyone */
		if (header->value.n > 0 && ob_head_is_printable(header->value))
			add_plain(head, name, header->value);
		return;
	}
	if (name.n == 0 || begins(name, "nats-") || begins(name, "outbox-"))
		ob_buf_add(head->text, OB_STR("outbox-header-"));
	ob_head_add_name(head->text, name);
	size_t at = end_name(head);
	ob_head_add_value(head->text, header->value);
	add_made(head, at);
}

static void make_head(struct head *head, const struct ob_delivery *d)
{
	const struct ob_message *m = d->message;
	char id[OB_UUID_TEXT_SIZE], time[OB_LINE_TIME_SIZE];

	ob_uuid_format(&m->id, id);
	add_plain(head, ob_str(id_name), ob_str(id));
	head->has_id = true;
	add_text(head, OB_STR("outbox-event-type"), m->event_type);
	add_text(head, OB_STR("outbox-aggregate-type"), m->aggregate_type);
	add_text(head, OB_STR("outbox-aggregate-id"), m->aggregate_id);
	add_text(head, OB_STR("outbox-key"), d->key);
	add_number(head, OB_STR("outbox-revision"), m->revision);
	add_number(head, OB_STR("outbox-sequence-number"), m->sequence_number);
	add_text(head, OB_STR("outbox-correlation-id"), m->correlation_id);
	add_text(head, OB_STR("outbox-causation-id"), m->causation_id);
	if (ob_line_time(m->occurred_at_us, time))
		add_plain(head, OB_STR("outbox-occurred-at"), ob_str(time));
	add_text(head, OB_STR("outbox-snapshot"), d->snapshot);
	if (d->content_type.n > 0 && ob_head_is_printable(d->content_type))
		add_plain(head, OB_STR("content-type"), d->content_type);
	if (!d->body.p)
		add_plain(head, OB_STR("outbox-tombstone"), OB_STR("1"));
	for (size_t i = 0; i < d->header_count; i++)
		add_header(head, &d->headers[i]);
	if (d->header_count == 0)
		add_text(head, OB_STR("outbox-headers"), m->headers);
}

/* ---- the message ----------------------------------------------------- */

static int check_size(const struct nats_sink *sink, const struct head *head, size_t body,
		      struct ob_err *err)
{
	if (head->bytes > OB_NATS_HEAD_MAX)
		return ob_err_set(
			err, OUTBOX_ESINK, OB_ERR_REJECT,
			"key, names and headers of the message make more than %d bytes of "
			"headers, a stream takes no more",
			OB_NATS_HEAD_MAX);
	if ((int64_t)(head->bytes + body) > sink->max_payload)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_REJECT,
				  "a message of %zu bytes, headers included, is larger than the "
				  "server's max_payload of %" PRId64,
				  head->bytes + body, sink->max_payload);
	return 0;
}

static natsStatus create(const struct nats_sink *sink, const struct ob_delivery *d,
			 const struct ob_nats_wait *wait, natsMsg **ret_msg)
{
	char subject[OB_NATS_SUBJECT_MAX + 1], token[OB_NATS_TOKEN_SIZE];
	char reply[OB_NATS_INBOX_SIZE + OB_NATS_TOKEN_SIZE + 1];

	memcpy(subject, d->destination.p, d->destination.n);
	subject[d->destination.n] = '\0';
	ob_nats_wait_token(&sink->waits, wait, token);
	(void)snprintf(reply, sizeof(reply), "%s.%s", sink->inbox, token);
	return natsMsg_Create(ret_msg, subject, reply, d->body.p, (int)d->body.n);
}

int ob_nats_publish(struct nats_sink *sink, const struct ob_delivery *delivery,
		    const struct ob_nats_wait *wait, struct ob_err *err)
{
	struct head head = begin_head(NULL, &sink->text);

	/* Before it is copied: it may be of any size. */
	int r = check_size(sink, &head, delivery->body.n, err);
	if (r < 0)
		return r;
	natsStatus s = create(sink, delivery, wait, &head.msg);
	if (s == NATS_OK) {
		make_head(&head, delivery);
		r = check_size(sink, &head, delivery->body.n, err);
		s = head.status;
	}
	if (r == 0 && s == NATS_OK)
		s = natsConnection_PublishMsg(sink->nc, head.msg);
	natsMsg_Destroy(head.msg);
	return r < 0 || s == NATS_OK ? r : ob_nats_status(s, nats_GetLastError(NULL), err);
}
