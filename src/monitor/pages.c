/* SPDX-License-Identifier: MIT */
/* The files of the pages, and the page itself with the data of its first paint in it. */
#include "monitor/assets.h"
#include "monitor/routes.h"
#include "monitor/state.h"

#include <stdio.h>

void ob_asset_answer(struct ob_request *req)
{
	const struct ob_asset *asset = ob_asset_find(req->path + 1);
	const char *accept = ob_request_header(req, "Accept-Encoding");
	const char *have = ob_request_header(req, "If-None-Match");

	if (!asset) {
		ob_request_fail(req, 404, "not_found", "there is nothing at %.80s", req->path);
		return;
	}
	bool packed = accept && strstr(accept, "gzip");
	(void)snprintf(req->etag, sizeof(req->etag), "\"%s%s\"", asset->etag, packed ? "-gz" : "");
	req->type = asset->type;
	if (have && strcmp(have, req->etag) == 0) {
		req->status = 304;
		return;
	}
	req->encoding = packed ? "gzip" : NULL;
	ob_buf_add(&req->out.b,
		   packed ? (struct ob_str){ (const char *)asset->gzip, asset->gzip_size }
			  : (struct ob_str){ (const char *)asset->raw, asset->size });
}

/* ---- pages ----------------------------------------------------------- */

/* What each page asks for first. */
static const struct {
	const char *path;
	ob_route_fn *answer;
} firsts[] = {
	{ "/", ob_api_throughput },         { "/failures", ob_api_failures },
	{ "/messages", ob_api_messages },   { "/messages/*", ob_api_message },
	{ "/keys", ob_api_keys },           { "/relays", ob_api_partitions },
	{ "/doctor", ob_api_doctor },       { "/audit", ob_api_audit },
	{ "/streams", ob_api_streams },     { "/stream", ob_api_stream },
	{ "/consumers", ob_api_consumers },
};

/* Its answer, or null: the page asks again and shows what is wrong. */
static void first_data(struct ob_request *req, struct ob_buf *out)
{
	size_t before = out->len;

	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		if (strcmp(firsts[i].path, req->route->path) != 0)
			continue;
		firsts[i].answer(req);
		if (req->status == 200)
			ob_buf_add(out, ob_buf_view(&req->out.b));
	}
	if (out->len == before)
		ob_buf_adds(out, "null");
	ob_buf_clear(&req->out.b);
	req->out.comma = false;
	req->status = 200;
}

/* In a script element only "<" could end it. */
static void add_script(struct ob_buf *out, struct ob_str json)
{
	ob_buf_adds(out, "<script type=\"application/json\" id=\"data\">");
	for (size_t i = 0; i < json.n; i++) {
		if (json.p[i] == '<')
			ob_buf_adds(out, "\\u003c");
		else
			ob_buf_addc(out, json.p[i]);
	}
	ob_buf_adds(out, "</script>");
}

static void page_data(struct ob_request *req, struct ob_buf *out)
{
	struct ob_jout state = OB_JOUT_INIT;
	bool known = req->role >= req->route->role;

	ob_buf_adds(out, "{\"state\":");
	if (known)
		ob_state_json(&state, req->monitor, req->role);
	else
		ob_buf_adds(out, "null");
	ob_buf_add(out, ob_buf_view(&state.b));
	ob_buf_adds(out, ",\"page\":");
	if (known)
		first_data(req, out);
	else
		ob_buf_adds(out, "null");
	ob_buf_addc(out, '}');
	ob_jout_done(&state);
}

/* The text between two places of the file. */
static void add_part(struct ob_buf *out, const char *from, const char *to)
{
	ob_buf_add(out, (struct ob_str){ from, (size_t)(to - from) });
}

void ob_page_answer(struct ob_request *req)
{
	static const char base_mark[] = "<!--base-->", data_mark[] = "<!--data-->";
	const struct ob_asset *asset = ob_asset_find("index.html");
	const char *html = (const char *)asset->raw, *end = html + asset->size;
	const char *base = memmem(html, asset->size, base_mark, sizeof(base_mark) - 1);
	const char *data = memmem(html, asset->size, data_mark, sizeof(data_mark) - 1);
	struct ob_buf json = OB_BUF_INIT((size_t)768 << 20);

	page_data(req, &json);
	if (base && data && base < data) {
		struct ob_buf *out = &req->out.b;

		add_part(out, html, base);
		ob_buf_addf(out, "<base href=\"%s/\">", req->monitor->conf->base_path);
		add_part(out, base + sizeof(base_mark) - 1, data);
		add_script(out, ob_buf_view(&json));
		add_part(out, data + sizeof(data_mark) - 1, end);
	}
	ob_buf_done(&json);
	req->type = "text/html; charset=utf-8";
	req->attachment = NULL;
	req->status = req->role >= req->route->role ? 200 : 401;
}
