/* SPDX-License-Identifier: MIT */
/* NATS, read back by a second connection. The server belongs to the test: its client has threads.
 */
#include "matrix.h"
#include "nats_server.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct nats_server server;

static void nats_begin(const char *destination)
{
	nats_server_start(&server);
	nats_stream_add(&server, "MATRIX", destination, NULL);
}

static void nats_options(char *out, size_t size)
{
	(void)snprintf(out, size, ", url: 'nats://127.0.0.1:%d'", server.port);
}

/* Append a line to the text. */
static void add_line(void *arg, natsMsg *msg)
{
	char **all = arg;
	size_t had = strlen(*all), more = (size_t)natsMsg_GetDataLength(msg);

	*all = realloc(*all, had + more + 2);
	ck_assert_ptr_nonnull(*all);
	memcpy(*all + had, natsMsg_GetData(msg), more);
	memcpy(*all + had + more, "\n", 2);
}

static char *nats_read(const char *destination)
{
	char *all = calloc(1, 1);

	(void)destination;
	nats_stream_each(&server, "MATRIX", add_line, &all);
	nats_server_end(&server);
	return all;
}

const struct matrix_peer peer_nats = {
	.type = "nats",
	.start = nats_server_missing,
	.begin = nats_begin,
	.options = nats_options,
	.read = nats_read,
};
