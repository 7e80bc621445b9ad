/* SPDX-License-Identifier: MIT */
/*
 * The library waits for ever for a server that falls silent in a TLS handshake, and nobody else
 * knows its socket then. OpenSSL does: it tells of every session that it makes, in the thread
 * that connects. A second thread ends that socket when time is up; the library takes it
 * for a server that hung up.
 */
#include "sink/nats/nats.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <time.h>

/* When time is up, how long until the next try: the session may not have its socket yet. */
enum { AGAIN_MS = 10 };

/* Of the connection that this thread makes; NULL: none. */
static _Thread_local struct ob_nats_watch *mine;

/* ---- what OpenSSL tells ---------------------------------------------- */

static void set_session(void *session)
{
	if (!mine)
		return;
	(void)pthread_mutex_lock(&mine->mu);
	mine->session = session;
	(void)pthread_mutex_unlock(&mine->mu);
}

static void on_made(void *session, void *ptr, CRYPTO_EX_DATA *data, int index, long number,
		    void *arg)
{
	(void)ptr, (void)data, (void)index, (void)number, (void)arg;
	set_session(session);
}

static void on_freed(void *session, void *ptr, CRYPTO_EX_DATA *data, int index, long number,
		     void *arg)
{
	(void)ptr, (void)data, (void)index, (void)number, (void)arg;
	if (mine && mine->session == session)
		set_session(NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void listen_to_openssl(void)
{
	(void)SSL_get_ex_new_index(0, NULL, on_made, NULL, on_freed);
}

/* ---- the second thread ----------------------------------------------- */

static struct timespec in_ms(int64_t ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* While the session is there, its socket is nobody else's. */
static void end_socket(struct ob_nats_watch *watch)
{
	int fd = watch->session ? SSL_get_fd(watch->session) : -1;

	if (fd >= 0 && shutdown(fd, SHUT_RDWR) == 0)
		watch->fired = true;
}

static void *keep_watch(void *arg)
{
	struct ob_nats_watch *watch = arg;

	(void)pthread_mutex_lock(&watch->mu);
	while (!watch->over) {
		if (pthread_cond_timedwait(&watch->changed, &watch->mu, &watch->until) == 0)
			continue;
		end_socket(watch);
		watch->until = in_ms(AGAIN_MS);
	}
	(void)pthread_mutex_unlock(&watch->mu);
	return NULL;
}

/* ---- the connecting thread's side ------------------------------------ */

int ob_nats_watch_begin(struct ob_nats_watch *watch, int64_t timeout_ms, struct ob_err *err)
{
	pthread_condattr_t attr;

	(void)pthread_once(&once, listen_to_openssl);
	*watch = (struct ob_nats_watch){ .until = in_ms(timeout_ms) };
	(void)pthread_mutex_init(&watch->mu, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&watch->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	int code = pthread_create(&watch->thread, NULL, keep_watch, watch);
	if (code == 0) {
		mine = watch;
		return 0;
	}
	(void)pthread_cond_destroy(&watch->changed);
	(void)pthread_mutex_destroy(&watch->mu);
	errno = code;
	return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "starting a thread for nats");
}

bool ob_nats_watch_end(struct ob_nats_watch *watch)
{
	mine = NULL;
	(void)pthread_mutex_lock(&watch->mu);
	watch->over = true;
	(void)pthread_cond_signal(&watch->changed);
	(void)pthread_mutex_unlock(&watch->mu);
	(void)pthread_join(watch->thread, NULL);
	(void)pthread_cond_destroy(&watch->changed);
	(void)pthread_mutex_destroy(&watch->mu);
	return watch->fired;
}
