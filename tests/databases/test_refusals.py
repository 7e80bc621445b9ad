# SPDX-License-Identifier: MIT
"""What a user gets wrong about a database: each has a sentence of its own that says what to do."""
import os
import sys
import time

from harness import TIMEOUT, case, main

PUSH = ("push", "--type", "order", "--aggregate", "7", "--event", "E", "--payload", "{}")


def said(db, *words):
    """The one line of a command that must fail, without the names of files, users and databases."""
    text = db.outbox(*words, code=1)
    assert text.startswith("outbox: ") and text.count("\n") == 1, text
    if db.kind == "mysql":
        text = text.replace(f"{os.environ['TEST_MYSQL_SOCKET']}, ", "")
    elif db.kind == "sqlite":
        text = text.replace(db.file, "FILE")
    return text[len("outbox: "):-1].replace("relay default: ", "").replace(f"'{db.name}'", "'DB'")


def expect(got, wanted):
    assert got == wanted, f"said:   {got}\nwanted: {wanted}"


def add_user(db, name, password=None):
    """A user of this case's own, with all rights on its database."""
    user = f"{name}_{db.name}"
    if db.kind == "postgres":
        db.run(f"CREATE ROLE {user} LOGIN" + (f" PASSWORD '{password}'" if password else ""))
    else:
        db.run(f"CREATE USER {user}@localhost" + (f" IDENTIFIED BY '{password}'" if password else ""))
    return user


def grant(db, rights, table, user):
    db.run(f"GRANT {rights} ON {table} TO {user}" + ("" if db.kind == "postgres" else "@localhost"))


def setup(db):
    db.configure()
    db.outbox("setup")


@case("postgres", "mysql")
def a_wrong_password_is_told_and_not_shown(db):
    user = add_user(db, "guarded", "right")
    if db.kind == "postgres":
        rules = os.path.join(os.environ["TEST_POSTGRES_DIR"], "data/pg_hba.conf")
        with open(rules, encoding="utf-8") as file:
            old = file.read()
        with open(rules, "w", encoding="utf-8") as file:
            file.write(f"local all {user} scram-sha-256\n" + old)
        db.run("SELECT pg_reload_conf()")
        end = time.monotonic() + TIMEOUT
        while not db.refused("SELECT 1", user=user).count("no password"):
            assert time.monotonic() < end
        wanted = {"wr0ng": f'connecting: password authentication failed for user "{user}"; '
                           "correct the user or the password",
                  "": "connecting: the server asks for a password; give one in password or in ~/.pgpass"}
    else:
        wanted = {word: f"connecting: database 'DB': Access denied for user '{user}'@'localhost' (using password: {used}); "
                        "correct the user and the password of the store" for word, used in (("wr0ng", "YES"), ("", "NO"))}
    for word, sentence in wanted.items():
        db.configure(user=f"{user}:{word}" if word else user)
        for words in (("work", "--once"), ("setup",), ("list",), PUSH):
            expect(said(db, *words), sentence)
    # the right one, beside the url: it comes as far as the tables
    db.configure(user=user, store="password: right")
    assert "password" not in said(db, "list")


@case("postgres", "mysql")
def an_unknown_database_is_named(db):
    db.name = "nowhere"
    db.configure()
    expect(said(db, "work", "--once"),
           'connecting: database "nowhere" does not exist; create the database, or correct its name'
           if db.kind == "postgres" else
           "connecting: database 'DB': Unknown database 'DB'; create the database, or correct its name in the url")


@case()
def tables_that_are_missing_ask_for_setup(db):
    db.configure()
    wanted = {"sqlite": "FILE: no such database; run `outbox setup`",
              "postgres": "database 'DB': table 'outbox' is missing; run `outbox setup`",
              "mysql": "database 'DB': table 'outbox' is missing; run `outbox setup`"}[db.kind]
    for words in (("work", "--once"), ("list",), ("status",), PUSH):
        expect(said(db, *words), wanted)


@case("postgres", "mysql")
def a_table_without_rights_is_named(db):
    setup(db)
    user = add_user(db, "poor")
    for table in ("outbox", "outbox_readers", "outbox_batches", "outbox_exceptions", "outbox_leases", "outbox_workers",
                  "outbox_meta"):
        grant(db, "SELECT, INSERT, UPDATE, DELETE", table, user)
    db.configure(user=user)
    expect(said(db, "work", "--once"),
           f"user '{user}' may not SELECT, INSERT, UPDATE, DELETE on table 'outbox_throughput'; "
           f"run GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_throughput TO {user}"
           if db.kind == "postgres" else
           # it does not even see that there is one
           "database 'DB': table 'outbox_throughput' is missing; run `outbox setup`, "
           "or grant this user the rights that `outbox setup --grants` prints")


TABLES = ("outbox", "outbox_readers", "outbox_batches", "outbox_exceptions", "outbox_leases", "outbox_workers",
          "outbox_throughput", "outbox_audit", "outbox_meta")


@case("postgres", "mysql")
def whoever_may_only_read_can_look(db):
    setup(db)
    db.outbox(*PUSH)
    db.outbox("work", "--once")
    user = add_user(db, "looker")
    for table in TABLES:
        grant(db, "SELECT", table, user)
    db.configure(user=user)
    for words in (("status",), ("list", "all"), ("show", "1"), ("why", "1"), ("readers", "list")):
        db.outbox(*words)


@case("postgres")
def a_role_that_may_not_read_the_version_is_not_sent_to_a_backup(db):
    setup(db)
    user = add_user(db, "poor")
    for table in TABLES[:-1]:
        grant(db, "SELECT, INSERT, UPDATE, DELETE", table, user)
    db.configure(user=user)
    wanted = f"user '{user}' may not SELECT on table 'outbox_meta'; run GRANT SELECT ON outbox_meta TO {user}"
    for words in (("setup",), ("work", "--once"), ("status",)):
        expect(said(db, *words), wanted)


@case("mysql")
def a_user_who_does_not_see_the_version_is_told_of_the_grant(db):
    setup(db)
    user = add_user(db, "poor")
    for table in TABLES[:-1]:
        grant(db, "SELECT, INSERT, UPDATE, DELETE", table, user)
    db.configure(user=user)
    for words in (("setup",), ("status",)):
        text = said(db, *words)
        assert "grant this user" in text and "choose another" not in text and "backup" not in text, text


@case("postgres", "mysql")
def a_setup_without_rights_says_who_may(db):
    user = add_user(db, "poor")
    if db.kind == "mysql":
        grant(db, "SELECT", f"{db.name}.*", user)
    db.configure(user=user)
    refused = {"postgres": "permission denied for schema public",
               "mysql": f"database 'DB': CREATE command denied to user '{user}'@'localhost' for table "}[db.kind]
    if db.kind == "mysql":
        refused += f"`{db.name}`.`outbox_meta`" if db.version()[1] else "'outbox_meta'"
    expect(said(db, "setup"),
           f"changing the schema: {refused}; run it as a user who may create tables there, "
           "or give such a user what `outbox setup --print` prints")


@case()
def a_missing_index_asks_for_setup(db):
    setup(db)
    db.run("DROP INDEX outbox_uniq_id" + (" ON outbox" if db.kind == "mysql" else ""))
    expect(said(db, "work", "--once"), ("" if db.kind == "sqlite" else "index ") + "'outbox_uniq_id' is missing: run `outbox setup`")
    db.outbox("setup")
    db.outbox("work", "--once")


@case()
def a_foreign_table_is_refused(db):
    db.run("CREATE TABLE outbox (id INTEGER)")
    db.configure()
    expect(said(db, "setup"),
           f"table 'outbox' has no column '{'txid' if db.kind == 'postgres' else 'seq'}': it is not ours, or the layout is not the one it was made with; "
           + ("correct the layout, or grant this user SELECT on the whole table" if db.kind == "mysql" else
              "correct the layout or choose another table name"))


@case("sqlite", "postgres")
def a_version_that_never_was_says_what_to_restore(db):
    setup(db)
    db.run("UPDATE outbox_meta SET value = 0 WHERE name = 'schema_version'")
    expect(said(db, "setup"),
           "FILE: table 'outbox' has schema version 0, which cannot be upgraded to 2: let its relay finish and drop its "
           "tables, or choose another table name in the layout" if db.kind == "sqlite" else
           "no way to upgrade from schema version 0: choose another table name in the layout, or restore table "
           "'outbox_meta' from a backup")


@case("postgres")
def numbers_out_of_order_are_refused(db):
    setup(db)
    db.run("ALTER TABLE outbox ALTER COLUMN seq SET CACHE 50")
    for words in (("work", "--once"), ("setup",)):
        expect(said(db, *words),
               "the sequence of column 'seq' of table 'outbox' has CACHE 50: numbers would be out of order; "
               "run ALTER TABLE outbox ALTER COLUMN seq SET CACHE 1")


@case("mysql")
def a_server_that_breaks_a_promise_is_refused(db):
    setup(db)
    for setting, back, sentence in (
            ("sql_mode = ''", "sql_mode = DEFAULT",
             "the server's sql_mode is not strict: keys and payloads that producers write would be cut silently; "
             "add STRICT_TRANS_TABLES to the global sql_mode"),
            ("read_only = 1", "read_only = 0",
             "the server is read-only, perhaps a replica: connect to the server that takes writes")):
        db.admin(f"SET GLOBAL {setting}")
        try:
            expect(said(db, "work", "--once"), sentence)
        finally:
            db.admin(f"SET GLOBAL {back}")
    db.outbox("work", "--once")


@case()
def what_weakens_a_promise_is_said_at_the_start(db):
    setup(db)
    if db.kind == "postgres":
        db.run(f"ALTER DATABASE {db.name} SET synchronous_commit = off")
    process = db.start("work", "--once")
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, out + err
    lines = [line for line in (out + err).splitlines() if "the database weakens a promise" in line]
    # of the servers that the tests start
    wanted = {"sqlite": [],
              "postgres": ["fsync is off: a power cut may cost committed messages, or the database; turn it on",
                           "synchronous_commit is off: a message may be sent whose transaction is lost when the server "
                           "crashes right after; turn it on for producers"],
              "mysql": ["innodb_flush_log_at_trx_commit is 0: a message may be sent whose transaction is lost when the "
                        "server crashes right after; set it to 1",
                        "the binary log is off: InnoDB then shows a transaction to others before it is durable, so a "
                        "message may be sent whose transaction is lost when the server crashes in that moment; "
                        "switch log_bin on"]}[db.kind]
    if db.kind == "mysql" and db.run("SELECT @@log_bin") == [(1,)]:
        del wanted[1]  # MySQL writes it unless it is told not to
    assert len(lines) == len(wanted), out + err
    for line, sentence in zip(lines, wanted):
        assert "level=warn" in line and f'advice="{sentence}"' in line, line


sys.exit(main())
