/* SPDX-License-Identifier: MIT */
/* libcurl's sockets and timers. */
#include "sink/http/multi.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	EVENTS = 64,
	WAIT_MAX_MS = 1000,
};

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct ob_http_multi *multi = arg;
	struct epoll_event event = { .data.fd = fd };

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(multi->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	if (epoll_ctl(multi->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0 &&
	    errno == (known ? ENOENT : EEXIST))
		(void)epoll_ctl(multi->epoll, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
	(void)curl_multi_assign(multi->handle, fd, multi);
	return 0;
}

static int set_timer(CURLM *handle, long timeout_ms, void *arg)
{
	struct ob_http_multi *multi = arg;

	(void)handle;
	multi->timer_us =
		timeout_ms < 0 ? -1 : ob_clock_boot_us(multi->clock) + timeout_ms * INT64_C(1000);
	return 0;
}

int ob_http_multi_init(struct ob_http_multi *multi, const struct ob_clock *clock,
		       uint32_t connections, struct ob_err *err)
{
	if (multi->handle)
		return 0;
	*multi = (struct ob_http_multi){ .clock = clock, .timer_us = -1 };
	multi->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (multi->epoll < 0)
		return ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "watching connections");
	multi->handle = curl_multi_init();
	if (!multi->handle) {
		(void)close(multi->epoll);
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory for connections");
	}
	(void)curl_multi_setopt(multi->handle, CURLMOPT_SOCKETFUNCTION, watch_socket);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_SOCKETDATA, multi);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_TIMERDATA, multi);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	(void)curl_multi_setopt(multi->handle, CURLMOPT_MAXCONNECTS, (long)connections);
	return 0;
}

void ob_http_multi_done(struct ob_http_multi *multi)
{
	if (!multi->handle)
		return;
	(void)curl_multi_cleanup(multi->handle); /* still tells about sockets */
	(void)close(multi->epoll);
	*multi = (struct ob_http_multi){ 0 };
}

static int wait_ms(const struct ob_http_multi *multi, int64_t end_us)
{
	int64_t until = multi->timer_us >= 0 && multi->timer_us < end_us ? multi->timer_us : end_us;
	int64_t left_ms = (until - ob_clock_boot_us(multi->clock) + 999) / 1000;

	if (left_ms <= 0)
		return 0;
	return left_ms < WAIT_MAX_MS ? (int)left_ms : WAIT_MAX_MS;
}

void ob_http_multi_work(struct ob_http_multi *multi, int64_t end_us)
{
	struct epoll_event events[EVENTS];
	int running = 0;
	int n = epoll_wait(multi->epoll, events, EVENTS, wait_ms(multi, end_us));

	for (int i = 0; i < n; i++) {
		int mask = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			   (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

		(void)curl_multi_socket_action(multi->handle, events[i].data.fd, mask, &running);
	}
	if (multi->timer_us >= 0 && ob_clock_boot_us(multi->clock) >= multi->timer_us) {
		multi->timer_us = -1;
		(void)curl_multi_socket_action(multi->handle, CURL_SOCKET_TIMEOUT, 0, &running);
	}
}

struct ob_http_request *ob_http_multi_next(struct ob_http_multi *multi, CURLcode *ret_result)
{
	const CURLMsg *message;
	char *private = NULL;
	int left;

	do
		message = curl_multi_info_read(multi->handle, &left);
	while (message && message->msg != CURLMSG_DONE);
	if (!message)
		return NULL;
	*ret_result = message->data.result;
	(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
	return (struct ob_http_request *)(void *)private;
}
