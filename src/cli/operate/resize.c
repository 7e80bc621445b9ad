/* SPDX-License-Identifier: MIT */
/* Partitions change their number only while nobody works: this asks for it, waits, and says for
 * whom. */
#include "cli/operate/resize.h"

#include "base/count.h"
#include "cli/operate/decide.h"
#include "cli/operate/standins.h"
#include "cli/out/jprint.h"
#include "cli/out/para.h"
#include "operate/owners.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

/* TRY_MS: how soon the end of a lease is noticed. SLACK_MS: stand-ins outlive the wait by it. */
enum { TRY_MS = 50, SLACK_MS = 5000, TEXT_MAX = 4096 };

/* ---- who is in the way ----------------------------------------------- */

/* Is this the first partition that its owner holds? */
static bool first_of_owner(const struct ob_owners *o, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (o->partitions[i].leased &&
		    ob_uuid_eq(&o->partitions[i].owner, &o->partitions[index].owner))
			return false;
	}
	return true;
}

static uint64_t held_by(const struct ob_owners *o, const struct ob_uuid *owner)
{
	uint64_t held = 0;

	for (size_t i = 0; i < o->partition_count; i++)
		held += o->partitions[i].leased && ob_uuid_eq(&o->partitions[i].owner, owner);
	return held;
}

/* "worker 00c0ffee0001 (shop1, pid 4711) holds 8, ..."; returns how many hold any. */
static size_t add_holders(struct ob_buf *out, const struct ob_owners *o)
{
	size_t holders = 0;

	for (size_t i = 0; i < o->partition_count; i++) {
		const struct ob_partition *p = &o->partitions[i];
		char id[OB_OWNER_SHORT_SIZE];

		if (!p->leased || !first_of_owner(o, i))
			continue;
		const struct ob_worker *w = ob_owners_find(o, &p->owner);
		ob_owner_short(&p->owner, id);
		ob_buf_addf(out, "%sworker %s", holders ? ", " : "", id);
		if (w) {
			ob_buf_adds(out, " (");
			ob_buf_add(out, w->hostname);
			ob_buf_addf(out, ", pid %d)", w->pid);
		}
		ob_buf_addf(out, " holds %" PRIu64, held_by(o, &p->owner));
		holders++;
	}
	return holders;
}

/* The text of the holders; false when nobody holds anything (any more). */
static bool describe_holders(struct ob_store *store, struct ob_buf *out)
{
	struct ob_err ignored = OB_ERR_INIT;
	struct ob_owners o;
	bool any = ob_owners_load(&o, store, NULL, &ignored) == 0 && add_holders(out, &o) > 0;

	ob_owners_done(&o);
	return any;
}

/* ---- resizing -------------------------------------------------------- */

struct resizing {
	const struct ob_cli *cli;
	const struct ob_session *session;
	uint32_t from, to;
	int64_t wait_ms;
};

/* Tell once who is asked. */
static void tell(const struct resizing *z)
{
	struct ob_buf who = OB_BUF_INIT(TEXT_MAX), line = OB_BUF_INIT(TEXT_MAX);

	if (describe_holders(z->session->store, &who)) {
		ob_buf_addf(&line, "waiting for workers to let go: %s", ob_buf_str(&who));
		ob_para_print(stderr, ob_buf_view(&line), 0);
	}
	ob_buf_done(&line);
	ob_buf_done(&who);
}

/* Try until it works, fails for another reason, or the time is over. */
static int try_until(const struct resizing *z, struct ob_err *err)
{
	const int64_t end = ob_clock_boot_us(&ob_clock_system) + z->wait_ms * 1000;

	for (;;) {
		int r = ob_store_resize(z->session->store, z->to, err);
		int64_t left_ms = (end - ob_clock_boot_us(&ob_clock_system)) / 1000;

		if (r != OUTBOX_EBUSY || left_ms <= 0)
			return r;
		(void)poll(NULL, 0, left_ms < TRY_MS ? (int)left_ms + 1 : TRY_MS);
	}
}

/* At once when nobody works; else ask everybody to let go, and wait for it. */
static int resize_all(const struct resizing *z, const struct ob_owners *o, struct ob_err *err)
{
	struct ob_standins standins;
	int r = ob_store_resize(z->session->store, z->to, err);

	if (r != OUTBOX_EBUSY)
		return r;
	tell(z);
	r = ob_standins_join(&standins, z->session->store, o, z->wait_ms + SLACK_MS, err);
	if (r == 0)
		r = try_until(z, err);
	ob_standins_done(&standins);
	return r;
}

/* Only seed() tells the number of partitions, and it needs a reader; without one it stays 0. */
static int stored_count(struct resizing *z, const struct ob_owners *o, struct ob_err *err)
{
	struct ob_buf reader = OB_BUF_INIT(TEXT_MAX);
	int r = 0;

	if (o->partition_count) {
		ob_buf_add(&reader, o->partitions[0].reader);
		r = ob_store_seed(z->session->store, ob_buf_str(&reader), &z->from, err);
	}
	ob_buf_done(&reader);
	return r;
}

/* The lease rows of every reader follow the new number. */
static int seed_again(const struct resizing *z, struct ob_err *err)
{
	struct ob_str last = OB_STR_NULL;
	struct ob_owners o;
	int r = ob_owners_load(&o, z->session->store, NULL, err);

	for (size_t i = 0; r == 0 && i < o.partition_count; i++) {
		struct ob_buf reader = OB_BUF_INIT(TEXT_MAX);
		uint32_t count;

		if (!ob_str_eq(o.partitions[i].reader, last)) {
			last = o.partitions[i].reader;
			ob_buf_add(&reader, last);
			r = ob_store_seed(z->session->store, ob_buf_str(&reader), &count, err);
		}
		ob_buf_done(&reader);
	}
	ob_owners_done(&o);
	return r;
}

static int busy(const struct resizing *z, const struct ob_err *err)
{
	struct ob_buf who = OB_BUF_INIT(TEXT_MAX);
	int r;

	if (!describe_holders(z->session->store, &who))
		r = ob_cli_fail("%s", err->msg);
	else
		r = ob_cli_fail("still busy: %s; give them longer with --wait, or stop them",
				ob_buf_str(&who));
	ob_buf_done(&who);
	return r;
}

static int print_done(const struct resizing *z)
{
	struct ob_buf line = OB_BUF_INIT(TEXT_MAX);
	struct ob_jout j = OB_JOUT_INIT;
	int r = OB_EXIT_OK;

	if (z->cli->json) {
		ob_jout_begin(&j, NULL, '{');
		if (z->from)
			ob_jout_int(&j, "from", z->from);
		else
			ob_jout_raw(&j, "from", OB_STR("null"));
		ob_jout_int(&j, "to", z->to);
		ob_jout_end(&j, '}');
		r = ob_jout_print(&j);
	} else {
		if (z->from == z->to)
			ob_buf_adds(&line, "already ");
		else if (z->from)
			ob_buf_addf(&line, "resized from %" PRIu32 " to ", z->from);
		else
			ob_buf_adds(&line, "resized to ");
		ob_count_add(&line, z->to, "partition");
		ob_para_print(stdout, ob_buf_view(&line), 0);
	}
	ob_buf_done(&line);
	ob_jout_done(&j);
	return r;
}

static void take_down(const struct resizing *z, const char *reason)
{
	struct ob_cli_decision decision;
	char filter[64];

	if (z->from)
		(void)snprintf(filter, sizeof(filter), "from %" PRIu32 " to %" PRIu32 " partitions",
			       z->from, z->to);
	else
		(void)snprintf(filter, sizeof(filter), "to %" PRIu32 " partitions", z->to);
	ob_cli_decide(&decision, "partitions resize", NULL, filter, reason);
	ob_cli_decided(&decision, z->session->store, z->to);
}

int ob_resize(const struct ob_cli *cli, const struct ob_session *session, uint32_t count,
	      int64_t wait_ms, const char *reason)
{
	struct resizing z = { .cli = cli, .session = session, .to = count, .wait_ms = wait_ms };
	struct ob_err err = OB_ERR_INIT;
	struct ob_owners o;
	int r = ob_owners_load(&o, session->store, NULL, &err);

	if (r == 0)
		r = stored_count(&z, &o, &err);
	if (r == 0 && z.from != z.to)
		r = resize_all(&z, &o, &err);
	if (r == 0 && z.from != z.to)
		r = seed_again(&z, &err);
	ob_owners_done(&o);
	if (r == OUTBOX_EBUSY)
		return busy(&z, &err);
	if (r < 0)
		return ob_cli_fail("%s", err.msg);
	if (z.from != z.to)
		take_down(&z, reason);
	return print_done(&z);
}
