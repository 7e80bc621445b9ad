/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/stat counts ticks of 10 ms: fine for runs of a second and more. The time of a child
 * that ended and was waited for is in its parent's line, so the sum over a tree never shrinks.
 */
#include "bench/usage.h"

#include "base/cleanup.h"
#include "bench/fatal.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
	pid_t pid, parent;
	unsigned long long ticks;
	bool ours;
};

struct processes {
	struct process *list;
	size_t count, room;
};

/* The name may hold anything but ends with the last ')'. */
static bool read_process(const char *name, struct process *out)
{
	char path[64], line[1024];
	unsigned long long user, system, user_below, system_below;
	int parent;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file) || !strrchr(line, ')'))
		return false;
	if (sscanf(strrchr(line, ')') + 1,
		   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &parent,
		   &user, &system, &user_below, &system_below) != 5)
		return false;
	*out = (struct process){ .pid = (pid_t)strtol(name, NULL, 10),
				 .parent = parent,
				 .ticks = user + system + user_below + system_below };
	return true;
}

static void read_all(struct processes *all)
{
	DIR *dir = opendir("/proc");

	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		struct process process;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
		    !read_process(entry->d_name, &process))
			continue;
		if (all->count == all->room) {
			all->room = all->room * 2 + 256;
			all->list =
				bench_need(realloc(all->list, all->room * sizeof(all->list[0])));
		}
		all->list[all->count++] = process;
	}
	if (dir)
		(void)closedir(dir);
}

static bool is_ours(const struct processes *all, pid_t pid)
{
	for (size_t i = 0; i < all->count; i++) {
		if (all->list[i].pid == pid)
			return all->list[i].ours;
	}
	return false;
}

double bench_cpu_us(pid_t root)
{
	struct processes all = { 0 };
	unsigned long long ticks = 0;
	bool grown = true;

	read_all(&all);
	while (grown) {
		grown = false;
		for (size_t i = 0; i < all.count; i++) {
			struct process *p = &all.list[i];

			if (p->ours || (p->pid != root && !is_ours(&all, p->parent)))
				continue;
			p->ours = grown = true;
			ticks += p->ticks;
		}
	}
	free(all.list);
	return (double)ticks * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static uint64_t read_status_kb(pid_t pid, const char *field)
{
	char path[64], line[256];
	size_t n = strlen(field);

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, field, n) == 0)
			return strtoull(line + n, NULL, 10);
	}
	return 0;
}

uint64_t bench_resident_kb(pid_t pid)
{
	return read_status_kb(pid, "VmRSS:");
}

uint64_t bench_resident_peak_kb(pid_t pid)
{
	return read_status_kb(pid, "VmHWM:");
}
