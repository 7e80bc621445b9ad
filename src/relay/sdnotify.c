/* SPDX-License-Identifier: MIT */
/* The service manager's datagram protocol. */
#include "relay/sdnotify.h"

#include "base/cleanup.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

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
