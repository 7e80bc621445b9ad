/* SPDX-License-Identifier: MIT */
/*
 * A Kafka cluster of one test: librdkafka's mock, in a process of its own (the environment variable
 * KAFKA_MOCK names the program), and a consumer to look at what is stored. All is in memory and
 * gone with it. It ends with the test's process. Failures end the test.
 */
#ifndef OB_TESTS_KAFKA_MOCK_H
#define OB_TESTS_KAFKA_MOCK_H

#include "base/arena.h"

#include <librdkafka/rdkafka.h>
#include <sys/types.h>

enum { KAFKA_MARKS = 64 };

/* Where reading begins, in one partition. */
struct kafka_mark {
	char topic[256];
	int32_t partition;
	int64_t offset;
};

struct kafka_mock {
	int broker_count; /* in; 0: two */
	pid_t pid;
	int in, out; /* its stdin and stdout */
	char brokers[256];
	rd_kafka_t *consumer;
	struct kafka_mark marks[KAFKA_MARKS];
	size_t mark_count;
};

/* A record; the memory is the arena's. p NULL: the record has none. */
struct kafka_record {
	struct ob_str topic, key, value;
	int32_t partition;
	size_t header_count;
	struct ob_str *names, *values;
};

void kafka_mock_start(struct kafka_mock *mock);
void kafka_mock_end(struct kafka_mock *mock);
/* The port of the first broker. */
int kafka_mock_port(const struct kafka_mock *mock);
/* A line of kafka_mock_server.c; it must be obeyed. */
void kafka_mock_tell(struct kafka_mock *mock, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* SIGSTOP and SIGCONT: it is there and says nothing. */
void kafka_mock_pause(struct kafka_mock *mock);
void kafka_mock_continue(struct kafka_mock *mock);

/* All records of all topics since the last kafka_mock_skip(), partition by partition. */
size_t kafka_mock_read(struct kafka_mock *mock, struct ob_arena *arena,
		       struct kafka_record **ret_records);
/* What is there now is not read any more. */
void kafka_mock_skip(struct kafka_mock *mock);
/* The value of the last header of that name; absent: there is none. */
struct ob_str kafka_header(const struct kafka_record *record, const char *name);

#endif
