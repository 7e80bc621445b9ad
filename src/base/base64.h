/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648, with padding) for payloads that are not JSON. */
#ifndef OB_BASE_BASE64_H
#define OB_BASE_BASE64_H

#include "base/buf.h"

void ob_base64_encode(struct ob_buf *out, struct ob_str bytes);
/* Bytes that `size` characters decode to, at most. */
#define OB_BASE64_DECODED_MAX(size) ((size) / 4 * 3)
/* Into `out`, which has room for OB_BASE64_DECODED_MAX(text.n); false when it is not Base64. */
bool ob_base64_decode(struct ob_str text, char *out, size_t *ret_size);

#endif
