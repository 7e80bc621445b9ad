#!/usr/bin/env python3
"""A handler for the exec sink: one JSON message per line in, one answer per line out.

    sinks:
      mail: { type: exec, command: "python3 handler.py" }

Answers:  ok ID  |  retry ID reason  |  reject ID reason
Only answers go to stdout; anything for people goes to stderr.
"""
import base64
import json
import sys


class NotNow(Exception):
    """What we need is away: the message is tried again later, with a growing delay."""


def body_of(message):
    """The payload as it was pushed: a JSON value, bytes when it was not JSON, None for a tombstone."""
    if "payload_base64" in message:
        return base64.b64decode(message["payload_base64"])
    return message["payload"]


def handle(message):
    """Put your work here. It may see a message twice (a crash before "ok" was read): make it
    idempotent, for example by remembering message["id"] in the same transaction as its effect."""
    body = body_of(message)
    if message["event_type"] == "Unwanted":
        raise ValueError("no such event")  # never going to work: reject
    if message["event_type"] == "Later":
        raise NotNow("the mail server is away")  # may work later: retry
    print(f"{message['event_type']} {message['aggregate_id']}: {body!r}", file=sys.stderr)


def answer(word, message_id, reason=""):
    # one line, whatever the reason holds; flushed, or the relay would wait for it
    print(word, message_id, *reason.split(), flush=True)


for line in sys.stdin.buffer:
    message = json.loads(line)
    try:
        handle(message)
    except NotNow as e:
        answer("retry", message["id"], str(e))
    except Exception as e:  # a bug must not end the handler: that would hold up everything
        answer("reject", message["id"], f"{type(e).__name__}: {e}")
    else:
        answer("ok", message["id"])
# The end of stdin means: finish. SIGTERM follows, SIGKILL after the sink's `grace`.
