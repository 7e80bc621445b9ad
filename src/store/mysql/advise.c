/* SPDX-License-Identifier: MIT */
/* What works on a MySQL or MariaDB server, and yet weakens a promise or costs more than it should.
 */
#include "base/cleanup.h"
#include "store/mysql/parts.h"
#include "store/mysql/proof.h"
#include "store/mysql/schema.h"
#include "store/mysql/sql.h"

#include "sql_mysql.h"

static void advise_durability(const struct my_packet *p, struct ob_buf *out)
{
	if (my_int(p, 0) != 1)
		ob_buf_addf(
			out,
			"innodb_flush_log_at_trx_commit is %lld: a message may be sent whose "
			"transaction is lost when the server crashes right after; set it to 1\n",
			(long long)my_int(p, 0));
	if (!my_int(p, 1))
		ob_buf_adds(
			out,
			"the binary log is off: InnoDB then shows a transaction to others before "
			"it is durable, so a message may be sent whose transaction is lost when "
			"the server crashes in that moment; switch log_bin on\n");
	else if (my_int(p, 2) != 1)
		ob_buf_addf(out,
			    "sync_binlog is %lld: after a power cut a replica may lack messages "
			    "that were sent; set it to 1\n",
			    (long long)my_int(p, 2));
}

static int advise_server(struct my_store *s, struct ob_buf *out, struct ob_err *err)
{
	OB_CLEANUP(my_packet_done) struct my_packet p = { 0 };

	my_packet_init(&p, s, "reading the server's settings");
	(void)MY_ADD0(&p, sql_mysql_durability);
	(void)MY_ADD0(&p, sql_mysql_cluster);
	int r = my_packet_run(&p, err);
	my_use(&p, 0);
	if (r == 0 && my_step(&p))
		advise_durability(&p, out);
	my_use(&p, 1);
	if (r == 0 && my_step(&p) && my_int(&p, 1) > 1)
		ob_buf_adds(
			out,
			"this server is a node of a Galera cluster: messages of a key keep their "
			"order only while all producers write to this one node\n");
	return r;
}

int my_advise(struct ob_store *store, struct ob_buf *out, struct ob_err *err)
{
	struct my_store *s = (struct my_store *)store;
	bool visible;
	int r = advise_server(s, out, err);

	if (r == 0)
		r = my_parts_advise(s, out, err);
	if (r == 0)
		r = my_proof_possible(s, &visible, err);
	if (r == 0 && !visible)
		ob_buf_adds(
			out,
			"this user does not see the statements of others: numbers of transactions "
			"that were rolled back are forgotten only in moments in which no statement "
			"uses the outbox table, and every read asks for them until then; grant it "
			"PROCESS, and on MySQL SELECT on performance_schema\n");
	return r;
}
