/* SPDX-License-Identifier: MIT */
/* The configurations that the documents show are good: each is given to `outbox config check`. */
#include "background.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

static const char fence[] = "```yaml\n";

/* What a page leaves out because it stands on another. */
static void complete(const char *block, size_t n, char *out, size_t size)
{
	bool store = memmem(block, n, "stores:", 7) != NULL;
	bool sink = memmem(block, n, "sinks:", 6) != NULL;

	ck_assert_int_lt(snprintf(out, size, "%s%s%.*s",
				  store ? "" : "stores: { main: { url: 'sqlite:x.db' } }\n",
				  sink ? ""
				       : "sinks: { out: { type: stdout }, partner: { type: "
					 "stdout } }\n",
				  (int)n, block),
			 (int)size);
}

static void check_block(const char *page, size_t number, const char *block, size_t n)
{
	char text[8192];

	complete(block, n, text, sizeof(text));
	put_file("page.yaml", text);
	struct ob_run run = outbox(NULL, "-c", "page.yaml", "config", "check", NULL);
	if (run.code != 0 && strstr(run.err, "is not in this build"))
		(void)printf("# SKIP %s, %zu: %s\n", page, number, run.err);
	else
		ck_assert_msg(run.code == 0, "%s, block %zu:\n%s\n%s", page, number, run.err, text);
	ob_run_done(&run);
}

static size_t check_page(const char *page)
{
	char *text = read_file(page);
	size_t count = 0;

	for (const char *p = text; (p = strstr(p, fence));) {
		p += sizeof(fence) - 1;
		const char *end = strstr(p, "```");
		ck_assert_ptr_nonnull(end);
		check_block(page, ++count, p, (size_t)(end - p));
		p = end + 3;
	}
	free(text);
	return count;
}

/* All pages of a pattern under the directory of the documents, each with at least one. */
static void check_pages(const char *pattern, size_t pages)
{
	const char *docs = getenv("DOCS");
	char path[500];
	glob_t found;

	ck_assert_msg(docs != NULL, "DOCS is not set");
	(void)snprintf(path, sizeof(path), "%s/%s", docs, pattern);
	ck_assert_int_eq(glob(path, 0, NULL, &found), 0);
	ck_assert_uint_ge(found.gl_pathc, pages);
	for (size_t i = 0; i < found.gl_pathc; i++)
		ck_assert_msg(check_page(found.gl_pathv[i]) > 0, "no yaml in %s",
			      found.gl_pathv[i]);
	globfree(&found);
}

OB_TEST(what_the_documents_show_is_good)
{
	begin();
	set_env("REDIS_PASSWORD=secret");
	set_env("KAFKA_PASSWORD=secret");
	set_env("MQ_PASSWORD=secret");
	set_env("PARTNER_WEBHOOK_SECRET=whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU2Nzg5");
	check_pages("sinks/*.md", 7);
	check_pages("routing.md", 1);
	check_pages("layouts.md", 1);
	end();
}
OB_TEST_END

OB_SUITE("pages", what_the_documents_show_is_good)
