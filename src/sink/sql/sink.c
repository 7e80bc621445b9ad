/* SPDX-License-Identifier: MIT */
/*
 * A statement in the log's own database instead of a broker. There is nothing to send: the relay
 * runs it, in the transaction in which it records its progress.
 */
#include "sink/sink.h"

struct sql_sink {
	struct ob_sink base;
	char *statement;
};

static const char *sql_statement(const struct ob_sink *base)
{
	return ((const struct sql_sink *)base)->statement;
}

static int sql_open(struct ob_sink *base, struct ob_err *err)
{
	(void)base;
	(void)err;
	return 0;
}

static int sql_send(struct ob_sink *base, const struct ob_delivery *delivery, struct ob_err *err)
{
	(void)base;
	(void)delivery;
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_FATAL,
			  "a sql sink runs in the database of the log only");
}

static int sql_poll(struct ob_sink *base, int timeout_ms, struct ob_ack *acks, size_t max,
		    struct ob_err *err)
{
	(void)base;
	(void)timeout_ms;
	(void)acks;
	(void)max;
	(void)err;
	return 0;
}

static void sql_reset(struct ob_sink *base)
{
	(void)base;
}

static void sql_close(struct ob_sink *base)
{
	(void)base;
}

static void sql_describe(struct ob_sink *base, struct ob_buf *out)
{
	const char *text = ((const struct sql_sink *)base)->statement;

	ob_buf_addf(out, "sql %.60s%s", text ? text : "", text && strlen(text) > 60 ? "..." : "");
}

static const struct ob_opt sql_opts[] = {
	{
		.name = "statement",
		.type = OB_OPT_STR,
		.offset = offsetof(struct sql_sink, statement),
		.flags = OB_OPT_REQUIRED,
		.help = "One SQL statement with values of the message: \"CALL apply(:id, :type, "
			":payload)\".",
	},
	OB_OPT_END,
};

const struct ob_sink_ops ob_sink_sql = {
	.name = "sql",
	.caps = OB_SINK_ORDERED,
	.size = sizeof(struct sql_sink),
	.opts = sql_opts,
	.statement = sql_statement,
	.open = sql_open,
	.send = sql_send,
	.poll = sql_poll,
	.reset = sql_reset,
	.close = sql_close,
	.describe = sql_describe,
};
