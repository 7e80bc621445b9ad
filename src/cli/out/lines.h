/* SPDX-License-Identifier: MIT */
/* Lines of a stream, none longer than a limit: what getline() does not promise. */
#ifndef OB_CLI_OUT_LINES_H
#define OB_CLI_OUT_LINES_H

#include "base/buf.h"
#include "base/err.h"

struct ob_lines {
	int fd;
	const char *name; /* for messages: "stdin" */
	size_t max;       /* bytes of a line */
	uint64_t number;  /* of the line returned last, from 1 */
	char *data;       /* what is read but not yet returned */
	size_t start, len, cap;
	bool end;
};

/* `name` is borrowed. */
void ob_lines_init(struct ob_lines *lines, int fd, const char *name, size_t max);
/*
 * The next line without its "\n" or "\r\n"; valid until the next call. Returns 1, or
 * 0 at the end. A last line needs no line break. A longer line or a failing
 * read is an error that says which line.
 */
int ob_lines_next(struct ob_lines *lines, struct ob_str *ret_line, struct ob_err *err);
void ob_lines_done(struct ob_lines *lines);

#endif
