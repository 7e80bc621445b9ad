/* SPDX-License-Identifier: MIT */
/* Starting, telling and reading a mock cluster. */
#include "kafka_mock.h"

#include <check.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };

/* ---- the process ----------------------------------------------------- */

static void child(const char *program, int brokers, int in, int out)
{
	char count[16];

	(void)snprintf(count, sizeof(count), "%d", brokers > 0 ? brokers : 2);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(in, 0);
	(void)dup2(out, 1);
	closefrom(3);
	(void)execl(program, program, count, (char *)NULL);
	_exit(127);
}

static void read_line(struct kafka_mock *mock, char *out, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && read(mock->out, out + n, 1) == 1 && out[n] != '\n')
		n++;
	out[n] = '\0';
}

static void silent(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk, (void)level, (void)facility, (void)text;
}

static rd_kafka_t *make_consumer(const char *brokers)
{
	char why[300];
	const char *const settings[][2] = {
		{ "bootstrap.servers", brokers },          { "group.id", "test" },
		{ "enable.auto.commit", "false" },         { "enable.partition.eof", "true" },
		{ "fetch.message.max.bytes", "20000000" }, { "fetch.wait.max.ms", "5" },
		{ "socket.nagle.disable", "true" },
	};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		ck_assert_msg(rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why,
						sizeof(why)) == RD_KAFKA_CONF_OK,
			      "%s", why);
	rd_kafka_conf_set_log_cb(conf, silent);
	rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	ck_assert_msg(consumer != NULL, "%s", why);
	return consumer;
}

void kafka_mock_start(struct kafka_mock *mock)
{
	const char *program = getenv("KAFKA_MOCK");
	int to[2], from[2];
	char line[300];

	ck_assert_msg(program != NULL, "KAFKA_MOCK is not set");
	ck_assert_int_eq(pipe(to), 0);
	ck_assert_int_eq(pipe(from), 0);
	*mock = (struct kafka_mock){
		.broker_count = mock->broker_count, .pid = fork(), .in = to[1], .out = from[0]
	};
	ck_assert_int_ge(mock->pid, 0);
	if (mock->pid == 0)
		child(program, mock->broker_count, to[0], from[1]);
	(void)close(to[0]);
	(void)close(from[1]);
	read_line(mock, line, sizeof(line));
	ck_assert_msg(sscanf(line, "brokers %255s", mock->brokers) == 1, "no mock cluster: %s",
		      line);
	mock->consumer = make_consumer(mock->brokers);
}

void kafka_mock_end(struct kafka_mock *mock)
{
	rd_kafka_destroy(mock->consumer);
	(void)close(mock->in);
	(void)close(mock->out);
	(void)kill(mock->pid, SIGKILL);
	ck_assert_int_eq(waitpid(mock->pid, NULL, 0), mock->pid);
	*mock = (struct kafka_mock){ .broker_count = mock->broker_count };
}

int kafka_mock_port(const struct kafka_mock *mock)
{
	const char *colon = strchr(mock->brokers, ':');

	ck_assert_ptr_nonnull(colon);
	return (int)strtol(colon + 1, NULL, 10);
}

void kafka_mock_tell(struct kafka_mock *mock, const char *fmt, ...)
{
	char line[400], answer[32];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	ck_assert_int_eq(write(mock->in, line, (size_t)n), n);
	read_line(mock, answer, sizeof(answer));
	ck_assert_msg(strcmp(answer, "ok") == 0, "%.*s: %s", n - 1, line, answer);
}

void kafka_mock_pause(struct kafka_mock *mock)
{
	int status;

	ck_assert_int_eq(kill(mock->pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(mock->pid, &status, WUNTRACED), mock->pid);
	ck_assert(WIFSTOPPED(status));
}

void kafka_mock_continue(struct kafka_mock *mock)
{
	ck_assert_int_eq(kill(mock->pid, SIGCONT), 0);
}

/* ---- reading --------------------------------------------------------- */

static struct kafka_mark *find_mark(struct kafka_mock *mock, const char *topic, int32_t partition)
{
	for (size_t i = 0; i < mock->mark_count; i++) {
		struct kafka_mark *mark = &mock->marks[i];

		if (mark->partition == partition && strcmp(mark->topic, topic) == 0)
			return mark;
	}
	ck_assert_uint_lt(mock->mark_count, KAFKA_MARKS);
	struct kafka_mark *mark = &mock->marks[mock->mark_count++];
	(void)snprintf(mark->topic, sizeof(mark->topic), "%s", topic);
	mark->partition = partition;
	return mark;
}

static int64_t end_offset(struct kafka_mock *mock, const struct kafka_mark *mark)
{
	int64_t low = 0, high = 0;
	rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
		mock->consumer, mark->topic, mark->partition, &low, &high, PATIENCE_MS);

	ck_assert_msg(code == 0, "%s [%d]: %s", mark->topic, mark->partition,
		      rd_kafka_err2str(code));
	return high;
}

/* A mark for each partition that there is. */
static void find_partitions(struct kafka_mock *mock)
{
	const struct rd_kafka_metadata *all;
	rd_kafka_resp_err_t code = rd_kafka_metadata(mock->consumer, 1, NULL, &all, PATIENCE_MS);

	ck_assert_msg(code == 0, "metadata: %s", rd_kafka_err2str(code));
	for (int i = 0; i < all->topic_cnt; i++) {
		for (int k = 0; k < all->topics[i].partition_cnt && all->topics[i].err == 0; k++)
			(void)find_mark(mock, all->topics[i].topic,
					all->topics[i].partitions[k].id);
	}
	rd_kafka_metadata_destroy(all);
}

void kafka_mock_skip(struct kafka_mock *mock)
{
	find_partitions(mock);
	for (size_t i = 0; i < mock->mark_count; i++)
		mock->marks[i].offset = end_offset(mock, &mock->marks[i]);
}

static struct ob_str keep(struct ob_arena *arena, const void *p, size_t n)
{
	struct ob_str copy = OB_STR_NULL;

	if (p)
		ck_assert(ob_arena_copy(arena, (struct ob_str){ p, n }, &copy));
	return copy;
}

static void keep_headers(struct ob_arena *arena, const rd_kafka_message_t *message,
			 struct kafka_record *record)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t size;

	if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return;
	record->header_count = rd_kafka_header_cnt(headers);
	record->names = ob_arena_alloc(arena, record->header_count * sizeof(struct ob_str));
	record->values = ob_arena_alloc(arena, record->header_count * sizeof(struct ob_str));
	ck_assert(record->names && record->values);
	for (size_t i = 0; i < record->header_count; i++) {
		ck_assert_int_eq(rd_kafka_header_get_all(headers, i, &name, &value, &size), 0);
		record->names[i] = keep(arena, name, strlen(name));
		record->values[i] = keep(arena, value, size);
	}
}

static void assign(struct kafka_mock *mock, const struct kafka_mark *mark)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

	rd_kafka_topic_partition_list_add(list, mark->topic, mark->partition)->offset =
		mark->offset;
	ck_assert_int_eq(rd_kafka_assign(mock->consumer, list), 0);
	rd_kafka_topic_partition_list_destroy(list);
}

static void read_partition(struct kafka_mock *mock, const struct kafka_mark *mark, int64_t end,
			   struct ob_arena *arena, struct kafka_record *out)
{
	int64_t next = mark->offset;

	assign(mock, mark);
	while (next < end) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(mock->consumer, PATIENCE_MS);

		ck_assert_msg(message != NULL, "nothing comes from %s [%d] at %lld", mark->topic,
			      mark->partition, (long long)next);
		if (message->err == 0) {
			*out = (struct kafka_record){
				.topic = keep(arena, mark->topic, strlen(mark->topic)),
				.key = keep(arena, message->key, message->key_len),
				.value = keep(arena, message->payload, message->len),
				.partition = mark->partition,
			};
			keep_headers(arena, message, out++);
			next++;
		}
		rd_kafka_message_destroy(message);
	}
	ck_assert_int_eq(rd_kafka_assign(mock->consumer, NULL), 0);
}

size_t kafka_mock_read(struct kafka_mock *mock, struct ob_arena *arena,
		       struct kafka_record **ret_records)
{
	int64_t ends[KAFKA_MARKS];
	size_t count = 0, at = 0;

	find_partitions(mock);
	for (size_t i = 0; i < mock->mark_count; i++) {
		ends[i] = end_offset(mock, &mock->marks[i]);
		count += (size_t)(ends[i] - mock->marks[i].offset);
	}
	struct kafka_record *records = ob_arena_alloc(arena, (count + 1) * sizeof(*records));
	ck_assert_ptr_nonnull(records);
	for (size_t i = 0; i < mock->mark_count; i++) {
		if (ends[i] == mock->marks[i].offset)
			continue;
		read_partition(mock, &mock->marks[i], ends[i], arena, records + at);
		at += (size_t)(ends[i] - mock->marks[i].offset);
	}
	*ret_records = records;
	return count;
}

struct ob_str kafka_header(const struct kafka_record *record, const char *name)
{
	for (size_t i = record->header_count; i-- > 0;) {
		if (ob_str_eq(record->names[i], ob_str(name)))
			return record->values[i];
	}
	return OB_STR_NULL;
}
