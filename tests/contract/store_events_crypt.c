/* SPDX-License-Identifier: MIT */
/* Contract: payloads encrypted for a subject, and forgetting it. */
#include "events_cases.h"
#include "outbox/crypt.h"

static const unsigned char key_a[OUTBOX_MASTER_KEY_SIZE] = { 1, 2, 3 },
			   key_b[OUTBOX_MASTER_KEY_SIZE] = { 4, 5, 6 };

static outbox_keyring *ring_of(const char *id, const unsigned char *key, const char *second,
			       const unsigned char *second_key)
{
	const struct outbox_master_key keys[] = { { id, key }, { second, second_key } };
	outbox_keyring *ring = NULL;

	ck_assert_int_eq(outbox_keyring_new(keys, second ? 2 : 1, &ring, &ev_fault), 0);
	return ring;
}

/* Encrypt for a subject and append; the status of the encryption. */
static int append_secret(const outbox_keyring *ring, const char *subject, const char *payload)
{
	outbox_text *text = outbox_text_new();
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_encrypt(ob, ring, subject, payload, 0, text, &ev_fault);

	if (r == 0) {
		size_t size;
		const char *p = outbox_text_get(text, &size);
		const struct outbox_message event = { .event_type = "Named",
						      .payload = p,
						      .payload_size = size };

		ck_assert_ptr_null(strstr(p, payload));
		ck_assert_int_eq(
			outbox_append(ob, &ev_ann, OUTBOX_ANY, &event, 1, NULL, NULL, &ev_fault),
			0);
	}
	ev_end_on(fx.store, r == 0);
	outbox_text_free(text);
	return r;
}

/* The payloads of ann's stream, "p1|p2"; a forgotten one is "null (subject)". */
static int read_secrets(const outbox_keyring *ring, char *out, size_t size)
{
	const struct outbox_event_query query = { .stream = ev_ann };
	outbox_text *memory = outbox_text_new();
	outbox_event_reader *reader = NULL;
	const struct outbox_event *event;
	outbox *ob = ev_open_on(fx.store);
	size_t used = 0;
	int r = outbox_events_open(ob, &query, &reader, &ev_fault);

	out[0] = '\0';
	while (r >= 0 && (r = outbox_events_next(reader, &event, &ev_fault)) > 0) {
		struct outbox_plain plain = { 0 };

		r = outbox_decrypt(ob, ring, event->payload, event->payload_size, memory, &plain,
				   &ev_fault);
		if (r == 0 && plain.forgotten)
			used += (size_t)snprintf(out + used, size - used, "%snull (%s)",
						 used ? "|" : "", plain.subject);
		else if (r == 0)
			used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? "|" : "",
						 (int)plain.payload_size,
						 (const char *)plain.payload);
	}
	outbox_events_close(reader);
	ev_end_on(fx.store, false);
	outbox_text_free(memory);
	return r;
}

static int forget(const char *subject)
{
	outbox *ob = ev_open_on(fx.store);
	int r = outbox_forget(ob, subject, &ev_fault);

	ev_end_on(fx.store, true);
	return r;
}

OB_TEST(an_encrypted_payload_comes_back_and_a_plain_one_is_left_alone)
{
	outbox_keyring *ring = ring_of("m1", key_a, NULL, NULL);
	char text[256];

	ev_begin();
	ck_assert_int_eq(append_secret(ring, "ann", "{\"name\":\"Ann\"}"), 0);
	ev_append(&ev_ann, 1, "plain");
	ck_assert_int_eq(append_secret(ring, "bob", "\"Bob's\""), 0);
	ck_assert_int_eq(read_secrets(ring, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "{\"name\":\"Ann\"}|{}|\"Bob's\"");
	outbox_keyring_free(ring);
}
OB_TEST_END

OB_TEST(a_forgotten_subject_reads_as_null_and_others_stay)
{
	outbox_keyring *ring = ring_of("m1", key_a, NULL, NULL);
	char text[256];

	ev_begin();
	ck_assert_int_eq(append_secret(ring, "ann", "\"Ann\""), 0);
	ck_assert_int_eq(append_secret(ring, "bob", "\"Bob\""), 0);
	ck_assert_int_eq(forget("ann"), 1);
	ck_assert_int_eq(forget("ann"), 0);
	ck_assert_int_eq(read_secrets(ring, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "null (ann)|\"Bob\"");
	/* A new key is another one: what was forgotten stays so. */
	ck_assert_int_eq(append_secret(ring, "ann", "\"again\""), 0);
	ck_assert_int_eq(read_secrets(ring, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "null (ann)|\"Bob\"|\"again\"");
	outbox_keyring_free(ring);
}
OB_TEST_END

OB_TEST(a_wrong_or_missing_master_key_is_an_error_before_anything_is_written)
{
	outbox_keyring *ring = ring_of("m1", key_a, NULL, NULL);
	outbox_keyring *wrong = ring_of("m1", key_b, NULL, NULL);
	outbox_keyring *other = ring_of("m2", key_b, NULL, NULL);
	char text[256];

	ev_begin();
	ck_assert_int_eq(append_secret(ring, "ann", "\"Ann\""), 0);
	ck_assert_int_eq(append_secret(wrong, "ann", "\"no\""), OUTBOX_EKEY);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "wrong key"));
	ck_assert_int_eq(append_secret(other, "ann", "\"no\""), OUTBOX_EKEY);
	ck_assert_ptr_nonnull(strstr(ev_fault.message, "'m1', which is not in the keyring"));
	ck_assert_int_eq(read_secrets(wrong, text, sizeof(text)), OUTBOX_EKEY);
	ck_assert_int_eq(read_secrets(ring, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "\"Ann\"");
	outbox_keyring_free(ring);
	outbox_keyring_free(wrong);
	outbox_keyring_free(other);
}
OB_TEST_END

OB_TEST(after_a_rotation_the_old_master_key_is_not_needed)
{
	outbox_keyring *old = ring_of("m1", key_a, NULL, NULL);
	outbox_keyring *both = ring_of("m2", key_b, "m1", key_a);
	outbox_keyring *new = ring_of("m2", key_b, NULL, NULL);
	char text[256];
	size_t count = 0;

	ev_begin();
	ck_assert_int_eq(append_secret(old, "ann", "\"Ann\""), 0);
	ck_assert_int_eq(append_secret(old, "bob", "\"Bob\""), 0);
	ck_assert_int_eq(read_secrets(new, text, sizeof(text)), OUTBOX_EKEY);
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_keys_rotate(ob, both, &count, &ev_fault), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(outbox_keys_rotate(ob, both, &count, &ev_fault), 0);
	ck_assert_uint_eq(count, 0);
	ev_end_on(fx.store, true);
	ck_assert_int_eq(read_secrets(new, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "\"Ann\"|\"Bob\"");
	outbox_keyring_free(old);
	outbox_keyring_free(both);
	outbox_keyring_free(new);
}
OB_TEST_END

OB_TEST(keyrings_are_parsed_and_their_faults_name_no_key)
{
	static const char key[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
	outbox_keyring *ring = NULL;
	char text[128];

	(void)snprintf(text, sizeof(text), "a:%s,\n b:%s", key, key);
	ck_assert_int_eq(outbox_keyring_parse(text, &ring, &ev_fault), 0);
	outbox_keyring_free(ring);
	(void)snprintf(text, sizeof(text), "a:%.40s", key);
	ck_assert_int_eq(outbox_keyring_parse(text, &ring, &ev_fault), OUTBOX_EKEY);
	ck_assert_ptr_null(strstr(ev_fault.message, "AAEC"));
	ck_assert_int_eq(outbox_keyring_parse("nonsense", &ring, &ev_fault), OUTBOX_EKEY);
	ck_assert_int_eq(outbox_keyring_parse("", &ring, &ev_fault), OUTBOX_EINVAL);
}
OB_TEST_END

OB_TEST(a_changed_envelope_is_an_error)
{
	outbox_keyring *ring = ring_of("m1", key_a, NULL, NULL);
	outbox_text *text = outbox_text_new(), *memory = outbox_text_new();
	struct outbox_plain plain = { 0 };
	char changed[1024];

	ev_begin();
	outbox *ob = ev_open_on(fx.store);
	ck_assert_int_eq(outbox_encrypt(ob, ring, "ann", "\"Ann\"", 0, text, &ev_fault), 0);
	(void)snprintf(changed, sizeof(changed), "%s", outbox_text_get(text, NULL));
	char *data = strstr(changed, "\"data\":\"") + 8;
	data[20] = data[20] == 'A' ? 'B' : 'A';
	ck_assert_int_eq(outbox_decrypt(ob, ring, changed, 0, memory, &plain, &ev_fault),
			 OUTBOX_EKEY);
	ck_assert_int_eq(outbox_encrypt(ob, ring, "", "\"Ann\"", 0, text, &ev_fault),
			 OUTBOX_EINVAL);
	ev_end_on(fx.store, false);
	outbox_text_free(text);
	outbox_text_free(memory);
	outbox_keyring_free(ring);
}
OB_TEST_END

STORE_CASES(events_crypt, an_encrypted_payload_comes_back_and_a_plain_one_is_left_alone,
	    a_forgotten_subject_reads_as_null_and_others_stay,
	    a_wrong_or_missing_master_key_is_an_error_before_anything_is_written,
	    after_a_rotation_the_old_master_key_is_not_needed,
	    keyrings_are_parsed_and_their_faults_name_no_key, a_changed_envelope_is_an_error)
