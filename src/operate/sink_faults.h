/* SPDX-License-Identifier: MIT */
/* What a sink of a valid configuration would fail with, as far as that can be seen from here. */
#ifndef OB_OPERATE_SINK_FAULTS_H
#define OB_OPERATE_SINK_FAULTS_H

#include "config/config.h"

/*
 * Append a line "sinks.NAME: ..." for each: a program that is not there, an address that will be
 * refused, a port that is none. By the options' names; nothing is started or connected to.
 */
void ob_sink_faults(const struct ob_config_sink *sink, struct ob_buf *out);

#endif
