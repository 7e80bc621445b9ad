/* SPDX-License-Identifier: MIT */
/* Buffers, arenas, layouts' names: what everything else stands on. */
#include "base/arena.h"
#include "base/buf.h"
#include "suite.h"

OB_TEST(an_append_past_the_limit_fails_and_stays_failed)
{
	struct ob_buf b = OB_BUF_INIT(5);

	ob_buf_adds(&b, "12345");
	ck_assert(!b.failed);
	ob_buf_addc(&b, '6');
	ck_assert(b.failed);
	ob_buf_clear(&b);
	ck_assert(!b.failed);
	ob_buf_addf(&b, "%d", 123456);
	ck_assert(b.failed);
	ck_assert_ptr_null(ob_buf_take(&b));
	ob_buf_done(&b);
}
OB_TEST_END

OB_TEST(a_buffer_holds_nul_bytes)
{
	struct ob_buf b = OB_BUF_INIT(100);

	ob_buf_add(&b, (struct ob_str){ "a\0b", 3 });
	ck_assert_uint_eq(b.len, 3);
	ck_assert(ob_str_eq(ob_buf_view(&b), (struct ob_str){ "a\0b", 3 }));
	ob_buf_done(&b);
}
OB_TEST_END

OB_TEST(an_arena_reuses_its_memory_after_a_reset)
{
	struct ob_arena arena = OB_ARENA_INIT(1 << 20);

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++)
			ck_assert_ptr_nonnull(ob_arena_alloc(&arena, 100));
		size_t held = arena.held;
		ob_arena_reset(&arena, SIZE_MAX);
		ck_assert_uint_eq(arena.held, held);
		ck_assert_uint_eq(arena.used, 0);
	}
	ob_arena_done(&arena);
	ck_assert_uint_eq(arena.held, 0);
}
OB_TEST_END

OB_TEST(an_arena_stops_at_its_limit)
{
	struct ob_arena arena = OB_ARENA_INIT(10000);

	ck_assert_ptr_null(ob_arena_alloc(&arena, 10001));
	ck_assert_ptr_nonnull(ob_arena_alloc(&arena, 9000));
	ck_assert_ptr_null(ob_arena_alloc(&arena, 2000));
	ob_arena_done(&arena);
}
OB_TEST_END

OB_TEST(absent_is_not_empty)
{
	ck_assert(!ob_str_eq(OB_STR_NULL, OB_STR("")));
	ck_assert(ob_str_eq(OB_STR_NULL, ob_str(NULL)));
	ck_assert(ob_str_eq(OB_STR("x"), ob_str("x")));
}
OB_TEST_END

OB_SUITE("buf", an_append_past_the_limit_fails_and_stays_failed, a_buffer_holds_nul_bytes,
	 an_arena_reuses_its_memory_after_a_reset, an_arena_stops_at_its_limit, absent_is_not_empty)
