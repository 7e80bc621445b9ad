/* SPDX-License-Identifier: MIT */
/* The envelope of an encrypted payload: a JSON object, so that it fits wherever a payload does. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "lib/crypt/keyring.h"
#include "lib/fail.h"
#include "lib/serialize/text.h"

#include <stdlib.h>

/* What every envelope begins with: others are told by a few bytes. */
static const char begin[] = "{\"outbox_encrypted\":1,";

struct envelope {
	int64_t outbox_encrypted;
	const char *subject, *key, *data;
};

static const struct outbox_field envelope_fields[] = {
	OUTBOX_FIELD(struct envelope, outbox_encrypted, OUTBOX_INTEGER),
	OUTBOX_FIELD(struct envelope, subject, OUTBOX_TEXT),
	OUTBOX_FIELD(struct envelope, key, OUTBOX_TEXT),
	OUTBOX_FIELD(struct envelope, data, OUTBOX_TEXT),
	OUTBOX_FIELDS_END,
};

static int check_subject(const char *subject, struct outbox_error *err)
{
	if (subject && *subject && strlen(subject) <= OUTBOX_TEXT_MAX)
		return 0;
	return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
		       "a data subject has a name of 1 to %d bytes", OUTBOX_TEXT_MAX);
}

int outbox_encrypt(outbox *ob, const outbox_keyring *ring, const char *subject, const void *payload,
		   size_t payload_size, outbox_text *out, struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_subject_key key;
	struct ob_str text = { payload, payload_size ? payload_size
					: payload    ? strlen(payload)
						     : 0 };

	if (!err)
		err = &unused;
	int r = check_subject(subject, err);
	if (r == 0)
		r = ob_subject_key_make(ob, ring, subject, &key, err);
	if (r < 0)
		return r;
	OB_AUTOFREE unsigned char *sealed = malloc(text.n + OB_SEAL_SIZE);
	if (!sealed || !ob_aead_seal(key.key, ob_str(key.id), text, sealed))
		r = ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX, "encrypting failed");
	ob_aead_wipe(key.key, sizeof(key.key));
	if (r < 0)
		return r;
	ob_buf_adds(&out->b, begin);
	ob_buf_adds(&out->b, "\"subject\":");
	ob_json_add_string(&out->b, ob_str(subject));
	ob_buf_addf(&out->b, ",\"key\":\"%s\",\"data\":\"", key.id);
	ob_base64_encode(&out->b, (struct ob_str){ (const char *)sealed, text.n + OB_SEAL_SIZE });
	ob_buf_adds(&out->b, "\"}");
	return out->b.failed ? ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory") : 0;
}

/* Is it ours at all? Databases may have written blanks into it. */
static bool is_envelope(struct ob_str payload)
{
	static const char name[] = "\"outbox_encrypted\"";
	size_t n = 0;

	while (n < payload.n && strchr("{ \t\r\n", payload.p[n]) && payload.p[n])
		n++;
	return payload.n > n + sizeof(name) && memcmp(payload.p + n, name, sizeof(name) - 1) == 0;
}

static int open_envelope(const struct envelope *e, const struct ob_subject_key *key,
			 outbox_text *memory, struct outbox_plain *ret, struct outbox_error *err)
{
	struct ob_str data = ob_str(e->data);
	size_t size = 0;
	char *sealed = ob_arena_alloc(&memory->arena, OB_BASE64_DECODED_MAX(data.n) + 1);
	unsigned char *plain = ob_arena_alloc(&memory->arena, OB_BASE64_DECODED_MAX(data.n) + 1);

	if (!sealed || !plain)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	if (!ob_base64_decode(data, sealed, &size) || size < OB_SEAL_SIZE ||
	    !ob_aead_open(key->key, ob_str(key->id), (struct ob_str){ sealed, size }, plain)) {
		ret->changed = 1;
		return ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX,
			       "an encrypted payload of subject '%.60s' was changed: it cannot be "
			       "opened with its key",
			       e->subject);
	}
	ret->payload = plain;
	ret->payload_size = size - OB_SEAL_SIZE;
	return 0;
}

int outbox_decrypt(outbox *ob, const outbox_keyring *ring, const void *payload, size_t payload_size,
		   outbox_text *memory, struct outbox_plain *ret, struct outbox_error *err)
{
	struct ob_str text = { payload, payload_size ? payload_size
					: payload    ? strlen(payload)
						     : 0 };
	struct outbox_error unused, no_object;
	struct envelope e = { 0 };
	struct ob_subject_key key;

	if (!err)
		err = &unused;
	*ret = (struct outbox_plain){ .size = ret->size,
				      .payload = text.p,
				      .payload_size = text.n };
	if (!text.p || !is_envelope(text) ||
	    outbox_struct_read(envelope_fields, text.p, text.n, &e, memory, &no_object) < 0)
		return 0;
	ret->encrypted = 1;
	ret->subject = e.subject;
	ret->payload = NULL;
	ret->payload_size = 0;
	int r = ob_subject_key_find(ob, ring, e.subject, &key, err);
	/* A key that was made after the old one was destroyed is another one. */
	if (r == 0 || (r == 1 && strcmp(key.id, e.key) != 0)) {
		ret->forgotten = 1;
		return 0;
	}
	if (r > 0)
		r = open_envelope(&e, &key, memory, ret, err);
	ob_aead_wipe(key.key, sizeof(key.key));
	return r;
}
