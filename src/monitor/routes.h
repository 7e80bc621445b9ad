/* SPDX-License-Identifier: MIT */
/* Every URL that is answered, with the role that it takes: one table. */
#ifndef OB_MONITOR_ROUTES_H
#define OB_MONITOR_ROUTES_H

#include "monitor/request.h"

enum {
	OB_ROUTE_PAGE = 1 << 0,   /* HTML: who may not see it gets the page that asks for a token */
	OB_ROUTE_PUBLIC = 1 << 1, /* any Host: probes come with addresses of their own */
	OB_ROUTE_BODY = 1 << 2,   /* has a body */
};

typedef void ob_route_fn(struct ob_request *req);

struct ob_route {
	const char *method; /* GET (also HEAD) or POST */
	const char *path;   /* one segment may be * */
	enum ob_role role;  /* the least */
	unsigned flags;
	ob_route_fn *answer;
};

/* The last has no path. */
extern const struct ob_route ob_routes[];

/* The route of a path; *ret_other: the path is known, but not for this method. The word that stood
 * for * goes into `word`. */
const struct ob_route *ob_route_find(const char *method, const char *path, char word[OB_PATH_WORD],
				     bool *ret_other);

ob_route_fn ob_page_answer, ob_asset_answer;
ob_route_fn ob_api_state, ob_api_throughput, ob_api_failures, ob_api_messages, ob_api_message;
ob_route_fn ob_api_payload, ob_api_keys, ob_api_partitions, ob_api_doctor, ob_api_doctor_run;
ob_route_fn ob_api_audit, ob_api_plan, ob_api_run, ob_api_job, ob_api_job_stop, ob_api_login;
ob_route_fn ob_api_logout, ob_api_events, ob_api_openapi, ob_api_streams, ob_api_stream;
ob_route_fn ob_api_consumers;
ob_route_fn ob_answer_metrics, ob_answer_healthz, ob_answer_readyz, ob_answer_startupz;

#endif
