/* SPDX-License-Identifier: MIT */
/* What is answered from memory: state, metrics, health. */
#include "monitor/routes.h"
#include "monitor/state.h"

void ob_api_state(struct ob_request *req)
{
	req->type = "application/json";
	ob_state_json(&req->out, req->monitor, req->role);
}

void ob_answer_metrics(struct ob_request *req)
{
	req->type = "text/plain; version=0.0.4; charset=utf-8";
	ob_metrics_text(req->monitor, &req->out.b);
}

void ob_answer_healthz(struct ob_request *req)
{
	req->type = "text/plain; charset=utf-8";
	req->status = ob_health_live(req->monitor, &req->out.b);
}

void ob_answer_readyz(struct ob_request *req)
{
	req->type = "text/plain; charset=utf-8";
	req->status = ob_health_ready(req->monitor, &req->out.b);
}

void ob_answer_startupz(struct ob_request *req)
{
	req->type = "text/plain; charset=utf-8";
	req->status = ob_health_started(req->monitor, &req->out.b);
}
