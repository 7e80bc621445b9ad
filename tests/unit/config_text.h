/* SPDX-License-Identifier: MIT */
/* What the tests of the configuration share: texts to start from, loading them, and their faults.
 */
#ifndef OB_TESTS_CONFIG_TEXT_H
#define OB_TESTS_CONFIG_TEXT_H

#include "base/cleanup.h"
#include "config/config.h"

#define STORE "stores: { main: { url: 'sqlite:a.db' } }\n"
#define SINK  "sinks: { out: { type: stdout } }\n"
#define BOTH  STORE SINK

/* A relay with one wrong line in it, which is line 5 at column 5. */
#define RELAY(line) BOTH "relays:\n  - name: r\n    " line "\n"

OB_DEFINE_CLEANUP(struct ob_config *, ob_config_free)
#define CONFIG OB_CLEANUP(ob_config_freep) struct ob_config *

enum { CONFIG_FAULTS_MAX = 256 * 1024 };

/* Both fail the test when the text does not load. */
struct ob_config *config_load(struct ob_str text);
struct ob_config *config_good(const char *text);
/* The faults of a text that must not load; the caller frees. */
char *config_faults(struct ob_str text, struct ob_err *err);
void config_bad(const char *text, const char *expected);

#endif
