"""Creates or migrates the tables of a model at start, or refuses the database; for both stores.

Generators yield statements and are sent their rows, inside the one transaction in which a store is opened. So of
several processes that start at once one makes the tables, and the record of what their columns mean is written
atomically with them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from diptych.compile.catalogue import Catalogue
from diptych.compile.differences import Difference, compare
from diptych.compile.existing import compare_existing
from diptych.compile.meaning import FORMAT, Meaning, compatibility, encode_meaning, meanings, storage
from diptych.compile.system.object import DialectName
from diptych.compile.tables import add_server_defaults, create, create_missing
from diptych.db.leases import NOW
from diptych.db.script import Step
from diptych.db.upgrades import upgrade
from diptych.errors import StartError
from diptych.model.model import Model
from diptych.model.naming import upper_first

T = TypeVar("T")
Meanings = Mapping[str, Mapping[str, Meaning]]
"""What a model means by the columns of its tables."""
Fitting = Generator[Step, Sequence[Any], T]


class Fitted(Struct, frozen=True):
    """What was changed in a database, and what could not be verified, as sentences."""

    done: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def fit(
    model: Model,
    have: Catalogue,
    parts: Mapping[str, str | None],
    dialect: DialectName,
    *,
    add: bool = False,
    accept: bool = False,
    triggers: bool = True,
) -> Fitting[Fitted]:
    """Make the tables of a new database, or compare existing ones with the model.

    `add` applies the changes that lose no data; without it, a database that needs more than a new record is refused.
    With `accept`, the model's meaning of the columns replaces what was recorded. Without `triggers`, none are made.
    """
    yield from _refuse_moved(parts)
    is_new = have.is_new_to(model)
    differences = compare_existing(model, have, dialect)
    if not is_new:
        differences += yield from _with_obstacles(compare(model, have, dialect, accept=accept))
    refused = [
        difference for difference in differences if not difference.optional and not _is_settled(difference, add=add)
    ]
    if refused:
        raise StartError(_refusal_text(refused, model, have))
    settled = [difference for difference in differences if _is_settled(difference, add=add)]
    statements = (
        create(model, dialect)
        if is_new
        else [
            *(statement for difference in settled for statement in difference.apply or ()),
            *(statement for difference in settled for statement in difference.after),
        ]
    )
    if dialect == "postgres":
        statements += add_server_defaults(model, have.tables)
    if not triggers:
        _check_without(model)
    for statement in (*statements, *create_missing(model if triggers else model.without_feed(), dialect, parts, have)):
        yield Step(statement, ())
    upgraded = yield from upgrade(have, dialect)
    means = meanings(model)
    yield from _record(means, have, dialect)
    done = [*upgraded, *(f"{upper_first(difference.done)}." for difference in settled if difference.done)]
    done += yield from _forget_misread(means, have, parts, dialect, accept)
    return Fitted(tuple(done), () if accept else tuple(_doubts(means, have, dialect)))


def _refuse_moved(parts: Mapping[str, str | None]) -> Fitting[None]:
    """Refuse a database whose data has moved to another one, and one to which not all has moved."""
    if "diptych_moved" in parts:
        ((target, at),) = yield Step("SELECT target, at FROM diptych_moved", ())
        raise StartError(f"The data of this database moved to {target} on {at}: serve that one.")
    if "diptych_move" in parts:
        raise StartError("A move to this database is not finished: run the same `diptych move` again.")


def _check_without(model: Model) -> None:
    """Refuse a model that cannot work without triggers."""
    for resource in model.managed.values():
        kinds: dict[str, object] = {"a counter": resource.counters, "a trash": resource.trash}
        kinds |= {"a search": resource.search, "an audit": resource.audit}
        if needs := [name for name, there in kinds.items() if there]:
            parts = " and ".join(needs)
            raise StartError(f"{resource.name} has {parts}, and needs triggers: serve it without --no-triggers.")


def look(model: Model, have: Catalogue, dialect: DialectName) -> Fitting[list[Difference]]:
    """The differences that `serve` would refuse, or leave as they are. Nothing is changed."""
    differences = compare_existing(model, have, dialect)
    if not have.is_new_to(model):
        differences += yield from _with_obstacles(compare(model, have, dialect))
    return [difference for difference in differences if not _is_settled(difference, add=False)]


def refusal(differences: Iterable[Difference], model: Model, have: Catalogue) -> StartError | None:
    """The refusal of a database with these differences; None if it can be served."""
    refused = [difference for difference in differences if not difference.optional]
    return StartError(_refusal_text(refused, model, have)) if refused else None


def _with_obstacles(differences: Iterable[Difference]) -> Fitting[list[Difference]]:
    """Look for obstacles: a difference with a row in its way says so, and is left to the owner."""
    checked = []
    for difference in differences:
        rows = (yield Step(difference.obstacle, ())) if difference.obstacle else ()
        checked.append(
            replace(difference, sentence=difference.sentence + difference.because, apply=None, after=())
            if rows
            else difference
        )
    return checked


def _is_settled(difference: Difference, *, add: bool) -> bool:
    """May a difference be fixed now, without asking anyone?"""
    return difference.apply is not None and (add or not difference.statements)


def _refusal_text(refused: Sequence[Difference], model: Model, have: Catalogue) -> str:
    """The error text: what differs, and what can be done about it."""
    lines = [f"The database does not fit the model: {'; '.join(difference.sentence for difference in refused)}."]
    if not have.has_any_of(model) and have.recorded:
        lines.append(f"It has the tables of another model: {', '.join(have.recorded)}.")
    lines += [f"- {difference.fix}." for difference in refused if difference.apply is None and difference.fix]
    mends = [
        statement
        for part in ("apply", "after")
        for difference in refused
        for statement in getattr(difference, part) or ()
    ]
    if mends:
        lines.append("These statements make it fit; `diptych dev` runs them by itself, `diptych migrate` by a file:")
        lines += [f"{statement};" for statement in mends]
    elif not all(difference.existing for difference in refused):
        lines.append(
            "`diptych migrate make` makes a migration of what has changed, `diptych migrate apply` applies it."
        )
    return "\n".join(lines)


# the record

_UPSERT = (
    "INSERT INTO diptych_schema (name, format, columns) VALUES ({}) "
    "ON CONFLICT (name) DO UPDATE SET format = excluded.format, columns = excluded.columns"
)
_PLACEHOLDERS: Mapping[DialectName, str] = {"sqlite": "?1, ?2, ?3", "postgres": "$1, $2, $3"}


def _record(means: Meanings, have: Catalogue, dialect: DialectName) -> Fitting[None]:
    """Record what the model means by its columns, where that has changed. The record of columns that only another model
    has stays."""
    for table, columns in means.items():
        before, there = have.recorded.get(table, {}), have.tables.get(table, {})
        others = {name: meaning for name, meaning in before.items() if name not in columns and name in there}
        now = {**columns, **others}
        if now != before:
            yield Step(_UPSERT.format(_PLACEHOLDERS[dialect]), (table, FORMAT, encode_meaning(now)))


NEW_FEED: Mapping[DialectName, str] = {
    "sqlite": "lower(hex(randomblob(8)))",
    "postgres": "right(replace(gen_random_uuid()::text, '-', ''), 16), oldest = 1",
}
"""The name of a feed that begins anew."""
_NOT_APPENDED = (
    "SELECT 1 FROM diptych_feed WHERE position IS NULL OR position > (SELECT position FROM diptych_audit_head) LIMIT 1"
)
_WOULD_LOSE = (
    "Some changes are not in the audit log yet, and would be lost: run `diptych audit head` with the model before."
)
_FORGET_DELIVERIES = (
    "UPDATE diptych_webhook_deliveries SET id = id || ':' || (SELECT feed FROM diptych_feed_head), next_at = 0, "
    "last = CASE state WHEN 'gap' THEN last ELSE 'the feed began anew before the change was sent' END, state = 'gap'"
)
"""What waits or was given up is gone. The ids of deliveries have positions, which come again."""
_NOTE_GAPS = (
    "INSERT INTO diptych_webhook_deliveries (id, webhook_id, position, row_id, state, attempts, first_at, next_at, "
    "last) SELECT w.id || ':' || h.feed, w.id, w.position, '', 'gap', 0, {now} / 1000, 0, "
    "'the feed began anew: changes after position ' || w.position || ' may be missing' "
    "FROM diptych_webhooks AS w CROSS JOIN diptych_feed_head AS h"
)
_REWIND = "UPDATE diptych_webhooks SET position = 0, lease_by = '', lease_until = 0"


def begin_feed_anew(dialect: DialectName, *, audited: bool) -> Generator[Step, Any, None]:
    """Forget all changes, and begin a new feed, whose positions begin anew; for both kinds of scripts.

    A feed of another name is another feed: clients that followed the old one get `RESUME_GAP`, webhooks note a gap. The
    audit log goes on, if it has all changes; else it is a StartError.
    """
    if audited:
        if (yield Step(_NOT_APPENDED, ())):
            raise StartError(_WOULD_LOSE)
        yield Step("UPDATE diptych_audit_head SET position = 0", ())
        yield Step("DELETE FROM diptych_acts", ())
    for statement in (_FORGET_DELIVERIES, _NOTE_GAPS.format(now=NOW[dialect]), _REWIND, "DELETE FROM diptych_feed"):
        yield Step(statement, ())
    yield Step(f"UPDATE diptych_feed_head SET feed = {NEW_FEED[dialect]}", ())


def _forget_misread(
    means: Meanings, have: Catalogue, parts: Mapping[str, str | None], dialect: DialectName, accept: bool
) -> Fitting[list[str]]:
    """Begin a new feed if stored changes hold values that would be misread, even if no row has one any more."""
    changed = [
        f"{table}.{column}"
        for table, column, was, now in _both(means, have)
        if compatibility(was, now, dialect) == "other" and (accept or _is_misread(was, now, dialect))
    ]
    if not changed:
        return []
    yield from begin_feed_anew(dialect, audited="diptych_audit_head" in parts)
    return [f"Forgot the changes so far, which hold {', '.join(changed)} with another meaning."]


def _is_misread(was: Meaning, now: Meaning, dialect: DialectName) -> bool:
    """Would a value in a stored change be misread? Text is never taken for a number, and PostgreSQL converts."""
    kinds = {storage(was, dialect), storage(now, dialect)}
    return len(kinds) == 1 or (dialect == "sqlite" and "TEXT" not in kinds)


def _both(means: Meanings, have: Catalogue) -> Iterable[tuple[str, str, Meaning, Meaning]]:
    """The recorded columns of a model, with their meaning then and now."""
    for table, columns in means.items():
        for column, now in columns.items():
            was = have.recorded.get(table, {}).get(column)
            if was is not None:
                yield table, column, was, now


def _doubts(means: Meanings, have: Catalogue, dialect: DialectName) -> Iterable[str]:
    """What is taken from the model because it was never recorded, and the database does not show it."""
    columns = [
        f"{table}.{column} as {now}"
        for table, described in means.items()
        for column, now in described.items()
        if now.type == "Decimal" and column in have.tables.get(table, {}) and column not in have.recorded.get(table, {})
    ]
    if columns and dialect == "sqlite":
        yield (
            "The database does not tell the scale of its decimals. It is taken from the model and recorded now: "
            f"{', '.join(columns)}. If they were written with another one, "
            "mend the model and run `diptych check --database … --accept`."
        )
