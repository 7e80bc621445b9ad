/* SPDX-License-Identifier: MIT */
/* A directory with all that the demonstration or a measurement needs, and nothing outside of it. */
#include "cli/demo/demo.h"

#include "base/cleanup.h"

#include <sys/stat.h>

enum { PARTITIONS = 16 };

static int write_config(const struct ob_demo_files *files, const char *name, const char *relay,
			struct ob_err *err)
{
	OB_CLEANUP(ob_fclosep) FILE *f = fopen(files->config, "we");

	if (f)
		(void)fprintf(f,
			      "# Made by `outbox %s`.\n"
			      "stores:\n"
			      "  main: { url: \"sqlite:outbox.db\" }\n"
			      "sinks:\n"
			      "  out: { type: file, path: events.ndjson }\n"
			      "relays:\n"
			      "  - name: default\n"
			      "%s",
			      name, relay);
	if (!f || fflush(f) != 0)
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL, "writing '%s'",
				    files->config);
	return 0;
}

OB_DEFINE_CLEANUP(struct ob_store *, ob_store_free)

static int make_database(const struct ob_demo_files *files, struct ob_err *err)
{
	struct ob_store_conf conf = { .url = files->url };
	struct ob_setup setup = { .partition_count = PARTITIONS };
	struct ob_setup_done done;
	OB_CLEANUP(ob_store_freep) struct ob_store *store = NULL;

	int r = ob_store_connect(&conf, &store, err);
	return r < 0 ? r : ob_store_setup(store, &setup, &done, err);
}

int ob_demo_files_make(struct ob_demo_files *files, const char *name, const char *relay,
		       struct ob_err *err)
{
	const char *temp = getenv("TMPDIR");
	int n = snprintf(files->dir, sizeof(files->dir), "%s/outbox-%s.XXXXXX",
			 temp && *temp == '/' ? temp : "/tmp", name);

	if (n < 0 || (size_t)n >= sizeof(files->dir))
		return ob_err_set(err, OUTBOX_EINVAL, OB_ERR_FATAL, "TMPDIR is too long");
	if (!mkdtemp(files->dir))
		return ob_err_errno(err, OUTBOX_EINVAL, OB_ERR_FATAL,
				    "making the directory '%s' (TMPDIR names another place)",
				    files->dir);
	(void)snprintf(files->config, sizeof(files->config), "%s/outbox.yaml", files->dir);
	(void)snprintf(files->database, sizeof(files->database), "%s/outbox.db", files->dir);
	(void)snprintf(files->events, sizeof(files->events), "%s/events.ndjson", files->dir);
	(void)snprintf(files->url, sizeof(files->url), "sqlite:%s", files->database);
	(void)snprintf(files->log, sizeof(files->log), "%s/workers.log", files->dir);
	int r = write_config(files, name, relay, err);
	if (r == 0)
		r = make_database(files, err);
	if (r < 0)
		ob_demo_files_remove(files);
	return r;
}

void ob_demo_files_remove(const struct ob_demo_files *files)
{
	static const char *const sides[] = { "-wal", "-shm", "-journal" };
	char path[OB_DEMO_PATH + 16];

	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", files->database, sides[i]);
		(void)unlink(path);
	}
	(void)unlink(files->database);
	(void)unlink(files->events);
	(void)unlink(files->log);
	(void)unlink(files->config);
	(void)rmdir(files->dir);
}
