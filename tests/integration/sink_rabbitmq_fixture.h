/* SPDX-License-Identifier: MIT */
/* What the tests of the RabbitMQ sink share: a broker for all of them, and sinks. */
#ifndef OB_TESTS_SINK_RABBITMQ_FIXTURE_H
#define OB_TESTS_SINK_RABBITMQ_FIXTURE_H

#include "rabbitmq_server.h"
#include "sink_rows.h"

extern struct rabbitmq_server server; /* with TLS */

/* A sink, not opened: its url, then further options: name, value, ..., NULL. */
#define make_sink(...) row_make_sink(&ob_sink_rabbitmq, "url", __VA_ARGS__)
/* Of the broker, "amqp://USER127.0.0.1:PORT/"; in memory that the next call reuses. */
const char *url_of(const char *user);
/* The same on another port. */
const char *url_at(int port);

/* As OB_SUITE, with the broker around all tests; without one all is skipped. */
int rabbitmq_suite_run(const char *name, const TTest *const *tests, size_t count, const char *only);

#define RABBITMQ_SUITE(suite_name, ...) \
	int main(int argc, char **argv) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		return rabbitmq_suite_run(suite_name, tests, sizeof(tests) / sizeof(tests[0]), \
					  argc > 1 ? argv[1] : NULL); \
	}

#endif
