/* SPDX-License-Identifier: MIT */
/* What a push checks before any SQL, and what it hands to the driver: no database here. */
#include "base/layout.h"
#include "lib/driver.h"
#include "outbox/postgres.h"
#include "suite.h"

#include <stdlib.h>

/* A driver that keeps what it is given. */
struct fake {
	bool in_transaction;
	int result; /* of the insert */
	int inserts, closes;
	size_t count;
	struct ob_push_row rows[16];
};

static bool fake_in_transaction(void *driver)
{
	return ((struct fake *)driver)->in_transaction;
}

static int fake_insert(void *driver, const struct ob_push_row *rows, size_t count,
		       struct outbox_error *err)
{
	struct fake *fake = driver;

	fake->inserts++;
	fake->count = count;
	for (size_t i = 0; i < count && i < 16; i++)
		fake->rows[i] = rows[i];
	if (fake->result != 0)
		*err = (struct outbox_error){ OUTBOX_ESTORE, OUTBOX_NO_INDEX, "FAKE", "refused" };
	return fake->result;
}

static void fake_close(void *driver)
{
	((struct fake *)driver)->closes++;
}

static const struct ob_driver_ops fake_ops = {
	.abi = OB_DRIVER_ABI,
	.in_transaction = fake_in_transaction,
	.insert = fake_insert,
	.close = fake_close,
};

static struct fake fake;
static struct outbox_error error;

static outbox *open_fake(unsigned flags, uint32_t off_columns)
{
	struct ob_check_rules rules = { flags, off_columns };
	outbox *ob = NULL;

	fake = (struct fake){ .in_transaction = true };
	ck_assert_int_eq(outbox_driver_attach(&fake_ops, &fake, &rules, &ob, &error), 0);
	return ob;
}

#define GOOD .aggregate_type = "order", .event_type = "OrderPlaced", .payload = "{}"

/* Push one message through a driver with these rules; what came back. */
static int push_with(struct outbox_message message, unsigned flags, uint32_t off_columns)
{
	outbox *ob = open_fake(flags, off_columns);

	error = (struct outbox_error){ .index = 99 };
	int r = outbox_push(ob, &message, 1, NULL, &error);

	ck_assert_int_eq(fake.inserts, r == 0);
	if (r != 0) {
		ck_assert_int_eq(error.status, r);
		ck_assert_uint_eq(error.index, 0);
		ck_assert_str_ne(error.message, "");
	}
	outbox_close(ob);
	return r;
}

static int push(struct outbox_message message)
{
	return push_with(message, 0, 0);
}

/* `count` times `unit`, NUL-terminated; lives until the next call. */
static const char *repeat(const char *unit, size_t count)
{
	static char text[4096];
	size_t size = strlen(unit);

	ck_assert_uint_lt(size * count, sizeof(text));
	for (size_t i = 0; i < count; i++)
		memcpy(text + i * size, unit, size);
	text[size * count] = '\0';
	return text;
}

OB_TEST(a_good_message_reaches_the_driver)
{
	ck_assert_int_eq(push((struct outbox_message){ GOOD }), 0);
	ck_assert_uint_eq(fake.count, 1);
	ck_assert(ob_str_eq(fake.rows[0].payload, OB_STR("{}")));
	ck_assert_ptr_null(fake.rows[0].headers.p);
	ck_assert_int_eq(ob_uuid_version(&fake.rows[0].id), 7);
	ck_assert_int_eq(fake.closes, 1);
}
OB_TEST_END

OB_TEST(the_five_first_errors_are_distinct_and_come_in_order)
{
	struct outbox_message m = { .headers = "[1]", .payload = NULL };

	ck_assert_int_eq(push(m), OUTBOX_EAGGREGATETYPE);
	m.aggregate_type = "";
	ck_assert_int_eq(push(m), OUTBOX_EAGGREGATETYPE);
	m.aggregate_type = "order";
	ck_assert_int_eq(push(m), OUTBOX_EEVENTTYPE);
	m.event_type = "";
	ck_assert_int_eq(push(m), OUTBOX_EEVENTTYPE);
	m.event_type = "OrderPlaced";
	ck_assert_int_eq(push(m), OUTBOX_ENOPAYLOAD);
	m.payload = "{\"a\" 1}";
	ck_assert_int_eq(push(m), OUTBOX_EPAYLOADJSON);
	m.payload = "{}";
	ck_assert_int_eq(push(m), OUTBOX_EHEADERSJSON);
	m.headers = "{}";
	ck_assert_int_eq(push(m), 0);
}
OB_TEST_END

OB_TEST(a_json_error_says_where)
{
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .headers = "{\"a\" 1}" }),
			 OUTBOX_EHEADERSJSON);
	ck_assert_ptr_nonnull(strstr(error.message, "headers"));
	ck_assert_ptr_nonnull(strstr(error.message, "at byte 5"));
}
OB_TEST_END

OB_TEST(headers_must_be_an_object_and_snapshots_any_json)
{
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .headers = "[]" }),
			 OUTBOX_EHEADERSJSON);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .headers = "" }), OUTBOX_EHEADERSJSON);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .snapshot = "[1,2]" }), 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .snapshot = "[1,2" }),
			 OUTBOX_ESNAPSHOTJSON);
}
OB_TEST_END

OB_TEST(json_checks_are_switched_off_one_by_one)
{
	struct outbox_message payload = { GOOD }, headers = { GOOD }, snapshot = { GOOD };

	payload.payload = "no";
	headers.headers = "no";
	snapshot.snapshot = "no";
	ck_assert_int_eq(push_with(payload, OUTBOX_NO_PAYLOAD_CHECK, 0), 0);
	ck_assert_int_eq(push_with(snapshot, OUTBOX_NO_PAYLOAD_CHECK, 0), 0);
	ck_assert_int_eq(push_with(headers, OUTBOX_NO_PAYLOAD_CHECK, 0), OUTBOX_EHEADERSJSON);
	ck_assert_int_eq(push_with(headers, OUTBOX_NO_HEADERS_CHECK, 0), 0);
	ck_assert_int_eq(push_with(payload, OUTBOX_NO_HEADERS_CHECK, 0), OUTBOX_EPAYLOADJSON);
	ck_assert_int_eq(push_with(snapshot, OUTBOX_NO_HEADERS_CHECK, 0), OUTBOX_ESNAPSHOTJSON);
}
OB_TEST_END

OB_TEST(a_binary_payload_is_any_bytes)
{
	struct outbox_message m = { GOOD };

	m.payload = "\0\xff\0";
	m.payload_size = 3;
	ck_assert_int_eq(push_with(m, OUTBOX_BINARY_PAYLOAD, 0), 0);
	ck_assert_uint_eq(fake.rows[0].payload.n, 3);
	ck_assert_int_eq(push(m), OUTBOX_EPAYLOADJSON);
	m.payload = "";
	m.payload_size = 0;
	ck_assert_int_eq(push_with(m, OUTBOX_BINARY_PAYLOAD, 0), 0);
	ck_assert_ptr_nonnull(fake.rows[0].payload.p);
	ck_assert_int_eq(push(m), OUTBOX_EPAYLOADJSON);
}
OB_TEST_END

OB_TEST(a_nul_inside_json_is_not_valid)
{
	struct outbox_message m = { GOOD };

	m.payload = "{}\0";
	m.payload_size = 3;
	ck_assert_int_eq(push(m), OUTBOX_EPAYLOADJSON);
}
OB_TEST_END

OB_TEST(a_size_cuts_what_follows)
{
	struct outbox_message m = { GOOD, .headers = "{}garbage", .headers_size = 2 };

	m.payload = "[1] and more";
	m.payload_size = 3;
	ck_assert_int_eq(push(m), 0);
	ck_assert(ob_str_eq(fake.rows[0].payload, OB_STR("[1]")));
	ck_assert(ob_str_eq(fake.rows[0].headers, OB_STR("{}")));
}
OB_TEST_END

OB_TEST(a_tombstone_has_no_payload)
{
	struct outbox_message m = { GOOD, .flags = OUTBOX_TOMBSTONE };

	ck_assert_int_eq(push(m), OUTBOX_EINVAL);
	m.payload = NULL;
	ck_assert_int_eq(push(m), 0);
	ck_assert_ptr_null(fake.rows[0].payload.p);
}
OB_TEST_END

OB_TEST(ids_of_any_version_are_taken_and_bad_ones_refused)
{
	static const char *const good[] = {
		"00112233-4455-1677-8899-aabbccddeeff", /* version 1 */
		"00112233-4455-4677-8899-aabbccddeeff", "00112233-4455-7677-8899-aabbccddeeff",
		"ffffffff-ffff-ffff-ffff-ffffffffffff", "00112233445546778899AABBCCDDEEFF",
	};
	static const char *const wrong[] = {
		"",
		"nonsense",
		"00000000-0000-0000-0000-000000000000",
		"00112233-4455-4677-8899-aabbccddeef",
		"00112233-4455-4677-8899-aabbccddeeff0",
		"00112233_4455_4677_8899_aabbccddeeff",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_int_eq(push((struct outbox_message){ GOOD, .id = good[i] }), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(push((struct outbox_message){ GOOD, .id = wrong[i] }), OUTBOX_EID);
}
OB_TEST_END

OB_TEST(texts_are_bounded_in_characters)
{
	/* 255 characters of three bytes each fit, 256 of one byte do not. */
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .aggregate_id = repeat("€", 255) }),
			 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .aggregate_id = repeat("€", 256) }),
			 OUTBOX_ETOOLONG);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .target = repeat("x", 255) }), 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .target = repeat("x", 256) }),
			 OUTBOX_ETOOLONG);
	ck_assert_str_eq(error.message, "target is longer than 255 characters");
}
OB_TEST_END

OB_TEST(every_text_field_is_checked)
{
	const char *members[] = { "aggregate_type", "aggregate_id", "event_type",
				  "partition_key",  "target",       "correlation_id",
				  "causation_id" };
	const size_t offsets[] = {
		offsetof(struct outbox_message, aggregate_type),
		offsetof(struct outbox_message, aggregate_id),
		offsetof(struct outbox_message, event_type),
		offsetof(struct outbox_message, partition_key),
		offsetof(struct outbox_message, target),
		offsetof(struct outbox_message, correlation_id),
		offsetof(struct outbox_message, causation_id),
	};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct outbox_message m = { GOOD };
		const char **member = (const char **)(void *)((char *)&m + offsets[i]);

		*member = "bad \xff";
		ck_assert_int_eq(push(m), OUTBOX_ETEXT);
		ck_assert_ptr_nonnull(strstr(error.message, members[i]));
		*member = repeat("x", 256);
		ck_assert_int_eq(push(m), OUTBOX_ETOOLONG);
		ck_assert_ptr_nonnull(strstr(error.message, members[i]));
		*member = repeat("x", 255);
		ck_assert_int_eq(push(m), 0);
	}
}
OB_TEST_END

OB_TEST(documents_are_bounded_in_bytes)
{
	size_t max = OUTBOX_PAYLOAD_MAX;
	char *text = malloc(max + 2);

	ck_assert_ptr_nonnull(text);
	memset(text, ' ', max + 1);
	text[0] = '{';
	text[1] = '}';
	text[max + 1] = '\0';
	struct outbox_message m = { GOOD };
	m.payload = text;
	m.payload_size = max;
	ck_assert_int_eq(push(m), 0);
	m.payload_size = 0; /* up to its NUL: one too many */
	ck_assert_int_eq(push(m), OUTBOX_ETOOLONG);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .headers = text }), OUTBOX_ETOOLONG);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .snapshot = text }), OUTBOX_ETOOLONG);
	ck_assert_int_eq(push_with(m, OUTBOX_BINARY_PAYLOAD, 0), OUTBOX_ETOOLONG);
	free(text);
}
OB_TEST_END

OB_TEST(numbers_have_ranges)
{
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .priority = 32767 }), 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .priority = -32768 }), 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .priority = 32768 }), OUTBOX_EINVAL);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .priority = -32769 }), OUTBOX_EINVAL);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .sequence_number = -1 }),
			 OUTBOX_EINVAL);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .sequence_number = INT64_MAX }), 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .revision = -1 }), OUTBOX_EINVAL);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .flags = 2 }), OUTBOX_EINVAL);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .delay_ms = OUTBOX_DELAY_MAX }), 0);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .delay_ms = UINT64_MAX }),
			 OUTBOX_EINVAL);
	/* Before 1970 is fine; nanoseconds by mistake are not. */
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .occurred_at_us = -1 }), 0);
	ck_assert_int_eq(
		push((struct outbox_message){ GOOD, .occurred_at_us = 1700000000000000000 }),
		OUTBOX_EINVAL);
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .target = "" }), OUTBOX_EINVAL);
}
OB_TEST_END

OB_TEST(a_field_whose_column_is_off_is_refused_by_name)
{
	static const struct {
		enum ob_column column;
		const char *name;
		struct outbox_message message;
	} cases[] = {
		{ OB_COL_revision, "revision", { GOOD, .revision = 2 } },
		{ OB_COL_sequence_number, "sequence_number", { GOOD, .sequence_number = 1 } },
		{ OB_COL_headers, "headers", { GOOD, .headers = "{}" } },
		{ OB_COL_snapshot, "snapshot", { GOOD, .snapshot = "{}" } },
		{ OB_COL_correlation_id, "correlation_id", { GOOD, .correlation_id = "c" } },
		{ OB_COL_causation_id, "causation_id", { GOOD, .causation_id = "c" } },
		{ OB_COL_partition_key, "partition_key", { GOOD, .partition_key = "k" } },
		{ OB_COL_occurred_at, "occurred_at", { GOOD, .occurred_at_us = 1 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t off = 1u << cases[i].column;

		ck_assert_int_eq(push_with(cases[i].message, 0, off), OUTBOX_EINVAL);
		ck_assert_ptr_nonnull(strstr(error.message, cases[i].name));
		ck_assert_int_eq(push_with(cases[i].message, 0, ~off), 0);
		ck_assert_int_eq(push_with((struct outbox_message){ GOOD }, 0, off), 0);
	}
}
OB_TEST_END

OB_TEST(a_fault_in_one_of_many_names_its_index_and_stores_nothing)
{
	for (size_t at = 0; at < 12; at++) {
		struct outbox_message messages[12];
		struct outbox_id ids[12] = { { "untouched" } };
		char prefix[32];
		outbox *ob = open_fake(0, 0);

		for (size_t i = 0; i < 12; i++)
			messages[i] = (struct outbox_message){ GOOD };
		messages[at].payload = "{\"abcdefghijklm\" 1}";
		ck_assert_int_eq(outbox_push(ob, messages, 12, ids, &error), OUTBOX_EPAYLOADJSON);
		ck_assert_uint_eq(error.index, at);
		(void)snprintf(prefix, sizeof(prefix), "message %zu: payload ", at);
		ck_assert_int_eq(strncmp(error.message, prefix, strlen(prefix)), 0);
		ck_assert_int_eq(fake.inserts, 0);
		ck_assert_str_eq(ids[0].text, "untouched");
		outbox_close(ob);
	}
}
OB_TEST_END

OB_TEST(ids_are_made_in_order_and_returned_as_text)
{
	struct outbox_message messages[10];
	struct outbox_id ids[10];
	outbox *ob = open_fake(0, 0);

	for (size_t i = 0; i < 10; i++)
		messages[i] = (struct outbox_message){ GOOD };
	messages[4].id = "00112233445546778899AABBCCDDEEFF";
	ck_assert_int_eq(outbox_push(ob, messages, 10, ids, &error), 0);
	ck_assert_str_eq(ids[4].text, "00112233-4455-4677-8899-aabbccddeeff");
	for (size_t i = 0; i < 10; i++) {
		struct ob_uuid id;

		ck_assert(ob_uuid_parse(ob_str(ids[i].text), &id));
		ck_assert(ob_uuid_eq(&id, &fake.rows[i].id));
		if (i == 0 || i == 4 || i == 5)
			continue;
		ck_assert_int_eq(ob_uuid_version(&id), 7);
		ck_assert_int_lt(strcmp(ids[i - 1].text, ids[i].text), 0);
	}
	ck_assert_int_lt(strcmp(ids[3].text, ids[5].text), 0);
	outbox_close(ob);
}
OB_TEST_END

OB_TEST(without_a_transaction_a_push_is_refused)
{
	outbox *ob = open_fake(0, 0);
	struct outbox_message m = { GOOD };

	fake.in_transaction = false;
	ck_assert_int_eq(outbox_push(ob, &m, 1, NULL, &error), OUTBOX_ENOTRANSACTION);
	ck_assert_uint_eq(error.index, OUTBOX_NO_INDEX);
	ck_assert_int_eq(fake.inserts, 0);
	/* Nothing to store needs no transaction. */
	ck_assert_int_eq(outbox_push(ob, NULL, 0, NULL, &error), 0);
	ck_assert_int_eq(fake.inserts, 0);
	outbox_close(ob);
}
OB_TEST_END

OB_TEST(wrong_calls_are_errors_and_not_crashes)
{
	struct outbox_message m = { GOOD };
	outbox *ob = open_fake(0, 0);

	ck_assert_int_eq(outbox_push(NULL, &m, 1, NULL, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_push(ob, NULL, 1, NULL, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_push(ob, &m, OUTBOX_BATCH_MAX + 1, NULL, &error), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_push(NULL, &m, 1, NULL, NULL), OUTBOX_EINVAL);
	ck_assert_int_eq(outbox_push(ob, &m, 1, NULL, NULL), 0);
	m.payload = "no";
	ck_assert_int_eq(outbox_push(ob, &m, 1, NULL, NULL), OUTBOX_EPAYLOADJSON);
	outbox_close(ob);
	outbox_close(NULL);
}
OB_TEST_END

OB_TEST(a_refusal_by_the_table_is_explained_by_the_check_that_was_off)
{
	struct outbox_message messages[2] = { { GOOD }, { GOOD } };
	outbox *ob = open_fake(OUTBOX_NO_PAYLOAD_CHECK | OUTBOX_NO_HEADERS_CHECK, 0);

	fake.result = OB_DRIVER_CHECK;
	ck_assert_int_eq(outbox_push(ob, messages, 2, NULL, &error), OUTBOX_ESTORE);
	ck_assert_str_eq(error.message, "refused");
	messages[1].headers = "no";
	ck_assert_int_eq(outbox_push(ob, messages, 2, NULL, &error), OUTBOX_EHEADERSJSON);
	ck_assert_uint_eq(error.index, 1);
	ck_assert_str_eq(error.native, "FAKE");
	outbox_close(ob);
}
OB_TEST_END

OB_TEST(an_error_is_one_short_line_of_utf8)
{
	/* Broken and halved characters and a newline, longer than any line may be. */
	ck_assert_int_eq(push((struct outbox_message){ GOOD, .id = "a\nb\xff\xe2\x82 c" }),
			 OUTBOX_EID);
	ck_assert_str_eq(error.message, "id 'a b??? c' is not a UUID");
}
OB_TEST_END

OB_TEST(a_driver_of_another_version_is_refused)
{
	struct ob_driver_ops other = fake_ops;
	struct ob_check_rules rules = { 0, 0 };
	outbox *ob = NULL;

	other.abi++;
	ck_assert_int_eq(outbox_driver_attach(&other, &fake, &rules, &ob, &error), OUTBOX_EINVAL);
	ck_assert_ptr_null(ob);
}
OB_TEST_END

OB_TEST(a_size_that_no_message_has_is_refused)
{
	struct outbox_message message = { GOOD };
	outbox *ob = open_fake(0, 0);

	ck_assert_int_eq(outbox_push_sized(ob, &message, 1, sizeof(message) + 8, NULL, &error),
			 OUTBOX_EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "built with a newer outbox"));
	ck_assert_int_eq(outbox_push_sized(ob, &message, 1, sizeof(message) - 8, NULL, &error),
			 OUTBOX_EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "pass its sizeof"));
	ck_assert_uint_eq(error.index, OUTBOX_NO_INDEX);
	ck_assert_int_eq(fake.inserts, 0);
	outbox_close(ob);
}
OB_TEST_END

OB_TEST(only_postgresql_gives_out_statements)
{
	const struct outbox_postgres_statement *s = NULL;
	struct outbox_message message = { GOOD };
	outbox *ob = open_fake(0, 0);

	ck_assert_int_eq(outbox_postgres_statement(ob, &message, 1, NULL, &s, &error),
			 OUTBOX_EINVAL);
	ck_assert_str_eq(error.message, "this outbox is not on PostgreSQL");
	outbox_close(ob);
}
OB_TEST_END

OB_TEST(every_status_has_a_name_and_a_text)
{
#define X(name, value, text) \
	ck_assert_str_eq(outbox_status_name(OUTBOX_##name), #name); \
	ck_assert_str_eq(outbox_strerror(value), text);
	OUTBOX_STATUS_MAP(X)
#undef X
	ck_assert_str_eq(outbox_status_name(-1000), "UNKNOWN");
	ck_assert_str_eq(outbox_strerror(1), "unknown status");
}
OB_TEST_END

OB_TEST(the_header_and_the_build_agree_on_the_version)
{
	ck_assert_str_eq(outbox_version(), OUTBOX_VERSION);
	ck_assert_str_eq(outbox_version(), OB_BUILD_VERSION);
	char text[16];
	(void)snprintf(text, sizeof(text), "%d.%d.%d", OUTBOX_VERSION_NUMBER / 10000,
		       OUTBOX_VERSION_NUMBER / 100 % 100, OUTBOX_VERSION_NUMBER % 100);
	ck_assert_str_eq(text, OUTBOX_VERSION);
}
OB_TEST_END

OB_TEST(new_ids_increase)
{
	struct outbox_id last = outbox_id_new();

	for (int i = 0; i < 1000; i++) {
		struct outbox_id next = outbox_id_new();

		ck_assert_int_lt(strcmp(last.text, next.text), 0);
		ck_assert_int_eq(next.text[14], '7');
		last = next;
	}
}
OB_TEST_END

OB_SUITE("push", a_good_message_reaches_the_driver,
	 the_five_first_errors_are_distinct_and_come_in_order, a_json_error_says_where,
	 headers_must_be_an_object_and_snapshots_any_json, json_checks_are_switched_off_one_by_one,
	 a_binary_payload_is_any_bytes, a_nul_inside_json_is_not_valid, a_size_cuts_what_follows,
	 a_tombstone_has_no_payload, ids_of_any_version_are_taken_and_bad_ones_refused,
	 texts_are_bounded_in_characters, every_text_field_is_checked,
	 documents_are_bounded_in_bytes, numbers_have_ranges,
	 a_field_whose_column_is_off_is_refused_by_name,
	 a_fault_in_one_of_many_names_its_index_and_stores_nothing,
	 ids_are_made_in_order_and_returned_as_text, without_a_transaction_a_push_is_refused,
	 wrong_calls_are_errors_and_not_crashes,
	 a_refusal_by_the_table_is_explained_by_the_check_that_was_off,
	 an_error_is_one_short_line_of_utf8, a_driver_of_another_version_is_refused,
	 a_size_that_no_message_has_is_refused, only_postgresql_gives_out_statements,
	 every_status_has_a_name_and_a_text, the_header_and_the_build_agree_on_the_version,
	 new_ids_increase)
