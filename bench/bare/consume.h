/* SPDX-License-Identifier: MIT */
/*
 * The bare loop of a consumer: read up to BARE_CONSUME_BATCH entries of a Redis stream, insert each
 * id and apply each message in one transaction, commit, acknowledge, again. One thread, no lease,
 * no fence, no order after a failure, no retry, nothing parked: what people write. It stops at the
 * first error.
 */
#ifndef OB_BENCH_BARE_CONSUME_H
#define OB_BENCH_BARE_CONSUME_H

/* As many as `outbox consume` reads at once. */
enum { BARE_CONSUME_BATCH = 100 };

#define BARE_STREAM "orders"

/* Consume what is in the stream; `address` is the path of Redis's socket. An exit code. */
int bare_consume(const char *store, const char *url, const char *address);

#endif
