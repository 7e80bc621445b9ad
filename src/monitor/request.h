/* SPDX-License-Identifier: MIT */
/* One request and the answer to it, for those who answer. */
#ifndef OB_MONITOR_REQUEST_H
#define OB_MONITOR_REQUEST_H

#include "base/jout.h"
#include "monitor/impl.h"

#include <jansson.h>

struct MHD_Connection;
struct MHD_Response;
struct ob_route;

enum { OB_PATH_WORD = 80, OB_BODY_MAX = 64 << 10, OB_WHO = 80 };

struct ob_request {
	struct ob_monitor *monitor;
	struct MHD_Connection *connection;
	struct ob_peer *link;
	const struct ob_route *route;
	const char *path;        /* below base_path; borrowed */
	char word[OB_PATH_WORD]; /* what stands for the * of the route */
	enum ob_role role;
	bool bearer, secure;
	bool slowed; /* its token was not looked at: too many from there were wrong */
	char who[OB_WHO], origin[OB_WHO]; /* for the audit: role or user; address */
	struct ob_buf body;
	bool too_large, begun;

	/* the answer */
	unsigned status;
	const char *type; /* of the content */
	struct ob_jout out;
	struct MHD_Response *ready; /* made by the route itself: `out` is not used */
	char etag[80];              /* set: may be kept by the browser, which asks again */
	char cookie[OB_SESSION_SIZE + 256];
	const char *attachment; /* the name of a file to save it as */
	const char *encoding;   /* of the content; NULL: none */
};

/* An answer that is an error: {"error":{"code":...,"message":...}}. */
void ob_request_fail(struct ob_request *req, unsigned status, const char *code, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));
/* The same for an error of a store or of what was asked; `broken` as ob_pool_give() has it. */
void ob_request_fail_err(struct ob_request *req, const struct ob_err *err);

/* A parameter of the URL; NULL: it is not there, or empty. */
const char *ob_request_arg(const struct ob_request *req, const char *name);
const char *ob_request_header(const struct ob_request *req, const char *name);
/* A number of the URL in min..max, or `dflt`; false: answered. */
bool ob_request_int(struct ob_request *req, const char *name, int64_t min, int64_t max,
		    int64_t dflt, int64_t *ret);
/* The body as an object; NULL: answered. The caller frees it. */
json_t *ob_request_json(struct ob_request *req);

/* A connection to the store that the request names; NULL: answered. */
struct ob_asked {
	struct ob_pool *pool;
	struct ob_store *store;
	bool broken;
};
bool ob_request_store(struct ob_request *req, const char *name, struct ob_asked *ret);
/* Answer with the error, unless it is 0; gives the connection back. */
void ob_request_end(struct ob_request *req, struct ob_asked *asked, int r,
		    const struct ob_err *err);
/* What this role sees of payloads. */
enum ob_payloads ob_request_payloads(const struct ob_request *req);

/* guard.c: who asks, and may they? False: answered. */
bool ob_guard(struct ob_request *req, const char *method);
/* The role of a token that came with the request; NONE: it is wrong, or `slowed`. */
enum ob_role ob_guard_token(struct ob_request *req, const char *token);
/* Answer 429: too many wrong tokens came from there. */
void ob_guard_slow(struct ob_request *req);
/* Without a check of the role: only who it is. */
void ob_guard_identify(struct ob_request *req);

#endif
