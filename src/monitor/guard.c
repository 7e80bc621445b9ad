/* SPDX-License-Identifier: MIT */
/*
 * What stands between a request and its route. A page of another site in an operator's browser can
 * make that browser send requests here; none of them may change or read anything:
 *  - a name that was pointed at our address (DNS rebinding) fails at the Host;
 *  - a form or script of another origin fails at Sec-Fetch-Site or Origin, and its cookie is not
 *    sent at all (SameSite=Strict);
 *  - a bearer token is never sent by a browser on its own.
 */
#include "monitor/request.h"
#include "monitor/routes.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <strings.h>

static void peer_address(struct ob_request *req, char out[OB_WHO])
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *from = info ? info->client_addr : NULL;

	(void)snprintf(out, OB_WHO, "unix");
	if (from && from->sa_family == AF_INET)
		(void)inet_ntop(AF_INET,
				&((const struct sockaddr_in *)(const void *)from)->sin_addr, out,
				OB_WHO);
	else if (from && from->sa_family == AF_INET6)
		(void)inet_ntop(AF_INET6,
				&((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, out,
				OB_WHO);
}

/* Words that go into the audit and the log: printable, short. */
static void copy_word(char out[OB_WHO], const char *text, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n && at + 1 < OB_WHO; i++) {
		if (text[i] > 0x20 && text[i] < 0x7f)
			out[at++] = text[i];
	}
	out[at] = '\0';
}

static void believe_proxy(struct ob_request *req)
{
	const char *chain = ob_request_header(req, "X-Forwarded-For");
	const char *proto = ob_request_header(req, "X-Forwarded-Proto");

	if (chain) {
		/* The last is what the proxy itself saw. */
		const char *last = strrchr(chain, ',');

		last = last ? last + 1 : chain;
		copy_word(req->origin, last, strlen(last));
	}
	req->secure = proto && strcasecmp(proto, "https") == 0;
}

enum ob_role ob_guard_token(struct ob_request *req, const char *token)
{
	struct ob_monitor *m = req->monitor;
	int64_t now = ob_clock_boot_us(&ob_clock_system);

	(void)pthread_mutex_lock(&m->lock);
	req->slowed = !ob_throttle_allows(&m->throttle, req->origin, now);
	(void)pthread_mutex_unlock(&m->lock);
	enum ob_role role = req->slowed ? OB_ROLE_NONE : ob_auth_token(&m->auth, token);
	/* Where no token is set none can be guessed. */
	if (role == OB_ROLE_NONE && !req->slowed && !m->auth.open) {
		(void)pthread_mutex_lock(&m->lock);
		ob_throttle_note(&m->throttle, req->origin, now);
		(void)pthread_mutex_unlock(&m->lock);
		ob_log(m->log, OB_LOG_WARN, "a wrong token was refused",
		       OB_KV("origin", req->origin));
	}
	return role;
}

void ob_guard_slow(struct ob_request *req)
{
	ob_request_fail(req, 429, "slow_down",
			"too many wrong tokens came from this address; wait a while");
}

void ob_guard_identify(struct ob_request *req)
{
	const struct ob_monitor *m = req->monitor;
	const char *header = ob_request_header(req, "Authorization");
	const char *cookie =
		MHD_lookup_connection_value(req->connection, MHD_COOKIE_KIND, "outbox_session");

	const char *user = ob_request_header(req, "X-Forwarded-User");

	peer_address(req, req->origin);
	bool trusted = ob_list_has(m->conf->trusted_proxies, req->origin, strlen(req->origin));
	if (trusted)
		believe_proxy(req);
	if (header && strncasecmp(header, "Bearer ", 7) == 0) {
		req->role = ob_guard_token(req, header + 7);
		req->bearer = req->role != OB_ROLE_NONE;
	} else if (cookie && *cookie) {
		req->role = ob_auth_session(&m->auth, cookie, ob_clock_real_us(&ob_clock_system));
	}
	if (req->role == OB_ROLE_NONE && m->auth.open && !header)
		req->role = OB_ROLE_OPERATOR;
	(void)snprintf(req->who, sizeof(req->who), "%s", ob_role_name(req->role));
	if (trusted && user)
		copy_word(req->who, user, strlen(user));
}

static bool check_host(struct ob_request *req)
{
	const struct ob_monitor *m = req->monitor;
	const char *host = ob_request_header(req, "Host");

	if (m->at.path[0] || req->route->flags & OB_ROUTE_PUBLIC)
		return true;
	if (ob_host_allowed(host, m->at.loopback, m->conf->hosts))
		return true;
	ob_request_fail(req, 421, "host",
			"this is not served under the name '%.80s'; monitor.hosts lists the names",
			host ? host : "");
	return false;
}

/* A change must come from our own pages, or from a program that has a token. */
static bool check_origin(struct ob_request *req)
{
	const char *site = ob_request_header(req, "Sec-Fetch-Site");
	const char *origin = ob_request_header(req, "Origin");
	const char *host = ob_request_header(req, "Host");

	if (req->bearer)
		return true;
	bool same =
		site ? strcmp(site, "same-origin") == 0 : origin && ob_origin_matches(origin, host);
	if (same && (!origin || ob_origin_matches(origin, host)))
		return true;
	ob_request_fail(req, 403, "origin",
			"a change must come from the pages of the monitor, or with a bearer token");
	return false;
}

static bool check_type(struct ob_request *req)
{
	const char *type = ob_request_header(req, "Content-Type");

	if (req->body.len == 0 || (type && strncasecmp(type, "application/json", 16) == 0))
		return true;
	ob_request_fail(req, 400, "invalid", "the body must be application/json");
	return false;
}

static enum MHD_Result note_nul(void *arg, enum MHD_ValueKind kind, const char *key,
				size_t key_size, const char *value, size_t size)
{
	bool *any = arg;

	(void)kind;
	*any = *any || strlen(key) != key_size || (value && strlen(value) != size);
	return MHD_YES;
}

/* A NUL would cut a filter short, and more messages would match than was asked for. */
static bool check_args(struct ob_request *req)
{
	bool any = false;

	(void)MHD_get_connection_values_n(req->connection, MHD_GET_ARGUMENT_KIND, note_nul, &any);
	if (any)
		ob_request_fail(req, 400, "invalid", "a parameter has a NUL in it");
	return !any;
}

static bool check_role(struct ob_request *req)
{
	if (req->role >= req->route->role)
		return true;
	if (req->role == OB_ROLE_NONE)
		ob_request_fail(req, 401, "token", "a token is needed");
	else
		ob_request_fail(req, 403, "role", "this takes the role operator");
	return false;
}

bool ob_guard(struct ob_request *req, const char *method)
{
	bool post = strcmp(method, "POST") == 0;

	ob_guard_identify(req);
	if (!check_host(req) || !check_args(req))
		return false;
	if (req->too_large) {
		ob_request_fail(req, 413, "too_large", "a body has at most %d bytes", OB_BODY_MAX);
		return false;
	}
	if (req->slowed) {
		ob_guard_slow(req);
		return false;
	}
	/* A page that may not be seen asks for a token by itself. */
	if (req->route->flags & OB_ROUTE_PAGE)
		return true;
	return (!post || (check_origin(req) && check_type(req))) && check_role(req);
}
