/* SPDX-License-Identifier: MIT */
/* A receiver of webhooks, in the test's own process. */
#include "http_receiver.h"
#include "matrix.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct http_receiver *receiver;

static void http_begin(const char *destination)
{
	(void)destination;
	receiver = http_receiver_new();
}

static void http_options(char *out, size_t size)
{
	(void)snprintf(out, size, ", url: 'http://127.0.0.1:%d/hook', allow_private: true",
		       http_receiver_port(receiver));
}

static char *http_read(const char *destination)
{
	size_t count = http_receiver_count(receiver), size = 1, at = 0;

	for (size_t i = 0; i < count; i++)
		size += http_receiver_get(receiver, i).body_size + 1;
	char *all = calloc(1, size);
	ck_assert_ptr_nonnull(all);
	for (size_t i = 0; i < count; i++) {
		struct http_request_seen seen = http_receiver_get(receiver, i);
		size_t where_size;
		char *where = http_header(&seen, "outbox-destination", &where_size);

		ck_assert_str_eq(where, destination);
		at += (size_t)snprintf(all + at, size - at, "%s\n", seen.body);
		free(where);
	}
	http_receiver_free(receiver);
	return all;
}

const struct matrix_peer peer_http = {
	.type = "http",
	.begin = http_begin,
	.options = http_options,
	.read = http_read,
};
