"""What a database has besides the tables of the model: tables of Diptych's own, and triggers.

A Part is one such thing. A store tells which parts are there and creates those that are not, so that a database of
an earlier form gets them when it is opened, and one that has them all is left alone.

Every table has the trigger `diptych_touch`: a row whose update does not move `version` (SQL from outside, a foreign
key that is set to null) gets the next version and the moment of the change. Statements of Diptych's own move both
by themselves, so for them the trigger is a comparison and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from diptych.compile.fragment import identifier

DialectName = Literal["sqlite", "postgres"]

NOW: Mapping[DialectName, str] = {
    "sqlite": "(strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')",
    "postgres": "now()",
}
"""The moment of a statement, in the form of a DateTime column. SQLite's clock has three fraction digits of six."""


@dataclass(frozen=True, slots=True)
class Part:
    """A table, index, function or trigger that is not the model's.

    `text` is how the database tells what it is; without it, one of that name is taken as it is.
    """

    name: str
    create: tuple[str, ...]
    text: str | None = None

    def is_in(self, have: Mapping[str, str | None]) -> bool:
        """Is it among the parts that a database has, by name and text?"""
        return self.name in have and self.text in (None, have[self.name])


def parts(tables: Iterable[str], dialect: DialectName) -> list[Part]:
    """All parts that a database with these tables of a model needs, in the order in which they can be made."""
    touch = _touch_in_sqlite if dialect == "sqlite" else _touch_in_postgres
    function = [_TOUCH_FUNCTION] if dialect == "postgres" else []
    return [*_system_tables(dialect), *function, *(touch(table) for table in tables)]


# tables


def _system_tables(dialect: DialectName) -> Iterable[Part]:
    text, code, data = ("TEXT", "TEXT", "BLOB") if dialect == "sqlite" else ("text", 'text COLLATE "C"', "bytea")
    number = "INTEGER" if dialect == "sqlite" else "bigint"
    yield Part("diptych_keys", (
        f"CREATE TABLE diptych_keys (kid {text} PRIMARY KEY, kind {text} NOT NULL, secret {text} NOT NULL, "
        f"created_at {text} NOT NULL)",
    ))  # fmt: skip
    # answers that are given again when a request comes again; `at` is a DateTime as text, whose order is that of time
    yield Part("diptych_replays", (
        f"CREATE TABLE diptych_replays (caller {code} NOT NULL, key {code} NOT NULL, print {code} NOT NULL, "
        f"status integer, head {text}, body {data}, at {code} NOT NULL, PRIMARY KEY (caller, key))",
    ))  # fmt: skip
    yield Part("diptych_replays_at", ("CREATE INDEX diptych_replays_at ON diptych_replays (at)",))
    for name, columns in _RECORDS.items():
        yield Part(name, (f"CREATE TABLE {name} ({columns.format(text=code, number=number)})",))
    for name, on in _RECORD_INDEXES.items():
        yield Part(name, (f"CREATE INDEX {name} ON {on}",))


# who may sign in, and what was given to them; moments are seconds
_RECORDS = {
    "diptych_accounts": (
        "id {text} PRIMARY KEY, email {text} NOT NULL UNIQUE, password {text}, user_id {text}, roles {text} NOT NULL, "
        "disabled_at {number}, created_at {number} NOT NULL"
    ),
    "diptych_clients": (
        "id {text} PRIMARY KEY, name {text} NOT NULL UNIQUE, secret {text}, redirects {text} NOT NULL, "
        "roles {text} NOT NULL, scopes {text} NOT NULL, created_at {number} NOT NULL"
    ),
    "diptych_grants": (
        "id {text} PRIMARY KEY, account_id {text}, client_id {text} NOT NULL, scope {text} NOT NULL, "
        "created_at {number} NOT NULL, expires_at {number} NOT NULL, revoked_at {number}"
    ),
    "diptych_codes": (
        "hash {text} PRIMARY KEY, client_id {text} NOT NULL, account_id {text} NOT NULL, redirect {text} NOT NULL, "
        "scope {text} NOT NULL, challenge {text} NOT NULL, expires_at {number} NOT NULL, used_at {number}, "
        "grant_id {text}"
    ),
    "diptych_refreshes": (
        "hash {text} PRIMARY KEY, grant_id {text} NOT NULL, expires_at {number} NOT NULL, used_at {number}"
    ),
    "diptych_browsers": (
        "hash {text} PRIMARY KEY, account_id {text} NOT NULL, created_at {number} NOT NULL, "
        "expires_at {number} NOT NULL"
    ),
    "diptych_attempts": (
        "who {text} PRIMARY KEY, failures {number} NOT NULL, until_at {number} NOT NULL"
    ),
    "diptych_revocations": (
        "id {text} PRIMARY KEY, kind {text} NOT NULL, what {text} NOT NULL, at {number} NOT NULL, "
        "expires_at {number} NOT NULL"
    ),
    "diptych_api_keys": (
        "id {text} PRIMARY KEY, name {text} NOT NULL UNIQUE, hash {text} NOT NULL, user_id {text}, "
        "roles {text} NOT NULL, scopes {text}, created_at {number} NOT NULL, expires_at {number}, used_at {number}"
    ),
}  # fmt: skip
_RECORD_INDEXES = {
    "diptych_accounts_user": "diptych_accounts (user_id)",
    "diptych_grants_account": "diptych_grants (account_id)",
    "diptych_refreshes_grant": "diptych_refreshes (grant_id)",
    "diptych_revocations_at": "diptych_revocations (at)",
}


# triggers


def _touch_in_sqlite(table: str) -> Part:
    """The inner update moves the version, so that it ends there, whatever `recursive_triggers` says."""
    name, quoted = f"diptych_touch_{table}", identifier(table).text
    create = (
        f'CREATE TRIGGER "{name}" AFTER UPDATE ON {quoted} FOR EACH ROW WHEN NEW.version <= OLD.version\nBEGIN\n'
        f"  UPDATE {quoted} SET version = OLD.version + 1, updated_at = {NOW['sqlite']} WHERE id = NEW.id;\nEND"
    )
    return Part(name, (f'DROP TRIGGER IF EXISTS "{name}"', create), create)


def _touch_in_postgres(table: str) -> Part:
    create = (
        f"CREATE TRIGGER diptych_touch BEFORE UPDATE ON {identifier(table).text} FOR EACH ROW "
        "WHEN (NEW.version <= OLD.version) EXECUTE FUNCTION diptych_touch()"
    )
    return Part(f"diptych_touch on {table}", (create,))


# The clock, and not the begin of the transaction: the row may have waited for another that began later.
_TOUCH_BODY = """
BEGIN
  NEW.version := OLD.version + 1;
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END
"""
_TOUCH_FUNCTION = Part(
    "diptych_touch()",
    (f"CREATE OR REPLACE FUNCTION diptych_touch() RETURNS trigger LANGUAGE plpgsql AS $${_TOUCH_BODY}$$",),
    _TOUCH_BODY,
)
