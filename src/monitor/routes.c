/* SPDX-License-Identifier: MIT */
#include "monitor/routes.h"

#include <stdio.h>

#define GET(path, role, answer) \
	{ \
		"GET", path, OB_ROLE_##role, 0, answer \
	}
#define POST(path, role, answer) \
	{ \
		"POST", path, OB_ROLE_##role, OB_ROUTE_BODY, answer \
	}
#define PAGE(path) \
	{ \
		"GET", path, OB_ROLE_VIEWER, OB_ROUTE_PAGE, ob_page_answer \
	}
#define PROBE(path, answer) \
	{ \
		"GET", path, OB_ROLE_NONE, OB_ROUTE_PUBLIC, answer \
	}

/* Whoever adds a row decides who may ask: a row without a role does not compile. */
const struct ob_route ob_routes[] = {
	PAGE("/"),
	PAGE("/failures"),
	PAGE("/messages"),
	PAGE("/messages/*"),
	PAGE("/keys"),
	PAGE("/relays"),
	PAGE("/doctor"),
	PAGE("/audit"),
	PAGE("/streams"),
	PAGE("/stream"),
	PAGE("/consumers"),
	/* The program of the pages holds nothing of anybody. */
	GET("/style.css", NONE, ob_asset_answer),
	GET("/app.js", NONE, ob_asset_answer),
	GET("/api/v1/state", VIEWER, ob_api_state),
	GET("/api/v1/events", VIEWER, ob_api_events),
	GET("/api/v1/throughput", VIEWER, ob_api_throughput),
	GET("/api/v1/failures", VIEWER, ob_api_failures),
	GET("/api/v1/messages", VIEWER, ob_api_messages),
	GET("/api/v1/messages/*", VIEWER, ob_api_message),
	GET("/api/v1/messages/*/payload", VIEWER, ob_api_payload),
	GET("/api/v1/keys", VIEWER, ob_api_keys),
	GET("/api/v1/streams", VIEWER, ob_api_streams),
	GET("/api/v1/stream", VIEWER, ob_api_stream),
	GET("/api/v1/consumers", VIEWER, ob_api_consumers),
	GET("/api/v1/partitions", VIEWER, ob_api_partitions),
	GET("/api/v1/doctor", VIEWER, ob_api_doctor),
	POST("/api/v1/doctor", OPERATOR, ob_api_doctor_run),
	GET("/api/v1/audit", VIEWER, ob_api_audit),
	POST("/api/v1/plans", OPERATOR, ob_api_plan),
	POST("/api/v1/plans/*/run", OPERATOR, ob_api_run),
	GET("/api/v1/jobs/*", VIEWER, ob_api_job),
	POST("/api/v1/jobs/*/stop", OPERATOR, ob_api_job_stop),
	POST("/api/v1/login", NONE, ob_api_login),
	POST("/api/v1/logout", NONE, ob_api_logout),
	GET("/api/v1/openapi.json", VIEWER, ob_api_openapi),
	GET("/metrics", VIEWER, ob_answer_metrics),
	PROBE("/healthz", ob_answer_healthz),
	PROBE("/readyz", ob_answer_readyz),
	PROBE("/startupz", ob_answer_startupz),
	{ .path = NULL },
};

static bool matches(const char *pattern, const char *path, char word[OB_PATH_WORD])
{
	while (*pattern && *path) {
		if (*pattern == '*') {
			size_t n = strcspn(path, "/");

			if (n == 0 || n >= OB_PATH_WORD)
				return false;
			(void)snprintf(word, OB_PATH_WORD, "%.*s", (int)n, path);
			path += n;
			pattern++;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return !*pattern && !*path;
}

const struct ob_route *ob_route_find(const char *method, const char *path, char word[OB_PATH_WORD],
				     bool *ret_other)
{
	*ret_other = false;
	word[0] = '\0';
	for (const struct ob_route *r = ob_routes; r->path; r++) {
		if (!matches(r->path, path, word))
			continue;
		if (strcmp(r->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0)
			return r;
		*ret_other = true;
	}
	return NULL;
}
