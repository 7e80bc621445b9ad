/* SPDX-License-Identifier: MIT */
/* Bytes on their way to a peer that takes them when it likes. */
#ifndef OB_SINK_OUTBUF_H
#define OB_SINK_OUTBUF_H

#include "sink/net.h"

enum { OB_OUTBUF_KEEP = 4 << 20 }; /* memory kept when it is empty */

struct ob_outbuf {
	struct ob_buf bytes; /* append here */
	size_t sent;         /* of them are gone */
	bool blocked;        /* the peer takes no more now */
};

#define OB_OUTBUF_INIT(limit) ((struct ob_outbuf){ .bytes = OB_BUF_INIT(limit) })

static inline size_t ob_outbuf_left(const struct ob_outbuf *out)
{
	return out->bytes.len - out->sent;
}

/* Write what the peer takes now: 1 some bytes went, 0 none, or an error. */
int ob_outbuf_flush(struct ob_outbuf *out, struct ob_net *net, struct ob_err *err);
/* Give up the space of bytes that are gone, once they are `least`. */
void ob_outbuf_compact(struct ob_outbuf *out, size_t least);
/* Forget all bytes and free the memory; it can be used again. */
void ob_outbuf_drop(struct ob_outbuf *out);

#endif
