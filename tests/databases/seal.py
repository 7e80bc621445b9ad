# SPDX-License-Identifier: MIT
"""Payloads encrypted for a data subject, made from what docs/events.md says of them: not with our own code."""
import base64
import ctypes
import ctypes.util
import json
import os
import uuid

lib = ctypes.CDLL(ctypes.util.find_library("crypto"))
for name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"):
    getattr(lib, name).restype = ctypes.c_void_p
SET_TAG_SIZE, GET_TAG = 0x9, 0x10


def seal(key, about, text):
    """A nonce of 12 bytes, the text in AES-256-GCM, the tag of 16; as Base64."""
    nonce = os.urandom(12)
    context = ctypes.c_void_p(lib.EVP_CIPHER_CTX_new())
    out, size, tag = ctypes.create_string_buffer(len(text) + 16), ctypes.c_int(), ctypes.create_string_buffer(16)
    assert lib.EVP_EncryptInit_ex(context, ctypes.c_void_p(lib.EVP_aes_256_gcm()), None, key, nonce) == 1
    assert lib.EVP_EncryptUpdate(context, None, ctypes.byref(size), about, len(about)) == 1
    assert lib.EVP_EncryptUpdate(context, out, ctypes.byref(size), text, len(text)) == 1
    sealed = out.raw[:size.value]
    assert lib.EVP_EncryptFinal_ex(context, out, ctypes.byref(size)) == 1
    assert lib.EVP_CIPHER_CTX_ctrl(context, GET_TAG, 16, tag) == 1
    lib.EVP_CIPHER_CTX_free(context)
    return base64.b64encode(nonce + sealed + tag.raw).decode()


class Subject:
    """One with a key in outbox_keys."""

    def __init__(self, db, name, master_id, master):
        self.name, self.key, self.key_id = name, os.urandom(32), str(uuid.uuid4())
        wrapped = seal(master, f"{name}\n{self.key_id}".encode(), self.key)
        db.run("INSERT INTO outbox_keys (subject, key_id, master_id, wrapped) VALUES ({0}, {0}, {0}, {0})".format(db.marker),
               name, self.key_id, master_id, wrapped)

    def encrypt(self, payload):
        data = seal(self.key, self.key_id.encode(), json.dumps(payload).encode())
        return {"outbox_encrypted": 1, "subject": self.name, "key": self.key_id, "data": data}
