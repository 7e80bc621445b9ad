/* SPDX-License-Identifier: MIT */
/* Failures in groups, as `outbox failures --json` has them. */
#include "monitor/api.h"
#include "monitor/routes.h"
#include "operate/failures.h"

static bool take_args(struct ob_request *req, struct ob_failures_ask *ask)
{
	const char *by = ob_request_arg(req, "by"), *state = ob_request_arg(req, "state");
	int number = by ? ob_failures_by_parse(by) : OB_FAILURES_CAUSE;
	int view = state ? ob_view_parse(state) : -1;

	if (number < 0) {
		ob_request_fail(req, 400, "invalid",
				"by: '%.40s' is none of cause, type, relay, sink, key", by);
		return false;
	}
	if (state && view != OB_VIEW_FAILED && view != OB_VIEW_DEAD) {
		ob_request_fail(req, 400, "invalid", "state: '%.40s' is neither failed nor dead",
				state);
		return false;
	}
	*ask = (struct ob_failures_ask){ .by = (enum ob_failures_by)number,
					 .reader = ob_request_arg(req, "reader"),
					 .views = view < 0 ? 0 : 1U << view };
	return true;
}

void ob_api_failures(struct ob_request *req)
{
	struct ob_failures failures = { 0 };
	struct ob_failures_ask ask;
	struct ob_err err = OB_ERR_INIT;
	struct ob_asked asked;

	req->type = "application/json";
	if (!take_args(req, &ask) || !ob_request_store(req, ob_request_arg(req, "store"), &asked))
		return;
	int r = ob_failures_take(&failures, asked.store, req->monitor->config, &ask, &err);
	if (r == 0)
		ob_failures_json(&req->out, &failures);
	ob_failures_done(&failures);
	ob_request_end(req, &asked, r, &err);
}
