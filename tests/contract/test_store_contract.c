/* SPDX-License-Identifier: MIT */
/* test_store_contract BACKEND [SUBJECT,... [CASE]]: the store contract on one backend. */
#include "config.h"
#include "store_harness.h"

#include <dirent.h>
#include <stdlib.h>

#if HAVE_CRYPT
#define CRYPT(X) X(events_crypt)
#else
#define CRYPT(X)
#endif

#define SUBJECTS(X) \
	X(setup) \
	X(write) \
	X(events) \
	X(events_log) \
	X(events_aggregate) \
	X(events_race) \
	CRYPT(X) \
	X(exec) \
	X(readers) \
	X(seek) \
	X(takeover) \
	X(read) \
	X(late) \
	X(exceptions) \
	X(settle) \
	X(fence) \
	X(lease) \
	X(workers) \
	X(consumers) \
	X(audit) \
	X(resize) \
	X(order) \
	X(race) \
	X(list) \
	X(stats) \
	X(operate) \
	X(retain) \
	X(faults) \
	X(random)

#define X(name) void store_cases_##name(store_add_fn *add);
SUBJECTS(X)
#undef X

static const struct {
	const char *name;
	void (*cases)(store_add_fn *add);
} subjects[] = {
#define X(name) { #name, store_cases_##name },
	SUBJECTS(X)
#undef X
};

static const struct store_backend *const backends[] = {
	&store_backend_memory,   &store_backend_memory_gaps,    &store_backend_memory_plain,
#if HAVE_SQLITE
	&store_backend_sqlite,
#endif
#if HAVE_POSTGRES
	&store_backend_postgres, &store_backend_postgres_parts,
#endif
#if HAVE_MYSQL
	&store_backend_mysql,    &store_backend_mysql_parts,
#endif
};

static TCase *adding;
static const char *only_case;

static bool skipped(const TTest *test)
{
	for (const struct store_skip *s = fx.backend->skips; s && s->test; s++) {
		if (strcmp(s->test, test->name) != 0)
			continue;
		(void)printf("# N/A %s: %s\n", test->name, s->reason);
		return true;
	}
	return false;
}

/* Only the databases have the library's events, SQL, and consumers. Of these a log partitioned by
 * number has no events. */
static bool lacks(const char *subject)
{
	bool memory = strncmp(fx.backend->name, "memory", 6) == 0;

	if (strcmp(subject, "exec") == 0 || strcmp(subject, "consumers") == 0)
		return memory;
	return strncmp(subject, "events", 6) == 0 && (memory || fx.backend->partition_rows > 0);
}

static void add(const TTest *test)
{
	if ((!only_case || strcmp(only_case, test->name) == 0) && !skipped(test))
		tcase_add_test(adding, test);
}

/* Is it one of "read,late"? */
static bool is_in(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; (p = strstr(p, name)); p += n) {
		if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
			return true;
	}
	return false;
}

/* The backend stands in the name of every case: "memory.read". */
static Suite *make_suite(const char *only_subjects)
{
	Suite *suite = suite_create("store contract");
	/* Check keeps the pointer. */
	static char names[sizeof(subjects) / sizeof(subjects[0])][64];

	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
		if (lacks(subjects[i].name) ||
		    (only_subjects && !is_in(only_subjects, subjects[i].name)))
			continue;
		(void)snprintf(names[i], sizeof(names[i]), "%s.%s", fx.backend->name,
			       subjects[i].name);
		adding = tcase_create(names[i]);
		tcase_add_checked_fixture(adding, NULL, store_end);
		subjects[i].cases(add);
		suite_add_tcase(suite, adding);
	}
	return suite;
}

static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	char file[512];

	while (dir && (entry = readdir(dir))) {
		(void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			(void)unlink(file);
	}
	if (dir)
		(void)closedir(dir);
	(void)rmdir(path);
}

static int run_all(const char *only_subjects)
{
	SRunner *runner = srunner_create(make_suite(only_subjects));

	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed;
}

int main(int argc, char **argv)
{
	/* Memory if there is any: no case is about what a power failure leaves. */
	char shm[] = "/dev/shm/outbox-contract-XXXXXX", tmp[] = "/tmp/outbox-contract-XXXXXX";
	char *dir = access("/dev/shm", W_OK) == 0 ? shm : tmp;

	for (size_t i = 0; argc > 1 && i < sizeof(backends) / sizeof(backends[0]); i++) {
		if (strcmp(argv[1], backends[i]->name) == 0)
			fx.backend = backends[i];
	}
	if (!fx.backend) {
		(void)fprintf(stderr, "usage: test_store_contract BACKEND [SUBJECT,... [CASE]]\n");
		return 2;
	}
	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	fx.dir = dir;
	(void)setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	only_case = argc > 3 ? argv[3] : NULL;

	const char *missing = fx.backend->start ? fx.backend->start() : NULL;
	int failed = 0;
	if (missing)
		(void)printf("1..0 # SKIP %s\n", missing);
	else
		failed = run_all(argc > 2 ? argv[2] : NULL);
	if (fx.backend->stop)
		fx.backend->stop();
	remove_dir(dir);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
