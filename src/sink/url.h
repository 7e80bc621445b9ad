/* SPDX-License-Identifier: MIT */
/* The parts that the urls of sinks have in common. */
#ifndef OB_SINK_URL_H
#define OB_SINK_URL_H

#include <stdbool.h>
#include <stddef.h>

/* A host and its port, as text. */
struct ob_url_host {
	char name[256], port[6];
};

/* %41 becomes A; NULL: a bad escape, a NUL, or no memory. The caller frees. */
char *ob_url_decode(const char *p, size_t n);
/* Copy `n` bytes and a NUL; false when they do not fit. */
bool ob_url_copy(char *out, size_t size, const char *p, size_t n);
/*
 * "user:password", "user" or ":password", decoded; what is absent or empty stays as it
 * is. False: *ret_bad says what is wrong. The caller wipes both.
 */
bool ob_url_user(const char *p, size_t n, char **user, char **password, const char **ret_bad);
/* "host", "host:port" or "[::1]:port"; "" is localhost. */
bool ob_url_host(const char *p, size_t n, const char *default_port, struct ob_url_host *ret);
/* Overwrite and free a secret; NULL is allowed. */
void ob_url_wipe(char **secret);

#endif
