/* SPDX-License-Identifier: MIT */
/* Processor, kernel, system, versions. */
#include "bench/report/machine.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The value behind the first line of a file that begins with `key`, without quotes. */
static void read_value(const char *path, const char *key, char out[BENCH_TEXT_SIZE])
{
	char line[512];
	OB_CLEANUP(ob_fclosep) FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		const char *value = line + strlen(key) + strspn(line + strlen(key), " \t:=\"");

		(void)snprintf(out, BENCH_TEXT_SIZE, "%.*s", (int)strcspn(value, "\"\n"), value);
		return;
	}
}

void bench_machine_read(struct bench_machine *machine)
{
	struct utsname name;
	time_t now = time(NULL);
	struct tm tm;

	*machine = (struct bench_machine){ .processor = "unknown", .system = "unknown" };
	read_value("/proc/cpuinfo", "model name", machine->processor);
	read_value("/etc/os-release", "PRETTY_NAME", machine->system);
	if (uname(&name) == 0)
		(void)snprintf(machine->kernel, sizeof(machine->kernel), "%s %s", name.sysname,
			       name.release);
	machine->cores = sysconf(_SC_NPROCESSORS_ONLN);
	machine->memory_gb =
		(double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (double)(1 << 30);
	(void)getloadavg(&machine->load, 1);
	(void)strftime(machine->date, sizeof(machine->date), "%Y-%m-%d", gmtime_r(&now, &tm));
}

static void add(struct bench_machine *machine, const char *title, const char *version)
{
	size_t used = strlen(machine->servers);

	if (*version)
		(void)snprintf(machine->servers + used, sizeof(machine->servers) - used, "%s%s %s",
			       used ? ", " : "", title, version);
}

void bench_machine_servers(struct bench_machine *machine, struct bench_env *env)
{
	char version[BENCH_TEXT_SIZE] = "";

	machine->servers[0] = '\0';
	for (size_t i = 0; i < BENCH_STORES; i++) {
		struct bench_store *store = &env->stores[BENCH_NEW][i];

		if (!store->there)
			continue;
		store->ops->version(store, version);
		add(machine, store->ops->title, version);
	}
	for (size_t i = 0; i < BENCH_BROKERS_MAX; i++) {
		if (!env->brokers[i].there)
			continue;
		env->brokers[i].ops->version(&env->brokers[i], version);
		add(machine, env->brokers[i].ops->title, version);
	}
}
