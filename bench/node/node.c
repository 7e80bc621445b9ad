/* SPDX-License-Identifier: MIT */
/* The table of the loop in Node: the columns that a first outbox has, and its primary key. */
#include "bench/node/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const places[] = { "/usr/bin/node", "/usr/local/bin/node", NULL };

const char *bench_node_program(void)
{
	for (size_t i = 0; places[i]; i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

bool bench_node_finds(const char *store, const char *broker, const char **ret_reason)
{
	if (strcmp(store, "postgres") != 0 || strcmp(broker, "redis") != 0)
		*ret_reason = "the loop in Node is for PostgreSQL and Redis";
	else if (!bench_node_program())
		*ret_reason = "node is missing";
	else if (access(BENCH_SOURCE "/bench/node/node_modules/pg", F_OK) < 0 ||
		 access(BENCH_SOURCE "/bench/node/node_modules/redis", F_OK) < 0)
		*ret_reason = "the packages of the loop in Node are missing: bench/node/install";
	else
		return true;
	return false;
}

void bench_node_clear(struct bench_store *store)
{
	store->ops->run(store,
			"CREATE TABLE IF NOT EXISTS node_outbox (id bigint GENERATED ALWAYS "
			"AS IDENTITY PRIMARY KEY, topic text NOT NULL, key text, "
			"payload json NOT NULL)");
	store->ops->run(store, "TRUNCATE TABLE node_outbox RESTART IDENTITY");
	store->ops->calm(store);
}

void bench_node_load(struct bench_store *store, const struct bench_load *load)
{
	char sql[640];

	(void)snprintf(sql, sizeof(sql),
		       "INSERT INTO node_outbox (topic, key, payload) SELECT 'order', i::text, "
		       "('{\"order\": ' || i || ', \"note\": \"' || p.pad || '\"}')::json "
		       "FROM (SELECT left(string_agg(md5(n::text), ''), %zu) AS pad FROM "
		       "generate_series(1, %zu) AS n) AS p, generate_series(1, %" PRIu64
		       "::bigint) AS i",
		       load->payload_size, load->payload_size / 32 + 1, load->count);
	store->ops->run(store, sql);
	store->ops->run(store, "ANALYZE node_outbox");
}

bool bench_node_is_through(struct bench_store *store)
{
	return store->ops->number(store,
				  "SELECT count(*) FROM (SELECT 1 FROM node_outbox LIMIT 1) "
				  "AS waiting") == 0;
}
