/* SPDX-License-Identifier: MIT */
/* The doctor on consumers: is the source there, and what do its limits mean for the handler? */
#include "base/cleanup.h"
#include "operate/doctor.h"

enum { LINES_MAX = 8192 };

/* How long the handler may take for one message; 0: a statement, which the database bounds. */
static int64_t handler_ms(const struct ob_config_consumer *conf)
{
	const struct ob_opt *row =
		conf->handler ? ob_opt_find(conf->handler->opts, "timeout") : NULL;
	struct ob_err ignored = OB_ERR_INIT;
	struct ob_sink *sink = NULL;
	int64_t ms = 0;

	if (row && row->type == OB_OPT_DURATION_MS &&
	    ob_sink_new(conf->handler, conf->handler_options, conf->handler_option_count,
			&ob_clock_system, &sink, &ignored) == 0)
		memcpy(&ms, (const char *)sink + row->offset, sizeof(ms));
	ob_sink_free(sink);
	return ms;
}

void ob_doctor_consumer(const struct ob_config_consumer *conf, struct ob_findings *out)
{
	const struct ob_check *check = &ob_doctor_table[OB_DOCTOR_SOURCE_CONNECT];
	OB_CLEANUP(ob_buf_done) struct ob_buf about = OB_BUF_INIT(LINES_MAX);
	struct ob_err err = OB_ERR_INIT;
	struct ob_feed *feed = NULL;
	const struct ob_feed_conf source = { .ops = conf->feed,
					     .options = conf->feed_options,
					     .option_count = conf->feed_option_count,
					     .store = conf->log ? &conf->log->conf : NULL,
					     .group = conf->name,
					     .member = "outbox-doctor",
					     .sole = conf->ordering == 0 };
	int r = ob_feed_new(&source, &ob_clock_system, &feed, &err);

	if (r == 0)
		r = ob_feed_probe(feed, handler_ms(conf), out, &err);
	if (r == 0) {
		ob_feed_describe(feed, &about);
		ob_finding_add(out, check, OB_LEVEL_OK, "%s", ob_buf_str(&about));
	} else {
		ob_finding_add(out, check, OB_LEVEL_ERROR, "%s", err.msg);
	}
	ob_feed_free(feed);
}
