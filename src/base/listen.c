/* SPDX-License-Identifier: MIT */
#include "base/listen.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad(const char *text, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "'%.100s' is no address to listen at; write 127.0.0.1:8025, [::1]:8025 "
			  "or unix:/run/outbox.sock",
			  text);
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
	size_t n = strspn(text, "0123456789");
	unsigned long port = n && n < 6 && !text[n] ? strtoul(text, NULL, 10) : 65536;

	*ret_port = (uint16_t)port;
	return port < 65536;
}

/* The host without its brackets into ret->host; false: it does not fit, or a bracket is missing. */
static bool cut_host(const char *text, size_t n, struct ob_listen *ret)
{
	bool bracket = n && text[0] == '[';

	if (bracket && (n < 2 || text[n - 1] != ']'))
		return false;
	text += bracket;
	n -= bracket ? 2 : 0;
	if (n >= sizeof(ret->host) || (!bracket && memchr(text, ':', n)))
		return false;
	memcpy(ret->host, text, n);
	ret->host[n] = '\0';
	ret->v6 = bracket;
	return true;
}

static bool judge_host(struct ob_listen *ret)
{
	struct in6_addr six;
	struct in_addr four;

	if (!ret->v6 && strcmp(ret->host, "localhost") == 0)
		(void)snprintf(ret->host, sizeof(ret->host), "127.0.0.1");
	if (!ret->v6 && !ret->host[0])
		(void)snprintf(ret->host, sizeof(ret->host), "0.0.0.0");
	if (!ret->v6) {
		if (inet_pton(AF_INET, ret->host, &four) != 1)
			return false;
		ret->loopback = (ntohl(four.s_addr) >> 24) == 127;
		return true;
	}
	if (inet_pton(AF_INET6, ret->host, &six) != 1)
		return false;
	ret->loopback = IN6_IS_ADDR_LOOPBACK(&six);
	return true;
}

int ob_listen_parse(const char *text, struct ob_listen *ret, struct ob_err *err)
{
	const char *colon = strrchr(text, ':');

	*ret = (struct ob_listen){ 0 };
	if (strncmp(text, "unix:", 5) == 0) {
		if (!text[5] || strlen(text + 5) >= sizeof(ret->path))
			return bad(text, err);
		(void)snprintf(ret->path, sizeof(ret->path), "%s", text + 5);
		ret->loopback = true;
		return 0;
	}
	if (!colon || !parse_port(colon + 1, &ret->port) ||
	    !cut_host(text, (size_t)(colon - text), ret) || !judge_host(ret))
		return bad(text, err);
	return 0;
}
