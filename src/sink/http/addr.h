/* SPDX-License-Identifier: MIT */
/* Which addresses and urls a webhook may be sent to. */
#ifndef OB_SINK_HTTP_ADDR_H
#define OB_SINK_HTTP_ADDR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/*
 * Does it lead out into the public Internet? Not so: this machine, private networks, links,
 * the metadata services of clouds, documentation and test ranges, multicast, the forms of
 * IPv6 that wrap such an IPv4 address, and every family but IPv4 and IPv6.
 */
bool ob_http_addr_is_public(const struct sockaddr *addr);
/* 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/104. */
bool ob_http_addr_is_loopback(const struct sockaddr *addr);
/* As text; "an address of another family" when it is neither IPv4 nor IPv6. */
void ob_http_addr_format(const struct sockaddr *addr, char *out, size_t size);

/* https, or http to this machine or where it is allowed, and no user in it; else ECONFIG. */
int ob_http_url_check(const char *url, bool allow_http, struct ob_err *err);

/* How many bytes of a url are scheme, host and port. What follows may hold a token. */
size_t ob_http_url_origin(const char *url);

#endif
