/* SPDX-License-Identifier: MIT */
/* The program: read the command line, run one command, and see that the output arrived. */
#include "cli/args.h"
#include "cli/help.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int run(struct ob_cli *cli, const void *args)
{
	if (cli->version)
		printf("outbox %s\n", OUTBOX_VERSION);
	else if (cli->help && cli->cmd)
		ob_help_command(cli->cmd, stdout);
	else if (cli->prefix)
		ob_help_prefix(cli->prefix, stdout);
	else if (!cli->cmd)
		ob_help_overview(stdout);
	else
		return cli->cmd->run(cli, args);
	return OB_EXIT_OK;
}

/*
 * A program started without its first three descriptors would get a database
 * as number 1 and print into it. What we put there fails when it is used.
 */
static void fill_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
	}
}

static bool reader_is_gone(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/*
 * A full disk shows only now. A reader that went away (| head) has what it
 * wanted: that is no failure of ours.
 */
static int finish_output(int code)
{
	bool failed = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return code;
	if (errno == EPIPE || reader_is_gone())
		return code;
	if (errno == 0)
		errno = EIO;
	return ob_cli_fail("writing the output: %m");
}

/*
 * Buffers of batches come and go with the load. By themselves they go back to the system; among
 * small pieces they would hold memory that nobody uses.
 */
enum { OWN_PAGES_FROM = 64 * 1024 };

int main(int argc, char **argv)
{
	struct ob_cli cli = { 0 };
	void *args = NULL;

	fill_descriptors();
	(void)mallopt(M_MMAP_THRESHOLD, OWN_PAGES_FROM);
	(void)signal(SIGPIPE, SIG_IGN);
	int code = ob_args_parse(&cli, argc, argv, &args);
	if (code == OB_EXIT_OK)
		code = run(&cli, args);
	ob_args_done(&cli, args);
	return finish_output(code);
}
