/* SPDX-License-Identifier: MIT */
/*
 * Who makes the receiver hang up. A lost connection says nothing about the messages that were on
 * it, but a message on which it is lost every time holds up all others. So those
 * that were on two lost connections are suspects, and go out alone. One that loses the connection
 * alone three times, and others passed before each of them, is to blame. Where nothing passes,
 * or nothing else is there to be sent, it is an outage and stays one.
 *
 * After two crashes of a broker thousands are suspects, and all are sound. So with each of them
 * that passes, twice as many may be under way, until the next connection is lost; those that were
 * on a third one stay alone.
 *
 * Messages are known by their number (seq, from 1). A message that passes is forgotten.
 */
#ifndef OB_RELAY_SUSPECTS_H
#define OB_RELAY_SUSPECTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	OB_SUSPECT_DROPS = 2,   /* lost connections that make a suspect */
	OB_SUSPECT_STRIKES = 3, /* lost alone, that make it to blame */
};

struct ob_suspect {
	int64_t seq;             /* 0: nobody was here */
	uint32_t drops, strikes; /* drops 0: forgotten */
	uint64_t passes;         /* what had passed at its last drop */
};

struct ob_suspects {
	struct ob_suspect *slots; /* hashed by number, the next one where it is taken */
	uint32_t mask, used;      /* slots taken, also by those who are forgotten */
	uint32_t known, accused;  /* with a drop, with enough of them */
	uint64_t passes;          /* messages that have passed */
	uint32_t together;        /* so many suspects may be under way */
};

/* Room for that many at a time; who does not fit makes it forget all. */
int ob_suspects_init(struct ob_suspects *suspects, uint32_t max, struct ob_err *err);
void ob_suspects_done(struct ob_suspects *suspects);

/* Is it one? */
bool ob_suspects_has(const struct ob_suspects *suspects, int64_t seq);
/* How many others may be under way when it is sent; 0: it must be alone until it is answered. */
uint32_t ob_suspects_company(const struct ob_suspects *suspects, int64_t seq);
/*
 * The receiver hung up on it; `alone`: nothing else was under way from its sending on. True when it
 * is to blame; the count of that begins anew then.
 */
bool ob_suspects_drop(struct ob_suspects *suspects, int64_t seq, bool alone);
/* It passed: a sign for all others. */
void ob_suspects_pass(struct ob_suspects *suspects, int64_t seq);

#endif
