/* SPDX-License-Identifier: MIT */
/*
 * librdkafka's mock cluster as a process of its own: so many brokers on free ports of 127.0.0.1,
 * all in memory. Prints "brokers host:port,host:port", then obeys lines, each answered by "ok":
 *
 *   topic NAME PARTITIONS      create
 *   fail NAME CODE             what is said of that topic's metadata; 0: all is well again
 *   refuse CODE COUNT          the next COUNT requests to produce are answered with CODE
 *   rtt MS                     each answer comes so late
 *   down, up                   connections are cut and none is taken; and again
 *
 * It ends at the end of its input.
 */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h> /* wants the other one first */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCE = 0, ALL_BROKERS = -1, REFUSALS_MAX = 1000 };

static void refuse(rd_kafka_mock_cluster_t *cluster, int code, size_t count)
{
	rd_kafka_resp_err_t codes[REFUSALS_MAX];

	for (size_t i = 0; i < REFUSALS_MAX; i++)
		codes[i] = (rd_kafka_resp_err_t)code;
	rd_kafka_mock_push_request_errors_array(cluster, PRODUCE,
						count < REFUSALS_MAX ? count : REFUSALS_MAX, codes);
}

static int number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

static int obey(rd_kafka_mock_cluster_t *cluster, const char *verb, const char *a, const char *b)
{
	if (strcmp(verb, "topic") == 0)
		return rd_kafka_mock_topic_create(cluster, a, number(b), 1);
	if (strcmp(verb, "rtt") == 0)
		return rd_kafka_mock_broker_set_rtt(cluster, ALL_BROKERS, number(a));
	if (strcmp(verb, "down") == 0)
		return rd_kafka_mock_broker_set_down(cluster, ALL_BROKERS);
	if (strcmp(verb, "up") == 0)
		return rd_kafka_mock_broker_set_up(cluster, ALL_BROKERS);
	if (strcmp(verb, "fail") == 0)
		rd_kafka_mock_topic_set_error(cluster, a, (rd_kafka_resp_err_t)number(b));
	else if (strcmp(verb, "refuse") == 0)
		refuse(cluster, number(a), (size_t)number(b));
	else
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	char line[512], verb[16], a[300], b[16], why[300];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	(void)rd_kafka_conf_set(conf, "log_level", "2", NULL, 0);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
	rd_kafka_mock_cluster_t *cluster =
		argc > 1 && rk ? rd_kafka_mock_cluster_new(rk, number(argv[1])) : NULL;

	if (!cluster)
		return 1;
	(void)printf("brokers %s\n", rd_kafka_mock_cluster_bootstraps(cluster));
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		a[0] = b[0] = '\0';
		int n = sscanf(line, "%15s %299s %15s", verb, a, b);

		(void)printf("%s\n", n > 0 && obey(cluster, verb, a, b) == 0 ? "ok" : "failed");
		(void)fflush(stdout);
	}
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(rk);
	return 0;
}
