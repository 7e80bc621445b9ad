/* SPDX-License-Identifier: MIT */
/* Putting the parts together, and taking them apart in the right order. */
#include "monitor/monitor.h"

#include "monitor/impl.h"
#include "monitor/jobs.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

enum { DOCTOR_MAX = 4 << 20 };

struct ob_pool *ob_monitor_pool(struct ob_monitor *m, const char *name)
{
	size_t count = ob_watch_count(m->watch);

	for (size_t i = 0; name && i < count; i++) {
		if (strcmp(m->pools[i].entry->name, name) == 0)
			return &m->pools[i];
	}
	return !name && count == 1 ? &m->pools[0] : NULL;
}

/* On the sampler's thread, each second. */
static void on_round(void *arg)
{
	struct ob_monitor *m = arg;

	(void)pthread_mutex_lock(&m->lock);
	(void)pthread_cond_broadcast(&m->wake);
	(void)pthread_mutex_unlock(&m->lock);
	ob_http_cut(m);
	ob_jobs_tidy(m->jobs);
}

static size_t make_pools(struct ob_monitor *m, const struct ob_monitor_conf *conf)
{
	size_t count = 0;

	for (size_t i = 0; i < conf->config->store_count; i++) {
		if (!conf->store || conf->store == &conf->config->stores[i])
			ob_pool_init(&m->pools[count++], &conf->config->stores[i]);
	}
	return count;
}

static int start(struct ob_monitor *m, const struct ob_monitor_conf *conf, struct ob_err *err)
{
	const char *listen = conf->listen ? conf->listen : m->conf->listen;
	int r = ob_config_monitor_check(m->conf, listen, err);

	if (r == 0)
		r = ob_listen_parse(listen, &m->at, err);
	if (r < 0)
		return r;
	if (!ob_auth_init(&m->auth, m->conf, conf->key))
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "no random numbers");
	m->pools = calloc(conf->config->store_count + 1, sizeof(*m->pools));
	if (!m->pools)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	r = ob_jobs_new(m, &m->jobs, err);
	if (r == 0)
		r = ob_watch_new(m->pools, make_pools(m, conf), on_round, m, &m->watch, err);
	return r < 0 ? r : ob_http_start(m, err);
}

int ob_monitor_new(const struct ob_monitor_conf *conf, struct ob_monitor **ret_monitor,
		   struct ob_err *err)
{
	struct ob_monitor *m = calloc(1, sizeof(*m));

	if (!m)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	m->config = conf->config;
	m->conf = &conf->config->monitor;
	m->log = conf->log;
	m->fd = -1;
	m->has_relays = conf->relays;
	m->consumer = conf->consumer;
	m->start_us = m->noted_us = ob_clock_boot_us(&ob_clock_system);
	m->doctor = OB_BUF_INIT(DOCTOR_MAX);
	(void)pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_t attr;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&m->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	int r = start(m, conf, err);
	if (r < 0) {
		ob_monitor_free(m);
		return r;
	}
	*ret_monitor = m;
	return 0;
}

void ob_monitor_free(struct ob_monitor *m)
{
	size_t pools = m && m->watch ? ob_watch_count(m->watch) : 0;

	if (!m)
		return;
	ob_http_stop(m);
	ob_watch_free(m->watch);
	ob_jobs_free(m->jobs);
	for (size_t i = 0; i < pools; i++)
		ob_pool_done(&m->pools[i]);
	(void)pthread_cond_destroy(&m->wake);
	(void)pthread_mutex_destroy(&m->lock);
	ob_buf_done(&m->doctor);
	free(m->notes);
	free(m->pools);
	free(m);
}

void ob_monitor_make_key(unsigned char key[OB_MONITOR_KEY])
{
	(void)RAND_bytes(key, OB_MONITOR_KEY);
}

const char *ob_monitor_address(const struct ob_monitor *m)
{
	return m->address;
}

void ob_monitor_note(struct ob_monitor *m, const struct ob_monitor_relay *relays, size_t count,
		     bool stopping)
{
	struct ob_monitor_note *notes = calloc(count ? count : 1, sizeof(*notes));

	for (size_t i = 0; notes && i < count; i++) {
		notes[i].data = relays[i].data;
		notes[i].stalled_us = relays[i].stalled_us;
		notes[i].running = relays[i].running;
		(void)snprintf(notes[i].name, sizeof(notes[i].name), "%s", relays[i].conf->name);
		(void)snprintf(notes[i].store, sizeof(notes[i].store), "%s",
			       relays[i].conf->store->name);
		(void)snprintf(notes[i].sink, sizeof(notes[i].sink), "%s",
			       relays[i].conf->sink->name);
	}
	(void)pthread_mutex_lock(&m->lock);
	if (notes) {
		free(m->notes);
		m->notes = notes;
		m->note_count = count;
	}
	m->stopping = stopping;
	m->noted = true;
	m->noted_us = ob_clock_boot_us(&ob_clock_system);
	(void)pthread_mutex_unlock(&m->lock);
}
