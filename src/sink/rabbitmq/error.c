/* SPDX-License-Identifier: MIT */
/* What the reply codes of the broker mean for us. */
#include "base/utf8.h"
#include "sink/rabbitmq/rabbitmq.h"

#include <inttypes.h>
#include <stdlib.h>

struct rule {
	uint16_t code;
	const char *name;
	enum ob_err_kind kind; /* for the one to blame */
	enum ob_rabbitmq_blame blame;
	const char *hint;
};

/* What is about the broker or about our rights there is DOWN: never dead. */
static const struct rule rules[] = {
	{ AMQP_CONTENT_TOO_LARGE, "CONTENT_TOO_LARGE", OB_ERR_REJECT, OB_RABBITMQ_BLAME_SIZE,
	  NULL },
	{ AMQP_NO_ROUTE, "NO_ROUTE", OB_ERR_RETRY, OB_RABBITMQ_BLAME_NONE,
	  "no queue is bound for it" },
	{ AMQP_NO_CONSUMERS, "NO_CONSUMERS", OB_ERR_RETRY, OB_RABBITMQ_BLAME_NONE, NULL },
	{ AMQP_CONNECTION_FORCED, "CONNECTION_FORCED", OB_ERR_DOWN, OB_RABBITMQ_BLAME_NONE, NULL },
	{ AMQP_INVALID_PATH, "INVALID_PATH", OB_ERR_DOWN, OB_RABBITMQ_BLAME_NONE,
	  "check the vhost in the url" },
	{ AMQP_ACCESS_REFUSED, "ACCESS_REFUSED", OB_ERR_RETRY, OB_RABBITMQ_BLAME_EXCHANGE,
	  "allow this user to write there" },
	{ AMQP_NOT_FOUND, "NOT_FOUND", OB_ERR_RETRY, OB_RABBITMQ_BLAME_EXCHANGE,
	  "declare the exchange" },
	{ AMQP_RESOURCE_LOCKED, "RESOURCE_LOCKED", OB_ERR_RETRY, OB_RABBITMQ_BLAME_EXCHANGE, NULL },
	{ AMQP_PRECONDITION_FAILED, "PRECONDITION_FAILED", OB_ERR_REJECT, OB_RABBITMQ_BLAME_SIZE,
	  NULL },
	{ AMQP_FRAME_ERROR, "FRAME_ERROR", OB_ERR_RETRY, OB_RABBITMQ_BLAME_ALONE, NULL },
	{ AMQP_SYNTAX_ERROR, "SYNTAX_ERROR", OB_ERR_RETRY, OB_RABBITMQ_BLAME_ALONE, NULL },
	{ AMQP_COMMAND_INVALID, "COMMAND_INVALID", OB_ERR_RETRY, OB_RABBITMQ_BLAME_ALONE, NULL },
	{ AMQP_CHANNEL_ERROR, "CHANNEL_ERROR", OB_ERR_DOWN, OB_RABBITMQ_BLAME_NONE, NULL },
	{ AMQP_UNEXPECTED_FRAME, "UNEXPECTED_FRAME", OB_ERR_RETRY, OB_RABBITMQ_BLAME_ALONE, NULL },
	{ AMQP_RESOURCE_ERROR, "RESOURCE_ERROR", OB_ERR_DOWN, OB_RABBITMQ_BLAME_NONE, NULL },
	{ AMQP_NOT_ALLOWED, "NOT_ALLOWED", OB_ERR_DOWN, OB_RABBITMQ_BLAME_NONE,
	  "check the vhost and this user's rights there" },
	{ AMQP_NOT_IMPLEMENTED, "NOT_IMPLEMENTED", OB_ERR_RETRY, OB_RABBITMQ_BLAME_ALONE, NULL },
	{ AMQP_INTERNAL_ERROR, "INTERNAL_ERROR", OB_ERR_DOWN, OB_RABBITMQ_BLAME_NONE, NULL },
};

/* Of a code that nobody knows, a message that is alone may be the reason. */
static const struct rule unknown = { 0, "ERROR", OB_ERR_RETRY, OB_RABBITMQ_BLAME_ALONE, NULL };

static const struct rule *find_rule(uint16_t code)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].code == code)
			return &rules[i];
	}
	return &unknown;
}

int ob_rabbitmq_error(uint16_t code, struct ob_str text, enum ob_rabbitmq_blame *ret_blame,
		      struct ob_err *err)
{
	const struct rule *rule = find_rule(code);
	struct ob_buf line = OB_BUF_INIT(1200);
	const char *hint = rule->hint ? rule->hint : "";

	ob_utf8_sanitize(&line, text, 250);
	(void)ob_err_set(err, OUTBOX_ESINK, rule->kind, "rabbitmq says %u: %s%s%s%s", code,
			 line.len > 0 ? ob_buf_str(&line) : rule->name, *hint ? " (" : "", hint,
			 *hint ? ")" : "");
	ob_buf_done(&line);
	(void)snprintf(err->native, sizeof(err->native), "%u", code);
	*ret_blame = rule->blame;
	/* Permanent only when we know what it is about. */
	if (err->kind == OB_ERR_REJECT && ob_rabbitmq_size_limit(text) == 0)
		err->kind = OB_ERR_RETRY;
	return err->status;
}

/* Does the text hold `before`, the name and a quote behind it? */
static bool names(struct ob_str text, const char *before, struct ob_str name)
{
	size_t n = strlen(before);

	for (const char *at = text.p; at; at++) {
		size_t left = text.n - (size_t)(at - text.p);

		at = memmem(at, left, before, n);
		if (!at)
			return false;
		left = text.n - (size_t)(at - text.p);
		if (left > n + name.n && (name.n == 0 || memcmp(at + n, name.p, name.n) == 0) &&
		    at[n + name.n] == '\'')
			return true;
	}
	return false;
}

/* The number behind a word of the text; 0: none. */
static uint64_t number_behind(struct ob_str text, const char *word)
{
	const char *at = text.p ? memmem(text.p, text.n, word, strlen(word)) : NULL;
	uint64_t value = 0;

	if (!at)
		return 0;
	for (at += strlen(word); at < text.p + text.n && *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

uint64_t ob_rabbitmq_size_limit(struct ob_str text)
{
	return number_behind(text, "max size ");
}

bool ob_rabbitmq_is_about(const struct rabbitmq_sink *sink, enum ob_rabbitmq_blame blame,
			  struct ob_str text, const struct ob_rabbitmq_slot *slot, bool alone)
{
	switch (blame) {
	case OB_RABBITMQ_BLAME_EXCHANGE:
		if (text.p && memmem(text.p, text.n, "topic '", 7))
			return names(text, "topic '", slot->key);
		/* An exchange of all messages is not this message's fault. */
		return sink->exchange_per_message && names(text, "exchange '", slot->exchange);
	case OB_RABBITMQ_BLAME_SIZE:
		if (ob_rabbitmq_size_limit(text) > 0)
			return slot->size > ob_rabbitmq_size_limit(text);
		return alone;
	case OB_RABBITMQ_BLAME_ALONE:
		return alone;
	case OB_RABBITMQ_BLAME_NONE:
		break;
	}
	return false;
}

int ob_rabbitmq_refused(const struct rabbitmq_sink *sink, const struct ob_rabbitmq_slot *slot,
			struct ob_err *err)
{
	enum ob_rabbitmq_blame blame;
	struct ob_buf where = OB_BUF_INIT(1200);

	if (slot->returned == 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_RETRY,
				  "rabbitmq refused the message (basic.nack): a queue is full or "
				  "has failed");
	(void)ob_rabbitmq_error(slot->returned, OB_STR_NULL, &blame, err);
	if (sink->unroutable == OB_RABBITMQ_UNROUTABLE_REJECT)
		err->kind = OB_ERR_REJECT;
	ob_buf_adds(&where, "exchange '");
	ob_utf8_sanitize(&where, slot->exchange, 100);
	ob_buf_adds(&where, "', routing key '");
	ob_utf8_sanitize(&where, slot->key, 100);
	(void)ob_err_context(err, "%s': the message came back", ob_buf_str(&where));
	ob_buf_done(&where);
	return err->status;
}
