/* SPDX-License-Identifier: MIT */
/* The parts that the urls of brokers have in common. */
#ifndef OB_SINK_URL_H
#define OB_SINK_URL_H

#include <stdbool.h>
#include <stddef.h>

enum { OB_URL_HOST_SIZE = 256, OB_URL_PORT_SIZE = 6 };

/*
 * "host", "host:port", "[::1]:port" and ":port"; no host is localhost, no port is `port_dflt`.
 * False when it is none of these or too long.
 */
bool ob_url_host(const char *p, size_t n, const char *port_dflt, char host[OB_URL_HOST_SIZE],
		 char port[OB_URL_PORT_SIZE]);
/* %41 becomes A; NULL: a bad escape, a NUL, or no memory. The caller frees. */
char *ob_url_decode(const char *p, size_t n);
/* Copy with a NUL; false when it does not fit. */
bool ob_url_copy(char *out, size_t size, const char *p, size_t n);
/* Overwrite and free. */
void ob_url_wipe(char **secret);

#endif
