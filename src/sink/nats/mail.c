/* SPDX-License-Identifier: MIT */
/*
 * From the library's threads to ours. One wake-up stands for all that came since the last
 * look, and nothing is allocated for a message.
 */
#include "sink/nats/nats.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct ob_nats_mail *ob_nats_mail_new(uint32_t size)
{
	struct ob_nats_mail *mail = calloc(1, sizeof(*mail));

	if (!mail)
		return NULL;
	mail->ring = calloc(size, sizeof(natsMsg *));
	mail->size = size;
	mail->sub_over = mail->conn_over = true;
	mail->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&mail->mu, NULL);
	(void)pthread_cond_init(&mail->over, NULL);
	if (mail->ring && mail->fd >= 0)
		return mail;
	ob_nats_mail_free(mail);
	return NULL;
}

void ob_nats_mail_free(struct ob_nats_mail *mail)
{
	if (!mail)
		return;
	if (mail->fd >= 0)
		(void)close(mail->fd);
	(void)pthread_mutex_destroy(&mail->mu);
	(void)pthread_cond_destroy(&mail->over);
	free(mail->ring);
	free(mail);
}

/* ---- the sink's side ------------------------------------------------- */

void ob_nats_mail_begin(struct ob_nats_mail *mail)
{
	(void)pthread_mutex_lock(&mail->mu);
	mail->sub_over = true; /* until there is a subscription */
	mail->conn_over = false;
	mail->denied_count = 0;
	(void)pthread_mutex_unlock(&mail->mu);
}

static void clear_wake(struct ob_nats_mail *mail)
{
	uint64_t count;

	(void)!read(mail->fd, &count, sizeof(count));
}

void ob_nats_mail_wait(struct ob_nats_mail *mail)
{
	(void)pthread_mutex_lock(&mail->mu);
	while (!mail->sub_over || !mail->conn_over)
		(void)pthread_cond_wait(&mail->over, &mail->mu);
	for (; mail->count > 0; mail->count--) {
		natsMsg_Destroy(mail->ring[mail->head]);
		mail->head = (mail->head + 1) % mail->size;
	}
	mail->denied_count = 0;
	clear_wake(mail);
	(void)pthread_mutex_unlock(&mail->mu);
}

uint32_t ob_nats_mail_take(struct ob_nats_mail *mail, natsMsg **msgs, uint32_t max)
{
	uint32_t n = 0;

	(void)pthread_mutex_lock(&mail->mu);
	for (; n < max && mail->count > 0; n++, mail->count--) {
		msgs[n] = mail->ring[mail->head];
		mail->head = (mail->head + 1) % mail->size;
	}
	if (n > 0 && mail->count == 0 && mail->denied_count == 0)
		clear_wake(mail);
	(void)pthread_mutex_unlock(&mail->mu);
	return n;
}

bool ob_nats_mail_take_denied(struct ob_nats_mail *mail, char out[OB_NATS_DENIED_SIZE])
{
	(void)pthread_mutex_lock(&mail->mu);
	bool any = mail->denied_count > 0;
	if (any) {
		memcpy(out, mail->denied[0], OB_NATS_DENIED_SIZE);
		mail->denied_count--;
		memmove(mail->denied[0], mail->denied[1],
			(size_t)mail->denied_count * OB_NATS_DENIED_SIZE);
		if (mail->count == 0 && mail->denied_count == 0)
			clear_wake(mail);
	}
	(void)pthread_mutex_unlock(&mail->mu);
	return any;
}

/* ---- the library's side ---------------------------------------------- */

static void wake(const struct ob_nats_mail *mail)
{
	const uint64_t one = 1;

	(void)!write(mail->fd, &one, sizeof(one));
}

void ob_nats_mail_on_msg(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure)
{
	struct ob_nats_mail *mail = closure;

	(void)nc;
	(void)sub;
	(void)pthread_mutex_lock(&mail->mu);
	/* There is room for all that we wait for; what comes beside them only comes too late. */
	bool fits = mail->count < mail->size;
	if (fits) {
		mail->ring[(mail->head + mail->count) % mail->size] = msg;
		if (mail->count++ == 0)
			wake(mail);
	}
	(void)pthread_mutex_unlock(&mail->mu);
	if (!fits)
		natsMsg_Destroy(msg);
}

void ob_nats_mail_on_error(natsConnection *nc, natsSubscription *sub, natsStatus status,
			   void *closure)
{
	struct ob_nats_mail *mail = closure;
	const char *text = NULL;

	(void)sub;
	if (status != NATS_NOT_PERMITTED)
		return; /* the others end the connection */
	(void)natsConnection_GetLastError(nc, &text);
	(void)pthread_mutex_lock(&mail->mu);
	if (text && mail->denied_count < OB_NATS_DENIED) {
		(void)snprintf(mail->denied[mail->denied_count++], OB_NATS_DENIED_SIZE, "%s", text);
		wake(mail);
	}
	(void)pthread_mutex_unlock(&mail->mu);
}

static void set_over(struct ob_nats_mail *mail, bool *which)
{
	(void)pthread_mutex_lock(&mail->mu);
	*which = true;
	(void)pthread_cond_broadcast(&mail->over);
	(void)pthread_mutex_unlock(&mail->mu);
}

void ob_nats_mail_on_sub_over(void *closure)
{
	struct ob_nats_mail *mail = closure;

	set_over(mail, &mail->sub_over);
}

void ob_nats_mail_on_closed(natsConnection *nc, void *closure)
{
	struct ob_nats_mail *mail = closure;

	(void)nc;
	set_over(mail, &mail->conn_over);
}
