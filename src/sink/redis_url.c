/* SPDX-License-Identifier: MIT */
/* redis://user:password@host:port/db, rediss://... and unix:///path?db=n */
#include "sink/redis.h"

#include <stdlib.h>

static int bad(const char *what, struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "the url of the redis sink %s; write redis://host:6379/0, "
			  "rediss://host:6379/0 for TLS, or unix:///path?db=0",
			  what);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* %41 becomes A; NULL: a bad escape, a NUL, or no memory. The caller frees. */
static char *decode(const char *p, size_t n)
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

static bool parse_db(const char *text, uint32_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	unsigned long v = strtoul(text, &end, 10);
	if (*end || v > 65535)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool copy(char *out, size_t size, const char *p, size_t n)
{
	if (n >= size)
		return false;
	memcpy(out, p, n);
	out[n] = '\0';
	return true;
}

/* "user:password@", "user@" or ":password@" */
static int parse_user(const char *p, size_t n, struct ob_redis_url *url, struct ob_err *err)
{
	const char *colon = memchr(p, ':', n);
	size_t user = colon ? (size_t)(colon - p) : n;

	if (user > 0 && !(url->user = decode(p, user)))
		return bad("has a user name with a bad %-escape", err);
	if (colon && user + 1 < n && !(url->password = decode(colon + 1, n - user - 1)))
		return bad("has a password with a bad %-escape", err);
	return 0;
}

/* "host", "host:port", "[::1]:port" */
static bool parse_host(const char *p, size_t n, struct ob_redis_url *url)
{
	const char *end = p + n, *host_end;
	const char *port = "6379";
	size_t port_size = 4;

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
		port = "6379";
	} else {
		return false;
	}
	for (size_t i = 0; i < port_size; i++) {
		if (port[i] < '0' || port[i] > '9')
			return false;
	}
	if (host_end == p) /* redis:///1 */
		return port_size > 0 && copy(url->host, sizeof(url->host), "localhost", 9) &&
		       copy(url->port, sizeof(url->port), port, port_size);
	return port_size > 0 && copy(url->host, sizeof(url->host), p, (size_t)(host_end - p)) &&
	       copy(url->port, sizeof(url->port), port, port_size);
}

static int parse_tcp(const char *rest, struct ob_redis_url *url, struct ob_err *err)
{
	size_t n = strcspn(rest, "/?");
	const char *at = memrchr(rest, '@', n);
	const char *host = at ? at + 1 : rest;
	int r = at ? parse_user(rest, (size_t)(at - rest), url, err) : 0;

	if (r < 0)
		return r;
	if (!parse_host(host, n - (size_t)(host - rest), url))
		return bad("has no usable host and port", err);
	rest += n;
	if (*rest == '/')
		rest++;
	if (*rest && !parse_db(rest, &url->db))
		return bad("must end with the number of a database", err);
	return 0;
}

static int parse_unix(const char *rest, struct ob_redis_url *url, struct ob_err *err)
{
	size_t n = strcspn(rest, "?");

	if (*rest != '/' || !copy(url->path, sizeof(url->path), rest, n))
		return bad("must name the socket by a full path of at most 107 bytes", err);
	rest += n;
	if (*rest && (strncmp(rest, "?db=", 4) != 0 || !parse_db(rest + 4, &url->db)))
		return bad("may have ?db= and a number behind the path, nothing else", err);
	return 0;
}

int ob_redis_url_parse(const char *text, struct ob_redis_url *ret_url, struct ob_err *err)
{
	struct ob_redis_url url = { .tls = strncmp(text, "rediss://", 9) == 0 };
	int r;

	if (strncmp(text, "redis://", 8) == 0 || url.tls)
		r = parse_tcp(text + (url.tls ? 9 : 8), &url, err);
	else if (strncmp(text, "unix://", 7) == 0)
		r = parse_unix(text + 7, &url, err);
	else
		r = bad("has an unknown beginning", err);
	if (r < 0) {
		ob_redis_url_done(&url);
		return r;
	}
	*ret_url = url;
	return 0;
}

static void wipe(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}

void ob_redis_url_done(struct ob_redis_url *url)
{
	wipe(&url->user);
	wipe(&url->password);
}
