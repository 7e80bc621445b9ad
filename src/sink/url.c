/* SPDX-License-Identifier: MIT */
/* Escapes, users, hosts and ports in urls. */
#include "sink/url.h"

#include <stdlib.h>
#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *ob_url_decode(const char *p, size_t n)
{
	char *out = malloc(n + 1);
	size_t at = 0;

	for (size_t i = 0; out && i < n; i++) {
		int value = (unsigned char)p[i];

		if (p[i] == '%') {
			bool whole = i + 2 < n && hex(p[i + 1]) >= 0 && hex(p[i + 2]) >= 0;

			value = whole ? hex(p[i + 1]) * 16 + hex(p[i + 2]) : 0;
			i += 2;
		}
		if (value == 0) {
			free(out);
			return NULL;
		}
		out[at++] = (char)value;
	}
	if (out)
		out[at] = '\0';
	return out;
}

bool ob_url_copy(char *out, size_t size, const char *p, size_t n)
{
	if (n >= size)
		return false;
	memcpy(out, p, n);
	out[n] = '\0';
	return true;
}

bool ob_url_user(const char *p, size_t n, char **user, char **password, const char **ret_bad)
{
	const char *colon = memchr(p, ':', n);
	size_t size = colon ? (size_t)(colon - p) : n;

	if (size > 0 && !(*user = ob_url_decode(p, size))) {
		*ret_bad = "has a user name with a bad %-escape";
		return false;
	}
	if (colon && size + 1 < n && !(*password = ob_url_decode(colon + 1, n - size - 1))) {
		*ret_bad = "has a password with a bad %-escape";
		return false;
	}
	return true;
}

bool ob_url_host(const char *p, size_t n, const char *default_port, struct ob_url_host *ret)
{
	const char *end = p + n, *host_end, *port;
	size_t port_size;

	if (n > 0 && *p == '[') {
		host_end = memchr(++p, ']', n - 1);
		if (!host_end)
			return false;
		port = host_end + 1;
	} else {
		host_end = memchr(p, ':', n);
		host_end = host_end ? host_end : end;
		port = host_end;
	}
	if (port < end && *port == ':') {
		port++;
		port_size = (size_t)(end - port);
	} else if (port == end) {
		port = default_port;
		port_size = strlen(port);
	} else {
		return false;
	}
	for (size_t i = 0; i < port_size; i++) {
		if (port[i] < '0' || port[i] > '9')
			return false;
	}
	if (host_end == p) { /* redis:///1 */
		p = "localhost";
		host_end = p + 9;
	}
	return port_size > 0 &&
	       ob_url_copy(ret->name, sizeof(ret->name), p, (size_t)(host_end - p)) &&
	       ob_url_copy(ret->port, sizeof(ret->port), port, port_size);
}

void ob_url_wipe(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}
