/* SPDX-License-Identifier: MIT */
/* Kafka: a mock cluster, read back by kcat. */
#include "kafka_mock.h"
#include "matrix.h"

#include <stdio.h>
#include <unistd.h>

static struct kafka_mock mock;

static const char *kafka_start(void)
{
	if (access("/usr/bin/kcat", X_OK) != 0)
		return "kcat is not installed";
	kafka_mock_start(&mock);
	return NULL;
}

static void kafka_stop(void)
{
	kafka_mock_end(&mock);
}

static void kafka_options(char *out, size_t size)
{
	(void)snprintf(out, size, ", brokers: '%s'", mock.brokers);
}

static char *kafka_read(const char *destination)
{
	const char *argv[] = { "kcat",      "-b",         mock.brokers, "-C", "-t",
			       destination, "-o",         "beginning",  "-e", "-q",
			       "-f",        "%k %h %s\n", NULL };

	return matrix_run(argv);
}

const struct matrix_peer peer_kafka = {
	.type = "kafka",
	.start = kafka_start,
	.stop = kafka_stop,
	.options = kafka_options,
	.read = kafka_read,
};
