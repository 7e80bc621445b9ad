/* SPDX-License-Identifier: MIT */
/*
 * What a process that consumes tells of itself: with each renewal of its lease it writes this as
 * one JSON object into the consumer's database, where commands and monitors on other machines read
 * it. Times are microseconds since 1970 by the clock of its host.
 */
#ifndef OB_BASE_CONSUMER_REPORT_H
#define OB_BASE_CONSUMER_REPORT_H

#include "base/jout.h"
#include "base/worker_report.h"

enum { OB_CONSUMER_REPORT_BYTES = OB_WORKER_REPORT_BYTES };

/* Counters since the start, for logs, --json, metrics and reports. */
#define OB_CONSUME_COUNTER_MAP(X) \
	X(read, "entries that the source handed out") \
	X(handled, "messages that the handler has done") \
	X(duplicates, "copies of messages that had been handled before") \
	X(failed, "attempts that failed") \
	X(parked, "messages that were parked") \
	X(retried, "attempts at parked messages") \
	X(dead, "messages that were given up") \
	X(unreadable, "entries that are no messages") \
	X(lost, "entries that the source has lost") \
	X(down, "deliveries that met a handler that was down; they cost no attempt") \
	X(acked, "entries that were acknowledged") \
	X(letters, "dead letters sent to their destination") \
	X(takeovers, "times that the lease was taken") \
	X(errors, "calls of the source or the database that failed")

struct ob_consumer_report {
	char version[OB_WORKER_NAME];
	char source[OB_WORKER_TEXT], handler[OB_WORKER_TEXT]; /* descriptions, for people */
	char dedup[16], ordering[16];                         /* as in the configuration */
	bool owner;  /* it has the lease; with ordering: none the others work too */
	double rate; /* messages handled a second, since the report before */
#define X(name, help) uint64_t name;
	OB_CONSUME_COUNTER_MAP(X)
#undef X
	int64_t lag, oldest_us; /* of the source: messages; the age of the oldest; -1: unknown */
	uint64_t in_memory, in_flight;
	uint64_t parked_now, dead_now, held_keys; /* rows in the database; keys that they hold */
	bool full;                                /* no room to park: the source is paused */
	char breaker[16];                         /* "closed", "half_open", "open" */
	bool alarm;                               /* open because most keys fail */
	int64_t breaker_since_us;                 /* when it left "closed"; 0: it is */
	int64_t probe_us; /* when the next message is tried; 0: none waits */
	char breaker_why[OB_WORKER_TEXT];
	char source_state[16]; /* "up", "down"; "": nothing was read yet */
	int64_t source_since_us;
	char source_why[OB_WORKER_TEXT]; /* while it is down */
	char handler_state[16];          /* "up", "down"; "": nothing was handed over yet */
	int64_t handler_since_us;
	char handler_why[OB_WORKER_TEXT];
	char last_error[OB_WORKER_TEXT];
	int64_t last_error_us; /* 0: there was none */
};

/* Append it; at most OB_CONSUMER_REPORT_BYTES. Texts must be valid lines: ob_worker_text(). */
void ob_consumer_report_write(const struct ob_consumer_report *report, struct ob_buf *out);
/* False: it is none. Whatever the text holds is safe to show as one line. */
bool ob_consumer_report_read(struct ob_consumer_report *ret, struct ob_str text);
/* Append its members for programs to the open object. */
void ob_consumer_report_json(struct ob_jout *j, const struct ob_consumer_report *report);

#endif
