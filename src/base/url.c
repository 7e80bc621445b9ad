/* SPDX-License-Identifier: MIT */
/* Where the user and the password of a URL end. */
#include "base/url.h"

#include <string.h>

/* What stands behind "//", or NULL. */
static const char *authority(const char *url)
{
	const char *at = strstr(url, "://");

	return at && at[3] != '/' ? at + 3 : NULL;
}

/* host, host:port, [v6], [v6]:port. */
static bool has_good_port(const char *host, size_t n)
{
	const char *closing = n && *host == '[' ? memchr(host, ']', n) : NULL;
	const char *from = closing ? closing : host;
	const char *colon = memchr(from, ':', n - (size_t)(from - host));
	unsigned port = 0;

	if (!colon || colon + 1 == host + n) /* the default */
		return true;
	for (const char *p = colon + 1; p < host + n; p++) {
		if (*p < '0' || *p > '9' || port > 65535)
			return false;
		port = port * 10 + (unsigned)(*p - '0');
	}
	return port > 0 && port <= 65535;
}

/* There may be several hosts, with commas between them. */
static bool has_good_ports(const char *hosts)
{
	size_t end = strcspn(hosts, "/?#");

	for (size_t at = 0, n; at < end; at += n + 1) {
		n = strcspn(hosts + at, ",/?#");
		if (!has_good_port(hosts + at, n))
			return false;
	}
	return true;
}

int ob_url_check(const char *url, struct ob_err *err)
{
	const char *begin = authority(url), *last = begin ? strrchr(begin, '@') : NULL;

	if (!begin)
		return 0;
	if ((!last || begin + strcspn(begin, "@/?#") == last)) {
		if (has_good_ports(last ? last + 1 : begin))
			return 0;
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "its port is not a number from 1 to 65535");
	}
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "its user and password cannot be told from the rest: write %%40 for '@', "
			  "%%2F for '/', %%3F for '?' and %%23 for '#' in them");
}

size_t ob_url_password(const char *url, size_t *ret_at)
{
	const char *begin = authority(url), *last = begin ? strrchr(begin, '@') : NULL;
	const char *colon = last ? memchr(begin, ':', (size_t)(last - begin)) : NULL;

	*ret_at = colon ? (size_t)(colon + 1 - url) : 0;
	return colon ? (size_t)(last - colon - 1) : 0;
}
