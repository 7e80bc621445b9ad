/* SPDX-License-Identifier: MIT */
/* What those who answer need: parameters, a store, errors. */
#include "monitor/request.h"

#include "base/utf8.h"
#include "monitor/routes.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_CHARS = 1000, MESSAGE_BYTES = 8192 };

void ob_request_fail(struct ob_request *req, unsigned status, const char *code, const char *fmt,
		     ...)
{
	struct ob_buf safe = OB_BUF_INIT(MESSAGE_BYTES);
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ob_utf8_sanitize(&safe, ob_str(text), MESSAGE_CHARS);
	ob_buf_clear(&req->out.b);
	req->out.comma = false;
	ob_jout_begin(&req->out, NULL, '{');
	ob_jout_begin(&req->out, "error", '{');
	ob_jout_text(&req->out, "code", ob_str(code));
	ob_jout_text(&req->out, "message", ob_buf_view(&safe));
	ob_jout_end(&req->out, '}');
	ob_jout_end(&req->out, '}');
	req->status = status;
	req->type = "application/json";
	req->attachment = NULL;
	ob_buf_done(&safe);
}

void ob_request_fail_err(struct ob_request *req, const struct ob_err *err)
{
	if (err->status == OUTBOX_ENOTFOUND)
		ob_request_fail(req, 404, "not_found", "%s", err->msg);
	else if (err->status == OUTBOX_EINVAL)
		ob_request_fail(req, 400, "invalid", "%s", err->msg);
	else
		ob_request_fail(req, 503, "store", "%s", err->msg);
}

const char *ob_request_arg(const struct ob_request *req, const char *name)
{
	const char *value =
		MHD_lookup_connection_value(req->connection, MHD_GET_ARGUMENT_KIND, name);

	return value && *value ? value : NULL;
}

const char *ob_request_header(const struct ob_request *req, const char *name)
{
	return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

bool ob_request_int(struct ob_request *req, const char *name, int64_t min, int64_t max,
		    int64_t dflt, int64_t *ret)
{
	const char *text = ob_request_arg(req, name);
	size_t n = text ? strspn(text, "0123456789") : 0;

	*ret = dflt;
	if (!text)
		return true;
	bool number = n > 0 && n <= 18 && !text[n];
	if (number)
		*ret = strtoll(text, NULL, 10);
	if (number && *ret >= min && *ret <= max)
		return true;
	ob_request_fail(req, 400, "invalid", "%s: '%.40s' is no number from %lld to %lld", name,
			text, (long long)min, (long long)max);
	return false;
}

json_t *ob_request_json(struct ob_request *req)
{
	json_error_t error;
	json_t *root =
		json_loadb(ob_buf_str(&req->body), req->body.len, JSON_REJECT_DUPLICATES, &error);

	if (json_is_object(root))
		return root;
	json_decref(root);
	ob_request_fail(req, 400, "invalid", "the body is no JSON object");
	return NULL;
}

static void unknown_store(struct ob_request *req, const char *name)
{
	const struct ob_watch *watch = req->monitor->watch;
	struct ob_buf names = OB_BUF_INIT(1000);

	for (size_t i = 0; i < ob_watch_count(watch); i++)
		ob_buf_addf(&names, "%s%s", i ? ", " : "", req->monitor->pools[i].entry->name);
	if (name)
		ob_request_fail(req, 404, "not_found", "no store '%.80s'; there is %s", name,
				ob_buf_str(&names));
	else
		ob_request_fail(req, 400, "invalid",
				"several stores: choose one of %s with store=", ob_buf_str(&names));
	ob_buf_done(&names);
}

bool ob_request_store(struct ob_request *req, const char *name, struct ob_asked *ret)
{
	struct ob_err err = OB_ERR_INIT;

	*ret = (struct ob_asked){ .pool = ob_monitor_pool(req->monitor, name) };
	if (!ret->pool) {
		unknown_store(req, name);
		return false;
	}
	if (ob_pool_take(ret->pool, &ret->store, &err) < 0) {
		ob_request_fail_err(req, &err);
		return false;
	}
	return true;
}

void ob_request_end(struct ob_request *req, struct ob_asked *asked, int r, const struct ob_err *err)
{
	bool asks_wrong = r == OUTBOX_ENOTFOUND || r == OUTBOX_EINVAL;

	if (r < 0)
		ob_request_fail_err(req, err);
	ob_pool_give(asked->pool, asked->store, asked->broken || (r < 0 && !asks_wrong));
}

enum ob_payloads ob_request_payloads(const struct ob_request *req)
{
	const struct ob_config_monitor *conf = req->monitor->conf;

	return (enum ob_payloads)conf
		->payloads[req->role == OB_ROLE_OPERATOR ? OB_MONITOR_OPERATOR : OB_MONITOR_VIEWER];
}
