/* SPDX-License-Identifier: MIT */
/*
 * A sink around another that lets one call fail, for tests: open(), send() and
 * poll() are counted together, and the n-th fails before or after the inner
 * call. A fault is a lost connection: all that is unconfirmed, the outcomes just
 * received included, comes out as DOWN. It has the capabilities of the inner sink.
 */
#ifndef OB_DOUBLES_FAULT_SINK_H
#define OB_DOUBLES_FAULT_SINK_H

#include "sink/sink.h"

/* The caller's; may be changed between any two calls. */
struct ob_sink_fault {
	uint32_t at;           /* which call fails, from 1; 0: none */
	bool after;            /* the inner call happens, its result is lost */
	enum ob_err_kind kind; /* of a call that fails before: NONE means DOWN */
	uint32_t calls;        /* counted so far */
	bool fired;
};

/* Wrap `inner` and own it, also when this fails. On success the caller owns *ret_sink. */
int ob_sink_fault_take(struct ob_sink *inner, struct ob_sink_fault *fault,
		       struct ob_sink **ret_sink, struct ob_err *err);

#endif
