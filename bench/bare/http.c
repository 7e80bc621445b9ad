/* SPDX-License-Identifier: MIT */
/* HTTP for the bare loop: a POST for each message on as many kept connections as the relay has. */
#include "bench/bare/parts.h"
#include "bench/fatal.h"

#include <curl/curl.h>
#include <stdlib.h>

enum { CONNECTIONS = 16, WAIT_MS = 1000 };

struct sink {
	CURLM *multi;
	CURL *easy[CONNECTIONS];
	struct curl_slist *headers[CONNECTIONS];
	struct ob_buf line;
};

static size_t ignore(char *p, size_t size, size_t count, void *arg)
{
	(void)p;
	(void)arg;
	return size * count;
}

static void *http_open(const char *address)
{
	struct sink *s = bench_need(calloc(1, sizeof(*s)));

	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
	s->line = OB_BUF_INIT(4096);
	s->multi = bench_need(curl_multi_init());
	for (size_t i = 0; i < CONNECTIONS; i++) {
		s->easy[i] = bench_need(curl_easy_init());
		(void)curl_easy_setopt(s->easy[i], CURLOPT_URL, address);
		(void)curl_easy_setopt(s->easy[i], CURLOPT_WRITEFUNCTION, ignore);
		(void)curl_easy_setopt(s->easy[i], CURLOPT_NOSIGNAL, 1L);
		(void)curl_easy_setopt(s->easy[i], CURLOPT_PRIVATE, &s->headers[i]);
	}
	return s;
}

static void post(struct sink *s, CURL *easy, const struct bare_row *row)
{
	struct bare_field fields[BARE_FIELDS];
	size_t count = bare_fields(row, fields);
	struct curl_slist **headers = NULL;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&headers);
	curl_slist_free_all(*headers);
	*headers = curl_slist_append(NULL, "Content-Type: application/json");
	*headers = curl_slist_append(*headers, "Expect:");
	for (size_t i = 0; i < count; i++) {
		ob_buf_clear(&s->line);
		ob_buf_addf(&s->line, "outbox-%s: ", fields[i].name.p);
		ob_buf_add(&s->line, fields[i].value);
		*headers = curl_slist_append(*headers, ob_buf_str(&s->line));
	}
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)row->payload.n);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, row->payload.p);
	(void)curl_multi_add_handle(s->multi, easy);
}

/* Give each handle that is through the next message. */
static void reap(struct sink *s, const struct bare_row *rows, size_t count, size_t *sent,
		 size_t *done)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(s->multi, &left))) {
		CURL *easy = message->easy_handle;
		long status = 0;

		(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
		if (message->data.result != CURLE_OK || status / 100 != 2)
			bench_fatal("HTTP: status %ld, %s", status,
				    curl_easy_strerror(message->data.result));
		(void)curl_multi_remove_handle(s->multi, easy);
		++*done;
		if (*sent < count)
			post(s, easy, &rows[(*sent)++]);
	}
}

static void http_publish(void *sink, const struct bare_row *rows, size_t count)
{
	struct sink *s = sink;
	size_t sent = 0, done = 0;
	int running;

	for (; sent < CONNECTIONS && sent < count; sent++)
		post(s, s->easy[sent], &rows[sent]);
	while (done < count) {
		(void)curl_multi_perform(s->multi, &running);
		reap(s, rows, count, &sent, &done);
		if (done < count)
			(void)curl_multi_poll(s->multi, NULL, 0, WAIT_MS, NULL);
	}
}

const struct bare_sink_ops bare_http = { "http", http_open, http_publish };
