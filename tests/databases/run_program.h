/* SPDX-License-Identifier: MIT */
/* What with_servers and with_brokers share: the program that they are around. */
#ifndef OB_TESTS_RUN_PROGRAM_H
#define OB_TESTS_RUN_PROGRAM_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void set_port(const char *name, int port)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", port);
	(void)setenv(name, text, 1);
}

/* Run it to its end; its exit code. */
static inline int run_program(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execvp(argv[0], argv);
		(void)fprintf(stderr, "%s: %m\n", argv[0]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return EXIT_FAILURE;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

#endif
