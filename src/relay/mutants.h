/* SPDX-License-Identifier: MIT */
/*
 * Deliberate bugs, to prove that the simulator's checker sees them. A test build
 * with -DOB_MUTANT=n has exactly one; every other build has none (0) and the
 * compiler drops the tests for them.
 */
#ifndef OB_RELAY_MUTANTS_H
#define OB_RELAY_MUTANTS_H

#ifndef OB_MUTANT
#define OB_MUTANT 0
#endif

/* name, number, what is wrong with it */
#define OB_MUTANT_MAP(X) \
	X(SETTLE_BEFORE_ACK, 1, \
	  "a message is settled when the sink accepts it, not when it acknowledges") \
	X(UNFENCED_SETTLE, 2, "memory store: settle does not look at the lease") \
	X(STALE_FENCE, 3, "memory store: settle looks at a lease read before the takeover") \
	X(SEQ_CURSOR, 4, "rows at or below the highest sequence number seen are passed over") \
	X(CHARGE_OUTAGE, 5, "a sink that is down costs an attempt") \
	X(EARLY_RELEASE, 6, "a key goes on before its failed head is out") \
	X(IGNORE_HELD, 7, "rows of a held key are taken from a fetch that began too early") \
	X(EMPTY_SET, 8, "no partition means every partition") \
	X(HOST_OWNER, 9, "the owner id is made from the host's name") \
	X(TWO_UNCONFIRMED, 10, "two unconfirmed messages of a key on a sink that keeps no order") \
	X(LATE_SEND, 11, "the local deadline of the lease is not checked before a send") \
	X(RENEW_TRUST, 12, "a failed renewal extends the local deadline") \
	X(CHARGE_FOLLOWER, 13, "a follower pays for the failure of the message before it") \
	X(LOSE_ON_DRAIN, 14, "stopping settles what is still unconfirmed as published") \
	X(UNSAFE_MARK, 15, "a fetch begins above numbers of a transaction that was still open") \
	X(FETCH_SETTLING, 16, "rows that are being settled beside the worker are fetched again") \
	X(DRAIN_SETTLING, 17, "a partition is given up while rows of it are being settled") \
	X(ONE_GENERATION, 18, \
	  "a fetch goes on behind the last one whatever became of its messages") \
	X(MARK_AS_AHEAD, 19, "a partition is read as if nothing were held there") \
	X(CHARGE_HANG_UP, 20, "a message pays for lost connections though no other passed") \
	X(IGNORE_HANG_UP, 21, "a message on which every connection is lost is never to blame")

enum ob_mutant {
	OB_MUTANT_NONE = 0,
#define X(name, number, text) OB_MUTANT_##name = (number),
	OB_MUTANT_MAP(X)
#undef X
};

/* Is this the bug that was built in? */
#define OB_IS_MUTANT(name) (OB_MUTANT == (int)OB_MUTANT_##name)

#endif
