/* SPDX-License-Identifier: MIT */
/*
 * Functions that have no safe use here, turned into compile errors. Included
 * by every file through the command line of the build (-include).
 */
#ifndef OB_BASE_BANNED_H
#define OB_BASE_BANNED_H

/* System headers first: they may declare or use these names themselves. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* libmariadb's has macros that name them; only targets that link it find it. */
#if __has_include(<mysql.h>)
#include <mysql.h>
#endif

#undef alloca /* a macro of <stdlib.h>, which would be warned about */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atof gmtime localtime ctime asctime strerror
#pragma GCC poison sleep usleep alloca

/* A name that headers of libraries give to parameters: only calls are refused. */
extern int rand(void) __attribute__((unavailable("use base/rng.h"))); /* NOLINT */

#endif
