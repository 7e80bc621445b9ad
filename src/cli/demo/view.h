/* SPDX-License-Identifier: MIT */
/* What `outbox demo` shows, as pure functions of what there is to show. */
#ifndef OB_CLI_DEMO_VIEW_H
#define OB_CLI_DEMO_VIEW_H

#include "cli/demo/audit.h"
#include "cli/out/rate.h"

enum { OB_DEMO_PROCESSES = 16 };

enum ob_demo_role {
	OB_DEMO_WORKS,
	OB_DEMO_PAUSED,  /* SIGSTOP, past the end of its lease */
	OB_DEMO_RESUMED, /* it goes on, and finds its partitions with another */
	OB_DEMO_LEAVES,  /* told to stop */
};

struct ob_demo_worker {
	int32_t pid;
	enum ob_demo_role role;
	uint32_t partitions;
};

struct ob_demo_view {
	int64_t elapsed_us, total_us;
	const char *phase; /* what is done now: "taking orders" */
	bool chaos;
	uint64_t committed, rolled_back, delivered, waiting;
	int64_t oldest_us; /* age of the oldest that waits; 0: none */
	struct ob_rate rate;
	struct ob_demo_worker workers[OB_DEMO_PROCESSES];
	size_t worker_count;
	uint32_t killed, paused;
	const char *news; /* the last mishap, or "" */
};

struct ob_demo_style {
	size_t width;
	bool colour, ascii;
};

/* What this is, in a few lines, before it begins. */
void ob_demo_draw_intro(bool chaos, const struct ob_demo_style *style, struct ob_buf *out);
/* The live view; returns how many lines it has. */
size_t ob_demo_draw(const struct ob_demo_view *view, const struct ob_demo_style *style,
		    struct ob_buf *out);
/* The same as one line, for a log. */
void ob_demo_draw_line(const struct ob_demo_view *view, struct ob_buf *out);

struct ob_demo_verdict {
	const struct ob_audit *audit;
	bool chaos;
	uint32_t killed, paused;
	uint64_t duplicates_max;
};

bool ob_demo_holds(const struct ob_demo_verdict *verdict);
/* The table of the audit and what it means. */
void ob_demo_draw_verdict(const struct ob_demo_verdict *verdict, const struct ob_demo_style *style,
			  struct ob_buf *out);

#endif
