/* SPDX-License-Identifier: MIT */
/*
 * A receiver of webhooks for tests: a real server on a free port of 127.0.0.1, with a thread for
 * each connection. Records every request and answers as told, also as no server should.
 */
#ifndef OB_TESTS_HTTP_RECEIVER_H
#define OB_TESTS_HTTP_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>

struct http_receiver;

enum http_manner {
	HTTP_PLAIN,     /* status, headers, body */
	HTTP_CUT,       /* the request is read, and the connection closed without a word */
	HTTP_CUT_HEAD,  /* closed after the status line */
	HTTP_CUT_BODY,  /* closed in the middle of the body */
	HTTP_MUTE,      /* no answer, the connection stays */
	HTTP_SLOW_BODY, /* the head, then a byte of the body now and then, for ever */
	HTTP_ENDLESS,   /* the head, then a body without end, as fast as it goes */
	HTTP_LONG_HEAD, /* headers without end */
	HTTP_INTERIM,   /* a hundred "100 Continue" first */
	HTTP_BAD_CHUNK, /* chunks with a size that is none */
	HTTP_NO_HEAD,   /* a body alone, as in HTTP/0.9 */
	HTTP_EARLY,     /* the answer before the body is read, then closed */
};

/* What it answers from now on. */
struct http_answer {
	enum http_manner manner;
	int status;          /* 0: 200 */
	const char *headers; /* lines with CR LF, or NULL */
	const char *body;    /* or NULL */
	size_t times;        /* so many requests; then the answer is a plain 200. 0: for ever */
	const char *holding; /* a body without this text gets a plain 200; NULL: all the same */
};

struct http_request_seen {
	char *head; /* request line and headers, as they came, with a NUL */
	char *body; /* with a NUL */
	size_t body_size;
};

/* Listens when it returns. */
struct http_receiver *http_receiver_new(void);
/* Ends every connection and stops listening; what was seen stays. */
void http_receiver_stop(struct http_receiver *receiver);
/* Listens again, on the same port. */
void http_receiver_start(struct http_receiver *receiver);
void http_receiver_free(struct http_receiver *receiver);

int http_receiver_port(const struct http_receiver *receiver);
void http_receiver_answer(struct http_receiver *receiver, const struct http_answer *answer);
/* Requests and connections so far. */
size_t http_receiver_count(struct http_receiver *receiver);
size_t http_receiver_connections(struct http_receiver *receiver);
/* The request of that number, from 0; the receiver's. */
struct http_request_seen http_receiver_get(struct http_receiver *receiver, size_t at);
/*
 * The value of a header with its percent-encoding undone, as a new string with a NUL; NULL: not
 * there.
 */
char *http_header(const struct http_request_seen *seen, const char *name, size_t *ret_size);

#endif
