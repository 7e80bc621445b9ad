/* SPDX-License-Identifier: MIT */
/* The signalfd and what its signals mean. */
#include "base/signals.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* `timeout` and a terminal may send the same wish twice at once: that is one. */
enum { SECOND_AFTER_US = 1000000 };

static void take_stop(struct ob_signals *signals)
{
	int64_t now_us = ob_clock_boot_us(&ob_clock_system);

	if (signals->stop == OB_STOP_NO) {
		signals->stop = OB_STOP_DRAIN;
		signals->stop_us = now_us;
	} else if (now_us - signals->stop_us >= SECOND_AFTER_US) {
		signals->stop = OB_STOP_NOW;
	}
}

int ob_signals_init(struct ob_signals *signals, struct ob_err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	/* The fd first: should it fail, nothing has changed. */
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "opening a signalfd");
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	/* A peer that closes its end is an error of write(), not the end of us. */
	(void)signal(SIGPIPE, SIG_IGN);
	*signals = (struct ob_signals){ .fd = fd };
	return 0;
}

void ob_signals_read(struct ob_signals *signals)
{
	struct signalfd_siginfo info;

	for (;;) {
		ssize_t n = read(signals->fd, &info, sizeof(info));

		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(info))
			return;
		if (info.ssi_signo == SIGHUP)
			signals->reload = true;
		else
			take_stop(signals);
	}
}

void ob_signals_done(struct ob_signals *signals)
{
	if (signals->fd >= 0)
		(void)close(signals->fd);
	signals->fd = -1;
}
