/* SPDX-License-Identifier: MIT */
/* The public options of a writer: names of the table, and what its checks must know. */
#ifndef OB_LIB_OPTIONS_H
#define OB_LIB_OPTIONS_H

#include "base/grow.h"
#include "base/layout.h"
#include "lib/driver.h"

/* The caller's options as ours, in *copy; *ret is that, or NULL where there are none. */
int ob_options_take(const void *options, size_t size, struct outbox_options *copy,
		    const struct outbox_options **ret, struct outbox_error *err);
/* Fill *ret_layout; `options` NULL: the default names. A bad name or an unknown flag is an error.
 */
int ob_options_layout(const struct outbox_options *options, struct ob_layout *ret_layout,
		      struct outbox_error *err);
struct ob_check_rules ob_options_rules(const struct outbox_options *options,
				       const struct ob_layout *layout);

#endif
