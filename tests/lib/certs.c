/* SPDX-License-Identifier: MIT */
/* By the openssl program. */
#include "certs.h"

#include "run.h"

#include <check.h>
#include <stdio.h>

static const char commands[] =
	"key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'\n"
	"for ca in ca other; do openssl req -x509 $key -days 2 -subj /CN=$ca -keyout $ca.key "
	"-out $ca.crt; done\n"
	"printf 'subjectAltName=DNS:localhost' >ext\n"
	"openssl req $key -subj /CN=server -keyout server.key -out server.csr\n"
	"openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
	"-extfile ext -out server.crt";

void certs_make(const char *dir, char ca[CERTS_PATH], char other_ca[CERTS_PATH])
{
	const char *argv[] = { "/bin/sh", "-ec", commands, NULL };
	struct ob_run run = { .argv = argv, .dir = dir };

	ob_run(&run);
	ck_assert_msg(run.code == 0, "making certificates: %s", run.err);
	ob_run_done(&run);
	(void)snprintf(ca, CERTS_PATH, "%s/ca.crt", dir);
	(void)snprintf(other_ca, CERTS_PATH, "%s/other.crt", dir);
}
