/* SPDX-License-Identifier: MIT */
/* Bytes with a length: borrowed (struct ob_str) and owned (struct ob_buf). */
#ifndef OB_BASE_BUF_H
#define OB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed run of bytes; may hold NULs, is not NUL-terminated. p NULL: absent (SQL NULL). */
struct ob_str {
	const char *p;
	size_t n;
};

#define OB_STR(literal) ((struct ob_str){ (literal), sizeof(literal) - 1 })
#define OB_STR_NULL     ((struct ob_str){ NULL, 0 })

/* Borrow a C string; NULL gives the absent string. */
static inline struct ob_str ob_str(const char *text)
{
	return (struct ob_str){ text, text ? strlen(text) : 0 };
}

/* Equal bytes; absent equals absent only. */
static inline bool ob_str_eq(struct ob_str a, struct ob_str b)
{
	return a.n == b.n && !a.p == !b.p && (!a.p || a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/*
 * A growing buffer of at most `max` bytes. A failed append sets `failed` and
 * turns every later append into a no-op, so the caller tests once, at the end.
 */
struct ob_buf {
	char *data; /* NULL or NUL-terminated; read it with ob_buf_str() */
	size_t len, cap, max;
	bool failed;
};

#define OB_BUF_INIT(limit) ((struct ob_buf){ .max = (limit) })

void ob_buf_add(struct ob_buf *b, struct ob_str s);
/* Room for `more` bytes after data[len], for whoever writes them there; false: it has failed. */
bool ob_buf_reserve(struct ob_buf *b, size_t more);
void ob_buf_adds(struct ob_buf *b, const char *text);
void ob_buf_addc(struct ob_buf *b, char c);
void ob_buf_addf(struct ob_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Empty it, keep the memory, forget a failure. */
void ob_buf_clear(struct ob_buf *b);
const char *ob_buf_str(const struct ob_buf *b);    /* never NULL; borrowed */
struct ob_str ob_buf_view(const struct ob_buf *b); /* borrowed; present even when empty */
char *ob_buf_take(struct ob_buf *b); /* caller frees; NULL if failed or never filled */
void ob_buf_done(struct ob_buf *b);

#endif
