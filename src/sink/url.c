/* SPDX-License-Identifier: MIT */
/* Hosts, ports and percent-encoding. */
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

void ob_url_wipe(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}

bool ob_url_host(const char *p, size_t n, const char *port_dflt, char host[OB_URL_HOST_SIZE],
		 char port[OB_URL_PORT_SIZE])
{
	const char *end = p + n, *host_end, *digits;
	size_t digit_count;

	if (n > 0 && *p == '[') {
		host_end = memchr(++p, ']', n - 1);
		if (!host_end)
			return false;
		digits = host_end + 1;
	} else {
		host_end = memchr(p, ':', n);
		host_end = host_end ? host_end : end;
		digits = host_end;
	}
	if (digits < end && *digits == ':') {
		digits++;
		digit_count = (size_t)(end - digits);
	} else if (digits == end) {
		digits = port_dflt;
		digit_count = strlen(digits);
	} else {
		return false;
	}
	for (size_t i = 0; i < digit_count; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
	}
	if (host_end == p) { /* redis:///1 */
		p = "localhost";
		host_end = p + strlen(p);
	}
	return digit_count > 0 && ob_url_copy(host, OB_URL_HOST_SIZE, p, (size_t)(host_end - p)) &&
	       ob_url_copy(port, OB_URL_PORT_SIZE, digits, digit_count);
}
