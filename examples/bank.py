#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An event-sourced bank account with SQL alone, on PostgreSQL: no library of ours.

    outbox setup --events
    bank.py DSN open 42 Ann
    bank.py DSN deposit 42 10000
    bank.py DSN withdraw 42 2500
    bank.py DSN show 42
    bank.py DSN project          # brings the table `balances` up to date, exactly once
"""
import json
import sys

import psycopg2


def load(cursor, account):
    """The state is what the events say; the version is what the next append expects."""
    cursor.execute("SELECT version, event_type, payload FROM outbox_read_stream('account', %s, \"limit\" => 1000000)", (account,))
    state = {"owner": None, "cents": 0, "version": 0}
    for version, event, payload in cursor:
        state["version"] = version
        if event == "Opened":
            state["owner"] = payload["owner"]
        else:
            state["cents"] += payload["cents"] if event == "Deposited" else -payload["cents"]
    return state


def decide(state, command, value):
    """What a command may do is decided by the state; what it does is an event."""
    if command == "open":
        return "Opened", {"owner": value} if not state["owner"] else sys.exit("the account exists")
    cents = int(value)
    if not state["owner"]:
        sys.exit("there is no such account")
    if command == "withdraw" and cents > state["cents"]:
        sys.exit("the account has not so much")
    return {"deposit": "Deposited", "withdraw": "Withdrawn"}[command], {"cents": cents}


def run(connection, account, command, value):
    """Load, decide, append in one transaction; whoever was faster is a conflict, and we decide again."""
    while True:
        with connection, connection.cursor() as cursor:
            state = load(cursor, account)
            event, payload = decide(state, command, value)
            try:
                cursor.execute("SELECT last_version FROM outbox_append('account', %s, %s, ARRAY[%s], ARRAY[%s]::json[])",
                               (account, state["version"], event, json.dumps(payload)))
                return
            except psycopg2.Error as error:
                if error.pgcode != "OB001":
                    raise
                connection.rollback()


def project(connection):
    """The place in the log is kept in the transaction of the balances: each event counts once."""
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS balances (account text PRIMARY KEY, cents bigint NOT NULL)")
        cursor.execute("CREATE TABLE IF NOT EXISTS place (one boolean PRIMARY KEY DEFAULT true, position bigint NOT NULL, seen pg_snapshot)")
        cursor.execute("INSERT INTO place (position) VALUES (0) ON CONFLICT DO NOTHING")
        cursor.execute("SELECT position, seen::text FROM place FOR UPDATE")
        position, seen = cursor.fetchone()
        cursor.execute("SELECT position, aggregate_id, event_type, payload, now_seen::text "
                       "FROM outbox_read_category('account', %s, 1000, seen => %s::pg_snapshot)", (position, seen))
        rows = cursor.fetchall()
        for at, account, event, payload, now_seen in rows:
            cents = 0 if event == "Opened" else payload["cents"] if event == "Deposited" else -payload["cents"]
            cursor.execute("INSERT INTO balances AS b VALUES (%s, %s) ON CONFLICT (account) DO UPDATE SET cents = b.cents + excluded.cents",
                           (account, cents))
            position, seen = max(position, at), now_seen
        cursor.execute("UPDATE place SET position = %s, seen = %s::pg_snapshot", (position, seen))
    print(len(rows), "events")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    connection = psycopg2.connect(sys.argv[1])
    if sys.argv[2] == "project":
        project(connection)
    elif sys.argv[2] == "show":
        with connection, connection.cursor() as cursor:
            state = load(cursor, sys.argv[3])
        print(f"{state['owner']}: {state['cents']} cents after {state['version']} events" if state["owner"] else "there is no such account")
    else:
        run(connection, sys.argv[3], sys.argv[2], sys.argv[4])


if __name__ == "__main__":
    main()
