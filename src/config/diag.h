/* SPDX-License-Identifier: MIT */
/* All that is wrong with a file, collected and shown in the order of the file. */
#ifndef OB_CONFIG_DIAG_H
#define OB_CONFIG_DIAG_H

#include "base/yaml.h"

enum {
	OB_DIAGS_SHOWN = 50,
	OB_DIAGS_KEPT = 1000, /* the others are only counted */
};

struct ob_diag;

struct ob_diags {
	struct ob_diag *items;
	size_t kept, count;
	struct ob_arena arena;
	bool failed;    /* out of memory: some are lost */
	char text[512]; /* the one being written; longer ones are cut */
};

void ob_diags_init(struct ob_diags *diags);
void ob_diags_done(struct ob_diags *diags);
/* Add one. Line 0: about the file as a whole. */
void ob_diags_add(struct ob_diags *diags, struct ob_yaml_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Append "name:line:col: text\n" of the first OB_DIAGS_SHOWN by place, then "name: and N more\n".
 */
void ob_diags_print(struct ob_diags *diags, const char *name, struct ob_buf *out);

#endif
