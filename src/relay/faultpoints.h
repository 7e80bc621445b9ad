/* SPDX-License-Identifier: MIT */
/* The named fault points of the relay, so that crash tests can pass through every one of them. */
#ifndef OB_RELAY_FAULTPOINTS_H
#define OB_RELAY_FAULTPOINTS_H

#include "base/fault.h"

/* symbol, name, when it is passed */
#define OB_FAULT_POINT_MAP(X) \
	X(TAKE_OVER_BEFORE, "take_over.before", "a lease is new, its journal is not ours yet") \
	X(TAKE_OVER_AFTER, "take_over.after", "the journal is ours, nothing is read") \
	X(READ_BEFORE, "read.before", "before rows are read") \
	X(READ_AFTER, "read.after", "rows are read, none is sent") \
	X(SEND_BEFORE, "send.before", "before a message is handed to the sink") \
	X(SEND_AFTER, "send.after", "the sink has accepted a message") \
	X(POLL_AFTER, "poll.after", "the sink has confirmed, nothing is settled") \
	X(SETTLE_BEFORE, "settle.before", "before outcomes are recorded") \
	X(SETTLE_AFTER, "settle.after", "outcomes are recorded, the worker has not noticed") \
	X(LEASE_BEAT_BEFORE, "lease.beat.before", "before a heartbeat") \
	X(LEASE_RENEW_BEFORE, "lease.renew.before", "before leases are renewed") \
	X(LEASE_RENEW_AFTER, "lease.renew.after", "leases are renewed, the worker does not know") \
	X(LEASE_TAKE_BEFORE, "lease.take.before", "before partitions are taken") \
	X(LEASE_TAKE_AFTER, "lease.take.after", "partitions are taken, the worker does not know") \
	X(RELEASE_BEFORE, "release.before", "a partition is drained, its lease is still held") \
	X(RELEASE_AFTER, "release.after", "a partition is given back") \
	X(LEAVE_BEFORE, "leave.before", "drained, before the worker leaves") \
	X(LEAVE_AFTER, "leave.after", "the worker has left")

#define X(symbol, name, text) static const char OB_FAULT_##symbol[] __attribute__((unused)) = name;
OB_FAULT_POINT_MAP(X)
#undef X

#endif
