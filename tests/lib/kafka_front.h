/* SPDX-License-Identifier: MIT */
/* What stands in front of a mock cluster of one broker, and what stands in for one. */
#ifndef OB_TESTS_KAFKA_FRONT_H
#define OB_TESTS_KAFKA_FRONT_H

#include "chaos_proxy.h"
#include "kafka_mock.h"

/*
 * A broker names its own address to clients: have the proxy in front of it name this host, of
 * nine bytes, and this port instead.
 */
void kafka_front_name(const struct kafka_mock *mock, struct chaos_proxy *proxy, const char *host,
		      int port);

/* A broker that knows SASL PLAIN and lets nobody in. It runs in a thread of its own. */
struct kafka_bouncer;
struct kafka_bouncer *kafka_bouncer_new(void);
int kafka_bouncer_port(const struct kafka_bouncer *bouncer);
/* How often it has refused somebody. */
unsigned kafka_bouncer_refusals(struct kafka_bouncer *bouncer);
void kafka_bouncer_free(struct kafka_bouncer *bouncer);

#endif
