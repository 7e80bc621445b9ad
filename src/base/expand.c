/* SPDX-License-Identifier: MIT */
/* Expanding ${NAME} and ${file:PATH}. */
#include "base/expand.h"

#include "base/file.h"
#include "base/utf8.h"

#include <stdlib.h>

static const char file_prefix[] = "file:";

static int bad(struct ob_err *err, const char *what, struct ob_str name, const char *why)
{
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "%s '%.*s' %s", what,
			  (int)(name.n < 200 ? name.n : 200), name.p, why);
}

static bool is_name(struct ob_str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!letter && !(c >= '0' && c <= '9' && i > 0))
			return false;
	}
	return s.n > 0;
}

/* What was put in must be text: it ends up in C strings and in one-line messages. */
static int check_text(struct ob_str value, const char *what, struct ob_str name, struct ob_err *err)
{
	if (value.n && memchr(value.p, '\0', value.n))
		return bad(err, what, name, "holds a NUL byte");
	if (!ob_utf8_valid(value))
		return bad(err, what, name, "is not valid UTF-8");
	return 0;
}

static int add_variable(struct ob_buf *out, struct ob_str name, struct ob_err *err)
{
	char copy[256];

	if (name.n >= sizeof(copy))
		return bad(err, "environment variable", name, "has too long a name");
	memcpy(copy, name.p, name.n);
	copy[name.n] = '\0';
	const char *value = getenv(copy);
	if (!value)
		return bad(err, "environment variable", name, "is not set");
	ob_buf_adds(out, value);
	return check_text(ob_str(value), "environment variable", name, err);
}

static int add_file(struct ob_buf *out, struct ob_str path, struct ob_err *err)
{
	struct ob_buf content = OB_BUF_INIT(OB_EXPAND_MAX);
	char *copy = strndup(path.p, path.n);
	int r;

	if (!copy)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "expanding a value");
	r = ob_file_read(copy, OB_EXPAND_MAX, &content, err);
	if (r == OUTBOX_ECONFIG)
		(void)ob_err_context(err, "file '%.200s'", copy);
	free(copy);
	if (r == 0)
		r = check_text(ob_buf_view(&content), "file", path, err);
	if (r == 0) {
		struct ob_str s = ob_buf_view(&content);

		if (s.n && s.p[s.n - 1] == '\n')
			s.n--;
		if (s.n && s.p[s.n - 1] == '\r')
			s.n--;
		ob_buf_add(out, s);
	}
	ob_buf_done(&content);
	return r;
}

/* `inner` is what stands between the braces. */
static int add_reference(struct ob_buf *out, struct ob_str inner, struct ob_err *err)
{
	const size_t skip = sizeof(file_prefix) - 1;

	if (inner.n > skip && memcmp(inner.p, file_prefix, skip) == 0)
		return add_file(out, (struct ob_str){ inner.p + skip, inner.n - skip }, err);
	if (is_name(inner))
		return add_variable(out, inner, err);
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "'${%.*s}' is neither ${NAME} nor ${file:PATH}; write $${ for a plain ${",
			  (int)(inner.n < 200 ? inner.n : 200), inner.p);
}

static int expand_into(struct ob_buf *out, const char *text, struct ob_err *err)
{
	while (*text) {
		const char *end;

		if (strncmp(text, "$${", 3) == 0) {
			ob_buf_adds(out, "${");
			text += 3;
			continue;
		}
		if (strncmp(text, "${", 2) != 0) {
			ob_buf_addc(out, *text++);
			continue;
		}
		text += 2;
		end = strchr(text, '}');
		if (!end)
			return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
					  "'${' without a '}' behind it; write $${ for a plain ${");
		int r = add_reference(out, (struct ob_str){ text, (size_t)(end - text) }, err);
		if (r < 0)
			return r;
		text = end + 1;
	}
	if (out->failed)
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
				  "the expanded value is larger than %d KB", OB_EXPAND_MAX / 1024);
	return 0;
}

int ob_expand(const char *text, struct ob_arena *arena, const char **ret_text, struct ob_err *err)
{
	struct ob_buf out = OB_BUF_INIT(OB_EXPAND_MAX);
	int r;

	if (!strstr(text, "${")) {
		*ret_text = text;
		return 0;
	}
	r = expand_into(&out, text, err);
	if (r == 0) {
		const char *copy = ob_arena_strdup(arena, ob_buf_str(&out));

		if (copy)
			*ret_text = copy;
		else
			r = ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "expanding a value");
	}
	ob_buf_done(&out);
	return r;
}
