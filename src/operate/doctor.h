/* SPDX-License-Identifier: MIT */
/*
 * The doctor: everything about databases, destinations and the configuration that makes messages
 * late, lost or repeated, as findings. Reads only; sinks are opened as a relay opens them, and no
 * message is sent; no message of a source is taken.
 */
#ifndef OB_OPERATE_DOCTOR_H
#define OB_OPERATE_DOCTOR_H

#include "base/jout.h"
#include "config/config.h"
#include "operate/snapshot.h"

struct ob_doctor {
	const struct ob_config *config;
	const struct ob_config_store *store; /* NULL: all of the configuration */
	bool connect_only;                   /* stores and sinks: are they there and usable? */
};

/* Check all of it. A check that cannot be made is a finding. */
void ob_doctor_run(const struct ob_doctor *doctor, struct ob_findings *out);
/* The table of that number, and whose it is ("any database", "postgres", "redis" ...), for the
 * manual; NULL: no more. Backends that are not in this build are left out. */
const struct ob_check *ob_doctor_checks(size_t index, const char **ret_name);

/* Append "findings" as an array, and how many are "errors" and "warnings". */
void ob_findings_json(struct ob_jout *j, const struct ob_findings *findings);

/* ---- parts, for tests ------------------------------------------------ */

#define OB_DOCTOR_MAP(X) \
	X(CONFIG_RIGHTS, "config_rights", \
	  "Only its owner can read a configuration file that holds a password.", \
	  "run chmod 600 on it, or name the password by ${VARIABLE}") \
	X(STORE_CONNECT, "store_connect", "The database can be reached and logged in to.", \
	  "do what the text says; until then messages wait in the database") \
	X(STORE_SCHEMA, "store_schema", \
	  "The start-up checks of the relay pass: version of server and tables, columns, " \
	  "indexes, rights, order of numbers, isolation.", \
	  "do what the text says: a relay does not start before") \
	X(STORE_SETTINGS, "store_settings", "The settings of the server can be read.", \
	  "try again; if it stays, look at the rights of this user") \
	X(CLOCK_SKEW, "clock_skew", \
	  "The clock of this host and that of the database differ by less than 2 s.", \
	  "run a time service on both; what is due is decided by the database's clock") \
	X(PARTITIONS, "partitions", "No reader has more workers than there are partitions.", \
	  "start fewer workers, or run `outbox partitions resize`") \
	X(READER_LEFT, "reader_left", \
	  "Each reader that keeps rows in the log is run by somebody.", \
	  "start it with `outbox work`, or forget it with `outbox readers remove`") \
	X(SINK_DOWN, "sink_down", "No relay tells that its sink is down.", \
	  "look at the receiver; relays go on by themselves when it is back") \
	X(VERSION_SKEW, "version_skew", "All relays of a log have the same version.", \
	  "upgrade the others: run one version but for the time of an upgrade") \
	X(RELAY_STOPPED, "relay_stopped", "Each relay of the configuration has a worker.", \
	  "start it with `outbox work`") \
	X(TARGET_UNREAD, "target_unread", "Each target of the newest messages has a reader.", \
	  "add a relay with `reads` of that name, or correct the target where it is pushed") \
	X(OLDEST_DUE, "oldest_due", "No message has been due for five minutes.", \
	  "ask `outbox why` and `outbox failures` what it waits for") \
	X(DEAD, "dead_messages", "No message is dead.", \
	  "look at them with `outbox list --state dead`, then retry, skip or discard them") \
	X(SINK_OPTIONS, "sink_options", \
	  "What a sink names is there: its program, an address that is not refused.", \
	  "correct the sink's entry in the configuration") \
	X(SINK_CONNECT, "sink_connect", "The destination can be reached and logged in to.", \
	  "do what the text says; until then messages wait in the database") \
	X(SOURCE_CONNECT, "source_connect", \
	  "The source of a consumer can be reached and logged in to.", \
	  "do what the text says; until then nothing is consumed")

enum ob_doctor_check {
#define X(name, code, what, advice) OB_DOCTOR_##name,
	OB_DOCTOR_MAP(X)
#undef X
		OB_DOCTOR_COUNT
};

extern const struct ob_check ob_doctor_table[];

/* doctor_config.c: the file, and each sink; true: the sink is open. */
void ob_doctor_config(const struct ob_config *config, struct ob_findings *out);
void ob_doctor_sink(const struct ob_doctor *doctor, const struct ob_config_sink *conf,
		    struct ob_findings *out);
/* doctor_consumers.c: the source of a consumer, and its limits. */
void ob_doctor_consumer(const struct ob_config_consumer *conf, struct ob_findings *out);
/* doctor_readers.c: readers of a store, its targets and its clock. */
void ob_doctor_readers(const struct ob_doctor *doctor, const struct ob_config_store *entry,
		       struct ob_store *store, struct ob_findings *out);
void ob_doctor_judge_readers(const struct ob_snapshot *snapshot, struct ob_findings *out);
/* What workers tell: sinks that are down, versions that differ. */
void ob_doctor_judge_reports(const struct ob_snapshot *snapshot, struct ob_findings *out);
/* The database's clock was `db_us` when ours was between the other two. */
void ob_doctor_judge_clock(int64_t before_us, int64_t db_us, int64_t after_us,
			   struct ob_findings *out);

#endif
