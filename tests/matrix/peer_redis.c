/* SPDX-License-Identifier: MIT */
/* Redis, read back by redis-cli. */
#include "matrix.h"
#include "redis_server.h"

#include <stdio.h>

static struct redis_server server;

static const char *redis_start(void)
{
	const char *missing = redis_server_missing();

	if (!missing)
		redis_server_start(&server);
	return missing;
}

static void redis_stop(void)
{
	redis_server_end(&server);
}

static void redis_options(char *out, size_t size)
{
	(void)snprintf(out, size, ", url: 'redis://127.0.0.1:%d'", server.port);
}

static char *redis_read(const char *destination)
{
	char port[8];
	const char *argv[] = { "redis-cli", "-p", port, "--raw", "XRANGE",
			       destination, "-",  "+",  NULL };

	(void)snprintf(port, sizeof(port), "%d", server.port);
	return matrix_run(argv);
}

const struct matrix_peer peer_redis = {
	.type = "redis",
	.start = redis_start,
	.stop = redis_stop,
	.options = redis_options,
	.read = redis_read,
};
