/* SPDX-License-Identifier: MIT */
/* Frames of the dashboard: exactly what is drawn, at several sizes, whatever is shown in them. */
#include "cli/out/columns.h"
#include "cli/out/pen.h"
#include "cli/work/dashboard.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T0 = 1767225600 }; /* 2026-01-01 00:00:00 UTC */
#define SECOND INT64_C(1000000)

static struct ob_dash_relay relay;

/* A relay in full work; tests change what they are about. */
static struct ob_dash_relay *busy(void)
{
	relay = (struct ob_dash_relay){
		.name = "default",
		.store = "main",
		.sink = "file /var/log/outbox.ndjson",
		.data = { .published = 1234567,
			  .failed = 12,
			  .dead = 1,
			  .in_flight = 100,
			  .partitions = 3 },
		.sample = { .valid = true,
			    .backlog = 4200,
			    .dead = 1,
			    .held_keys = 2,
			    .oldest_us = 192 * SECOND,
			    .partition_count = 8,
			    .worker_count = 2 },
	};
	for (uint64_t s = 0; s <= 8; s++)
		ob_rate_note(&relay.rate, s * s * 100, (int64_t)s * SECOND);
	for (int i = 0; i < 8; i++)
		relay.sample.owners[i] = (uint8_t)(i < 3   ? OB_DASH_MINE
						   : i < 6 ? OB_DASH_OTHER
							   : OB_DASH_FREE);
	relay.sample.workers[0] = (struct ob_dash_worker){
		.mine = true, .pid = 42, .beat_us = 12 * SECOND, .published = 900, .partitions = 3
	};
	relay.sample.workers[1] = (struct ob_dash_worker){
		.host = "db2", .pid = 7, .beat_us = SECOND, .published = 5, .partitions = 3
	};
	relay.sample.workers[0].id.b[15] = 0xaa;
	relay.sample.workers[1].id.b[15] = 0xbb;
	return &relay;
}

static void add_error(struct ob_dash_relay *r, int second, enum ob_err_kind kind, const char *text)
{
	struct ob_last_error *e = &r->data.errors[r->data.error_count++];

	e->at_us = (int64_t)(T0 + second) * SECOND;
	e->kind = kind;
	(void)snprintf(e->text, sizeof(e->text), "%s", text);
}

static const char *draw_all(const struct ob_dash_relay *relays, size_t count,
			    struct ob_dash_style style)
{
	static struct ob_buf out = { .max = 1 << 20 };
	struct ob_dash dash = { .relays = relays,
				.relay_count = count,
				.now_us = (int64_t)T0 * SECOND,
				.up_us = 3672 * (int64_t)SECOND,
				.state = "" };

	ob_buf_clear(&out);
	ob_dash_draw(&dash, &style, &out);
	ck_assert(!out.failed);
	return ob_buf_str(&out);
}

static const char *draw(size_t width, size_t height)
{
	return draw_all(&relay, 1, (struct ob_dash_style){ .width = width, .height = height });
}

static uint32_t code_at(const char *p, size_t *ret_size)
{
	uint8_t c = (uint8_t)*p;
	size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
	uint32_t code = n == 1 ? c : c & (0x7Fu >> n);

	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((uint8_t)p[i] & 0x3F);
	*ret_size = n;
	return code;
}

/* The size of an SGR sequence at p; 0: it is something else. */
static size_t sgr_size(const char *p)
{
	size_t n = p[1] == '[' ? 2 + strspn(p + 2, "0123456789;") : 0;

	return n && p[n] == 'm' ? n + 1 : 0;
}

/*
 * No line wider, no more lines, nothing but printable characters and, with colour, SGR.
 * Without ck_assert in the loop: each one is a write.
 */
static void check_fits(const char *frame, size_t width, size_t height, bool colour)
{
	size_t column = 0, widest = 0, lines = 1, size;
	bool clean = true;

	for (const char *p = frame; *p && clean; p += size) {
		uint32_t code = code_at(p, &size);

		if (code == '\n') {
			lines++;
			column = 0;
		} else if (code == 0x1b) {
			size = sgr_size(p);
			clean = colour && size > 0;
		} else {
			clean = code >= 0x20;
			column += ob_columns_of(code);
			widest = column > widest ? column : widest;
		}
	}
	ck_assert_msg(clean && widest <= width && lines <= height,
		      "%zu of %zu columns, %zu of %zu lines, %s:\n%s", widest, width, lines, height,
		      clean ? "clean" : "not clean", frame);
}

OB_TEST(a_frame_of_80_columns_shows_everything)
{
	add_error(busy(), 1, OB_ERR_RETRY, "connection reset");
	ck_assert_str_eq(
		draw(80, 30),
		" outbox work   up 1h01m                                            00:00:00 UTC\n"
		"────────────────────────────────────────────────────────────────────────────────\n"
		" ● default  main → file /var/log/outbox.ndjson\n"
		"   rate        now 1,300/s    1m 800/s       ▁▂▃▄▅▆▇█\n"
		"   delivered   published 1,234,567   failed 12   dead 1\n"
		"   waiting     backlog 4,200   oldest 3m12s   in flight 100   held keys 2\n"
		"   breaker     closed\n"
		"   partitions  3 of 8  ■■■□□□··\n"
		"   workers     ♥ 000000aa  here   pid 42   beat 12s   holds 3   sent 900\n"
		"               ♡ 000000bb  db2    pid 7   beat 1s   holds 3   sent 5\n"
		"────────────────────────────────────────────────────────────────────────────────\n"
		" last errors\n"
		"   00:00:01  retry   connection reset\n"
		"────────────────────────────────────────────────────────────────────────────────\n"
		" q ends after what is in flight; again: at once   ? keys");
}
OB_TEST_END

OB_TEST(a_frame_of_40_columns_wraps_its_fields)
{
	add_error(busy(), 1, OB_ERR_RETRY, "connection reset");
	ck_assert_str_eq(draw(40, 30),
			 " outbox work   up 1h01m    00:00:00 UTC\n"
			 "────────────────────────────────────────\n"
			 " ● default  main → file /var/log/outbox…\n"
			 "   now 1,300/s   1m 800/s  ▁▂▃▄▅▆▇█\n"
			 "   published 1,234,567   failed 12\n"
			 "   dead 1\n"
			 "   backlog 4,200   oldest 3m12s\n"
			 "   in flight 100   held keys 2\n"
			 "   breaker closed\n"
			 "   partitions 3 of 8  ■■■□□□··\n"
			 "   ♥ 000000aa  here   pid 42   beat 12s\n"
			 "     holds 3   sent 900\n"
			 "   ♡ 000000bb  db2    pid 7   beat 1s\n"
			 "     holds 3   sent 5\n"
			 "────────────────────────────────────────\n"
			 " last errors\n"
			 "   00:00:01  retry   connection reset\n"
			 "────────────────────────────────────────\n"
			 " q ends, again: at once   ? keys");
}
OB_TEST_END

OB_TEST(a_frame_of_160_columns_has_room)
{
	busy();
	ck_assert_str_eq(
		draw(160, 30),
		" outbox work   up 1h01m                                                           "
		"                                                                 00:00:00 UTC\n"
		"──────────────────────────────────────────────────────────────────────────────────"
		"──────────────────────────────────────────────────────────────────────────────\n"
		" ● default  main → file /var/log/outbox.ndjson\n"
		"   rate        now 1,300/s    1m 800/s       ▁▂▃▄▅▆▇█\n"
		"   delivered   published 1,234,567   failed 12   dead 1\n"
		"   waiting     backlog 4,200   oldest 3m12s   in flight 100   held keys 2\n"
		"   breaker     closed\n"
		"   partitions  3 of 8  ■■■□□□··\n"
		"   workers     ♥ 000000aa  here   pid 42   beat 12s   holds 3   sent 900\n"
		"               ♡ 000000bb  db2    pid 7   beat 1s   holds 3   sent 5\n"
		"──────────────────────────────────────────────────────────────────────────────────"
		"──────────────────────────────────────────────────────────────────────────────\n"
		" q ends after what is in flight; again: at once   ? keys");
}
OB_TEST_END

OB_TEST(every_size_fits_its_screen)
{
	static struct ob_dash_relay many[12];

	busy();
	for (int i = 0; i < 5; i++)
		add_error(&relay, i, OB_ERR_DOWN,
			  "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E wide text that goes on and on and "
			  "on");
	relay.sample.partition_count = 300;
	for (size_t i = 0; i < 12; i++)
		many[i] = relay;
	for (size_t width = 1; width <= 220; width += 7) {
		for (size_t height = 1; height <= 60; height += 11) {
			for (int variant = 0; variant < 4; variant++) {
				struct ob_dash_style style = { width, height, variant & 1,
							       variant & 2 };
				size_t count = variant % 2 ? 12 : 1;

				check_fits(draw_all(many, count, style), width, height,
					   style.colour);
			}
		}
	}
}
OB_TEST_END

OB_TEST(hostile_text_cannot_move_the_cursor)
{
	busy();
	relay.name = "a\033[2Jb\nc\x07";
	relay.sink =
		"\xff\xfe \xE2\x80\xAEnoitcerid \xC2\x9B"
		"31m";
	add_error(&relay, 1, OB_ERR_REJECT,
		  "\033]0;title\007\r\n\t\xE2\x80\xA8"
		  "end");
	(void)snprintf(relay.sample.workers[1].host, OB_DASH_HOST, "h\033[31mx");
	const char *frame = draw(100, 40);
	check_fits(frame, 100, 40, false);
	ck_assert_ptr_nonnull(strstr(frame, "a [2Jb c "));
	ck_assert_ptr_nonnull(strstr(frame, " ]0;title     end"));
	ck_assert_ptr_null(strstr(frame, "\xE2\x80\xAE")); /* nothing turns text around */
}
OB_TEST_END

OB_TEST(the_newest_five_errors_of_all_relays_are_shown_in_order)
{
	struct ob_dash_relay two[2];

	busy();
	two[0] = two[1] = relay;
	two[1].name = "mail";
	for (int i = 0; i < 5; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "even-%d", i);
		add_error(&two[0], 2 * i, OB_ERR_RETRY, text);
		(void)snprintf(text, sizeof(text), "odd-%d", i);
		add_error(&two[1], 2 * i + 1, OB_ERR_RETRY, text);
	}
	const char *frame = draw_all(two, 2, (struct ob_dash_style){ 100, 60, false, false });
	const char *at = frame;
	const char *const want[] = { "odd-2", "even-3", "odd-3", "even-4", "odd-4" };
	for (size_t i = 0; i < 5; i++) {
		at = strstr(at, want[i]);
		ck_assert_msg(at != NULL, "no %s in:\n%s", want[i], frame);
	}
	ck_assert_ptr_null(strstr(frame, "even-2"));
	ck_assert_ptr_nonnull(strstr(frame, "00:00:09  retry   mail  odd-4"));
}
OB_TEST_END

OB_TEST(a_small_screen_has_one_line_a_relay)
{
	struct ob_dash_relay three[3];

	busy();
	three[0] = three[1] = three[2] = relay;
	ck_assert_str_eq(draw_all(three, 3, (struct ob_dash_style){ 70, 7, false, true }),
			 " outbox work   up 1h01m                                  00:00:00 UTC\n"
			 "----------------------------------------------------------------------\n"
			 " * default             1,300/s  backlog 4,200  oldest 3m12s  dead 1\n"
			 " * default             1,300/s  backlog 4,200  oldest 3m12s  dead 1\n"
			 " * default             1,300/s  backlog 4,200  oldest 3m12s  dead 1\n"
			 "----------------------------------------------------------------------\n"
			 " q ends after what is in flight; again: at once   ? keys");
}
OB_TEST_END

OB_TEST(dead_messages_are_those_of_the_store)
{
	busy()->data.dead = 0;
	relay.sample.dead = 7;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "failed 12   dead 7\n"));
	relay.sample.valid = false;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "failed 12   dead 0\n"));
}
OB_TEST_END

OB_TEST(a_store_that_is_down_is_said)
{
	busy()->data.store_down = true;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "the store does not answer, nothing is sent"));
	ck_assert_ptr_null(strstr(draw(80, 30), "closed"));
}
OB_TEST_END

OB_TEST(an_error_that_came_again_is_one_line)
{
	add_error(busy(), 1, OB_ERR_DOWN, "connection refused");
	relay.data.errors[0].times = 12;
	ck_assert_ptr_nonnull(
		strstr(draw(80, 30), "00:00:01  down    12 times  connection refused"));
}
OB_TEST_END

OB_TEST(more_relays_than_lines_can_be_scrolled)
{
	static struct ob_dash_relay many[9];
	static char names[9][8];
	struct ob_buf out = OB_BUF_INIT(1 << 16);
	struct ob_dash dash = { .relays = many, .relay_count = 9, .state = "", .first = 100 };
	struct ob_dash_style style = { 80, 8, false, true };

	busy();
	for (size_t i = 0; i < 9; i++) {
		many[i] = relay;
		(void)snprintf(names[i], sizeof(names[i]), "r%zu", i);
		many[i].name = names[i];
	}
	const char *frame = draw_all(many, 9, style);
	check_fits(frame, 80, 8, false);
	ck_assert_ptr_nonnull(strstr(frame, "1 to 3 of 9 relays: down and up show the others"));
	ck_assert_ptr_nonnull(strstr(frame, "* r2"));
	ck_assert_ptr_null(strstr(frame, "* r3"));
	/* Not past the end. */
	ob_dash_draw(&dash, &style, &out);
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&out), "7 to 9 of 9 relays"));
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&out), "* r8"));
	ob_buf_done(&out);
}
OB_TEST_END

OB_TEST(help_names_every_key)
{
	struct ob_buf out = OB_BUF_INIT(1 << 16);
	struct ob_dash dash = { .relays = busy(), .relay_count = 1, .state = "", .help = true };

	ob_dash_draw(&dash, &(struct ob_dash_style){ 80, 24, false, true }, &out);
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&out), "   s           sort by"));
	ck_assert_ptr_nonnull(strstr(ob_buf_str(&out), "   p           stop the picture"));
	ck_assert_ptr_null(strstr(ob_buf_str(&out), "default"));
	ob_buf_done(&out);
}
OB_TEST_END

OB_TEST(a_sink_that_is_down_is_said)
{
	busy()->data.breaker = OB_BREAKER_OPEN;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "open: the sink is down"));
	relay.data.alarm = true;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "open: most keys fail"));
	relay.data.breaker = OB_BREAKER_HALF_OPEN;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "half-open: probing"));
}
OB_TEST_END

OB_TEST(what_the_store_did_not_say_is_a_question_mark)
{
	busy()->sample = (struct ob_sample){ 0 };
	const char *frame = draw(80, 30);
	ck_assert_ptr_nonnull(strstr(frame, "backlog ?"));
}
OB_TEST_END

OB_TEST(a_backlog_that_was_not_counted_to_its_end_says_so)
{
	busy()->sample.backlog = OB_DASH_CAP - 1;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "backlog 10,000   "));
	relay.sample.capped = true;
	ck_assert_ptr_nonnull(strstr(draw(80, 30), "backlog 10,000+ "));
	ck_assert_ptr_nonnull(strstr(draw(80, 4), "backlog 10,000+ "));
}
OB_TEST_END

OB_TEST(text_is_cut_by_columns_not_bytes)
{
	struct ob_buf b = OB_BUF_INIT(200);

	ck_assert_uint_eq(ob_columns_fit(&b, OB_STR("\xE6\x97\xA5\xE6\x9C\xAC"), 4, false), 4);
	ck_assert_uint_eq(ob_columns_fit(&b, OB_STR("\xE6\x97\xA5\xE6\x9C\xAC"), 3, false), 3);
	ck_assert_str_eq(ob_buf_str(&b), "\xE6\x97\xA5\xE6\x9C\xAC\xE6\x97\xA5\xE2\x80\xA6");
	ob_buf_clear(&b);
	ck_assert_uint_eq(ob_columns_fit(&b, OB_STR("e\xCC\x81tudes"), 4, false), 4);
	ck_assert_str_eq(ob_buf_str(&b), "etu\xE2\x80\xA6");
	ob_buf_clear(&b);
	ck_assert_uint_eq(ob_columns_fit(&b,
					 OB_STR("gr\xC3\xBC\xC3\x9F"
						"e"),
					 4, true),
			  4);
	ck_assert_str_eq(ob_buf_str(&b), "gr?~");
	ob_buf_done(&b);
}
OB_TEST_END

OB_TEST(a_rate_is_counted_by_whole_seconds)
{
	struct ob_rate rate = { 0 };

	ob_rate_note(&rate, 1000, 0);
	ob_rate_note(&rate, 1010, SECOND / 2);
	ck_assert_double_eq_tol(ob_rate_now(&rate), 10, 1e-9);
	ob_rate_note(&rate, 1030, SECOND);
	ck_assert_double_eq_tol(ob_rate_now(&rate), 30, 1e-9);
	ob_rate_note(&rate, 1130, 5 * (int64_t)SECOND); /* nobody looked for four seconds */
	ck_assert_double_eq_tol(ob_rate_now(&rate), 25, 1e-9);
	ck_assert_double_eq_tol(ob_rate_minute(&rate), 26, 1e-9);
	ob_rate_note(&rate, 1130, 200 * (int64_t)SECOND);
	ck_assert_double_eq_tol(ob_rate_minute(&rate), 0, 1e-9);
	ck_assert_uint_eq(rate.count, OB_RATE_SECONDS);
}
OB_TEST_END

OB_TEST(numbers_are_written_for_people)
{
	char text[OB_COUNT_SIZE];

	ob_format_count(0, text);
	ck_assert_str_eq(text, "0");
	ob_format_count(1234567, text);
	ck_assert_str_eq(text, "1,234,567");
	ob_format_count(UINT64_MAX, text);
	ck_assert_str_eq(text, "18,446,744,073,709,551,615");
	ob_format_rate(0.04, text);
	ck_assert_str_eq(text, "0/s");
	ob_format_rate(12.34, text);
	ck_assert_str_eq(text, "12.3/s");
	ob_format_rate(98765.4, text);
	ck_assert_str_eq(text, "98,765/s");
}
OB_TEST_END

OB_SUITE("dashboard", a_frame_of_80_columns_shows_everything,
	 a_frame_of_40_columns_wraps_its_fields, a_frame_of_160_columns_has_room,
	 every_size_fits_its_screen, hostile_text_cannot_move_the_cursor,
	 the_newest_five_errors_of_all_relays_are_shown_in_order,
	 a_small_screen_has_one_line_a_relay, dead_messages_are_those_of_the_store,
	 a_store_that_is_down_is_said, an_error_that_came_again_is_one_line,
	 more_relays_than_lines_can_be_scrolled, help_names_every_key, a_sink_that_is_down_is_said,
	 what_the_store_did_not_say_is_a_question_mark,
	 a_backlog_that_was_not_counted_to_its_end_says_so, text_is_cut_by_columns_not_bytes,
	 a_rate_is_counted_by_whole_seconds, numbers_are_written_for_people)
