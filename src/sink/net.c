/* SPDX-License-Identifier: MIT */
/* Sockets: connecting with a deadline, and bytes out and in. */
#include "sink/net.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEEPALIVE_IDLE_S = 30, KEEPALIVE_EVERY_S = 10, KEEPALIVE_PROBES = 3 };

short ob_net_events(const struct ob_net *net, bool writing)
{
	if (net->wants)
		return (short)(POLLIN | net->wants);
	return (short)(writing ? POLLIN | POLLOUT : POLLIN);
}

bool ob_net_wait(const struct ob_net *net, short events, const struct ob_clock *clock,
		 int64_t deadline_us)
{
	for (;;) {
		struct pollfd fd = { .fd = net->fd, .events = events };
		int64_t left_ms = (deadline_us - ob_clock_boot_us(clock) + 999) / 1000;

		if (left_ms <= 0)
			return false;
		int r = poll(&fd, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
		if (r > 0 || (r < 0 && errno != EINTR))
			return true; /* what is wrong, the next call will say */
	}
}

bool ob_net_is_quiet(const struct ob_net *net)
{
	struct pollfd fd = { .fd = net->fd, .events = POLLIN };

	return net->fd >= 0 && poll(&fd, 1, 0) == 0;
}

/* ---- connecting ------------------------------------------------------ */

static void set_int(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value)); /* a help, not a need */
}

static void tune(int fd, int silence_ms)
{
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
	set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silence_ms);
}

/* One address; -1 with errno. */
static int connect_to(struct ob_net *net, const struct sockaddr *to, socklen_t size,
		      const struct ob_clock *clock, int64_t deadline_us)
{
	int error = 0;
	socklen_t length = sizeof(error);

	net->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (net->fd < 0)
		return -1;
	if (connect(net->fd, to, size) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -1;
	if (!ob_net_wait(net, POLLOUT, clock, deadline_us)) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (getsockopt(net->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		return -1;
	errno = error;
	return error == 0 ? 0 : -1;
}

static int connect_unix(struct ob_net *net, const char *path, const struct ob_clock *clock,
			int64_t deadline_us, struct ob_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (n >= sizeof(to.sun_path))
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the socket path '%.120s' is longer than %zu bytes", path,
				  sizeof(to.sun_path) - 1);
	memcpy(to.sun_path, path, n + 1);
	if (connect_to(net, (const struct sockaddr *)&to, sizeof(to), clock, deadline_us) == 0)
		return 0;
	(void)ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "connecting to '%.120s'", path);
	ob_net_close(net);
	return err->status;
}

static int try_all(struct ob_net *net, const struct addrinfo *list, const struct ob_net_addr *addr,
		   const struct ob_clock *clock, int64_t deadline_us, struct ob_err *err)
{
	int left = 0;

	for (const struct addrinfo *a = list; a; a = a->ai_next)
		left++;
	for (const struct addrinfo *a = list; a; a = a->ai_next, left--) {
		/* One that does not answer must leave time for the others. */
		int64_t now = ob_clock_boot_us(clock);
		int64_t until = now + (deadline_us - now) / left;

		if (connect_to(net, a->ai_addr, a->ai_addrlen, clock, until) == 0)
			return 0;
		(void)ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "connecting to %.120s:%s",
				   addr->host, addr->port);
		ob_net_close(net);
	}
	return err->status;
}

static int connect_tcp(struct ob_net *net, const struct ob_net_addr *addr, int silence_ms,
		       const struct ob_clock *clock, int64_t deadline_us, struct ob_err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	int code = getaddrinfo(addr->host, addr->port, &hints, &list);

	if (code != 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "looking up '%.120s': %s",
				  addr->host, gai_strerror(code));
	int r = try_all(net, list, addr, clock, deadline_us, err);
	freeaddrinfo(list);
	if (r == 0)
		tune(net->fd, silence_ms);
	return r;
}

int ob_net_connect(struct ob_net *net, const struct ob_net_addr *addr, int silence_ms,
		   const struct ob_clock *clock, int64_t deadline_us, struct ob_err *err)
{
	int r = addr->path ? connect_unix(net, addr->path, clock, deadline_us, err)
			   : connect_tcp(net, addr, silence_ms, clock, deadline_us, err);

	if (r == 0 && addr->tls)
		r = ob_net_tls_start(net, addr, clock, deadline_us, err);
	if (r < 0)
		ob_net_close(net);
	return r;
}

void ob_net_close(struct ob_net *net)
{
	ob_net_tls_end(net);
	if (net->fd >= 0)
		(void)close(net->fd);
	*net = OB_NET_INIT;
}

/* ---- bytes ----------------------------------------------------------- */

static bool is_later(int number)
{
	return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

int ob_net_failed(const char *doing, struct ob_err *err)
{
	bool hung_up = errno == ECONNRESET || errno == EPIPE;
	int r = ob_err_errno(err, OUTBOX_ESINK, OB_ERR_DOWN, "%s", doing);

	err->hung_up = hung_up;
	return r;
}

int ob_net_closed(struct ob_err *err)
{
	int r = ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN, "the peer closed the connection");

	err->hung_up = true;
	return r;
}

ssize_t ob_net_write(struct ob_net *net, struct ob_str bytes, struct ob_err *err)
{
	if (net->ssl)
		return ob_net_tls_write(net, bytes, err);
	ssize_t n = send(net->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
	if (n >= 0 || is_later(errno))
		return n >= 0 ? n : 0;
	return ob_net_failed("sending", err);
}

ssize_t ob_net_read(struct ob_net *net, char *buf, size_t size, struct ob_err *err)
{
	if (net->ssl)
		return ob_net_tls_read(net, buf, size, err);
	ssize_t n = recv(net->fd, buf, size, 0);
	if (n > 0 || (n < 0 && is_later(errno)))
		return n > 0 ? n : 0;
	if (n == 0)
		return ob_net_closed(err);
	return ob_net_failed("receiving", err);
}
