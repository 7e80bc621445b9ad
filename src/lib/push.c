/* SPDX-License-Identifier: MIT */
/* The handle, and pushing: check every message, give ids, hand over to the driver. */
#include "base/cleanup.h"
#include "base/grow.h"
#include "lib/fail.h"
#include "lib/handle.h"

#include <stdlib.h>

/* Calls of this size need no memory of the heap. */
enum { FEW = 8 };

int outbox_driver_attach(const struct ob_driver_ops *ops, void *driver,
			 const struct ob_check_rules *rules, outbox **ret_ob,
			 struct outbox_error *err)
{
	outbox *ob;

	if (ops->abi != OB_DRIVER_ABI)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "liboutbox %s and the library of the database are of different "
			       "versions: install both from one release",
			       OUTBOX_VERSION);
	ob = calloc(1, sizeof(*ob));
	if (!ob)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX, "out of memory");
	*ob = (outbox){ .ops = ops, .driver = driver, .rules = *rules };
	*ret_ob = ob;
	return 0;
}

void outbox_close(outbox *ob)
{
	if (!ob)
		return;
	ob->ops->close(ob->driver);
	free(ob);
}

struct outbox_id outbox_id_new(void)
{
	struct ob_uuid id = ob_uuid_new();
	struct outbox_id out;

	ob_uuid_format(&id, out.text);
	return out;
}

int ob_push_check_call(const outbox *ob, const void *messages, size_t count, size_t most,
		       struct outbox_error *err)
{
	if (!ob)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "there is no outbox");
	if (count > 0 && !messages)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX, "messages is NULL");
	if (count > most)
		return ob_fail(err, OUTBOX_EINVAL, OUTBOX_NO_INDEX,
			       "%zu messages in one call: %zu is the most", count, most);
	if (count > 0 && !ob->ops->in_transaction(ob->driver))
		return ob_fail(
			err, OUTBOX_ENOTRANSACTION, OUTBOX_NO_INDEX,
			"no transaction is open on this connection: begin one, write, commit");
	return 0;
}

int ob_push_messages(const void *messages, size_t count, size_t message_size,
		     const struct outbox_message **ret, struct outbox_message **ret_memory,
		     struct outbox_error *err)
{
	struct ob_err fault = OB_ERR_INIT;

	if (ob_grow_check(&ob_grow_message, message_size, &fault) < 0)
		return ob_fail(err, fault.status, OUTBOX_NO_INDEX, "%s", fault.msg);
	if (message_size == ob_grow_message.now) {
		*ret = messages;
		return 0;
	}
	struct outbox_message *copies = calloc(count + 1, sizeof(*copies));
	if (!copies)
		return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX,
			       "out of memory for %zu messages", count);
	for (size_t i = 0; i < count; i++)
		ob_grow_copy(&ob_grow_message, (const char *)messages + i * message_size,
			     message_size, &copies[i]);
	*ret = *ret_memory = copies;
	return 0;
}

/* All checks first: a fault in the last message leaves no trace of the first. */
int ob_push_prepare(const outbox *ob, const struct outbox_message *messages, size_t count,
		    struct ob_push_row *rows, struct outbox_error *err)
{
	for (size_t i = 0; i < count; i++) {
		bool has_id = false;
		int r = ob_check_message(&messages[i], &ob->rules, &rows[i], &has_id, err);

		if (r < 0) {
			err->index = i;
			return r;
		}
		if (!has_id)
			rows[i].id = ob_uuid_new();
	}
	return 0;
}

/* The table's own CHECK refused something: say which document it was, if that is what it was. */
static int explain_check(const outbox *ob, const struct ob_push_row *rows, size_t count,
			 struct outbox_error *err)
{
	struct outbox_error found;

	for (size_t i = 0; i < count; i++) {
		if (ob_check_json(&rows[i], ob->rules.flags, &found) == 0)
			continue;
		found.index = i;
		memcpy(found.native, err->native, sizeof(found.native));
		*err = found;
		break;
	}
	return err->status;
}

int ob_push_outcome(const outbox *ob, int r, const struct ob_push_row *rows, size_t count,
		    struct outbox_error *err)
{
	if (r == OB_DRIVER_CHECK)
		r = explain_check(ob, rows, count, err);
	if (r < 0 && count > 1)
		ob_fail_prefix(err);
	return r;
}

static int push_rows(outbox *ob, const struct outbox_message *messages, size_t count,
		     struct ob_push_row *rows, struct outbox_error *err)
{
	int r = ob_push_prepare(ob, messages, count, rows, err);

	if (r == 0)
		r = ob->ops->insert(ob->driver, rows, count, err);
	return ob_push_outcome(ob, r, rows, count, err);
}

int outbox_push_sized(outbox *ob, const void *messages, size_t count, size_t message_size,
		      struct outbox_id *ret_ids, struct outbox_error *err)
{
	struct outbox_error unused;
	struct ob_push_row few[FEW];
	OB_AUTOFREE struct ob_push_row *many = NULL;
	OB_AUTOFREE struct outbox_message *copies = NULL;
	const struct outbox_message *ours = NULL;
	struct ob_push_row *rows = few;

	if (!err)
		err = &unused;
	int r = ob_push_check_call(ob, messages, count, OUTBOX_BATCH_MAX, err);
	if (r == 0)
		r = ob_push_messages(messages, count, message_size, &ours, &copies, err);
	if (r < 0 || count == 0)
		return r;
	if (count > FEW) {
		rows = many = calloc(count, sizeof(*many));
		if (!many)
			return ob_fail(err, OUTBOX_ENOMEM, OUTBOX_NO_INDEX,
				       "out of memory for %zu messages", count);
	}
	r = push_rows(ob, ours, count, rows, err);
	if (r < 0)
		return r;
	for (size_t i = 0; ret_ids && i < count; i++)
		ob_uuid_format(&rows[i].id, ret_ids[i].text);
	return 0;
}

OUTBOX_API int first_push(outbox *ob, const void *messages, size_t count, struct outbox_id *ret_ids,
			  struct outbox_error *err) OB_FIRST_ABI("outbox_push");

int first_push(outbox *ob, const void *messages, size_t count, struct outbox_id *ret_ids,
	       struct outbox_error *err)
{
	return outbox_push_sized(ob, messages, count, ob_grow_message.first, ret_ids, err);
}
