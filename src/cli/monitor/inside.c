/* SPDX-License-Identifier: MIT */
/* The web monitor inside another process: never in its way. */
#include "cli/monitor/inside.h"

#include "config.h"

#if HAVE_MONITOR
#include "monitor/monitor.h"

enum { PERIOD_US = 1000000 };

static int64_t now_us(void)
{
	return ob_clock_boot_us(&ob_clock_system);
}

void ob_inside_start(struct ob_inside *in, const struct ob_config *config, const char *consumer,
		     const struct ob_log *log)
{
	const struct ob_monitor_conf conf = {
		.config = config, .log = log, .key = in->key, .relays = true, .consumer = consumer
	};
	struct ob_err err = OB_ERR_INIT;

	ob_inside_stop(in);
	if (!config->monitor.listen)
		return;
	if (!in->has_key)
		ob_monitor_make_key(in->key);
	in->has_key = true;
	if (ob_monitor_new(&conf, &in->monitor, &err) < 0) {
		ob_log(log, OB_LOG_ERROR,
		       consumer ? "no monitor, the consumer goes on"
				: "no monitor, the relays go on",
		       OB_KV("error", err.msg));
		return;
	}
	in->next_us = now_us();
	ob_log(log, OB_LOG_INFO, "monitor started",
	       OB_KV("address", ob_monitor_address(in->monitor)));
}

void ob_inside_stop(struct ob_inside *in)
{
	ob_monitor_free(in->monitor);
	in->monitor = NULL;
}

bool ob_inside_is_due(struct ob_inside *in)
{
	if (!in->monitor || now_us() < in->next_us)
		return false;
	in->next_us = now_us() + PERIOD_US;
	return true;
}

void ob_inside_tell(struct ob_inside *in, const struct ob_monitor_relay *relays, size_t count,
		    bool stopping)
{
	if (in->monitor)
		ob_monitor_note(in->monitor, relays, count, stopping);
}

#else

void ob_inside_start(struct ob_inside *in, const struct ob_config *config, const char *consumer,
		     const struct ob_log *log)
{
	(void)in;
	if (config->monitor.listen)
		ob_log(log, OB_LOG_ERROR,
		       consumer ? "no monitor, the consumer goes on"
				: "no monitor, the relays go on",
		       OB_KV("error",
			     "this build has none: install libmicrohttpd-dev and build "
			     "again"));
}

void ob_inside_stop(struct ob_inside *in)
{
	(void)in;
}

bool ob_inside_is_due(struct ob_inside *in)
{
	(void)in;
	return false;
}

void ob_inside_tell(struct ob_inside *in, const struct ob_monitor_relay *relays, size_t count,
		    bool stopping)
{
	(void)in;
	(void)relays;
	(void)count;
	(void)stopping;
}

#endif

int64_t ob_inside_next_us(const struct ob_inside *in)
{
	return in->monitor ? in->next_us : INT64_MAX;
}
