/* SPDX-License-Identifier: MIT */
/* One JSON value on a line of its own, on standard output. */
#ifndef OB_CLI_OUT_JPRINT_H
#define OB_CLI_OUT_JPRINT_H

#include "base/jout.h"

/* Print it with a line break and make it empty again; an exit code. */
int ob_jout_print(struct ob_jout *j);

#endif
