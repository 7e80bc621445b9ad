/* SPDX-License-Identifier: MIT */
/* Values of statements, as the drivers get them. */
#include "store/sql/sql.h"
#include "suite.h"

static struct ob_buf text = OB_BUF_INIT(1 << 16);

static const char *json(const struct ob_sql_table *table, bool flat)
{
	ob_buf_clear(&text);
	ob_sql_table_json(table, flat, &text);
	ck_assert(!text.failed);
	return ob_buf_str(&text);
}

OB_TEST(a_table_is_a_list_of_lists)
{
	struct ob_sql_table table = OB_SQL_TABLE("it");

	ck_assert_str_eq(json(&table, false), "[]");
	ob_sql_table_int(&table, INT64_MIN);
	ob_sql_table_str(&table, OB_STR("a\"b"));
	ob_sql_table_int(&table, 7);
	ob_sql_table_str(&table, OB_STR_NULL);
	ck_assert_str_eq(json(&table, false), "[[-9223372036854775808,\"a\\\"b\"],[7,null]]");
	ck_assert_uint_eq(ob_sql_table_rows(&table), 2);
	ob_sql_table_done(&table);
	ck_assert_uint_eq(ob_sql_table_rows(&table), 0);
}
OB_TEST_END

OB_TEST(one_column_is_a_list)
{
	const struct ob_uuid id = { { 0x01, 0xab, [15] = 0xff } };
	struct ob_sql_table numbers = OB_SQL_TABLE("i"), ids = OB_SQL_TABLE("u");

	for (int i = 0; i < 100; i++)
		ob_sql_table_int(&numbers, i % 2);
	ck_assert_uint_eq(ob_sql_table_rows(&numbers), 100);
	ck_assert_int_eq(strncmp(json(&numbers, true), "[0,1,0,", 7), 0);
	ob_sql_table_str(&ids, ob_sql_uuid_bytes(&id));
	ck_assert_str_eq(json(&ids, true), "[\"01ab00000000000000000000000000ff\"]");
	ob_sql_table_done(&numbers);
	ob_sql_table_done(&ids);
}
OB_TEST_END

OB_TEST(a_value_is_found_by_its_whole_name)
{
	const struct ob_sql_arg args[] = {
		OB_ARG_INT("id", 1),
		OB_ARG_TEXT("id_text", NULL),
		{ .name = NULL },
	};

	ck_assert_int_eq(ob_sql_find(args, "id = 3", 2)->number, 1);
	ck_assert_ptr_null(ob_sql_find(args, "id_text", 7)->text.p);
	ck_assert_ptr_null(ob_sql_find(args, "id_", 3));
	ck_assert(!ob_sql_has_raw(args));
	ck_assert(ob_sql_has_raw(OB_ARGS(OB_ARG_INT("a", 1), OB_ARG_RAW("b", "DESC"))));
}
OB_TEST_END

/* A time in a literal, and the second colon of a cast, are no parameters. */
OB_TEST(a_parameter_is_a_colon_and_a_name)
{
	ck_assert_uint_eq(ob_sql_name_length(":reader AND"), 6);
	ck_assert_uint_eq(ob_sql_name_length(":was_failed)"), 10);
	ck_assert_uint_eq(ob_sql_name_length(":00:00"), 0);
	ck_assert_uint_eq(ob_sql_name_length("::bigint"), 0);
}
OB_TEST_END

OB_TEST(a_duration_can_be_added_to_any_time)
{
	ck_assert_int_eq(ob_sql_us(3), 3000);
	ck_assert_int_eq(ob_sql_us(INT64_MAX), INT64_C(3155760000000000));
}
OB_TEST_END

OB_SUITE("sql_values", a_table_is_a_list_of_lists, one_column_is_a_list,
	 a_value_is_found_by_its_whole_name, a_parameter_is_a_colon_and_a_name,
	 a_duration_can_be_added_to_any_time)
