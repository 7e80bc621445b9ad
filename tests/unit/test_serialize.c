/* SPDX-License-Identifier: MIT */
/* Structs to JSON and back; lists of serializers and translators: no database here. */
#include "outbox/serialize.h"

#include "lib/driver.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>

static struct outbox_error error;

/* ---- structs --------------------------------------------------------- */

struct line {
	const char *sku;
	uint16_t pieces;
};

struct money {
	double amount;
	char currency[4];
};

struct placed {
	const char *customer, *note;
	int8_t small;
	int64_t total;
	uint64_t big;
	double rate;
	bool paid, has_discount;
	int32_t discount;
	int64_t at_us;
	unsigned char order[16];
	struct money price;
	struct line *lines;
	size_t line_count;
	int32_t *numbers;
	size_t number_count;
	double point[2];
	const char *extra;
};

static const struct outbox_field line_fields[] = {
	OUTBOX_FIELD(struct line, sku, OUTBOX_TEXT),
	OUTBOX_FIELD(struct line, pieces, OUTBOX_UNSIGNED),
	OUTBOX_FIELDS_END,
};
static const struct outbox_field money_fields[] = {
	OUTBOX_FIELD(struct money, amount, OUTBOX_DOUBLE),
	OUTBOX_FIELD(struct money, currency, OUTBOX_CHARS),
	OUTBOX_FIELDS_END,
};
static const struct outbox_field placed_fields[] = {
	OUTBOX_FIELD(struct placed, customer, OUTBOX_TEXT),
	OUTBOX_FIELD_OR_NULL(struct placed, note, OUTBOX_TEXT),
	OUTBOX_FIELD(struct placed, small, OUTBOX_INTEGER),
	OUTBOX_FIELD(struct placed, total, OUTBOX_INTEGER),
	OUTBOX_FIELD(struct placed, big, OUTBOX_UNSIGNED),
	OUTBOX_FIELD(struct placed, rate, OUTBOX_DOUBLE),
	OUTBOX_FIELD(struct placed, paid, OUTBOX_BOOLEAN),
	OUTBOX_FIELD_IF(struct placed, discount, OUTBOX_INTEGER, has_discount),
	OUTBOX_FIELD(struct placed, at_us, OUTBOX_TIME),
	OUTBOX_FIELD(struct placed, order, OUTBOX_UUID),
	OUTBOX_FIELD_STRUCT(struct placed, price, money_fields),
	OUTBOX_FIELD_STRUCT_LIST(struct placed, lines, line_fields, line_count),
	OUTBOX_FIELD_LIST(struct placed, numbers, OUTBOX_INTEGER, number_count),
	OUTBOX_FIELD_ARRAY(struct placed, point, OUTBOX_DOUBLE),
	OUTBOX_FIELD(struct placed, extra, OUTBOX_JSON),
	OUTBOX_FIELDS_END,
};

static struct placed sample(void)
{
	static struct line lines[] = { { "A\"1", 2 }, { NULL, 65535 } };
	static int32_t numbers[] = { -1, 0, 7 };

	return (struct placed){
		.customer = "J\xc3\xb6rg",
		.small = -128,
		.total = INT64_MIN,
		.big = UINT64_MAX,
		.rate = 0.1,
		.paid = true,
		.at_us = INT64_C(1777636800123456),
		.order = { 0x01, 0x95, 0xa1 },
		.price = { 1e300, "EUR" },
		.lines = lines,
		.line_count = 2,
		.numbers = numbers,
		.number_count = 3,
		.point = { 1.5, -2 },
		.extra = "{\"a\": [1]}",
	};
}

static const char whole[] =
	"{\"customer\":\"J\xc3\xb6rg\",\"small\":-128,\"total\":-9223372036854775808,"
	"\"big\":18446744073709551615,\"rate\":0.1,\"paid\":true,"
	"\"at_us\":\"2026-05-01T12:00:00.123456Z\","
	"\"order\":\"0195a100-0000-0000-0000-000000000000\","
	"\"price\":{\"amount\":1e+300,\"currency\":\"EUR\"},"
	"\"lines\":[{\"sku\":\"A\\\"1\",\"pieces\":2},{\"sku\":null,\"pieces\":65535}],"
	"\"numbers\":[-1,0,7],\"point\":[1.5,-2],\"extra\":{\"a\": [1]}}";

static int write_struct(const struct placed *p, char *out, size_t size)
{
	outbox_text *text = outbox_text_new();
	int r = outbox_struct_write(placed_fields, p, text, &error);

	(void)snprintf(out, size, "%s", outbox_text_get(text, NULL));
	outbox_text_free(text);
	return r;
}

OB_TEST(a_struct_becomes_an_object_by_its_table)
{
	struct placed p = sample();
	char text[1024];

	ck_assert_int_eq(write_struct(&p, text, sizeof(text)), 0);
	ck_assert_str_eq(text, whole);
	p.note = "n";
	p.has_discount = true;
	p.discount = 5;
	ck_assert_int_eq(write_struct(&p, text, sizeof(text)), 0);
	ck_assert_ptr_nonnull(strstr(text, "\"note\":\"n\",\"small\""));
	ck_assert_ptr_nonnull(strstr(text, "\"paid\":true,\"discount\":5,"));
}
OB_TEST_END

OB_TEST(an_object_becomes_the_same_struct)
{
	outbox_text *memory = outbox_text_new();
	struct placed p = { 0 };
	char text[1024];

	ck_assert_int_eq(outbox_struct_read(placed_fields, whole, 0, &p, memory, &error), 0);
	ck_assert_str_eq(p.customer, "J\xc3\xb6rg");
	ck_assert_ptr_null(p.note);
	ck_assert_int_eq(p.total, INT64_MIN);
	ck_assert_uint_eq(p.line_count, 2);
	ck_assert_str_eq(p.lines[0].sku, "A\"1");
	ck_assert_ptr_null(p.lines[1].sku);
	ck_assert_str_eq(p.price.currency, "EUR");
	ck_assert_int_eq(write_struct(&p, text, sizeof(text)), 0);
	ck_assert_str_eq(text, whole);
	outbox_text_free(memory);
}
OB_TEST_END

static void expect_unread(const char *json, const char *why)
{
	static const struct outbox_field some[] = {
		OUTBOX_FIELD(struct money, amount, OUTBOX_DOUBLE),
		OUTBOX_FIELD(struct money, currency, OUTBOX_CHARS),
		OUTBOX_FIELDS_END,
	};
	outbox_text *memory = outbox_text_new();
	struct money m = { 0 };

	ck_assert_int_eq(outbox_struct_read(some, json, 0, &m, memory, &error),
			 OUTBOX_EPAYLOADJSON);
	ck_assert_msg(strstr(error.message, why) != NULL, "%s: %s", json, error.message);
	outbox_text_free(memory);
}

OB_TEST(what_does_not_fit_is_refused_with_the_members_name)
{
	struct line l = { 0 };
	outbox_text *memory = outbox_text_new();

	expect_unread("{\"amount\": 1}", "member 'currency' is missing");
	expect_unread("{\"amount\": \"1\", \"currency\": \"EUR\"}",
		      "member 'amount' is not a number");
	expect_unread("{\"amount\": 1, \"currency\": \"EURO\"}", "longer than its place");
	expect_unread("{\"amount\": 1, \"currency\": 7}", "member 'currency' is not a string");
	expect_unread("{\"amount\": 1, ", "no JSON object");
	expect_unread("[1]", "no JSON object");
	expect_unread(NULL, "no JSON object");
	ck_assert_int_eq(outbox_struct_read(line_fields,
					    "{\"sku\":\"a\",\"pieces\":65536,\"new\":[]}", 0, &l,
					    memory, &error),
			 OUTBOX_EPAYLOADJSON);
	ck_assert_int_eq(outbox_struct_read(line_fields, "{\"sku\":\"a\",\"pieces\":-1}", 0, &l,
					    memory, &error),
			 OUTBOX_EPAYLOADJSON);
	/* An unknown member is passed over. */
	ck_assert_int_eq(outbox_struct_read(line_fields,
					    "{\"sku\":\"a\",\"pieces\":3,\"new\":{\"x\":[1,2]}}", 0,
					    &l, memory, &error),
			 0);
	ck_assert_int_eq(l.pieces, 3);
	outbox_text_free(memory);
}
OB_TEST_END

OB_TEST(what_json_does_not_have_is_refused_with_the_members_name)
{
	struct placed p = sample();
	char text[1024];

	p.rate = NAN;
	ck_assert_int_eq(write_struct(&p, text, sizeof(text)), OUTBOX_EPAYLOADJSON);
	ck_assert_ptr_nonnull(strstr(error.message, "member 'rate' is not a finite number"));
	p = sample();
	p.customer = "\xff";
	ck_assert_int_eq(write_struct(&p, text, sizeof(text)), OUTBOX_EPAYLOADJSON);
	ck_assert_ptr_nonnull(strstr(error.message, "member 'customer'"));
	p = sample();
	p.extra = "{";
	ck_assert_int_eq(write_struct(&p, text, sizeof(text)), OUTBOX_EPAYLOADJSON);
	ck_assert_ptr_nonnull(strstr(error.message, "member 'extra' is not valid JSON"));
}
OB_TEST_END

OB_TEST(every_double_reads_back_as_itself)
{
	static const double values[] = { 0.1,
					 1.0 / 3,
					 123456789.123,
					 5e-324,
					 1e22,
					 -0.0,
					 2.5,
					 1.7976931348623157e308,
					 1e-7,
					 100000000.0,
					 0.30000000000000004 };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		outbox_text *text = outbox_text_new();
		struct money m = { .amount = values[i], .currency = "X" }, back = { 0 };

		ck_assert_int_eq(outbox_struct_write(money_fields, &m, text, &error), 0);
		ck_assert_int_eq(outbox_struct_read(money_fields, outbox_text_get(text, NULL), 0,
						    &back, text, &error),
				 0);
		ck_assert_int_eq(memcmp(&m.amount, &back.amount, sizeof(double)), 0);
		outbox_text_free(text);
	}
}
OB_TEST_END

/* ---- lists ----------------------------------------------------------- */

static struct {
	int inserts;
	size_t count;
	char payload[4][256], snapshot[4][256], type[4][64];
} kept;

static bool fake_in_transaction(void *driver)
{
	(void)driver;
	return true;
}

static int fake_insert(void *driver, const struct ob_push_row *rows, size_t count,
		       struct outbox_error *err)
{
	(void)driver;
	(void)err;
	kept.inserts++;
	kept.count = count;
	for (size_t i = 0; i < count && i < 4; i++) {
		(void)snprintf(kept.payload[i], sizeof(kept.payload[i]), "%.*s",
			       (int)rows[i].payload.n, rows[i].payload.p);
		(void)snprintf(kept.snapshot[i], sizeof(kept.snapshot[i]), "%.*s",
			       (int)rows[i].snapshot.n,
			       rows[i].snapshot.p ? rows[i].snapshot.p : "");
		(void)snprintf(kept.type[i], sizeof(kept.type[i]), "%s",
			       rows[i].message->event_type);
	}
	return 0;
}

static void fake_close(void *driver)
{
	(void)driver;
}

static const struct ob_driver_ops fake_ops = {
	.abi = OB_DRIVER_ABI,
	.in_transaction = fake_in_transaction,
	.insert = fake_insert,
	.close = fake_close,
};

static const struct outbox_shape shapes[] = { { "Line", line_fields }, { NULL, NULL } };
static const struct outbox_serializer by_struct = OUTBOX_STRUCT_SERIALIZER(shapes);
static const struct outbox_serializer raw = OUTBOX_RAW_SERIALIZER;
static const struct outbox_serializer state = OUTBOX_STATE_SERIALIZER(money_fields);

static int push(const struct outbox_serializers *how, const struct outbox_record *records,
		size_t count)
{
	const struct ob_check_rules rules = { 0 };
	outbox *ob = NULL;

	memset(&kept, 0, sizeof(kept));
	ck_assert_int_eq(outbox_driver_attach(&fake_ops, NULL, &rules, &ob, &error), 0);
	int r = outbox_push_records(ob, how, records, count, NULL, &error);
	outbox_close(ob);
	return r;
}

static struct outbox_record record(const char *type, const void *event)
{
	return (struct outbox_record){
		.message = { .aggregate_type = "order", .event_type = type },
		.event = event,
	};
}

OB_TEST(the_first_serializer_that_supports_a_record_is_used)
{
	const struct outbox_serializer *const list[] = { &by_struct, &raw, NULL };
	const struct outbox_serializers how = { .payload = list };
	const struct line l = { "x", 1 };
	const struct outbox_record records[] = { record("Line", &l), record("Other", "[1, 2]") };

	ck_assert_int_eq(push(&how, records, 2), 0);
	ck_assert_str_eq(kept.payload[0], "{\"sku\":\"x\",\"pieces\":1}");
	ck_assert_str_eq(kept.payload[1], "[1, 2]");
	const struct outbox_serializer *const turned[] = { &raw, &by_struct, NULL };
	const struct outbox_serializers other = { .payload = turned };
	const struct outbox_record text = record("Line", "{}");
	ck_assert_int_eq(push(&other, &text, 1), 0);
	ck_assert_str_eq(kept.payload[0], "{}");
}
OB_TEST_END

OB_TEST(an_event_that_no_serializer_supports_is_named)
{
	const struct outbox_serializer *const list[] = { &by_struct, NULL };
	const struct outbox_serializers how = { .payload = list };
	const struct line l = { "x", 1 };
	const struct outbox_record records[] = { record("Line", &l), record("Unheard", "{}") };

	ck_assert_int_eq(push(&how, records, 2), OUTBOX_ESERIALIZER);
	ck_assert_ptr_nonnull(strstr(error.message, "'Unheard'"));
	ck_assert_uint_eq(error.index, 1);
	ck_assert_int_eq(kept.inserts, 0);
}
OB_TEST_END

OB_TEST(output_that_is_not_json_is_refused_before_any_insert)
{
	const struct outbox_serializer *const list[] = { &raw, NULL };
	const struct outbox_serializers how = { .payload = list };
	const struct outbox_record bad = record("Broken", "{\"a\":");

	ck_assert_int_eq(push(&how, &bad, 1), OUTBOX_EPAYLOADJSON);
	ck_assert_ptr_nonnull(strstr(error.message, "event 'Broken', raw"));
	ck_assert_int_eq(kept.inserts, 0);
}
OB_TEST_END

static int write_nonsense(const struct outbox_serializer *self, const struct outbox_record *r,
			  outbox_text *out, struct outbox_error *err)
{
	(void)self;
	(void)r;
	(void)err;
	outbox_text_add(out, "nonsense", 8);
	return 0;
}

OB_TEST(the_snapshot_has_a_list_of_its_own)
{
	const struct outbox_serializer nonsense = { "nonsense", NULL, write_nonsense, NULL };
	const struct outbox_serializer *const list[] = { &raw, NULL },
					      *const states[] = { &state, NULL },
					      *const broken[] = { &nonsense, NULL };
	struct outbox_serializers how = { .payload = list, .snapshot = states };
	const struct money m = { 2, "EUR" };
	struct outbox_record records[] = { record("E", "{}"), record("F", "{}") };

	records[1].state = &m;
	ck_assert_int_eq(push(&how, records, 2), 0);
	ck_assert_str_eq(kept.snapshot[0], "");
	ck_assert_str_eq(kept.snapshot[1], "{\"amount\":2,\"currency\":\"EUR\"}");
	how.snapshot = broken;
	ck_assert_int_eq(push(&how, records, 2), OUTBOX_ESNAPSHOTJSON);
	ck_assert_ptr_nonnull(strstr(error.message, "event 'F', nonsense"));
	ck_assert_int_eq(kept.inserts, 0);
}
OB_TEST_END

static int takes_internal(const struct outbox_translator *self, const struct outbox_record *r)
{
	(void)self;
	return strncmp(r->message.event_type, "internal.", 9) == 0;
}

static int make_public(const struct outbox_translator *self, const struct outbox_record *r,
		       struct outbox_record *ret, outbox_text *memory, struct outbox_error *err)
{
	char *text = outbox_text_alloc(memory, 64);

	(void)self;
	(void)err;
	(void)snprintf(text, 64, "{\"of\":\"%s\"}", r->message.event_type);
	ret->message.event_type = "Public";
	ret->event = text;
	return 0;
}

static int refuse(const struct outbox_translator *self, const struct outbox_record *r,
		  struct outbox_record *ret, outbox_text *memory, struct outbox_error *err)
{
	(void)self;
	(void)r;
	(void)ret;
	(void)memory;
	(void)err;
	return OUTBOX_EINVAL;
}

OB_TEST(a_translator_turns_a_domain_event_into_the_one_that_is_stored)
{
	const struct outbox_translator translator = { "public", takes_internal, make_public, NULL };
	const struct outbox_translator refuses = { "refuses", takes_internal, refuse, NULL };
	const struct outbox_translator *const both[] = { &translator, &refuses, NULL },
					      *const failing[] = { &refuses, NULL };
	const struct outbox_serializer *const list[] = { &raw, NULL };
	struct outbox_serializers how = { .payload = list, .translators = both };
	const struct outbox_record records[] = { record("internal.Moved", "{}"),
						 record("Kept", "{}") };

	ck_assert_int_eq(push(&how, records, 2), 0);
	ck_assert_str_eq(kept.type[0], "Public");
	ck_assert_str_eq(kept.payload[0], "{\"of\":\"internal.Moved\"}");
	ck_assert_str_eq(kept.type[1], "Kept");
	how.translators = failing;
	ck_assert_int_eq(push(&how, records, 2), OUTBOX_EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "event 'internal.Moved', refuses"));
	ck_assert_int_eq(kept.inserts, 0);
}
OB_TEST_END

OB_SUITE("serialize", a_struct_becomes_an_object_by_its_table, an_object_becomes_the_same_struct,
	 what_does_not_fit_is_refused_with_the_members_name,
	 what_json_does_not_have_is_refused_with_the_members_name,
	 every_double_reads_back_as_itself, the_first_serializer_that_supports_a_record_is_used,
	 an_event_that_no_serializer_supports_is_named,
	 output_that_is_not_json_is_refused_before_any_insert, the_snapshot_has_a_list_of_its_own,
	 a_translator_turns_a_domain_event_into_the_one_that_is_stored)
