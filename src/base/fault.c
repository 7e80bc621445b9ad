/* SPDX-License-Identifier: MIT */
/* The fault points of test builds, driven by OUTBOX_FAULT. */
#include "base/fault.h"

#if OB_FAULT_POINTS

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Guarded by `lock`: a point may be passed by any thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long hits;

/* Split "name:nth:action"; false when the plan is for another point. */
static bool plan_for(const char *name, unsigned long *ret_nth, const char **ret_action)
{
	const char *plan = getenv("OUTBOX_FAULT");
	size_t n = strlen(name);
	char *end;

	if (!plan || strncmp(plan, name, n) != 0 || plan[n] != ':')
		return false;
	*ret_nth = strtoul(plan + n + 1, &end, 10);
	if (*end != ':')
		return false;
	*ret_action = end + 1;
	return true;
}

bool ob_fault_hit(const char *name)
{
	const char *action;
	unsigned long nth;

	if (!plan_for(name, &nth, &action))
		return false;

	(void)pthread_mutex_lock(&lock);
	unsigned long hit = ++hits;
	(void)pthread_mutex_unlock(&lock);

	if (strcmp(action, "fail+") == 0)
		return hit >= nth;
	if (hit != nth)
		return false;
	if (strcmp(action, "kill") == 0)
		(void)raise(SIGKILL);
	else if (strcmp(action, "stop") == 0)
		(void)raise(SIGSTOP);
	else if (strcmp(action, "abort") == 0)
		abort();
	return strcmp(action, "fail") == 0;
}

#endif
