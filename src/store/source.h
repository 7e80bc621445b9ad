/* SPDX-License-Identifier: MIT */
/*
 * A table of the application's own that is copied from: what every store asks of it, and the
 * words for what is wrong with it.
 */
#ifndef OB_STORE_SOURCE_H
#define OB_STORE_SOURCE_H

#include "base/layout.h"

enum { OB_SOURCE_TRIGGER_SIZE = OB_IDENT_SIZE + 8 };

/* The types that a column may have, by name, NULL at the end; a NULL list: any. */
struct ob_source_types {
	const char *const *id;                  /* with id_type uuid */
	const char *const *string;              /* with id_type string */
	const char *const *json, *const *bytes; /* by payload_type */
	const char *const *time;
};

/* May it be copied into our column `column`? `type` NULL: there is no such column. */
int ob_source_check(const struct ob_layout *layout, int column, const char *type,
		    const struct ob_source_types *types, struct ob_err *err);
int ob_source_no_table(const struct ob_layout *layout, struct ob_err *err);
/* There is no trigger, or it is not the one that this layout needs. */
int ob_source_no_trigger(const struct ob_layout *layout, struct ob_err *err);
/* Its name. */
void ob_source_trigger(const struct ob_layout *layout, char out[OB_SOURCE_TRIGGER_SIZE]);

#endif
