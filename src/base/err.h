/* SPDX-License-Identifier: MIT */
/* The one error type: what happened, and what the caller may do about it. */
#ifndef OB_BASE_ERR_H
#define OB_BASE_ERR_H

#include "outbox/outbox.h"

#include <stdbool.h>

/*
 * The place that meets the failure knows its kind (a SQLSTATE, an HTTP
 * status, a broker code); everything above only obeys.
 */
enum ob_err_kind {
	OB_ERR_NONE = 0,
	OB_ERR_DOWN,   /* the peer is away or refuses everyone: wait, charge no message */
	OB_ERR_RETRY,  /* about this message, may pass later: counts as an attempt */
	OB_ERR_REJECT, /* permanent for this message: dead-letter it */
	OB_ERR_LOST,   /* we no longer own the work: drop it, touch nothing */
	OB_ERR_FATAL,  /* permanent for this process: stop */
};

struct ob_err {
	int status; /* enum outbox_status, negative */
	enum ob_err_kind kind;
	bool hung_up;    /* DOWN: the peer was there, and ended the connection */
	bool timed_out;  /* the receiver had a time limit and was over it */
	char native[16]; /* SQLSTATE, HTTP status, errno name, broker code */
	char msg[512];   /* one lowercase line without a full stop */
};

#define OB_ERR_INIT ((struct ob_err){ 0 })

/* Fill *err and return `status`, so that a failure is one statement. */
int ob_err_set(struct ob_err *err, int status, enum ob_err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), nonnull(1)));

/* The same from errno: "what: No such file or directory", native "ENOENT". */
int ob_err_errno(struct ob_err *err, int status, enum ob_err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), nonnull(1)));

/* Put "what: " before the message already there; returns err->status. */
int ob_err_context(struct ob_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(1)));

/* "down", "retry", ... for logs and --json. */
const char *ob_err_kind_name(enum ob_err_kind kind);

#endif
