/* SPDX-License-Identifier: MIT */
/* Locals that own something clean themselves up when they leave scope. */
#ifndef OB_BASE_CLEANUP_H
#define OB_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Run `fn` on the address of the variable when it leaves scope. */
#define OB_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Move a pointer out of a variable, so that its cleanup becomes a no-op. */
#define OB_TAKE(p) \
	({ \
		__typeof__(p) taken_ = (p); \
		(p) = NULL; \
		taken_; \
	})

/* OB_DEFINE_CLEANUP(struct ob_x *, ob_x_free) makes ob_x_freep() for OB_CLEANUP. */
#define OB_DEFINE_CLEANUP(type, fn) \
	static inline void fn##p(type *p) \
	{ \
		if (*p) \
			fn(*p); \
	}

static inline void ob_freep(void *p)
{
	free(*(void **)p);
}

static inline void ob_closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void ob_fclosep(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

#define OB_AUTOFREE  OB_CLEANUP(ob_freep)
#define OB_AUTOCLOSE OB_CLEANUP(ob_closep)

#endif
