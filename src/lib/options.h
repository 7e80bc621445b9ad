/* SPDX-License-Identifier: MIT */
/* The public options of a writer: names of the table, and what its checks must know. */
#ifndef OB_LIB_OPTIONS_H
#define OB_LIB_OPTIONS_H

#include "base/layout.h"
#include "lib/driver.h"

/* Fill *ret_layout; `options` NULL: the default names. A bad name or an unknown flag is an error.
 */
int ob_options_layout(const struct outbox_options *options, struct ob_layout *ret_layout,
		      struct outbox_error *err);
struct ob_check_rules ob_options_rules(const struct outbox_options *options,
				       const struct ob_layout *layout);

#endif
