/* SPDX-License-Identifier: MIT */
/* The service manager's datagram protocol. */
#include "relay/sdnotify.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { SECOND_US = 1000000 };

bool ob_sd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;

	/* A path, or with @ in front a name in the abstract space. */
	if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return false;
	memcpy(address.sun_path, path, n);
	if (path[0] == '@')
		address.sun_path[0] = '\0';

	OB_AUTOCLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);

	if (fd < 0)
		return false;
	return sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size) >=
	       0;
}

int64_t ob_sd_watchdog_us(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;

	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;

	long long us = strtoll(usec, &end, 10);

	return *end == '\0' && us > 0 ? us : 0;
}

bool ob_sd_reloading(void)
{
	struct timespec now;
	char text[64];

	/* The manager compares it with its own monotonic clock, which stops while we sleep. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		       (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000);
	return ob_sd_notify(text);
}

bool ob_sd_more_time(void)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%d", 10 * SECOND_US);
	return ob_sd_notify(text);
}
