# SPDX-License-Identifier: MIT
"""Consumers in the API of the monitor, on every database."""
import json
import sys

from consumers import Consumer, parked, poisoned, redis, stream
from harness import case, main
from monitor import Monitor


@case()
def consumers_are_told_with_what_they_have_parked(db):
    poisoned(db)
    for n in range(6):
        redis.add(stream(db), n % 3, n, bad=int(n == 1))
    db.outbox("consume", "--once", code=1)
    with Monitor(db) as m:
        found = m.get("/api/v1/consumers")
        consumer, = found["consumers"]
        assert found["installed"] and found["letters"] == [] and found["next"] is None, found
        assert consumer["consumer"] == "billing" and consumer["status"] == "stopped", consumer
        assert (consumer["handled"], consumer["parked"]) == (4, 2) and consumer["trouble"], consumer
        letters = m.get("/api/v1/consumers?consumer=billing")["letters"]
        assert [x["id"] for x in letters] == [x["id"] for x in parked(db)], letters
        assert {x["key"] for x in letters} == {"order:1"} and letters[0]["reason"], letters
        assert [x["behind"] for x in letters] == [False, True] and letters[1]["state"] == "waiting", letters
        assert "payload" not in json.dumps(letters)
        first = letters[0]["n"]
        assert [x["n"] for x in m.get(f"/api/v1/consumers?consumer=billing&before={first}")["letters"]] == [letters[1]["n"]]
        m.get("/api/v1/consumers?consumer=nobody", 404)
        runs = Consumer(db)
        m.wait_for(lambda: m.get("/api/v1/consumers")["consumers"][0]["processes"])
        process, = m.get("/api/v1/consumers")["consumers"][0]["processes"]
        assert process["pid"] == runs.process.pid and process["alive"], process
        runs.stop()


@case()
def a_database_without_consumers_says_so(db):
    db.write("outbox.yaml", f'stores: {{ main: {{ url: "{db.url()}" }} }}\n')
    db.outbox("setup")
    with Monitor(db) as m:
        found = m.get("/api/v1/consumers")
        assert found == {"store": "main", "installed": False, "consumers": [], "letters": [], "next": None}, found


if __name__ == "__main__":
    sys.exit(main())
