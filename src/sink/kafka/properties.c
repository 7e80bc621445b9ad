/* SPDX-License-Identifier: MIT */
/* Properties of librdkafka as they are, but for those that would break what the sink promises. */
#include "sink/kafka/kafka.h"

enum { NAME_MAX = 128, VALUE_MAX = 32 << 10 };

struct refusal {
	const char *name;
	const char *value; /* refused only with this one; NULL: always */
	const char *why;
};

static const char unordered[] = "the order of a key rests on it";
static const char lossy[] = "a message would count that is not stored";
static const char timed[] = "set the option timeout instead";

static const struct refusal refusals[] = {
	{ "bootstrap.servers", NULL, "set the option brokers instead" },
	{ "metadata.broker.list", NULL, "set the option brokers instead" },
	{ "message.max.bytes", NULL, "set the option max_message_size instead" },
	{ "enable.idempotence", NULL, unordered },
	{ "enable.gapless.guarantee", NULL, unordered },
	{ "max.in.flight", NULL, unordered },
	{ "max.in.flight.requests.per.connection", NULL, unordered },
	{ "queuing.strategy", NULL, unordered },
	{ "partitioner", "random", "messages of one key would go to different partitions" },
	{ "acks", NULL, lossy },
	{ "request.required.acks", NULL, lossy },
	{ "test.mock.num.brokers", NULL, lossy },
	{ "message.timeout.ms", NULL, timed },
	{ "delivery.timeout.ms", NULL, timed },
	{ "retries", NULL, timed },
	{ "message.send.max.retries", NULL, timed },
	{ "delivery.report.only.error", NULL, "what is stored would never be known" },
	{ "transactional.id", NULL, "the sink sends no transactions" },
	{ "queue.buffering.max.messages", NULL, "set the option window instead" },
	{ "debug", NULL, "a sink writes no log; try kcat -d" },
};

static int refuse(size_t line, const char *name, const char *why, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "the kafka sink's properties, line %zu: %s: %s", line, name, why);
}

/* The text without the spaces around it, as a C string; NULL: too long. */
static const char *trim(const char *p, size_t n, char *out, size_t size)
{
	while (n > 0 && (*p == ' ' || *p == '\t')) {
		p++;
		n--;
	}
	while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t' || p[n - 1] == '\r'))
		n--;
	if (n >= size)
		return NULL;
	memcpy(out, p, n);
	out[n] = '\0';
	return out;
}

static int set(size_t line, const char *name, const char *value, rd_kafka_conf_t *conf,
	       struct ob_err *err)
{
	char why[256];

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];

		if (strcmp(name, r->name) == 0 && (!r->value || strcmp(value, r->value) == 0))
			return refuse(line, name, r->why, err);
	}
	switch (rd_kafka_conf_set(conf, name, value, why, sizeof(why))) {
	case RD_KAFKA_CONF_OK:
		return 0;
	case RD_KAFKA_CONF_UNKNOWN:
		return refuse(line, name, "librdkafka has no such property", err);
	case RD_KAFKA_CONF_INVALID:
		break;
	}
	/* Its own words may hold the value, which may be a password. */
	return refuse(line, name, "librdkafka does not take this value", err);
}

static int read_line(size_t line, const char *p, size_t n, rd_kafka_conf_t *conf,
		     struct ob_err *err)
{
	char name[NAME_MAX], value[VALUE_MAX];
	const char *equals = memchr(p, '=', n);

	if (n == 0 || (trim(p, n, name, sizeof(name)) && (!name[0] || name[0] == '#')))
		return 0;
	if (!equals)
		return refuse(line, "no '='", "write name=value, one on a line", err);
	if (!trim(p, (size_t)(equals - p), name, sizeof(name)) ||
	    !trim(equals + 1, n - (size_t)(equals + 1 - p), value, VALUE_MAX))
		return refuse(line, "too long", "a name has less than 128 bytes, a value 32 KB",
			      err);
	return set(line, name, value, conf, err);
}

int ob_kafka_properties(const char *text, rd_kafka_conf_t *conf, struct ob_err *err)
{
	for (size_t line = 1; text && *text; line++) {
		size_t n = strcspn(text, "\n");
		int r = read_line(line, text, n, conf, err);

		if (r < 0)
			return r;
		text += n + (text[n] == '\n');
	}
	return 0;
}
