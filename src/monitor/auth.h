/* SPDX-License-Identifier: MIT */
/* Who asks: tokens, the session cookie that is signed for one, and what a request may claim. */
#ifndef OB_MONITOR_AUTH_H
#define OB_MONITOR_AUTH_H

#include "config/config.h"

enum ob_role { OB_ROLE_NONE, OB_ROLE_VIEWER, OB_ROLE_OPERATOR };

enum { OB_SESSION_SIZE = 160, OB_TOKEN_HASH = 32 };

struct ob_auth {
	unsigned char key[32];
	unsigned char tokens[OB_MONITOR_ROLES][OB_TOKEN_HASH];
	bool has[OB_MONITOR_ROLES];
	bool open; /* no token is set: whoever reaches it is an operator */
};

/* `key` NULL: a new one. False: no random numbers. */
bool ob_auth_init(struct ob_auth *auth, const struct ob_config_monitor *conf,
		  const unsigned char *key);
/* The role of a token; NONE: it is wrong. Takes the same time for all. */
enum ob_role ob_auth_token(const struct ob_auth *auth, const char *token);
/* A session for a role until `until_us` (wall clock), and back: NONE if it is not ours or over. */
void ob_auth_sign(const struct ob_auth *auth, enum ob_role role, int64_t until_us,
		  char out[OB_SESSION_SIZE]);
enum ob_role ob_auth_session(const struct ob_auth *auth, const char *session, int64_t now_us);
/* "viewer", "operator", "none" */
const char *ob_role_name(enum ob_role role);

/* Is the Host of a request one under which we are served? `local`: only loopback can reach us;
 * `hosts`: names, separated by commas, or NULL. Ports do not matter. */
bool ob_host_allowed(const char *host, bool local, const char *hosts);
/* Does an Origin name the Host that was asked? */
bool ob_origin_matches(const char *origin, const char *host);
/* Is the word in a list separated by commas? Spaces and case do not matter. */
bool ob_list_has(const char *list, const char *word, size_t n);

#endif
