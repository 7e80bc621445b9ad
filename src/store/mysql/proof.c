/* SPDX-License-Identifier: MIT */
/* Which missing numbers are dead; see the header for why. */
#include "store/mysql/proof.h"
#include "base/cleanup.h"
#include "store/mysql/gaps.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"

#include "sql_mysql.h"

#include <mysqld_error.h>
#include <poll.h>
#include <stdlib.h>

enum {
	PACE_US = 100000, /* between two tries with few gaps, */
	PACE_MIN_US = 2000,
	MANY_GAPS = 64, /* and with many */
	SHOWN_MAX = 10000,
	STATEMENTS_MAX = 1 << 20,
	NOW_TRIES = 200,
	NOW_PAUSE_MS = 5,
};

struct my_proof {
	bool asked, possible; /* whether this user may see statements */
	int64_t tried_us;
	bool waiting;       /* for the statements of `then` */
	struct ob_buf then; /* that ran when `upto` had been seen, without those that have ended
			       since: as the server names them, separated by commas */
	int64_t upto;
};

void my_proof_forget(struct my_proof *proof)
{
	if (proof)
		proof->waiting = proof->asked = false;
}

void my_proof_free(struct my_proof *proof)
{
	if (proof)
		ob_buf_done(&proof->then);
	free(proof);
}

static int get_proof(struct my_store *s, struct ob_err *err)
{
	if (!s->proof)
		s->proof = calloc(1, sizeof(*s->proof));
	if (s->proof)
		s->proof->then.max = STATEMENTS_MAX;
	return s->proof ? 0 : my_oom("reading", err);
}

int my_proof_possible(struct my_store *s, bool *ret_possible, struct ob_err *err)
{
	int64_t count;
	int r = get_proof(s, err);

	if (r < 0)
		return r;
	if (!s->proof->asked) {
		r = my_number(s, "asking for the right PROCESS",
			      my_is_mariadb(s) ? sql_mysql_sees_statements_mariadb
					       : sql_mysql_sees_statements_mysql,
			      OB_NO_ARGS, &count, err);
		if (r < 0 && s->code != ER_SPECIFIC_ACCESS_DENIED_ERROR &&
		    s->code != ER_TABLEACCESS_DENIED_ERROR)
			return r;
		s->proof->asked = true;
		s->proof->possible = r > 0 && count > 0;
	}
	*ret_possible = s->proof->possible;
	return 0;
}

/* ---- statements ------------------------------------------------------ */

/* What the server says that it does. */
struct server_state {
	bool is_free;      /* no statement has the table open */
	int64_t end;       /* last number that was handed out; less than before after a TRUNCATE */
	struct ob_buf now; /* the statements that run, */
	struct ob_buf of_then; /* and those of them that ran then */
};

static void set_list(struct ob_buf *to, struct ob_str list)
{
	ob_buf_clear(to);
	ob_buf_add(to, list.p ? list : OB_STR(""));
}

/* "outbox" as a pattern of LIKE, in which _ stands for any character. */
static void add_pattern(struct ob_buf *out, const char *name)
{
	for (; *name; name++) {
		if (*name == '_')
			ob_buf_addc(out, '\\');
		ob_buf_addc(out, *name);
	}
}

static int ask_server(struct my_store *s, bool possible, struct server_state *state,
		      struct ob_err *err)
{
	const struct ob_layout *layout = s->base.layout;
	OB_CLEANUP(ob_buf_done) struct ob_buf pattern = OB_BUF_INIT(256), schema = OB_BUF_INIT(256);
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	add_pattern(&pattern, layout->table[OB_TABLE_outbox]);
	ob_buf_addf(&schema, "`%s`", layout->schema[0] ? layout->schema : s->address.database);
	my_packet_init(&p, s, "looking for running statements");
	(void)MY_ADD(&p, sql_mysql_counter, OB_ARG_TEXT("schema", my_schema(s)),
		     OB_ARG_TEXT("table", layout->table[OB_TABLE_outbox]));
	(void)MY_ADD(&p, sql_mysql_in_use, OB_ARG_RAW("schema", ob_buf_str(&schema)),
		     OB_ARG_STR("pattern", ob_buf_view(&pattern)));
	if (possible)
		(void)MY_ADD(&p,
			     my_is_mariadb(s) ? sql_mysql_statements_mariadb
					      : sql_mysql_statements_mysql,
			     OB_ARG_STR("then", ob_buf_view(&s->proof->then)));
	int r = my_packet_run(&p, err);
	if (r < 0)
		return r;
	my_use(&p, 0);
	state->end = my_step(&p) ? my_int(&p, 0) - 1 : 0;
	state->is_free = true;
	for (my_use(&p, 1); my_step(&p);)
		state->is_free = state->is_free && my_int(&p, 2) == 0;
	my_use(&p, 2);
	if (my_step(&p)) {
		set_list(&state->now, my_str(&p, 0));
		set_list(&state->of_then, my_str(&p, 1));
	}
	return state->now.failed ? my_oom("reading", err) : 0;
}

/* ---- rows that are not committed ------------------------------------- */

/* Of one piece of the list: keep what is shown, and what is above `upto`. */
static bool keep_shown(struct my_packet *p, const struct ob_gaps *gaps, size_t first, int64_t upto,
		       struct ob_gaps *kept)
{
	int64_t shown = 0;
	size_t count = 0, end = first + MY_GAPS_PIECE;
	bool fits = true;

	my_use(p, 1);
	for (; fits && my_step(p); count++) {
		shown = my_int(p, 0);
		if (shown <= upto)
			fits = ob_gaps_add(kept, shown, shown);
	}
	/* More are shown than were read: of the rest nothing is known. */
	if (count >= SHOWN_MAX && shown < upto)
		upto = shown;
	for (size_t i = first; fits && i < gaps->count && i < end; i++) {
		const struct ob_gap *range = &gaps->ranges[i];

		if (range->high > upto)
			fits = ob_gaps_add(kept, range->low > upto ? range->low : upto + 1,
					   range->high);
	}
	return fits;
}

static int probe(struct my_store *s, struct ob_gaps *gaps, int64_t upto, struct ob_err *err)
{
	struct ob_gaps kept = { 0 };
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };
	int r = 0;

	my_packet_init(&p, s, "looking for uncommitted rows");
	for (size_t first = 0; first < gaps->count && r == 0; first += MY_GAPS_PIECE) {
		OB_CLEANUP(ob_buf_done) struct ob_buf where = OB_BUF_INIT(1 << 20);

		my_gaps_where(s, gaps, first, &where);
		my_packet_clear(&p);
		(void)MY_ADD0(&p, sql_mysql_probe_isolation);
		(void)MY_ADD(&p, sql_mysql_probe, OB_ARG_RAW("gaps", ob_buf_str(&where)),
			     OB_ARG_INT("limit", SHOWN_MAX));
		r = my_packet_run(&p, err);
		if (r == 0 && !keep_shown(&p, gaps, first, upto, &kept))
			r = my_oom("reading", err);
	}
	if (r < 0) {
		ob_gaps_done(&kept);
		return r;
	}
	ob_gaps_done(gaps);
	*gaps = kept;
	return 0;
}

/* ---- the proof ------------------------------------------------------- */

/* 1: something could be decided. */
static int try_once(struct my_store *s, struct ob_gaps *gaps, int64_t end, struct ob_err *err)
{
	struct server_state state = { .now = OB_BUF_INIT(STATEMENTS_MAX),
				      .of_then = OB_BUF_INIT(STATEMENTS_MAX) };
	bool possible = false;
	int64_t upto = 0;
	int r = my_proof_possible(s, &possible, err);

	if (r == 0)
		r = ask_server(s, possible, &state, err);
	struct my_proof *proof = s->proof;
	if (r == 0) {
		if (end > state.end)
			end = state.end;
		if (state.is_free)
			upto = end;
		else if (possible && proof->waiting && state.of_then.len == 0)
			upto = proof->upto < end ? proof->upto : end;
		/* What has ended is struck out; when all has, wait for those that run now. */
		bool anew = possible && (!proof->waiting || upto > 0);
		set_list(&proof->then, ob_buf_view(anew ? &state.now : &state.of_then));
		if (anew) {
			proof->upto = end;
			proof->waiting = true;
		}
	}
	ob_buf_done(&state.now);
	ob_buf_done(&state.of_then);
	if (r < 0 || upto <= 0)
		return r;
	r = probe(s, gaps, upto, err);
	return r < 0 ? r : 1;
}

int my_proof_run(struct my_store *s, struct ob_gaps *gaps, int64_t end, struct ob_err *err)
{
	int64_t now = ob_clock_boot_us(&ob_clock_system);
	int r = gaps->count ? get_proof(s, err) : 0;

	if (r < 0 || gaps->count == 0)
		return r;
	if (now - s->proof->tried_us < (gaps->count < MANY_GAPS ? PACE_US : PACE_MIN_US))
		return 0;
	r = try_once(s, gaps, end, err);
	s->proof->tried_us = ob_clock_boot_us(&ob_clock_system);
	return r < 0 ? r : 0;
}

int my_proof_now(struct my_store *s, struct ob_gaps *gaps, int64_t end, struct ob_err *err)
{
	int r = get_proof(s, err);

	if (r == 0)
		s->proof->waiting = false;
	for (int tries = 0; gaps->count && r == 0 && tries < NOW_TRIES; tries++) {
		r = try_once(s, gaps, end, err);
		if (r == 0)
			(void)poll(NULL, 0, NOW_PAUSE_MS);
	}
	return r < 0 ? r : 0;
}
