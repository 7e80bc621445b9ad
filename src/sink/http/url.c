/* SPDX-License-Identifier: MIT */
/* The url of a webhook, looked at before anything is sent there. */
#include "base/err.h"
#include "sink/http/addr.h"

#include <curl/curl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

size_t ob_http_url_origin(const char *url)
{
	const char *host = strstr(url, "://");
	size_t at = host ? (size_t)(host - url) + 3 : 0;

	return at + strcspn(url + at, "/?#");
}

static int bad_url(struct ob_err *err, const char *what)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "url: %s", what);
}

static bool is_loopback_host(const char *host)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;
	char bare[64];
	size_t n = strlen(host);

	if (strcasecmp(host, "localhost") == 0)
		return true;
	if (host[0] == '[' && n > 2 && n < sizeof(bare)) {
		(void)snprintf(bare, sizeof(bare), "%.*s", (int)n - 2, host + 1);
		host = bare;
	}
	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return false;
	bool loopback = ob_http_addr_is_loopback(found->ai_addr);
	freeaddrinfo(found);
	return loopback;
}

static int check_parts(CURLU *parts, const char *url, bool allow_http, struct ob_err *err)
{
	char *scheme = NULL, *host = NULL, *user = NULL;
	int r = 0;

	if (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		r = bad_url(err, "it is no url, such as https://example.com/hook");
	else if (curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK)
		r = bad_url(err, "a user or password does not belong into it; use authorization");
	else if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
		r = bad_url(err, "it must begin with https://");
	else if (strcmp(scheme, "http") == 0 && !allow_http && !is_loopback_host(host))
		r = bad_url(err,
			    "http:// sends everything readable for others; use https://, or "
			    "set allow_http");
	curl_free(scheme);
	curl_free(host);
	curl_free(user);
	return r;
}

int ob_http_url_check(const char *url, bool allow_http, struct ob_err *err)
{
	CURLU *parts = curl_url();

	if (!parts)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for a url");
	int r = check_parts(parts, url, allow_http, err);
	curl_url_cleanup(parts);
	return r;
}
