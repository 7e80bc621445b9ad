/* SPDX-License-Identifier: MIT */
/* The buffer in front of a connection that never waits. */
#include "sink/outbuf.h"

int ob_outbuf_flush(struct ob_outbuf *out, struct ob_net *net, struct ob_err *err)
{
	int moved = 0;

	out->blocked = false;
	while (ob_outbuf_left(out) > 0) {
		struct ob_str rest = { out->bytes.data + out->sent, ob_outbuf_left(out) };
		ssize_t n = ob_net_write(net, rest, err);

		if (n < 0)
			return err->status;
		if (n == 0) {
			out->blocked = true;
			return moved;
		}
		out->sent += (size_t)n;
		moved = 1;
	}
	out->sent = 0;
	if (out->bytes.cap > OB_OUTBUF_KEEP)
		ob_buf_done(&out->bytes);
	ob_buf_clear(&out->bytes);
	return moved;
}

void ob_outbuf_compact(struct ob_outbuf *out, size_t least)
{
	if (out->sent < least)
		return;
	memmove(out->bytes.data, out->bytes.data + out->sent, ob_outbuf_left(out));
	out->bytes.len -= out->sent;
	out->sent = 0;
}

void ob_outbuf_drop(struct ob_outbuf *out)
{
	ob_buf_done(&out->bytes);
	ob_buf_clear(&out->bytes);
	out->sent = 0;
	out->blocked = false;
}
