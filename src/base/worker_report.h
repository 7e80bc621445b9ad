/* SPDX-License-Identifier: MIT */
/*
 * What a worker tells of itself with its heartbeat: its sink, its errors, how fast it is. One JSON
 * object, so that versions that differ can read each other: what is unknown is passed over, what is
 * missing is 0 or "". Times are microseconds since 1970 by the clock of the worker's host.
 */
#ifndef OB_BASE_WORKER_REPORT_H
#define OB_BASE_WORKER_REPORT_H

#include "base/buf.h"
#include "base/jout.h"

enum { OB_WORKER_TEXT = 160, OB_WORKER_NAME = 64, OB_WORKER_REPORT_BYTES = 4000 };

struct ob_worker_error {
	int64_t at_us;  /* the last time; 0: there was none */
	uint32_t times; /* how often it came, one after the other */
	char kind[16], text[OB_WORKER_TEXT];
};

struct ob_worker_report {
	char version[OB_WORKER_NAME];
	char sink_type[OB_WORKER_NAME], sink_name[OB_WORKER_NAME], sink_text[OB_WORKER_TEXT];
	char breaker[16];         /* "closed", "half_open", "open"; "": not known */
	bool alarm;               /* open because most keys fail */
	int64_t breaker_since_us; /* when it left "closed"; 0: it is */
	int64_t probe_us;         /* when the next message is tried; 0: none waits */
	char breaker_why[OB_WORKER_TEXT];
	struct ob_worker_error sink_error, store_error;
	double rate; /* messages published a second, since the beat before */
	uint64_t in_flight, queued, unsettled;
	char waits[16]; /* what the queued ones wait for, a word of OB_WHY_MAP; "": nothing */
	/* What retention did last, of the worker whose relay does it; at 0: nothing yet. */
	int64_t retained_us;
	uint64_t retained_rows, retained_parts; /* of that pass */
	char retained_held[OB_WORKER_NAME];     /* the reader that kept rows; "": none */
};

/* Append it; at most OB_WORKER_REPORT_BYTES. Texts are cut and made one valid line. */
void ob_worker_report_write(const struct ob_worker_report *state, struct ob_buf *out);
/* False: it is none (*ret is zero then). Whatever the text holds is safe to show as one line. */
bool ob_worker_report_read(struct ob_worker_report *ret, struct ob_str text);
/* Is the sink down, as far as that is known? */
bool ob_worker_report_is_down(const struct ob_worker_report *state);
/* Append it for programs, as the member "state"; `known` false: null. */
void ob_worker_report_json(struct ob_jout *j, const struct ob_worker_report *state, bool known);
/* Copy a text: sanitised, cut between two characters with an ellipsis. */
void ob_worker_text(char *out, size_t size, struct ob_str text);

#endif
