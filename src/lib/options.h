/* SPDX-License-Identifier: MIT */
/* What the libraries of all databases make of struct outbox_options. */
#ifndef OB_LIB_OPTIONS_H
#define OB_LIB_OPTIONS_H

#include "base/layout.h"
#include "outbox/outbox.h"

/* The names that the options ask for; NULL: those that `outbox setup` makes. */
int ob_options_layout(const struct outbox_options *options, struct ob_layout *ret_layout,
		      struct ob_err *err);
/* Bits 1 << enum ob_column of the columns that are switched off. */
uint32_t ob_options_off_columns(const struct ob_layout *layout);

#endif
