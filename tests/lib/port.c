/* SPDX-License-Identifier: MIT */
/* A free port for a server of a test. */
#include "server.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <sys/random.h>
#include <unistd.h>

/* Below those that the kernel gives to outgoing connections (32768 and higher): one of these could
 * take the port while the server is restarted. */
enum { LOWEST = 10240, COUNT = 22000, TRIES = 1000 };

static bool is_free(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool can = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	if (fd >= 0)
		(void)close(fd);
	return can;
}

int server_free_port(void)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t drawn = 0;

		if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
			return 0;
		if (is_free(LOWEST + (int)(drawn % COUNT)))
			return LOWEST + (int)(drawn % COUNT);
	}
	return 0;
}
