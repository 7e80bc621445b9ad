/* SPDX-License-Identifier: MIT */
/* Logging in: a token for a session that the browser keeps and scripts cannot read. */
#include "monitor/routes.h"

#include <stdio.h>

enum { SESSION_S = 12 * 3600 };

static void set_cookie(struct ob_request *req, const char *value, int seconds)
{
	const char *base = req->monitor->conf->base_path;

	(void)snprintf(
		req->cookie, sizeof(req->cookie),
		"outbox_session=%.150s; Path=%.60s/; Max-Age=%d; HttpOnly; SameSite=Strict%s",
		value, base, seconds, req->secure ? "; Secure" : "");
}

void ob_api_login(struct ob_request *req)
{
	const struct ob_auth *auth = &req->monitor->auth;
	json_t *body = ob_request_json(req);
	const char *token = json_string_value(json_object_get(body, "token"));
	char session[OB_SESSION_SIZE];

	req->type = "application/json";
	if (!body)
		return;
	enum ob_role role = token ? ob_guard_token(req, token) : OB_ROLE_NONE;
	if (role == OB_ROLE_NONE && auth->open)
		role = OB_ROLE_OPERATOR;
	json_decref(body);
	if (req->slowed) {
		ob_guard_slow(req);
		return;
	}
	if (role == OB_ROLE_NONE) {
		ob_request_fail(req, 401, "token", "this token is not known");
		return;
	}
	ob_auth_sign(auth, role, ob_clock_real_us(&ob_clock_system) + SESSION_S * INT64_C(1000000),
		     session);
	set_cookie(req, session, SESSION_S);
	ob_jout_begin(&req->out, NULL, '{');
	ob_jout_text(&req->out, "role", ob_str(ob_role_name(role)));
	ob_jout_end(&req->out, '}');
}

void ob_api_logout(struct ob_request *req)
{
	req->type = "application/json";
	set_cookie(req, "", 0);
	ob_jout_begin(&req->out, NULL, '{');
	ob_jout_end(&req->out, '}');
}
