"""The system tables and triggers of a database.

Every table that Diptych makes has the trigger `diptych_touch`: a row whose update does not move `version` (SQL from
outside, a foreign key that is set to null) gets the next version and the moment of the change. Statements of Diptych's
own move both by themselves, so for them the trigger is a comparison and nothing more. Other triggers log every change
in the feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diptych.compile.fragment import identifier
from diptych.compile.system.counters import counters
from diptych.compile.system.feed_postgres import postgres_feed
from diptych.compile.system.feed_sqlite import sqlite_feed
from diptych.compile.system.folding import folding
from diptych.compile.system.object import MARK, DialectName, FeedTable, SystemObject


def system_objects(tables: Sequence[FeedTable], dialect: DialectName) -> list[SystemObject]:
    """All parts that a database with these tables of a model needs, in the order in which they can be made."""
    if dialect == "sqlite":
        return [*_system_tables(dialect), *counters(tables, dialect), *sqlite_feed(tables)]
    touch = [_TOUCH_FUNCTION, *(_touch(table.name) for table in tables if not table.key)]
    return [*_system_tables(dialect), *counters(tables, dialect), *folding(), *touch, *postgres_feed(tables)]


# tables


def _system_tables(dialect: DialectName) -> Iterable[SystemObject]:
    text, code, data = ("TEXT", "TEXT", "BLOB") if dialect == "sqlite" else ("text", 'text COLLATE "C"', "bytea")
    number = "INTEGER" if dialect == "sqlite" else "bigint"
    tables = {name: columns.format(text=text, code=code, data=data) for name, columns in _TABLES.items()}
    tables |= {name: columns.format(text=code, number=number) for name, columns in _RECORDS.items()}
    for name, columns in tables.items():
        yield SystemObject(name, (f"CREATE TABLE {name} ({columns})",))
    for name, on in _INDEXES.items():
        yield SystemObject(name, (f"CREATE INDEX {name} ON {on}",))


_TABLES = {
    "diptych_keys": "kid {text} PRIMARY KEY, kind {text} NOT NULL, secret {text} NOT NULL, created_at {text} NOT NULL",
    # what the model means by the columns of each table (`meaning.py`)
    "diptych_schema": "name {code} PRIMARY KEY, format integer NOT NULL, columns {text} NOT NULL",
    # answers that are given again when a request comes again; `at` is a DateTime as text, whose order is that of time
    "diptych_replays": (
        "caller {code} NOT NULL, key {code} NOT NULL, print {code} NOT NULL, status integer, head {text}, body {data}, "
        "at {code} NOT NULL, PRIMARY KEY (caller, key)"
    ),
}
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
    "diptych_client_details": (
        "client_id {text} PRIMARY KEY, device {number} NOT NULL, network {text}, created_at {number} NOT NULL, "
        "expires_at {number}"
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
    "diptych_code_sign_ins": (
        "hash {text} PRIMARY KEY, auth_time {number} NOT NULL, nonce {text}, expires_at {number} NOT NULL"
    ),
    "diptych_device_codes": (
        "hash {text} PRIMARY KEY, user_hash {text} NOT NULL UNIQUE, client_id {text} NOT NULL, scope {text} NOT NULL, "
        "network {text} NOT NULL, interval {number} NOT NULL, polled_at {number} NOT NULL, "
        "expires_at {number} NOT NULL, state {text} NOT NULL, account_id {text}, auth_time {number}"
    ),
    "diptych_refreshes": (
        "hash {text} PRIMARY KEY, grant_id {text} NOT NULL, expires_at {number} NOT NULL, used_at {number}"
    ),
    "diptych_browsers": (
        "hash {text} PRIMARY KEY, account_id {text} NOT NULL, created_at {number} NOT NULL, "
        "expires_at {number} NOT NULL"
    ),
    "diptych_email_links": (
        "hash {text} PRIMARY KEY, purpose {text} NOT NULL, email {text} NOT NULL, account_id {text}, "
        "state {text} NOT NULL, goes_on {text} NOT NULL, expires_at {number} NOT NULL"
    ),
    "diptych_verified_emails": ("account_id {text} PRIMARY KEY, email {text} NOT NULL, verified_at {number} NOT NULL"),
    "diptych_totp_keys": (
        "account_id {text} PRIMARY KEY, secret {text} NOT NULL, confirmed_at {number}, last_step {number} NOT NULL"
    ),
    "diptych_recovery_codes": ("hash {text} PRIMARY KEY, account_id {text} NOT NULL"),
    "diptych_second_steps": (
        "hash {text} PRIMARY KEY, account_id {text} NOT NULL, state {text} NOT NULL, location {text} NOT NULL, "
        "expires_at {number} NOT NULL"
    ),
    "diptych_session_methods": ("hash {text} PRIMARY KEY, methods {text} NOT NULL, expires_at {number} NOT NULL"),
    "diptych_attempts": ("who {text} PRIMARY KEY, failures {number} NOT NULL, until_at {number} NOT NULL"),
    "diptych_revocations": (
        "id {text} PRIMARY KEY, kind {text} NOT NULL, what {text} NOT NULL, at {number} NOT NULL, "
        "expires_at {number} NOT NULL"
    ),
    "diptych_api_keys": (
        "id {text} PRIMARY KEY, name {text} NOT NULL UNIQUE, hash {text} NOT NULL, user_id {text}, "
        "roles {text} NOT NULL, scopes {text}, created_at {number} NOT NULL, expires_at {number}, used_at {number}"
    ),
    # who still uses what is deprecated
    "diptych_usage": (
        "name {text} NOT NULL, role {text} NOT NULL, client {text} NOT NULL, requests {number} NOT NULL, "
        "first_at {number} NOT NULL, last_at {number} NOT NULL, PRIMARY KEY (name, role, client)"
    ),
    # addresses that changes are sent to, how far each is, and what is to be tried again; some moments are milliseconds
    "diptych_webhooks": (
        "id {text} PRIMARY KEY, name {text} NOT NULL UNIQUE, url {text} NOT NULL, resource {text} NOT NULL, "
        "query {text} NOT NULL, owner {text} NOT NULL, source {text} NOT NULL, generation {number} NOT NULL, "
        "rotated_at {number}, created_at {number} NOT NULL, disabled_at {number}, reason {text}, "
        "position {number} NOT NULL, failures {number} NOT NULL, next_at {number} NOT NULL, delivered_at {number}, "
        "replays {number} NOT NULL, lease_by {text} NOT NULL, lease_until {number} NOT NULL"
    ),
    "diptych_webhook_deliveries": (
        "id {text} PRIMARY KEY, webhook_id {text} NOT NULL, position {number} NOT NULL, row_id {text} NOT NULL, "
        "state {text} NOT NULL, attempts {number} NOT NULL, first_at {number} NOT NULL, next_at {number} NOT NULL, "
        "last {text} NOT NULL"
    ),
    # what is to run in the background, and when the next tick of each schedule is; moments are milliseconds
    "diptych_jobs": (
        "id {text} PRIMARY KEY, name {text} NOT NULL, arguments {text} NOT NULL, owner {text} NOT NULL, "
        "attempts {number} NOT NULL, state {text} NOT NULL, created_at {number} NOT NULL, next_at {number} NOT NULL, "
        "lease_by {text} NOT NULL, lease_until {number} NOT NULL, share {text} NOT NULL DEFAULT '', "
        "turn {number} NOT NULL DEFAULT 0"
    ),
    "diptych_schedules": "name {text} PRIMARY KEY, timetable {text} NOT NULL, next_at {number} NOT NULL",
    # what callers have spent of their rates; moments are microseconds
    "diptych_rates": (
        "policy {text} NOT NULL, owner {text} NOT NULL, full_at {number} NOT NULL, previous {number}, "
        "spent {number} NOT NULL, refused {number} NOT NULL, used_at {number} NOT NULL, PRIMARY KEY (policy, owner)"
    ),
    # the processes that serve
    "diptych_nodes": (
        "id {text} PRIMARY KEY, host {text} NOT NULL, tables {text} NOT NULL, started_at {number} NOT NULL, "
        "seen_at {number} NOT NULL"
    ),
    # what the service remembers of itself
    "diptych_settings": "name {text} PRIMARY KEY, value {text} NOT NULL",
    # not of anyone who signs in: the documents that may be sent
    "diptych_documents": (
        "hash {text} PRIMARY KEY, name {text} NOT NULL, body {text} NOT NULL, created_at {number} NOT NULL"
    ),
}
_INDEXES = {
    "diptych_replays_at": "diptych_replays (at)",
    "diptych_accounts_user": "diptych_accounts (user_id)",
    "diptych_grants_account": "diptych_grants (account_id)",
    "diptych_device_codes_expires": "diptych_device_codes (expires_at)",
    "diptych_refreshes_grant": "diptych_refreshes (grant_id)",
    "diptych_revocations_at": "diptych_revocations (at)",
    "diptych_jobs_turn": "diptych_jobs (turn, created_at)",
    "diptych_jobs_share": "diptych_jobs (share, turn)",
    "diptych_jobs_again": "diptych_jobs (next_at) WHERE turn < 0",
    "diptych_jobs_tick": "diptych_jobs (name) WHERE turn <= 0",
    "diptych_webhook_deliveries_webhook": "diptych_webhook_deliveries (webhook_id, position)",
}


# triggers (on SQLite, this one takes part in logging changes, and is in `feed_sqlite.py`)


def _touch(table: str) -> SystemObject:
    create = (
        f"CREATE TRIGGER diptych_touch BEFORE UPDATE ON {identifier(table).text} FOR EACH ROW "
        "WHEN (NEW.version <= OLD.version) EXECUTE FUNCTION diptych_touch()"
    )
    return SystemObject(f"diptych_touch on {table}", (create,))


# The clock, and not the begin of the transaction: the row may have waited for another that began later.
_TOUCH_BODY = f"""
BEGIN
  NEW.version := OLD.version + 1;
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END
{MARK}"""
_TOUCH_FUNCTION = SystemObject(
    "diptych_touch()",
    (f"CREATE OR REPLACE FUNCTION diptych_touch() RETURNS trigger LANGUAGE plpgsql AS $${_TOUCH_BODY}$$",),
    _TOUCH_BODY,
)
