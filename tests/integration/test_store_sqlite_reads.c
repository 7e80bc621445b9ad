/* SPDX-License-Identifier: MIT */
/* The SQLite store: what a fetch reads, and who gets a row that many want. */
#include "claimers.h"
#include "store_sqlite_fixture.h"

/* ---- claims ---------------------------------------------------------- */

OB_TEST(eight_workers_claim_twenty_thousand_rows_once_each)
{
	/* The test's own time limit is the deadline: here it is not how long one waits. */
	const struct ob_opt_value options[] = { { "busy_timeout", "10m" } };
	struct ob_store_conf conf = { .options = options, .option_count = 1 };
	struct ob_store *stores[CLAIMERS];
	char url[160];

	ob_store_free(new_store("a.db", NULL));
	(void)snprintf(url, sizeof(url), "sqlite:%s", file("a.db"));
	conf.url = url;
	for (int i = 0; i < CLAIMERS; i++)
		ok(ob_store_connect(&conf, &stores[i], &err));
	sql_on("a.db",
	       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
	       "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload) "
	       "SELECT randomblob(16), 'order', i % 500, 'e', '{}' FROM n");
	claimers_run(stores);
}
OB_TEST_END

LITE_SUITE("store_sqlite_reads", eight_workers_claim_twenty_thousand_rows_once_each)
