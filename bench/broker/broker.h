/* SPDX-License-Identifier: MIT */
/* A broker to measure with: a private server that says how many messages it has stored. */
#ifndef OB_BENCH_BROKER_H
#define OB_BENCH_BROKER_H

#include "bench/report/result.h"

#include <stdint.h>
#include <sys/types.h>

struct bench_broker;

struct bench_broker_ops {
	const char *name;  /* "redis": also the type of the sink */
	const char *title; /* "Redis" */
	long look_us;      /* how often count() may be asked; 0: as often as you like */
	/*
	 * Start the server and set `sink` and `address`; false when there is none, and
	 * broker->reason says what is missing.
	 */
	bool (*start)(struct bench_broker *broker);
	void (*stop)(struct bench_broker *broker);
	/* Forget what is stored. */
	void (*clear)(struct bench_broker *broker);
	/* Messages stored since clear(). It is asked often. */
	uint64_t (*count)(struct bench_broker *broker);
	void (*version)(struct bench_broker *broker, char out[BENCH_TEXT_SIZE]);
};

struct bench_broker {
	const struct bench_broker_ops *ops;
	bool tried, there;
	char sink[512];    /* of the configuration, behind "type: NAME": ", url: ..." */
	char address[256]; /* for the bare loop */
	pid_t pid;         /* of the server; 0: there is none */
	char reason[BENCH_TEXT_SIZE];
	void *impl;
};

/* Is that program where Debian puts it? If not the reason is set. */
bool bench_broker_finds(struct bench_broker *broker, const char *program);

#endif
