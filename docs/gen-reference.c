/* SPDX-License-Identifier: MIT */
/*
 * Prints the reference page of the configuration, made from the option tables.
 *   gen-reference                the page
 *   gen-reference --sample       the sample file
 *   gen-reference --check FILE   compares the page with the one that is kept, and loads the sample
 */
#include "base/file.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_MAX = 1 << 20 };

static int print(const struct ob_buf *page)
{
	if (!page->failed && fwrite(page->data, 1, page->len, stdout) == page->len &&
	    fflush(stdout) == 0)
		return 0;
	(void)fprintf(stderr, "gen-reference: cannot write: %m\n");
	return 1;
}

/* The number of the first line in which two texts differ. */
static size_t first_difference(const char *a, const char *b)
{
	size_t line = 1;

	for (; *a && *a == *b; a++, b++)
		line += *a == '\n';
	return line;
}

static int check(const struct ob_buf *page, const char *path)
{
	struct ob_buf kept = OB_BUF_INIT(PAGE_MAX);
	struct ob_err err = OB_ERR_INIT;
	bool same = false;

	if (ob_file_read(path, PAGE_MAX, &kept, &err) < 0)
		(void)fprintf(stderr, "%s: %s\n", path, err.msg);
	else if (!ob_str_eq(ob_buf_view(&kept), ob_buf_view(page)))
		(void)fprintf(stderr,
			      "%s:%zu: not what the option tables say\n"
			      "mend it with: build/docs/gen-reference >docs/configuration.md\n",
			      path, first_difference(ob_buf_str(&kept), ob_buf_str(page)));
	else
		same = true;
	ob_buf_done(&kept);
	return same ? 0 : 1;
}

/* The sample must load with the backends as they are. */
static int load_sample(const struct ob_store_backend *store, const struct ob_sink_backend *sink)
{
	struct ob_buf text = OB_BUF_INIT(PAGE_MAX), faults = OB_BUF_INIT(PAGE_MAX);
	struct ob_config *config = NULL;
	struct ob_err err = OB_ERR_INIT;

	ob_config_sample(store, sink, &text);
	int r = ob_config_parse(ob_buf_view(&text), "sample", &faults, &config, &err);
	if (r < 0)
		(void)fprintf(stderr, "%s%s\n", ob_buf_str(&faults), err.msg);
	ob_config_free(config);
	ob_buf_done(&text);
	ob_buf_done(&faults);
	return r < 0 ? 1 : 0;
}

static int load_samples(void)
{
	int r = 0;

	for (const struct ob_store_backend *store = ob_store_backends; store->name; store++) {
		for (const struct ob_sink_backend *sink = ob_sink_backends; sink->name; sink++)
			r |= store->ops && sink->ops ? load_sample(store, sink) : 0;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct ob_buf page = OB_BUF_INIT(PAGE_MAX);
	int r;

	if (argc == 2 && strcmp(argv[1], "--sample") == 0)
		ob_config_sample(NULL, NULL, &page);
	else
		ob_config_reference(&page);
	if (argc == 3 && strcmp(argv[1], "--check") == 0)
		r = check(&page, argv[2]) | load_samples();
	else
		r = print(&page);
	ob_buf_done(&page);
	return r;
}
