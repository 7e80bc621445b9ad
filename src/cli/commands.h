/* SPDX-License-Identifier: MIT */
/* Every command, each from its own file cmd_<name>.c. */
#ifndef OB_CLI_COMMANDS_H
#define OB_CLI_COMMANDS_H

#include "cli/cmd.h"

extern const struct ob_cmd ob_cmd_adopt;
extern const struct ob_cmd ob_cmd_audit;
extern const struct ob_cmd ob_cmd_backends;
extern const struct ob_cmd ob_cmd_bench;
extern const struct ob_cmd ob_cmd_cleanup;
extern const struct ob_cmd ob_cmd_completion;
extern const struct ob_cmd ob_cmd_config_check;
extern const struct ob_cmd ob_cmd_demo;
extern const struct ob_cmd ob_cmd_discard;
extern const struct ob_cmd ob_cmd_doctor;
extern const struct ob_cmd ob_cmd_events_forget;
extern const struct ob_cmd ob_cmd_events_read;
extern const struct ob_cmd ob_cmd_events_show;
extern const struct ob_cmd ob_cmd_events_streams;
extern const struct ob_cmd ob_cmd_failures;
extern const struct ob_cmd ob_cmd_health;
extern const struct ob_cmd ob_cmd_help;
extern const struct ob_cmd ob_cmd_init;
extern const struct ob_cmd ob_cmd_list;
extern const struct ob_cmd ob_cmd_maintain;
extern const struct ob_cmd ob_cmd_metrics;
extern const struct ob_cmd ob_cmd_monitor;
extern const struct ob_cmd ob_cmd_partitions;
extern const struct ob_cmd ob_cmd_push;
extern const struct ob_cmd ob_cmd_readers_list;
extern const struct ob_cmd ob_cmd_readers_remove;
extern const struct ob_cmd ob_cmd_readers_seek;
extern const struct ob_cmd ob_cmd_readers_show;
extern const struct ob_cmd ob_cmd_reconcile;
extern const struct ob_cmd ob_cmd_replay;
extern const struct ob_cmd ob_cmd_retry;
extern const struct ob_cmd ob_cmd_setup;
extern const struct ob_cmd ob_cmd_show;
extern const struct ob_cmd ob_cmd_skip;
extern const struct ob_cmd ob_cmd_status;
extern const struct ob_cmd ob_cmd_top;
extern const struct ob_cmd ob_cmd_version;
extern const struct ob_cmd ob_cmd_wait;
extern const struct ob_cmd ob_cmd_why;
extern const struct ob_cmd ob_cmd_consume;
extern const struct ob_cmd ob_cmd_consumers;
extern const struct ob_cmd ob_cmd_dlq_list;
extern const struct ob_cmd ob_cmd_dlq_show;
extern const struct ob_cmd ob_cmd_dlq_why;
extern const struct ob_cmd ob_cmd_dlq_retry;
extern const struct ob_cmd ob_cmd_dlq_skip;
extern const struct ob_cmd ob_cmd_dlq_discard;
extern const struct ob_cmd ob_cmd_dlq_replay;
extern const struct ob_cmd ob_cmd_dlq_purge;
extern const struct ob_cmd ob_cmd_work;

#endif
