/* SPDX-License-Identifier: MIT */
/* From the sink's options to the library's. */
#include "sink/nats/nats.h"

#include <unistd.h>

/* A file that cannot be used stops the relay when it starts; later someone is replacing it. */
static int bad_file(const struct nats_sink *sink, const char *option, const char *path,
		    struct ob_err *err)
{
	const char *why = nats_GetLastError(NULL);

	return ob_err_set(err, OUTBOX_ECONFIG, sink->was_open ? OB_ERR_DOWN : OB_ERR_FATAL,
			  "the nats sink's %s '%.120s' cannot be used: %.200s", option, path,
			  why ? why : "");
}

static int check_file(const struct nats_sink *sink, const char *option, const char *path,
		      struct ob_err *err)
{
	if (!path || access(path, R_OK) == 0)
		return 0;
	return ob_err_errno(err, OUTBOX_ECONFIG, sink->was_open ? OB_ERR_DOWN : OB_ERR_FATAL,
			    "the nats sink's %s '%.120s'", option, path);
}

static int set_tls(const struct nats_sink *sink, natsOptions *options, struct ob_err *err)
{
	const char *host = sink->url.servers[sink->server].name;
	int r = check_file(sink, "tls_ca", sink->tls_ca, err);

	if (r == 0)
		r = check_file(sink, "tls_cert", sink->tls_cert, err);
	if (r == 0)
		r = check_file(sink, "tls_key", sink->tls_key, err);
	if (r < 0)
		return r;
	if (natsOptions_SetSecure(options, true) != NATS_OK ||
	    natsOptions_SetExpectedHostname(options, host) != NATS_OK ||
	    natsOptions_SkipServerVerification(options, !sink->tls_verify) != NATS_OK)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "preparing TLS for nats");
	if (sink->tls_ca && natsOptions_LoadCATrustedCertificates(options, sink->tls_ca) != NATS_OK)
		return bad_file(sink, "tls_ca", sink->tls_ca, err);
	const char *key = sink->tls_key ? sink->tls_key : sink->tls_cert;
	if (sink->tls_cert &&
	    natsOptions_LoadCertificatesChain(options, sink->tls_cert, key) != NATS_OK)
		return bad_file(sink, "tls_cert", sink->tls_cert, err);
	return 0;
}

static int set_login(const struct nats_sink *sink, natsOptions *options, struct ob_err *err)
{
	const char *user = sink->username ? sink->username : sink->url.user;
	const char *password = sink->password ? sink->password : sink->url.password;
	const char *token = sink->token ? sink->token : sink->url.token;
	natsStatus s = NATS_OK;
	int r = check_file(sink, "creds", sink->creds, err);

	if (r == 0)
		r = check_file(sink, "nkey_seed", sink->nkey_seed, err);
	if (r < 0)
		return r;
	if (sink->creds)
		s = natsOptions_SetUserCredentialsFromFiles(options, sink->creds, NULL);
	else if (sink->nkey)
		s = natsOptions_SetNKeyFromSeed(options, sink->nkey, sink->nkey_seed);
	else if (user)
		s = natsOptions_SetUserInfo(options, user, password ? password : "");
	else if (token)
		s = natsOptions_SetToken(options, token);
	return s == NATS_OK ? 0 : ob_nats_status(s, nats_GetLastError(NULL), err);
}

/* Errors show in what the calls return; the library's default prints them. */
static void ignore_error(natsConnection *nc, natsSubscription *sub, natsStatus status, void *arg)
{
	(void)nc, (void)sub, (void)status, (void)arg;
}

/* Who may end a connection, and when, is up to us: no pings, no second try, no buffer for later. */
static natsStatus set_manner(const struct nats_sink *sink, natsOptions *options, int64_t timeout_ms)
{
	const struct ob_url_host *server = &sink->url.servers[sink->server];
	bool ipv6 = strchr(server->name, ':') != NULL;
	char url[sizeof(*server) + 16];
	natsStatus s;

	(void)snprintf(url, sizeof(url), "%s://%s%s%s:%s", sink->tls ? "tls" : "nats",
		       ipv6 ? "[" : "", server->name, ipv6 ? "]" : "", server->port);
	s = natsOptions_SetURL(options, url);
	if (s == NATS_OK)
		s = natsOptions_SetTimeout(options, timeout_ms);
	if (s == NATS_OK)
		s = natsOptions_SetName(options, "outbox");
	if (s == NATS_OK)
		s = natsOptions_SetAllowReconnect(options, false);
	if (s == NATS_OK)
		s = natsOptions_SetPingInterval(options, 0);
	if (s == NATS_OK)
		s = natsOptions_SetSendAsap(options, true); /* without a thread that flushes */
	if (s == NATS_OK)
		s = natsOptions_SetIOBufSize(options, OB_NATS_READ_SIZE);
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(options, ignore_error, NULL);
	return s;
}

int ob_nats_options_make(struct nats_sink *sink, int64_t timeout_ms, natsOptions **ret_options,
			 struct ob_err *err)
{
	natsOptions *options = NULL;
	natsStatus s = natsOptions_Create(&options);
	int r = 0;

	if (s == NATS_OK)
		s = set_manner(sink, options, timeout_ms);
	if (s != NATS_OK)
		r = ob_nats_status(s, nats_GetLastError(NULL), err);
	if (r == 0 && sink->tls)
		r = set_tls(sink, options, err);
	if (r == 0)
		r = set_login(sink, options, err);
	if (r < 0) {
		natsOptions_Destroy(options);
		return r;
	}
	*ret_options = options;
	return 0;
}
