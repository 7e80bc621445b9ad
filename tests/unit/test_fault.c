/* SPDX-License-Identifier: MIT */
/* Fault points fire where, when and how OUTBOX_FAULT says. */
#include "base/fault.h"
#include "suite.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void plan(const char *text)
{
	ck_assert_int_eq(setenv("OUTBOX_FAULT", text, 1), 0);
}

OB_TEST(without_a_plan_nothing_fires)
{
	ck_assert_int_eq(unsetenv("OUTBOX_FAULT"), 0);
	for (int i = 0; i < 10; i++)
		ck_assert(!OB_FAULT("test.point"));
}
OB_TEST_END

OB_TEST(fail_fires_once_at_its_count)
{
	plan("test.point:3:fail");
	for (int i = 1; i <= 10; i++)
		ck_assert_int_eq(OB_FAULT("test.point"), i == 3);
}
OB_TEST_END

OB_TEST(fail_plus_fires_from_its_count_on)
{
	plan("test.point:3:fail+");
	for (int i = 1; i <= 10; i++)
		ck_assert_int_eq(OB_FAULT("test.point"), i >= 3);
}
OB_TEST_END

OB_TEST(other_points_neither_fire_nor_count)
{
	plan("test.point:2:fail");
	for (int i = 0; i < 10; i++) {
		ck_assert(!OB_FAULT("test.other"));
		ck_assert(!OB_FAULT("test.poin"));
		ck_assert(!OB_FAULT("test.point_two"));
	}
	ck_assert(!OB_FAULT("test.point"));
	ck_assert(OB_FAULT("test.point"));
}
OB_TEST_END

OB_TEST(a_plan_that_makes_no_sense_never_fires)
{
	static const char *const plans[] = { "",
					     "test.point",
					     "test.point:",
					     "test.point:1",
					     "test.point:x:fail",
					     "test.point:1:explode",
					     ":1:fail" };

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		plan(plans[i]);
		ck_assert(!OB_FAULT("test.point"));
	}
}
OB_TEST_END

/* What waitpid() says about a child that passes the point twice. */
static int passed_by_child(const char *text, pid_t *ret_pid)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		plan(text);
		(void)OB_FAULT("test.point");
		(void)OB_FAULT("test.point");
		_exit(7);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	*ret_pid = pid;
	return status;
}

OB_TEST(kill_abort_and_stop_hit_the_process)
{
	pid_t pid;
	int status = passed_by_child("test.point:2:kill", &pid);

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = passed_by_child("test.point:3:kill", &pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	status = passed_by_child("test.point:1:abort", &pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	status = passed_by_child("test.point:1:stop", &pid);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
OB_TEST_END

OB_SUITE("fault", without_a_plan_nothing_fires, fail_fires_once_at_its_count,
	 fail_plus_fires_from_its_count_on, other_points_neither_fire_nor_count,
	 a_plan_that_makes_no_sense_never_fires, kill_abort_and_stop_hit_the_process)
