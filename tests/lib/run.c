/* SPDX-License-Identifier: MIT */
/* Feeds stdin and drains both outputs at once, so that no pipe can block the other. */
#include "run.h"

#include "server.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_SIZE = 65536, TIMEOUT_MS = 30000 };

struct pipes {
	int in[2], out[2], err[2];
};

static void child(const struct ob_run *run, const struct pipes *p)
{
	int out = run->out_path ? open(run->out_path, O_WRONLY) : p->out[1];

	if (out < 0 || dup2(p->in[0], 0) < 0 || dup2(out, 1) < 0 || dup2(p->err[1], 2) < 0)
		_exit(126);
	closefrom(3);
	/* what a user's shell hands over, not what the test framework left */
	(void)signal(SIGPIPE, SIG_DFL);
	/* the modes of files hold also when root runs the tests; others have no such power */
	(void)prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0);
	(void)prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0);
	if (run->dir && chdir(run->dir) < 0)
		_exit(126);
	for (size_t i = 0; run->env && run->env[i]; i++)
		(void)putenv(strdup(run->env[i]));
	execv(run->argv[0], (char *const *)(uintptr_t)run->argv);
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* Append what is there; closes the fd at its end. */
static void drain(int *fd, char **data, size_t *size)
{
	char *more = realloc(*data, *size + READ_SIZE + 1);

	ck_assert_ptr_nonnull(more);
	*data = more;
	ssize_t n = read(*fd, *data + *size, READ_SIZE);
	if (n <= 0)
		close_fd(fd);
	else
		*size += (size_t)n;
	(*data)[*size] = '\0';
}

static void feed(int *fd, const struct ob_run *run, size_t *sent)
{
	ssize_t n = write(*fd, run->in + *sent, run->in_size - *sent);

	if (n > 0)
		*sent += (size_t)n;
	if ((n < 0 && errno != EAGAIN) || *sent == run->in_size)
		close_fd(fd);
}

static void talk(struct ob_run *run, struct pipes *p, pid_t pid)
{
	int64_t end = now_ms() + (run->timeout_ms ? run->timeout_ms : TIMEOUT_MS);
	size_t sent = 0;

	if (run->in_size == 0)
		close_fd(&p->in[1]);
	while (p->out[0] >= 0 || p->err[0] >= 0) {
		struct pollfd fds[] = { { p->in[1], POLLOUT, 0 },
					{ p->out[0], POLLIN, 0 },
					{ p->err[0], POLLIN, 0 } };
		int64_t left = end - now_ms();

		if (left <= 0 || poll(fds, 3, (int)left) == 0) {
			run->timed_out = true;
			(void)kill(pid, SIGKILL);
			break;
		}
		if (fds[0].revents)
			feed(&p->in[1], run, &sent);
		if (fds[1].revents)
			drain(&p->out[0], &run->out, &run->out_size);
		if (run->out_limit && run->out_size >= run->out_limit)
			close_fd(&p->out[0]);
		if (fds[2].revents)
			drain(&p->err[0], &run->err, &run->err_size);
	}
}

void ob_run(struct ob_run *run)
{
	struct pipes p;
	int status;

	(void)signal(SIGPIPE, SIG_IGN);
	if (run->in && run->in_size == 0)
		run->in_size = strlen(run->in);
	ck_assert_int_eq(pipe2(p.in, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(p.out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(p.err, O_CLOEXEC), 0);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(run, &p);
	close_fd(&p.in[0]);
	close_fd(&p.out[1]);
	close_fd(&p.err[1]);
	(void)fcntl(p.in[1], F_SETFL, O_NONBLOCK);
	run->out = calloc(1, 1);
	run->err = calloc(1, 1);
	talk(run, &p, pid);
	close_fd(&p.in[1]);
	close_fd(&p.out[0]);
	close_fd(&p.err[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	run->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void ob_run_done(struct ob_run *run)
{
	free(run->out);
	free(run->err);
	run->out = run->err = NULL;
}

void ob_temp_dir(char out[64])
{
	const char *base = getenv("TMPDIR");

	ck_assert_int_lt(snprintf(out, 64, "%s/outbox-test.XXXXXX", base && *base ? base : "/tmp"),
			 64);
	ck_assert_ptr_nonnull(mkdtemp(out));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void ob_temp_dir_remove(const char *dir)
{
	ck_assert_int_eq(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int free_port(void)
{
	int port = server_free_port();

	ck_assert_int_gt(port, 0);
	return port;
}

int listen_on(int port, int *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, SOMAXCONN), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}
