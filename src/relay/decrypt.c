/* SPDX-License-Identifier: MIT */
/*
 * Opening payloads after a read. A forgotten subject is no error: the message goes out without a
 * payload, and a header says why. A wrong master key stops the relay, because every message would
 * meet it; an envelope that was changed is about that message alone.
 */
#include "relay/decrypt.h"

#include "base/cleanup.h"
#include "config.h"
#include "outbox/crypt.h"

#include <stdlib.h>

struct ob_decrypt {
	outbox_keyring *ring;
};

#if HAVE_CRYPT

/* What every envelope of ours has near its beginning; outbox_decrypt() parses it. */
static bool may_be_encrypted(struct ob_str payload)
{
	static const char name[] = "\"outbox_encrypted\"";

	return payload.p && payload.n > sizeof(name) &&
	       memmem(payload.p, payload.n < 64 ? payload.n : 64, name, sizeof(name) - 1);
}

/* Put the mark before what stands in the object. */
static bool mark_forgotten(struct ob_batch *batch, struct ob_message *m)
{
	static const char mark[] = "{\"" OB_FORGOTTEN_HEADER "\":true";
	OB_CLEANUP(ob_buf_done) struct ob_buf out = OB_BUF_INIT(m->headers.n + sizeof(mark) + 16);
	struct ob_str rest = m->headers;
	size_t blanks = 0;

	while (rest.n > 0 && *rest.p != '{') {
		rest.p++;
		rest.n--;
	}
	rest = rest.n > 0 ? (struct ob_str){ rest.p + 1, rest.n - 1 } : OB_STR("}");
	while (blanks < rest.n && strchr(" \t\r\n", rest.p[blanks]) && rest.p[blanks])
		blanks++;
	ob_buf_adds(&out, mark);
	if (blanks < rest.n && rest.p[blanks] != '}')
		ob_buf_addc(&out, ',');
	ob_buf_add(&out, rest);
	return !out.failed && ob_arena_copy(&batch->arena, ob_buf_view(&out), &m->headers);
}

static int no_memory_to_decrypt(struct ob_err *err)
{
	return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_DOWN, "no memory to decrypt a message");
}

static int open_message(const struct ob_decrypt *decrypt, outbox *ob, struct ob_batch *batch,
			struct ob_message *m, struct ob_err *err)
{
	struct outbox_plain plain = { .size = sizeof(plain) };
	outbox_text *memory = outbox_text_new();
	struct outbox_error fault;
	int r = 0;

	if (!memory)
		return no_memory_to_decrypt(err);
	if (outbox_decrypt(ob, decrypt->ring, m->payload.p, m->payload.n, memory, &plain, &fault) <
	    0) {
		m->garbled = plain.changed;
		if (!plain.changed)
			r = ob_err_set(err, fault.status,
				       fault.status == OUTBOX_EKEY || fault.status == OUTBOX_ESCHEMA
					       ? OB_ERR_FATAL
					       : OB_ERR_DOWN,
				       "%s", fault.message);
	} else if (plain.forgotten) {
		m->payload = OB_STR_NULL;
		r = mark_forgotten(batch, m) ? 0 : no_memory_to_decrypt(err);
	} else if (plain.encrypted) {
		const struct ob_str text = { plain.payload, plain.payload_size };

		r = ob_arena_copy(&batch->arena, text, &m->payload) ? 0 : no_memory_to_decrypt(err);
	}
	outbox_text_free(memory);
	return r;
}

static int open_batch(struct ob_store *store, struct ob_batch *batch, const void *arg,
		      struct ob_err *err)
{
	struct ob_err ignored = OB_ERR_INIT;
	outbox *ob = NULL;
	int r = 0;

	for (uint32_t i = 0; i < batch->count && r == 0; i++) {
		if (!may_be_encrypted(batch->messages[i].payload))
			continue;
		if (!ob && (r = ob_store_tx_begin(store, err)) == 0)
			r = ob_store_tx_writer(store, &ob, err);
		if (r == 0)
			r = open_message(arg, ob, batch, &batch->messages[i], err);
	}
	if (ob || r < 0)
		(void)ob_store_tx_end(store, false, &ignored);
	return r;
}

int ob_decrypt_new(const char *keys, struct ob_decrypt **ret, struct ob_err *err)
{
	struct ob_decrypt *decrypt = calloc(1, sizeof(*decrypt));
	struct outbox_error fault;

	if (!decrypt)
		return ob_err_set(err, OUTBOX_ENOMEM, OB_ERR_FATAL, "out of memory");
	if (outbox_keyring_parse(keys, &decrypt->ring, &fault) < 0) {
		free(decrypt);
		return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL, "master_keys: %s",
				  fault.message);
	}
	*ret = decrypt;
	return 0;
}

void ob_decrypt_free(struct ob_decrypt *decrypt)
{
	if (decrypt)
		outbox_keyring_free(decrypt->ring);
	free(decrypt);
}

void ob_decrypt_attach(const struct ob_decrypt *decrypt, struct ob_store *store)
{
	store->after_read = open_batch;
	store->after_read_arg = decrypt;
}

#else

int ob_decrypt_new(const char *keys, struct ob_decrypt **ret, struct ob_err *err)
{
	(void)keys;
	(void)ret;
	return ob_err_set(err, OUTBOX_ECONFIG, OB_ERR_FATAL,
			  "master_keys: this program was built without OpenSSL");
}

void ob_decrypt_free(struct ob_decrypt *decrypt)
{
	free(decrypt);
}

void ob_decrypt_attach(const struct ob_decrypt *decrypt, struct ob_store *store)
{
	(void)decrypt;
	(void)store;
}

#endif
