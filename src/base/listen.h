/* SPDX-License-Identifier: MIT */
/* The address that a server of ours listens at, as it stands in a configuration. */
#ifndef OB_BASE_LISTEN_H
#define OB_BASE_LISTEN_H

#include "base/err.h"

#include <stdbool.h>

enum { OB_LISTEN_HOST = 64, OB_LISTEN_PATH = 108 };

struct ob_listen {
	char path[OB_LISTEN_PATH]; /* "unix:PATH"; "": TCP */
	char host[OB_LISTEN_HOST]; /* an IP address without brackets */
	uint16_t port;             /* 0: any that is free */
	bool v6, loopback;         /* loopback: nobody else can reach it; so is a Unix socket */
};

/*
 * "127.0.0.1:8025", "[::1]:8025", "localhost:8025", ":8025" (all addresses), "unix:/run/x.sock".
 * OUTBOX_ECONFIG says what is wrong. Names other than localhost are refused: what they stand for
 * may change.
 */
int ob_listen_parse(const char *text, struct ob_listen *ret, struct ob_err *err);

#endif
