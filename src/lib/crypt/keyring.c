/* SPDX-License-Identifier: MIT */
/* Master keys wrap the keys of subjects. No text of an error has any part of a key. */
#include "lib/crypt/keyring.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "lib/fail.h"
#include "lib/handle.h"

#include <stdlib.h>

enum { ROTATE_CHUNK = 500 };

/* ---- keyrings -------------------------------------------------------- */

void outbox_keyring_free(outbox_keyring *ring)
{
	if (ring)
		ob_aead_wipe(ring, sizeof(*ring));
	free(ring);
}

static int add_master(outbox_keyring *ring, const char *id, size_t id_size,
		      const unsigned char *key, struct outbox_error *err)
{
	if (ring->count == OB_KEYRING_MAX)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "more than %d master keys",
			       OB_KEYRING_MAX);
	if (id_size == 0 || id_size > OB_MASTER_ID_MAX)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "the id of a master key has 1 to %d characters", OB_MASTER_ID_MAX);
	memcpy(ring->keys[ring->count].id, id, id_size);
	memcpy(ring->keys[ring->count].key, key, OB_KEY_SIZE);
	ring->count++;
	return 0;
}

static int hand_over(outbox_keyring *ring, int r, outbox_keyring **ret, struct outbox_error *err)
{
	if (r == 0 && ring->count == 0)
		r = ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no master key");
	if (r < 0) {
		outbox_keyring_free(ring);
		return r;
	}
	*ret = ring;
	return 0;
}

int outbox_keyring_new(const struct outbox_master_key *keys, size_t count,
		       outbox_keyring **ret_ring, struct outbox_error *err)
{
	struct outbox_error unused;
	outbox_keyring *ring = calloc(1, sizeof(*ring));
	int r = 0;

	if (!err)
		err = &unused;
	if (!ring)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	for (size_t i = 0; i < count && r == 0; i++)
		r = add_master(ring, keys[i].id, strlen(keys[i].id), keys[i].key, err);
	return hand_over(ring, r, ret_ring, err);
}

/* "ID:BASE64" */
static int parse_master(outbox_keyring *ring, const char *word, size_t size,
			struct outbox_error *err)
{
	const char *colon = memchr(word, ':', size);
	unsigned char key[OB_KEY_SIZE + 4];
	size_t id_size = colon ? (size_t)(colon - word) : 0, key_size = 0;
	struct ob_str text = { colon + 1, colon ? size - id_size - 1 : 0 };

	if (!colon || text.n > 44 || !ob_base64_decode(text, (char *)key, &key_size) ||
	    key_size != OB_KEY_SIZE)
		return ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX,
			       "master key %zu is not ID:BASE64 with %d bytes of Base64",
			       ring->count + 1, OB_KEY_SIZE);
	int r = add_master(ring, word, id_size, key, err);
	ob_aead_wipe(key, sizeof(key));
	return r;
}

int outbox_keyring_parse(const char *text, outbox_keyring **ret_ring, struct outbox_error *err)
{
	static const char blanks[] = " ,\t\r\n";
	struct outbox_error unused;
	outbox_keyring *ring = calloc(1, sizeof(*ring));
	int r = 0;

	if (!err)
		err = &unused;
	if (!ring)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	for (const char *p = text + strspn(text, blanks); *p && r == 0; p += strspn(p, blanks)) {
		size_t n = strcspn(p, blanks);

		r = parse_master(ring, p, n, err);
		p += n;
	}
	return hand_over(ring, r, ret_ring, err);
}

/* ---- wrapping -------------------------------------------------------- */

/* What a wrapped key is bound to: nobody can move it to another subject. */
static struct ob_str about(const char *subject, const char *key_id, struct ob_buf *room)
{
	ob_buf_addf(room, "%s\n%s", subject, key_id);
	return ob_buf_view(room);
}

static int wrap_key(const outbox_keyring *ring, const char *subject,
		    const struct ob_subject_key *key, struct ob_buf *out, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf room = OB_BUF_INIT(2048);
	unsigned char sealed[OB_KEY_SIZE + OB_SEAL_SIZE];

	if (!ob_aead_seal(ring->keys[0].key, about(subject, key->id, &room),
			  (struct ob_str){ (const char *)key->key, OB_KEY_SIZE }, sealed))
		return ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX, "wrapping a key failed");
	ob_base64_encode(out, (struct ob_str){ (const char *)sealed, sizeof(sealed) });
	return 0;
}

static const unsigned char *find_master(const outbox_keyring *ring, struct ob_str id)
{
	for (size_t i = 0; i < ring->count; i++) {
		if (ob_str_eq(ob_str(ring->keys[i].id), id))
			return ring->keys[i].key;
	}
	return NULL;
}

/* A row of the table: key_id, master_id, wrapped, subject. */
static int unwrap_key(const outbox_keyring *ring, const struct ob_str *row,
		      struct ob_subject_key *ret, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf room = OB_BUF_INIT(2048);
	const unsigned char *master = find_master(ring, row[1]);
	char sealed[OB_WRAPPED_SIZE];
	size_t size = 0;

	if (!master)
		return ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX,
			       "the key of subject '%.60s' is wrapped by master key '%.60s', which "
			       "is not in the keyring: add it, or was it rotated away?",
			       row[3].p, row[1].p);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", row[0].p);
	if (row[2].n > OB_WRAPPED_SIZE || !ob_base64_decode(row[2], sealed, &size) ||
	    size != OB_KEY_SIZE + OB_SEAL_SIZE ||
	    !ob_aead_open(master, about(row[3].p, row[0].p, &room), (struct ob_str){ sealed, size },
			  ret->key))
		return ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX,
			       "master key '%.60s' does not unwrap the key of subject '%.60s': it "
			       "is the wrong key",
			       row[1].p, row[3].p);
	return 1;
}

static void answer_done(struct ob_answer *answer)
{
	ob_arena_done(&answer->arena);
}

int ob_subject_key_find(outbox *ob, const outbox_keyring *ring, const char *subject,
			struct ob_subject_key *ret, struct outbox_error *err)
{
	const struct ob_ask_value value = OB_ASK_TEXT(ob_str(subject));
	OB_CLEANUP(answer_done) struct ob_answer found = OB_ANSWER_INIT;
	int r = ob->ops->ask(ob->driver, OB_ASK_key_find, &value, 1, &found, err);

	if (r < 0 || found.count == 0)
		return r;
	return unwrap_key(ring, found.rows[0], ret, err);
}

int ob_subject_key_make(outbox *ob, const outbox_keyring *ring, const char *subject,
			struct ob_subject_key *ret, struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf wrapped = OB_BUF_INIT(OB_WRAPPED_SIZE);
	OB_CLEANUP(answer_done) struct ob_answer done = OB_ANSWER_INIT;
	struct ob_subject_key made = { .id = "" };
	int r = ob_subject_key_find(ob, ring, subject, ret, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (!ob->ops->in_transaction(ob->driver))
		return ob_fail(err, OUTBOX_ENOTRANSACTION, OUTBOX_NO_INDEX,
			       "no transaction is open on this connection: begin one, write, "
			       "commit");
	(void)snprintf(made.id, sizeof(made.id), "%s", outbox_id_new().text);
	if (!ob_aead_random(made.key, OB_KEY_SIZE))
		return ob_fail(err, OUTBOX_EKEY, OUTBOX_NO_INDEX, "no random numbers for a key");
	r = wrap_key(ring, subject, &made, &wrapped, err);
	const struct ob_ask_value values[] = { OB_ASK_TEXT(ob_str(subject)),
					       OB_ASK_TEXT(ob_str(made.id)),
					       OB_ASK_TEXT(ob_str(ring->keys[0].id)),
					       OB_ASK_TEXT(ob_buf_view(&wrapped)) };
	if (r == 0)
		r = ob->ops->ask(ob->driver, OB_ASK_key_keep, values, 4, &done, err);
	ob_aead_wipe(&made, sizeof(made));
	/* Another transaction may have been first: its key counts. */
	if (r == 0)
		r = ob_subject_key_find(ob, ring, subject, ret, err);
	if (r == 0)
		return ob_fail(err, OUTBOX_EBUSY, OUTBOX_NO_INDEX,
			       "the key of the subject was destroyed in this moment: run the "
			       "transaction again");
	return r < 0 ? r : 0;
}

/* ---- for people ------------------------------------------------------ */

int outbox_forget(outbox *ob, const char *subject, struct outbox_error *err)
{
	const struct ob_ask_value value = OB_ASK_TEXT(ob_str(subject));
	OB_CLEANUP(answer_done) struct ob_answer done = OB_ANSWER_INIT;
	struct outbox_error unused;

	if (!err)
		err = &unused;
	if (!ob || !subject)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "outbox or subject is NULL");
	if (!ob->ops->in_transaction(ob->driver))
		return ob_fail(err, OUTBOX_ENOTRANSACTION, OUTBOX_NO_INDEX,
			       "no transaction is open on this connection: begin one, write, "
			       "commit");
	int r = ob->ops->ask(ob->driver, OB_ASK_key_forget, &value, 1, &done, err);
	return r < 0 ? r : done.changed > 0;
}

static int rewrap_row(outbox *ob, const outbox_keyring *ring, const struct ob_str *row,
		      struct outbox_error *err)
{
	OB_CLEANUP(ob_buf_done) struct ob_buf wrapped = OB_BUF_INIT(OB_WRAPPED_SIZE);
	OB_CLEANUP(answer_done) struct ob_answer done = OB_ANSWER_INIT;
	struct ob_subject_key key;
	int r = unwrap_key(ring, row, &key, err);

	if (r < 0)
		return r;
	r = wrap_key(ring, row[3].p, &key, &wrapped, err);
	ob_aead_wipe(&key, sizeof(key));
	const struct ob_ask_value values[] = { OB_ASK_TEXT(ob_str(ring->keys[0].id)),
					       OB_ASK_TEXT(ob_buf_view(&wrapped)),
					       OB_ASK_TEXT(row[3]), OB_ASK_TEXT(row[0]) };
	return r < 0 ? r : ob->ops->ask(ob->driver, OB_ASK_key_rewrap, values, 4, &done, err);
}

int outbox_keys_rotate(outbox *ob, const outbox_keyring *ring, size_t *ret_count,
		       struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_buf after = OB_BUF_INIT(4096);
	size_t count = 0, found = ROTATE_CHUNK;
	int r = 0;

	if (!err)
		err = &unused;
	while (r == 0 && found == ROTATE_CHUNK) {
		const struct ob_ask_value values[] = { OB_ASK_TEXT(ob_buf_view(&after)),
						       OB_ASK_TEXT(ob_str(ring->keys[0].id)),
						       OB_ASK_NUMBER(ROTATE_CHUNK) };
		OB_CLEANUP(answer_done) struct ob_answer page = OB_ANSWER_INIT;

		r = ob->ops->ask(ob->driver, OB_ASK_key_list, values, 3, &page, err);
		found = r < 0 ? 0 : page.count;
		for (size_t i = 0; i < found && r == 0; i++, count++)
			r = rewrap_row(ob, ring, page.rows[i], err);
		if (found > 0) {
			ob_buf_clear(&after);
			ob_buf_add(&after, page.rows[found - 1][3]);
		}
	}
	ob_buf_done(&after);
	if (r == 0)
		*ret_count = count;
	return r;
}
