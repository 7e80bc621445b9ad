/* SPDX-License-Identifier: MIT */
/* The inbox: check the call, bring the id into one form, hand over to the driver. */
#include "outbox/inbox.h"

#include "base/utf8.h"
#include "lib/fail.h"
#include "lib/handle.h"

/* A text of 1 to `most` characters. */
static int check_name(const char *what, const char *text, size_t most, struct outbox_error *err)
{
	struct ob_str s = ob_str(text);

	if (!text || !text[0])
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "the inbox needs %s", what);
	if (!ob_utf8_valid(s))
		return ob_fail(err, OUTBOX_ETEXT, OUTBOX_NO_INDEX, "%s is not valid UTF-8", what);
	if (ob_utf8_count(s) > most)
		return ob_fail(err, OUTBOX_ETOOLONG, OUTBOX_NO_INDEX,
			       "%s has more than %zu characters", what, most);
	return 0;
}

int outbox_inbox(outbox *ob, const char *consumer, const char *id, int *ret_is_new,
		 struct outbox_error *err)
{
	struct outbox_error unused;
	char canonical[OB_UUID_TEXT_SIZE];
	struct ob_uuid uuid;
	bool is_new = false;

	if (!err)
		err = &unused;
	if (!ob)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no outbox");
	int r = check_name("the name of a consumer", consumer, OUTBOX_CONSUMER_MAX, err);
	if (r == 0)
		r = check_name("the id of a message", id, OUTBOX_TEXT_MAX, err);
	if (r < 0)
		return r;
	if (!ob->ops->in_transaction(ob->driver))
		return ob_fail(err, OUTBOX_ENOTRANSACTION, OUTBOX_NO_INDEX,
			       "no transaction is open on this connection: begin one, ask the "
			       "inbox, do the work, commit");
	if (ob_uuid_parse(ob_str(id), &uuid)) {
		ob_uuid_format(&uuid, canonical);
		id = canonical;
	}
	r = ob->ops->inbox(ob->driver, consumer, id, &is_new, err);
	if (r == 0)
		*ret_is_new = is_new;
	return r;
}
