/* SPDX-License-Identifier: MIT */
/* The failure classifier of the configuration: the `failures:` of a relay. */
#ifndef OB_RELAY_FAILURES_H
#define OB_RELAY_FAILURES_H

#include "relay/worker.h"

/*
 * What the first rule that matches the error's code and text says, else the error's own kind.
 * FATAL and LOST are not about a message and stay. `arg` points to a
 * const struct ob_config_relay *.
 */
ob_classify_fn ob_failures_classify;
/* The same with the rules themselves. */
enum ob_err_kind ob_failures_kind(const struct ob_config_failure *rules, size_t count,
				  const struct ob_err *err);

#endif
