/* SPDX-License-Identifier: MIT */
/* YAML: the tree, its places, what is refused and where; files and expansion. */
#include "base/cleanup.h"
#include "base/expand.h"
#include "base/file.h"
#include "base/yaml.h"
#include "suite.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct ob_arena arena = { .max = OB_YAML_ARENA_MAX };

static struct ob_yaml *parse_bytes(struct ob_str text)
{
	struct ob_yaml_pos at = { 77, 77 };
	struct ob_yaml *root = NULL;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_msg(ob_yaml_parse(text, &arena, &root, &at, &err) == 0, "%u:%u: %s", at.line,
		      at.col, err.msg);
	ck_assert_uint_eq(at.line, 77);
	return root;
}

static struct ob_yaml *parse(const char *text)
{
	return parse_bytes(ob_str(text));
}

static void refuses_bytes(struct ob_str text, unsigned line, unsigned col, const char *msg)
{
	struct ob_yaml_pos at = { 77, 77 };
	struct ob_yaml *root = (struct ob_yaml *)&at;
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_yaml_parse(text, &arena, &root, &at, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, msg);
	ck_assert_uint_eq(at.line, line);
	ck_assert_uint_eq(at.col, col);
	ck_assert_ptr_eq(root, &at);
}

static void refuses(const char *text, unsigned line, unsigned col, const char *msg)
{
	refuses_bytes(ob_str(text), line, col, msg);
}

static void stands_at(struct ob_yaml_pos at, unsigned line, unsigned col)
{
	ck_assert_uint_eq(at.line, line);
	ck_assert_uint_eq(at.col, col);
}

static void done(void)
{
	ob_arena_done(&arena);
}

OB_TEST(a_tree_knows_where_keys_and_values_stand)
{
	struct ob_yaml *root = parse("# c\na: 1\nb:\n  - x\n  - {c: 'd', e: [f]}\nä: \"z\"\n");
	struct ob_yaml *b = ob_yaml_get(root, "b");

	ck_assert_int_eq(root->kind, OB_YAML_MAPPING);
	ck_assert_uint_eq(root->count, 3);
	stands_at(ob_yaml_get(root, "a")->key_at, 2, 1);
	stands_at(ob_yaml_get(root, "a")->at, 2, 4);
	ck_assert_int_eq(b->kind, OB_YAML_LIST);
	ck_assert_uint_eq(b->count, 2);
	stands_at(b->first->at, 4, 5);
	ck_assert_str_eq(b->first->text, "x");
	struct ob_yaml *flow = b->first->next;
	stands_at(flow->at, 5, 5);
	ck_assert(flow->flow);
	ck_assert(!b->flow);
	stands_at(ob_yaml_get(flow, "e")->key_at, 5, 14);
	stands_at(ob_yaml_get(flow, "e")->first->at, 5, 18);
	stands_at(ob_yaml_get(root, "ä")->at, 6, 4);
	done();
}
OB_TEST_END

OB_TEST(quotes_are_remembered_and_null_is_plain)
{
	struct ob_yaml *root = parse("a: ~\nb: '~'\nc:\nd: ''\ne: null\nf: \"null\"\ng: []\n");
	const char *nulls = "ace";

	for (const struct ob_yaml *n = root->first; n; n = n->next)
		ck_assert_int_eq(ob_yaml_is_null(n), strchr(nulls, n->key[0]) != NULL);
	ck_assert(ob_yaml_get(root, "e")->plain);
	ck_assert(!ob_yaml_get(root, "f")->plain);
	ck_assert_ptr_null(ob_yaml_get(root, "x"));
	ck_assert_ptr_null(ob_yaml_get(ob_yaml_get(root, "a"), "x"));
	ck_assert_ptr_null(ob_yaml_get(NULL, "x"));
	done();
}
OB_TEST_END

OB_TEST(nothing_is_no_tree)
{
	ck_assert_ptr_null(parse(""));
	ck_assert_ptr_null(parse("# only\n  # comments\n"));
	ck_assert_ptr_null(parse("\n\n   \n"));
	ck_assert_ptr_null(parse_bytes(OB_STR_NULL));
	ck_assert_ptr_null(parse("\xef\xbb\xbf"));
	ck_assert(ob_yaml_is_null(parse("---\n")));
	done();
}
OB_TEST_END

OB_TEST(a_byte_order_mark_moves_no_column)
{
	stands_at(parse("\xef\xbb\xbf"
			"a: 1\n")
			  ->first->at,
		  1, 4);
	refuses("\xef\xbb\xbf"
		"a: &x 1\n",
		1, 4, "anchors are not supported: write the value out");
	done();
}
OB_TEST_END

OB_TEST(duplicates_point_to_the_first)
{
	struct ob_yaml *root = parse("b: 1\na: 2\nb: 3\nc: {a: 1}\nb: 4\n");
	struct ob_yaml *n = root->first;

	ck_assert_ptr_null(n->earlier);
	ck_assert_ptr_null(n->next->earlier);
	ck_assert_ptr_eq(n->next->next->earlier, n);
	ck_assert_ptr_null(n->next->next->next->earlier);
	ck_assert_ptr_eq(n->next->next->next->next->earlier, n);
	ck_assert_str_eq(ob_yaml_get(root, "b")->text, "1");
	done();
}
OB_TEST_END

OB_TEST(what_we_do_not_speak_is_refused_by_name)
{
	refuses("a: &x 1\n", 1, 4, "anchors are not supported: write the value out");
	refuses("a: &x [1]\n", 1, 4, "anchors are not supported: write the value out");
	refuses("a: &x {b: 1}\n", 1, 4, "anchors are not supported: write the value out");
	refuses("a: 1\nb: *x\n", 2, 4, "aliases are not supported: write the value out");
	refuses("a:\n  <<: {b: 1}\n", 2, 3, "merge keys are not supported: write the keys out");
	refuses("a: !!int 1\n", 1, 4, "tags are not supported");
	refuses("a: !x [1]\n", 1, 4, "tags are not supported");
	refuses("a: 1\n---\nb: 1\n", 2, 1, "a second document: only one is allowed");
	refuses("---\n---\n", 2, 1, "a second document: only one is allowed");
	refuses("? [a]\n: 1\n", 1, 3, "a key must be a text");
	refuses("? {a: 1}\n: 1\n", 1, 3, "a key must be a text");
	refuses("a: \"b\\0c\"\n", 1, 4, "a text cannot hold a NUL character");
	refuses("\"b\\0c\": 1\n", 1, 1, "a text cannot hold a NUL character");
	ck_assert_str_eq(parse("'<<': 1\n")->first->key, "<<");
	ck_assert_ptr_nonnull(parse("%YAML 1.1\n---\na: 1\n...\n"));
	done();
}
OB_TEST_END

OB_TEST(faults_of_syntax_have_the_librarys_words_and_a_place)
{
	refuses("a: 1\n\tb: 2\n", 2, 1,
		"found a tab character that violates indentation while scanning a plain scalar");
	refuses("a:\n\tb: 2\n", 2, 1,
		"found character that cannot start any token while scanning for the next token "
		"(a tab: indent with spaces)");
	refuses("a: b: c\n", 1, 5, "mapping values are not allowed in this context");
	refuses("a: [1\n", 2, 1, "did not find expected ',' or ']' while parsing a flow sequence");
	refuses("a: 'x\n", 2, 1, "found unexpected end of stream while scanning a quoted scalar");
	refuses("a: @x\n", 1, 4,
		"found character that cannot start any token while scanning for the next token");
	refuses("a: 1\n b: 2\n", 2, 3, "mapping values are not allowed in this context");
	refuses("a:\n  - 1\n  b: 1\n", 3, 3,
		"did not find expected '-' indicator while parsing a block collection");
	done();
}
OB_TEST_END

OB_TEST(bytes_that_are_no_text_have_a_place)
{
	refuses_bytes((struct ob_str){ "a: 1\nb: \0\n", 10 }, 2, 4,
		      "control characters are not allowed");
	refuses("a: 1\nä: \xff\n", 2, 4, "invalid leading UTF-8 octet");
	refuses("a: \xc3", 1, 4, "incomplete UTF-8 octet sequence");
	refuses("a: \xed\xa0\x80\n", 1, 4, "invalid Unicode character");
	refuses("\xff\xfe"
		"a",
		1, 1, "invalid leading UTF-8 octet");
	refuses("a: \x1b[2J\n", 1, 4, "control characters are not allowed");
	done();
}
OB_TEST_END

OB_TEST(the_deepest_tree_has_32_levels)
{
	char text[200];

	memset(text, '[', 33);
	memset(text + 33, ']', 33);
	text[66] = '\0';
	refuses(text, 1, 33, "nested too deeply: 32 levels are the most");
	text[65] = '\0';
	ck_assert_int_eq(parse(text + 1)->kind, OB_YAML_LIST);
	done();
}
OB_TEST_END

/* `count` times `unit`, until the next call. */
static struct ob_str repeat(const char *unit, size_t count)
{
	static struct ob_buf text;

	ob_buf_done(&text);
	text = OB_BUF_INIT(4 << 20);
	for (size_t i = 0; i < count; i++)
		ob_buf_adds(&text, unit);
	ck_assert(!text.failed);
	return ob_buf_view(&text);
}

OB_TEST(hostile_shapes_end_quickly)
{
	static const char *const units[] = { "[",     "{", "- ", "? ",  "a: [", "{a: ",
					     "[{",    "!", "&",  "\"",  "'",    "|\n",
					     "a:\n ", "%", "#",  "\n-", ": ",   "," };
	struct ob_yaml_pos at;
	struct ob_yaml *root;
	struct ob_err err = OB_ERR_INIT;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		struct ob_str text = repeat(units[i], 100000);
		int r = ob_yaml_parse(text, &arena, &root, &at, &err);

		ck_assert(r == 0 || r == OUTBOX_ECONFIG);
		ob_arena_done(&arena);
	}
}
OB_TEST_END

OB_TEST(a_tree_has_a_largest_size)
{
	struct ob_str text = repeat("- a\n", 19999);

	ck_assert_uint_eq(parse_bytes(text)->count, 19999);
	ob_arena_done(&arena);
	text = repeat("- a\n", 20000);
	refuses_bytes(text, 20000, 3, "too large: 20000 keys and values are the most");
	text = repeat("# comment      \n", 2 << 16);
	refuses_bytes(text, 0, 0, "is larger than 1024 KB");
	text.n = 1 << 20;
	ck_assert_ptr_null(parse_bytes(text));
	done();
}
OB_TEST_END

OB_TEST(ten_thousand_duplicates_cost_little)
{
	struct ob_str text = repeat("a: 1\n", 9999);
	struct ob_yaml *root = parse_bytes(text);

	ck_assert_ptr_eq(root->first->next->next->earlier, root->first);
	done();
}
OB_TEST_END

/* ---- files ----------------------------------------------------------- */

static char dir[] = "/tmp/outbox-yaml-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *name, struct ob_str content)
{
	OB_CLEANUP(ob_fclosep) FILE *f = fopen(in_dir(name), "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(content.p, 1, content.n, f), content.n);
}

static void make_dir(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	static const char *const names[] = { "f", "fifo", "secret" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(in_dir(names[i]));
	ck_assert_int_eq(rmdir(dir), 0);
}

enum { SMALL = 10240 };

static void file_refused(const char *path, const char *msg)
{
	struct ob_buf out = OB_BUF_INIT(1000);
	struct ob_err err = OB_ERR_INIT;

	ck_assert_int_eq(ob_file_read(path, SMALL, &out, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, msg);
	ob_buf_done(&out);
}

OB_TEST(only_small_regular_files_are_read)
{
	struct ob_buf out = OB_BUF_INIT(20000);
	struct ob_err err = OB_ERR_INIT;
	struct ob_str large = repeat("0123456789abcdef", 641);

	make_dir();
	file_refused(in_dir("none"), "cannot be read: No such file or directory");
	file_refused(dir, "is a directory, not a file");
	ck_assert_int_eq(mkfifo(in_dir("fifo"), 0600), 0);
	file_refused(in_dir("fifo"), "is not a regular file");
	file_refused("/dev/null", "is not a regular file");
	write_file("f", large);
	file_refused(in_dir("f"), "is larger than 10 KB");
	large.n = SMALL;
	write_file("f", large);
	ck_assert_int_eq(ob_file_read(in_dir("f"), SMALL, &out, &err), 0);
	ck_assert(ob_str_eq(ob_buf_view(&out), large));
	ob_buf_done(&out);
	remove_dir();
}
OB_TEST_END

OB_TEST(a_file_without_a_size_is_still_bounded)
{
	struct ob_buf out = OB_BUF_INIT(20000);
	struct ob_err err = OB_ERR_INIT;

	/* Files of /proc say that they are empty. */
	ck_assert_int_eq(ob_file_read("/proc/self/status", 10, &out, &err), OUTBOX_ECONFIG);
	ck_assert_int_eq(ob_file_read("/proc/self/status", 20000, &out, &err), 0);
	ck_assert_uint_gt(out.len, 10);
	ob_buf_done(&out);
}
OB_TEST_END

/* ---- expansion ------------------------------------------------------- */

static void expands(const char *text, const char *to)
{
	struct ob_err err = OB_ERR_INIT;
	const char *out = NULL;

	ck_assert_msg(ob_expand(text, &arena, &out, &err) == 0, "%s: %s", text, err.msg);
	ck_assert_str_eq(out, to);
}

static void expand_refused(const char *text, const char *msg)
{
	struct ob_err err = OB_ERR_INIT;
	const char *out = "untouched";

	ck_assert_int_eq(ob_expand(text, &arena, &out, &err), OUTBOX_ECONFIG);
	ck_assert_str_eq(err.msg, msg);
	ck_assert_str_eq(out, "untouched");
}

OB_TEST(variables_are_put_in)
{
	ck_assert_int_eq(setenv("OB_T", "v${OB_T}", 1), 0);
	ck_assert_int_eq(setenv("OB_EMPTY", "", 1), 0);
	expands("plain $ text $x {y}", "plain $ text $x {y}");
	expands("${OB_T}", "v${OB_T}");
	expands("a${OB_T}b${OB_EMPTY}c", "av${OB_T}bc");
	expands("$${OB_T} $$ ${OB_EMPTY}$", "${OB_T} $$ $");
	expand_refused("x${OB_NOT_SET_AT_ALL}",
		       "environment variable 'OB_NOT_SET_AT_ALL' is not set");
	expand_refused("${OB_T", "'${' without a '}' behind it; write $${ for a plain ${");
	expand_refused("${}",
		       "'${}' is neither ${NAME} nor ${file:PATH}; write $${ for a plain ${");
	expand_refused("${a-b}",
		       "'${a-b}' is neither ${NAME} nor ${file:PATH}; write $${ for a plain ${");
	expand_refused("${file:}",
		       "'${file:}' is neither ${NAME} nor ${file:PATH}; write $${ for a plain ${");
	ck_assert_int_eq(setenv("OB_T", "\xff", 1), 0);
	expand_refused("${OB_T}", "environment variable 'OB_T' is not valid UTF-8");
	done();
}
OB_TEST_END

OB_TEST(a_value_does_not_grow_without_end)
{
	struct ob_str large = repeat("0123456789abcdef", 2048);
	char *value = strndup(large.p, large.n);

	ck_assert_int_eq(setenv("OB_T", value, 1), 0);
	expand_refused("${OB_T}${OB_T}x", "the expanded value is larger than 64 KB");
	free(value);
	done();
}
OB_TEST_END

OB_TEST(files_are_put_in_without_their_last_newline)
{
	char text[200], msg[300];

	make_dir();
	(void)snprintf(text, sizeof(text), "<${file:%s}>", in_dir("secret"));
	(void)snprintf(msg, sizeof(msg), "file '%s': cannot be read: No such file or directory",
		       in_dir("secret"));
	expand_refused(text, msg);
	write_file("secret", OB_STR("a\nb\n"));
	expands(text, "<a\nb>");
	write_file("secret", OB_STR("a\n\n"));
	expands(text, "<a\n>");
	write_file("secret", OB_STR("a\r\n"));
	expands(text, "<a>");
	write_file("secret", OB_STR(""));
	expands(text, "<>");
	write_file("secret", (struct ob_str){ "a\0b", 3 });
	(void)snprintf(msg, sizeof(msg), "file '%s' holds a NUL byte", in_dir("secret"));
	expand_refused(text, msg);
	write_file("secret", OB_STR("a\xff"));
	(void)snprintf(msg, sizeof(msg), "file '%s' is not valid UTF-8", in_dir("secret"));
	expand_refused(text, msg);
	remove_dir();
	done();
}
OB_TEST_END

OB_SUITE("yaml", a_tree_knows_where_keys_and_values_stand, quotes_are_remembered_and_null_is_plain,
	 nothing_is_no_tree, a_byte_order_mark_moves_no_column, duplicates_point_to_the_first,
	 what_we_do_not_speak_is_refused_by_name,
	 faults_of_syntax_have_the_librarys_words_and_a_place, bytes_that_are_no_text_have_a_place,
	 the_deepest_tree_has_32_levels, hostile_shapes_end_quickly, a_tree_has_a_largest_size,
	 ten_thousand_duplicates_cost_little, only_small_regular_files_are_read,
	 a_file_without_a_size_is_still_bounded, variables_are_put_in,
	 a_value_does_not_grow_without_end, files_are_put_in_without_their_last_newline)
