/* SPDX-License-Identifier: MIT */
/* TLS by OpenSSL on the sockets of net.c; TLS 1.2 or later. */
#include "sink/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* The library's newest reason as text; empties its queue. */
static void reason(char *out, size_t size)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	(void)snprintf(out, size, "%s", text ? text : "unknown reason");
	ERR_clear_error();
}

/* ---- settings -------------------------------------------------------- */

static int bad_file(const char *what, const char *path, struct ob_err *err)
{
	char why[160];

	reason(why, sizeof(why));
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "cannot use %s '%.200s': %s", what,
			  path, why);
}

static int load_files(SSL_CTX *ctx, const struct ob_net_tls_conf *conf, struct ob_err *err)
{
	const char *key = conf->key ? conf->key : conf->cert;

	if (conf->ca && SSL_CTX_load_verify_file(ctx, conf->ca) != 1)
		return bad_file("tls_ca", conf->ca, err);
	if (!conf->ca && SSL_CTX_set_default_verify_paths(ctx) != 1)
		return bad_file("the certificates that this system trusts in", "/etc/ssl", err);
	if (conf->key && !conf->cert)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "tls_key is given without tls_cert");
	if (conf->cert && SSL_CTX_use_certificate_chain_file(ctx, conf->cert) != 1)
		return bad_file("tls_cert", conf->cert, err);
	if (conf->cert && SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		return bad_file("tls_key", key, err);
	return 0;
}

int ob_net_tls_new(const struct ob_net_tls_conf *conf, struct ssl_ctx_st **ret_tls,
		   struct ob_err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "allocating for TLS");
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_mode(ctx,
			       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, conf->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	int r = load_files(ctx, conf, err);
	if (r < 0) {
		SSL_CTX_free(ctx);
		return r;
	}
	*ret_tls = ctx;
	return 0;
}

void ob_net_tls_free(struct ssl_ctx_st *tls)
{
	SSL_CTX_free(tls);
}

/* ---- the handshake --------------------------------------------------- */

/* The certificate must be for the host we meant; a name is also said to the server. */
static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char address[16];
	char name[256]; /* a macro of the library casts const away */

	(void)snprintf(name, sizeof(name), "%s", host);
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static int handshake_failed(const struct ob_net *net, const char *who, struct ob_err *err)
{
	long verdict = SSL_get_verify_result(net->ssl);
	int number = errno;
	char why[160];

	if (verdict != X509_V_OK) {
		ERR_clear_error();
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "the certificate of %.120s is not trusted: %s", who,
				  X509_verify_cert_error_string(verdict));
	}
	errno = number;
	if (ERR_peek_last_error() == 0 && errno != 0)
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "TLS handshake with %.120s",
				    who);
	if (ERR_peek_last_error() == 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "TLS handshake with %.120s: the peer closed the connection", who);
	reason(why, sizeof(why));
	return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "TLS handshake with %.120s: %s", who,
			  why);
}

int ob_net_tls_start(struct ob_net *net, const struct ob_net_addr *addr,
		     const struct ob_clock *clock, int64_t deadline_us, struct ob_err *err)
{
	const char *who = addr->path ? addr->path : addr->host;

	ERR_clear_error();
	net->ssl = SSL_new(addr->tls);
	if (!net->ssl || (!addr->path && !expect_host(net->ssl, addr->host)) ||
	    SSL_set_fd(net->ssl, net->fd) != 1)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "preparing TLS for %.120s", who);
	for (;;) {
		errno = 0;
		int r = SSL_connect(net->ssl);
		if (r == 1)
			return 0;
		int code = SSL_get_error(net->ssl, r);
		if (code != SSL_ERROR_WANT_READ && code != SSL_ERROR_WANT_WRITE)
			return handshake_failed(net, who, err);
		if (!ob_net_wait(net, code == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, clock,
				 deadline_us))
			return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
					  "TLS handshake with %.120s: timed out", who);
	}
}

/* ---- bytes ----------------------------------------------------------- */

static ssize_t finish(struct ob_net *net, int r, const char *doing, struct ob_err *err)
{
	char why[160];

	net->wants = 0;
	if (r > 0)
		return r;
	switch (SSL_get_error(net->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		return 0;
	case SSL_ERROR_WANT_WRITE:
		net->wants = POLLOUT;
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return ob_net_closed(err);
	case SSL_ERROR_SYSCALL:
		if (errno != 0 && ERR_peek_last_error() == 0)
			return ob_net_failed(doing, err);
		break;
	default:
		break;
	}
	reason(why, sizeof(why));
	(void)ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "%s: %s", doing, why);
	err->hung_up = true;
	return err->status;
}

ssize_t ob_net_tls_write(struct ob_net *net, struct ob_str bytes, struct ob_err *err)
{
	ERR_clear_error();
	errno = 0;
	int n = bytes.n > INT_MAX ? INT_MAX : (int)bytes.n;

	return finish(net, SSL_write(net->ssl, bytes.p, n), "sending", err);
}

ssize_t ob_net_tls_read(struct ob_net *net, char *buf, size_t size, struct ob_err *err)
{
	ERR_clear_error();
	errno = 0;
	int n = size > INT_MAX ? INT_MAX : (int)size;

	return finish(net, SSL_read(net->ssl, buf, n), "receiving", err);
}

void ob_net_tls_end(struct ob_net *net)
{
	/* OpenSSL takes 2 MB with its first call. */
	if (!net->ssl)
		return;
	SSL_free(net->ssl);
	net->ssl = NULL;
	ERR_clear_error();
}
