/* SPDX-License-Identifier: MIT */
/* The fixture of the tests of the RabbitMQ sink. */
#include "sink_rabbitmq_fixture.h"

#include <stdlib.h>

struct rabbitmq_server server = { .tls = true };

const char *url_of(const char *user)
{
	static char url[160];

	(void)snprintf(url, sizeof(url), "amqp://%s127.0.0.1:%d/", user, server.port);
	return url;
}

const char *url_at(int port)
{
	static char url[64];

	(void)snprintf(url, sizeof(url), "amqp://127.0.0.1:%d", port);
	return url;
}

static void start(void)
{
	rabbitmq_server_start(&server);
}

static void stop(void)
{
	rabbitmq_server_stop(&server);
}

int rabbitmq_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only)
{
	const char *missing = rabbitmq_server_missing();

	if (!missing)
		return ob_suite_run_with(name, tests, count, only, start, stop);
	(void)printf("1..0 # SKIP %s\n", missing);
	return EXIT_SUCCESS;
}
