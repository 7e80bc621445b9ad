/* SPDX-License-Identifier: MIT */
/* Names of tables and columns, and the SQL templates that quote them. */
#include "base/layout.h"
#include "base/sqltmpl.h"
#include "suite.h"

#include <string.h>

static struct ob_layout layout;
static struct ob_err err;

#define LONG_39 "abcdefghijklmnopqrstuvwxyz_abcdefghijkl"
#define LONG_40 "abcdefghijklmnopqrstuvwxyz_abcdefghijklm"

OB_TEST(a_table_name_may_have_a_schema)
{
	static const char *const names[] = { "outbox", "schema.outbox", "OUTBOX_1",
					     "_x",     "a$1",           LONG_39 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ob_layout_default(&layout);
		ck_assert_msg(ob_layout_set_table(&layout, names[i], &err) == 0, "%s", err.msg);
	}
	ck_assert_int_eq(ob_layout_set_table(&layout, "schema.outbox", &err), 0);
	ck_assert_str_eq(layout.schema, "schema");
	ck_assert_str_eq(layout.table[OB_TABLE_outbox], "outbox");
	ck_assert_int_eq(ob_layout_set_table(&layout, "plain", &err), 0);
	ck_assert_str_eq(layout.schema, "");
}
OB_TEST_END

OB_TEST(a_hostile_table_name_is_refused_and_changes_nothing)
{
	static const char *const names[] = {
		"",         ";drop",         "-",    "..",       "outbox;",    ".outbox", "outbox.",
		"a.b.c",    "1outbox",       "$a",   "out box",  "out\"box",   "out'box", "out`box",
		"out\nbox", "outb\xC3\xB6x", "a-b",  "outbox--", "out/**/box", "a\\b",    " outbox",
		"outbox ",  "a.1b",          "1a.b", "{outbox}", LONG_40,
	};
	struct ob_layout before;

	ob_layout_default(&layout);
	before = layout;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		err.msg[0] = '\0';
		ck_assert_msg(ob_layout_set_table(&layout, names[i], &err) == OUTBOX_ECONFIG,
			      "accepted: %s", names[i]);
		ck_assert_int_eq(err.kind, OB_ERR_FATAL);
		ck_assert_ptr_null(strchr(err.msg, '\n'));
	}
	ck_assert(memcmp(&before, &layout, sizeof(layout)) == 0);
	(void)ob_layout_set_table(&layout, ";drop", &err);
	ck_assert_str_eq(err.msg,
			 "table ';drop' is not a name: use letters, digits, '_' and '$', not a "
			 "digit first, at most 63 characters");
	(void)ob_layout_set_table(&layout, LONG_40, &err);
	ck_assert_ptr_nonnull(strstr(err.msg, "at most 39 characters"));
}
OB_TEST_END

OB_TEST(an_identifier_has_at_most_63_characters)
{
	char name[70];

	memset(name, 'x', sizeof(name));
	ck_assert(ob_ident_valid(name, 63));
	ck_assert(!ob_ident_valid(name, 64));
	ck_assert(!ob_ident_valid(name, 0));
	ck_assert(!ob_ident_valid("a\0b", 3));
	ck_assert(ob_ident_valid("select", 6)); /* quoting makes it harmless */
}
OB_TEST_END

OB_TEST(companions_follow_the_table)
{
	ob_layout_default(&layout);
	ck_assert_str_eq(layout.table[OB_TABLE_workers], "outbox_workers");
	ck_assert_str_eq(layout.table[OB_TABLE_meta], "outbox_meta");
	ck_assert_int_eq(ob_layout_set_table(&layout, "shop.events", &err), 0);
	ck_assert_str_eq(layout.table[OB_TABLE_outbox], "events");
	ck_assert_str_eq(layout.table[OB_TABLE_workers], "events_workers");
	ck_assert_str_eq(layout.table[OB_TABLE_batches], "events_batches");
	ck_assert_str_eq(layout.table[OB_TABLE_throughput], "events_throughput");
	ck_assert_str_eq(layout.table[OB_TABLE_meta], "events_meta");
}
OB_TEST_END

OB_TEST(a_column_is_renamed_or_switched_off)
{
	ob_layout_default(&layout);
	ck_assert_str_eq(layout.column[OB_COL_event_type], "event_type");
	ck_assert_int_eq(ob_layout_set_column(&layout, "event_type", "type", &err), 0);
	ck_assert_str_eq(layout.column[OB_COL_event_type], "type");
	ck_assert_int_eq(ob_layout_set_column(&layout, "headers", NULL, &err), 0);
	ck_assert_str_eq(layout.column[OB_COL_headers], "");
	ck_assert_int_eq(ob_layout_check(&layout, &err), 0);

	ck_assert_int_eq(ob_layout_set_column(&layout, "payload", NULL, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "column 'payload' cannot be switched off");
	ck_assert_int_eq(ob_layout_set_column(&layout, "no_such", "x", &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "no column 'no_such'");
	ck_assert_int_eq(ob_layout_set_column(&layout, "payload", "a\"b", &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(ob_layout_set_column(&layout, "payload", "", &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(ob_layout_set_column(&layout, "payload", "a.b", &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(layout.column[OB_COL_payload], "payload");
}
OB_TEST_END

OB_TEST(two_columns_cannot_share_a_name_in_any_case)
{
	ob_layout_default(&layout);
	ck_assert_int_eq(ob_layout_set_column(&layout, "event_type", "Payload", &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg,
			 "columns 'event_type' and 'payload' have the same name 'Payload'");
	/* Two that are switched off are not two of one name. */
	ob_layout_default(&layout);
	ck_assert_int_eq(ob_layout_set_column(&layout, "headers", NULL, &err), 0);
	ck_assert_int_eq(ob_layout_set_column(&layout, "snapshot", NULL, &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), 0);
}
OB_TEST_END

OB_TEST(every_column_is_found_by_its_name)
{
	static const char *const names[] = {
#define X(name, optional) #name,
		OB_COLUMN_MAP(X)
#undef X
	};

	for (int c = 0; c < OB_COL_COUNT; c++)
		ck_assert_int_eq(ob_column_find(names[c], strlen(names[c])), c);
	ck_assert_int_eq(ob_column_find("id", 1), -1);
	ck_assert_int_eq(ob_column_find("", 0), -1);
}
OB_TEST_END

OB_TEST(a_table_to_copy_from_brings_debeziums_names)
{
	ob_layout_default(&layout);
	ck_assert_int_eq(ob_layout_set_source(&layout, "app.events", &err), 0);
	ck_assert_str_eq(layout.source.schema, "app");
	ck_assert_str_eq(layout.source.table, "events");
	ck_assert_str_eq(layout.source.column[OB_COL_aggregate_type], "aggregatetype");
	ck_assert_str_eq(layout.source.column[OB_COL_event_type], "type");
	ck_assert_str_eq(layout.source.column[OB_COL_headers], "");
	ck_assert_int_eq(ob_layout_set_source_column(&layout, "headers", "meta", &err), 0);
	ck_assert_str_eq(layout.source.column[OB_COL_headers], "meta");
	ck_assert_int_eq(ob_layout_set_source_column(&layout, "headers", NULL, &err), 0);
	ck_assert_str_eq(layout.source.column[OB_COL_headers], "");

	ck_assert_int_eq(ob_layout_set_source_column(&layout, "payload", NULL, &err),
			 OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "column 'payload' must be copied: give its name");
	ck_assert_int_eq(ob_layout_set_source_column(&layout, "status", "s", &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "column 'status' is not one that is copied");
	ck_assert_int_eq(ob_layout_set_source_column(&layout, "id", "a\"b", &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(ob_layout_set_source(&layout, "a;b", &err), OUTBOX_ECONFIG);
}
OB_TEST_END

OB_TEST(a_table_is_not_copied_onto_itself)
{
	ob_layout_default(&layout);
	ck_assert_int_eq(ob_layout_set_source(&layout, "Outbox", &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(ob_layout_set_source(&layout, "outbox_meta", &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(ob_layout_set_source(&layout, "app.outbox", &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), OUTBOX_ECONFIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "name that of our table too"));
	ck_assert_int_eq(ob_layout_set_table(&layout, "ours.outbox", &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), 0);
	ck_assert_int_eq(ob_layout_set_column(&layout, "headers", NULL, &err), 0);
	ck_assert_int_eq(ob_layout_set_source_column(&layout, "headers", "h", &err), 0);
	ck_assert_int_eq(ob_layout_check(&layout, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, "column 'headers' cannot be copied: it is switched off");
}
OB_TEST_END

static const struct ob_sqltmpl_number numbers[] = { { "count", 32 },
						    { "big", INT64_MIN },
						    { NULL, 0 } };

static void check_expands(const char *tmpl, char quote, const char *expected)
{
	struct ob_buf b = OB_BUF_INIT(1000);

	ck_assert_msg(ob_sqltmpl_expand(&b, tmpl, &layout, quote, numbers, &err) == 0, "%s: %s",
		      tmpl, err.msg);
	ck_assert_str_eq(ob_buf_str(&b), expected);
	ob_buf_done(&b);
}

static void check_fails(const char *tmpl)
{
	struct ob_buf b = OB_BUF_INIT(1000);

	err.msg[0] = '\0';
	ck_assert_msg(ob_sqltmpl_expand(&b, tmpl, &layout, '"', numbers, &err) == OUTBOX_EINVAL,
		      "expanded: %s", tmpl);
	ck_assert_int_eq(strncmp(err.msg, "SQL template: ", 14), 0);
	ob_buf_done(&b);
}

OB_TEST(tables_columns_names_and_numbers_expand_quoted)
{
	ob_layout_default(&layout);
	check_expands("", '"', "");
	check_expands("SELECT 1", '"', "SELECT 1");
	check_expands("SELECT {id} FROM {outbox}", '"', "SELECT \"id\" FROM \"outbox\"");
	check_expands("SELECT {id} FROM {outbox}", '`', "SELECT `id` FROM `outbox`");
	check_expands("{readers}{batches}{exceptions}{leases}", '`',
		      "`outbox_readers``outbox_batches``outbox_exceptions``outbox_leases`");
	check_expands("{workers}{throughput}{meta}", '`',
		      "`outbox_workers``outbox_throughput``outbox_meta`");
	check_expands("{name:ready}", '"', "\"outbox_ready\"");
	check_expands("% {=count} {=big}", '"', "% 32 -9223372036854775808");
	check_expands("'{{}' {{{id}}", '"', "'{}' {\"id\"}");
	ck_assert_int_eq(ob_layout_set_table(&layout, "shop.events", &err), 0);
	ck_assert_int_eq(ob_layout_set_column(&layout, "id", "select", &err), 0);
	check_expands("{outbox} {meta} {name:ready} {id}", '"',
		      "\"shop\".\"events\" \"shop\".\"events_meta\" \"events_ready\" \"select\"");
}
OB_TEST_END

OB_TEST(sections_depend_on_columns_and_flags)
{
	ob_layout_default(&layout);
	check_expands("a{?headers}, {headers}{/}b{!headers}none{/}", '"', "a, \"headers\"b");
	check_expands("{headers|NULL}", '"', "\"headers\"");
	check_expands(
		"{?+string_id}T{/}{!+string_id}B{/}{?+binary_payload}x{/}{!+binary_payload}y{/}",
		'"', "By");
	ck_assert_int_eq(ob_layout_set_column(&layout, "headers", NULL, &err), 0);
	layout.string_id = layout.binary_payload = true;
	check_expands("a{?headers}, {headers} {{ {=count}{/}b{!headers}none{/}", '"', "abnone");
	check_expands("{headers|NULL} {headers|}", '"', "NULL ");
	check_expands(
		"{?+string_id}T{/}{!+string_id}B{/}{?+binary_payload}x{/}{!+binary_payload}y{/}",
		'"', "Tx");
	check_fails("{headers}"); /* off, and nothing to stand in */
}
OB_TEST_END

OB_TEST(the_table_to_copy_from_expands_quoted)
{
	ob_layout_default(&layout);
	check_expands("{?source:headers}x{/}", '"', "");
	ck_assert_int_eq(ob_layout_set_source(&layout, "app.events", &err), 0);
	check_expands("{source} {at_source:copy} NEW.{source:event_type}", '`',
		      "`app`.`events` `app`.`outbox_copy` NEW.`type`");
	check_expands("{?source:headers}x{/}{!source:headers}y{/}{?source:id}z{/}", '"', "yz");
	check_fails("{source:headers}"); /* not copied */
	check_fails("{source:none}");
	check_fails("{?source:none}x{/}");
	check_fails("{source:}");
	check_fails("{at_source:}");
}
OB_TEST_END

OB_TEST(a_template_with_a_mistake_fails)
{
	static const char *const templates[] = {
		"{no_such}",
		"{}",
		"{",
		"{outbox",
		"{Outbox}",
		"{ id }",
		"{=none}",
		"{=}",
		"{?no}x{/}",
		"{?}x{/}",
		"{?+no}x{/}",
		"{!+}x{/}",
		"{/}",
		"{?headers}x",
		"{name:}",
		"{name}",
		"{no_such|x}",
		"{outbox|x}",
		"{?headers}{?snapshot}x{/}{/}",
	};

	ob_layout_default(&layout);
	for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
		check_fails(templates[i]);
}
OB_TEST_END

OB_TEST(a_full_buffer_is_an_error_not_half_a_statement)
{
	struct ob_buf b = OB_BUF_INIT(10);

	ob_layout_default(&layout);
	ck_assert_int_eq(ob_sqltmpl_expand(&b, "SELECT 1 FROM {outbox}", &layout, '"', NULL, &err),
			 OUTBOX_ENOMEM);
	ck_assert_int_eq(ob_sqltmpl_expand(&b, "{=count}", &layout, '"', NULL, &err),
			 OUTBOX_EINVAL);
	ob_buf_done(&b);
}
OB_TEST_END

OB_SUITE("layout", a_table_name_may_have_a_schema,
	 a_hostile_table_name_is_refused_and_changes_nothing,
	 an_identifier_has_at_most_63_characters, companions_follow_the_table,
	 a_column_is_renamed_or_switched_off, two_columns_cannot_share_a_name_in_any_case,
	 every_column_is_found_by_its_name, a_table_to_copy_from_brings_debeziums_names,
	 a_table_is_not_copied_onto_itself, the_table_to_copy_from_expands_quoted,
	 tables_columns_names_and_numbers_expand_quoted, sections_depend_on_columns_and_flags,
	 a_template_with_a_mistake_fails, a_full_buffer_is_an_error_not_half_a_statement)
