/* SPDX-License-Identifier: MIT */
/*
 * SQL templates: the only thing that builds SQL from configuration.
 *
 *   {outbox} {workers} ...   a table, quoted, with its schema
 *   {event_type}             a column, quoted; an error when it is switched off
 *   {headers|NULL}           the column, or the text behind the bar when it is off
 *   {?headers}, x{/}         the text up to {/} only when the column is on
 *   {!headers}, x{/}         ... only when it is off
 *   {name:ready}             the outbox table's bare name with _ready, quoted: for indexes
 *   {bare}                   ... without anything behind it
 *   {fn:push}                ... with its schema before it: for functions
 *   {source}                 the table that is copied from, quoted, with its schema
 *   {source:headers}         the column that is copied into ours; {?source:headers}..{/} as above
 *   {at_source:copy}         {name:copy} with the schema of that table before it
 *   {=partition_count}       a number given by the caller
 *   {>columns}               another template as a whole; tools/embed-sql puts it in
 *   {?+string_id}..{/}       ... only when the layout flag (string_id, binary_payload,
 *                            read_snapshot) is set;
 *                            {!+string_id}..{/} when it is not
 *
 * Sections do not nest. A brace is written {{ . An unknown name is a bug of
 * ours and fails with OUTBOX_EINVAL; the template test expands all of them.
 */
#ifndef OB_BASE_SQLTMPL_H
#define OB_BASE_SQLTMPL_H

#include "base/buf.h"
#include "base/layout.h"

struct ob_sqltmpl_number {
	const char *name;
	int64_t value;
};

/* `quote` is '"' or '`'. Appends to *out. `numbers` ends with a NULL name; may be NULL. */
int ob_sqltmpl_expand(struct ob_buf *out, const char *tmpl, const struct ob_layout *layout,
		      char quote, const struct ob_sqltmpl_number *numbers, struct ob_err *err);

#endif
