/* SPDX-License-Identifier: MIT */
/* Starting, killing and asking a private NATS server. */
#include "nats_server.h"

#include "run.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TRIES = 3000, STEP_MS = 10, ASK_MS = 20000 };

static const char *program(void)
{
	static const char *const places[] = { "/usr/sbin/nats-server", "/usr/bin/nats-server" };
	const char *asked = getenv("OUTBOX_TEST_NATS");

	if (asked)
		return access(asked, X_OK) == 0 ? asked : NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

const char *nats_server_missing(void)
{
	return program() ? NULL : "nats-server is not installed";
}

/* ---- files ----------------------------------------------------------- */

static void write_config(const struct nats_server *s)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/nats.conf", s->dir);
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	(void)fprintf(file,
		      "listen: \"127.0.0.1:%d\"\n"
		      "jetstream { store_dir: \"%s/js\", max_file_store: 2GB }\n"
		      "log_file: \"%s/log\"\n",
		      s->port, s->dir, s->dir);
	if (s->tls)
		(void)fprintf(file,
			      "tls { cert_file: \"%s/server.crt\", key_file: \"%s/server.key\" }\n",
			      s->dir, s->dir);
	if (s->config)
		(void)fprintf(file, "%s\n", s->config);
	ck_assert_int_eq(fclose(file), 0);
}

/* ---- the process ----------------------------------------------------- */

static void child(const struct nats_server *s)
{
	const char *argv[] = { program(), "-c", "nats.conf", NULL };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(s->dir) < 0)
		_exit(126);
	int null = open("/dev/null", O_RDWR);
	(void)dup2(null, 0);
	(void)dup2(null, 1);
	(void)dup2(null, 2);
	closefrom(3);
	/* execv() promises not to write. NOLINTNEXTLINE(performance-no-int-to-ptr) */
	execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static natsStatus set_options(const struct nats_server *s, natsOptions *options)
{
	char url[200];
	natsStatus status;

	(void)snprintf(url, sizeof(url), "nats://%slocalhost:%d", s->login ? s->login : "",
		       s->port);
	status = natsOptions_SetURL(options, url);
	if (status == NATS_OK && s->creds)
		status = natsOptions_SetUserCredentialsFromFiles(options, s->creds, NULL);
	if (status == NATS_OK && s->tls)
		status = natsOptions_SetSecure(options, true);
	if (status == NATS_OK && s->tls)
		status = natsOptions_LoadCATrustedCertificates(options, s->ca);
	if (status == NATS_OK)
		status = natsOptions_SetMaxReconnect(options, 100000);
	return status == NATS_OK ? natsOptions_SetReconnectWait(options, STEP_MS) : status;
}

/* JetStream answers some time after the server listens. */
static bool answers(struct nats_server *s)
{
	natsOptions *options = NULL;
	jsAccountInfo *info = NULL;
	natsStatus status = natsOptions_Create(&options);

	if (status == NATS_OK)
		status = set_options(s, options);
	if (status == NATS_OK && !s->client)
		status = natsConnection_Connect(&s->client, options);
	natsOptions_Destroy(options);
	if (status == NATS_OK && !s->js)
		status = natsConnection_JetStream(&s->js, s->client, NULL);
	if (status == NATS_OK)
		status = js_GetAccountInfo(&info, s->js, NULL, NULL);
	jsAccountInfo_Destroy(info);
	return status == NATS_OK;
}

void nats_server_restart(struct nats_server *s)
{
	int status;

	ck_assert_int_eq(s->pid, 0);
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid == 0)
		child(s);
	for (int i = 0; !answers(s); i++) {
		ck_assert_msg(i < START_TRIES && waitpid(s->pid, &status, WNOHANG) == 0,
			      "nats-server does not start, see %s/log", s->dir);
		(void)poll(NULL, 0, STEP_MS); /* there is nothing to wait on */
	}
}

void nats_server_start(struct nats_server *s)
{
	ob_temp_dir(s->dir);
	s->port = free_port();
	if (s->tls)
		certs_make(s->dir, s->ca, s->other_ca);
	write_config(s);
	nats_server_restart(s);
}

void nats_server_reload(struct nats_server *s)
{
	write_config(s);
	ck_assert_int_eq(kill(s->pid, SIGHUP), 0);
}

void nats_server_kill(struct nats_server *s)
{
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		ck_assert_int_eq(waitpid(s->pid, NULL, 0), s->pid);
	}
	s->pid = 0;
	jsCtx_Destroy(s->js);
	natsConnection_Destroy(s->client);
	s->js = NULL;
	s->client = NULL;
}

void nats_server_end(struct nats_server *s)
{
	nats_server_kill(s);
	ob_temp_dir_remove(s->dir);
}

/* ---- streams --------------------------------------------------------- */

static void must(natsStatus status, const char *what)
{
	ck_assert_msg(status == NATS_OK, "%s: %s, %s", what, natsStatus_GetText(status),
		      nats_GetLastError(NULL));
}

static jsOptions patient(void)
{
	jsOptions options;

	(void)jsOptions_Init(&options);
	options.Wait = ASK_MS;
	return options;
}

void nats_stream_add(struct nats_server *s, const char *name, const char *subject,
		     void (*more)(jsStreamConfig *config))
{
	jsOptions options = patient();
	jsStreamConfig config;

	must(jsStreamConfig_Init(&config), name);
	config.Name = name;
	config.Subjects = &subject;
	config.SubjectsLen = 1;
	config.Storage = js_FileStorage;
	if (more)
		more(&config);
	must(js_AddStream(NULL, s->js, &config, &options, NULL), name);
}

void nats_stream_remove(struct nats_server *s, const char *name)
{
	jsOptions options = patient();

	must(js_DeleteStream(s->js, name, &options, NULL), name);
}

void nats_stream_purge(struct nats_server *s, const char *name)
{
	jsOptions options = patient();

	must(js_PurgeStream(s->js, name, &options, NULL), name);
}

size_t nats_stream_count(struct nats_server *s, const char *name)
{
	jsOptions options = patient();
	jsStreamInfo *info = NULL;

	must(js_GetStreamInfo(&info, s->js, name, &options, NULL), name);
	size_t count = (size_t)info->State.Msgs;
	jsStreamInfo_Destroy(info);
	return count;
}

void nats_stream_each(struct nats_server *s, const char *name,
		      void (*each)(void *arg, natsMsg *msg), void *arg)
{
	size_t count = nats_stream_count(s, name);
	jsOptions options = patient();
	jsSubOptions how;
	natsSubscription *sub = NULL;

	if (count == 0)
		return;
	must(jsSubOptions_Init(&how), name);
	how.Stream = name;
	/* Not `Ordered`: when the machine is slow, that one makes itself anew behind our back, and
	 * libnats 3.4 does not survive its end then. The order is that of the stream all the same.
	 */
	how.Config.AckPolicy = js_AckNone;
	must(js_SubscribeSync(&sub, s->js, ">", &options, &how, NULL), name);
	(void)natsSubscription_SetPendingLimits(sub, -1, -1);
	for (size_t i = 0; i < count; i++) {
		natsMsg *msg = NULL;

		must(natsSubscription_NextMsg(&msg, sub, ASK_MS), name);
		each(arg, msg);
		natsMsg_Destroy(msg);
	}
	natsSubscription_Destroy(sub);
}
