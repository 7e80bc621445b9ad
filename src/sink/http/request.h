/* SPDX-License-Identifier: MIT */
/* One POST of the http sink: what goes out, what comes back, and what that means. */
#ifndef OB_SINK_HTTP_REQUEST_H
#define OB_SINK_HTTP_REQUEST_H

#include "sink/http/batch.h"
#include "sink/http/sign.h"
#include "sink/sink.h"

#include <curl/curl.h>

enum {
	OB_HTTP_READ_MAX = 64 << 10, /* of a response's head, and of its body */
	OB_HTTP_HEAD_MAX = 32 << 10, /* of our own headers: receivers take less, rather than more */
	OB_HTTP_EXCERPT = 160,       /* bytes of a response that go into an error */
	OB_HTTP_ADDRESS_SIZE = 64,
	OB_HTTP_GONE = 410,
	OB_HTTP_GONE_S = 300, /* between two questions whether it is still so */
};

/* What every request of a sink has in common; outlives the requests. */
struct ob_http_target {
	const char *url, *authorization;            /* the second may be NULL */
	const char *ca_file, *cert_file, *key_file; /* NULL: none */
	int64_t connect_timeout_ms, timeout_ms;
	bool allow_private;
	bool gone_is_down;   /* 410 is about the endpoint, not about the message */
	bool null_tombstone; /* the body of a tombstone is null, not empty */
	uint32_t batch_max;  /* messages of a request */
	struct ob_http_signer signer;
};

enum ob_http_state {
	OB_HTTP_FREE,
	OB_HTTP_FILLING, /* its batch takes more */
	OB_HTTP_ACTIVE,  /* in the multi */
	OB_HTTP_OVER,    /* its outcome waits to be fetched */
};

/* All zero is an unused one; it is used for one batch after another. */
struct ob_http_request {
	CURL *easy;
	const struct ob_http_target *target;
	struct curl_slist *headers;
	enum ob_http_state state;
	struct ob_http_batch batch;
	struct ob_err outcome; /* when it is over */

	/* the response */
	int status;            /* of the last status line; 0: none */
	bool head_done;        /* the head of the final response is complete */
	int64_t retry_after_s; /* in seconds, as the receiver has it; 0: no such header */
	size_t head_bytes, body_bytes;
	char excerpt[OB_HTTP_EXCERPT];
	size_t excerpt_size;
	char detail[CURL_ERROR_SIZE];       /* the library's words for a failure */
	char refused[OB_HTTP_ADDRESS_SIZE]; /* the last address that we did not connect to */
};

/* Make the handle, once. DOWN when memory is short, FATAL when the library lacks something. */
int ob_http_request_init(struct ob_http_request *request, const struct ob_http_target *target,
			 struct ob_err *err);
void ob_http_request_done(struct ob_http_request *request);

/*
 * Set it up for a message; the body is borrowed. REJECT when its headers are too
 * large, DOWN when memory is short.
 */
int ob_http_request_fill(struct ob_http_request *request, const struct ob_delivery *delivery,
			 int64_t now_s, struct ob_err *err);
/* The same for the piece of its batch. */
int ob_http_request_fill_piece(struct ob_http_request *request, int64_t now_s, struct ob_err *err);
/*
 * It is over with that result: the outcome. The one place that knows what statuses and the
 * library's codes mean. *ret_wait_s is how long the receiver wants to be left alone; 0: no such
 * wish.
 */
void ob_http_request_judge(const struct ob_http_request *request, CURLcode result,
			   struct ob_err *ret_outcome, int64_t *ret_wait_s);

/*
 * The headers of a message, without those of HTTP itself; see docs/sinks/http.md. Names and
 * values are percent-encoded where they could be more than text: nothing in a message
 * can end a header. The caller frees the list. REJECT when too large.
 */
int ob_http_head_make(const struct ob_http_target *target, const struct ob_delivery *delivery,
		      struct ob_str body, int64_t now_s, struct curl_slist **ret_list,
		      struct ob_err *err);
/* Those of a piece of a batch: what the messages say of themselves is in the body. */
int ob_http_head_make_piece(const struct ob_http_target *target, struct ob_http_batch *batch,
			    int64_t now_s, struct curl_slist **ret_list, struct ob_err *err);

#endif
