"""Makes a database fit a model, or refuses it: the same for both stores, as generators of statements.

A generator yields each statement and is sent its rows, inside the one transaction in which a store is opened. So of
several processes that start at once one makes the tables, and the record of what their columns mean is written with
them or not at all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from diptych.compile.catalogue import Catalogue
from diptych.compile.differences import Difference, compare
from diptych.compile.meaning import FORMAT, Meaning, change, encode, meanings, storage
from diptych.compile.part import DialectName
from diptych.compile.tables import complete, create, fill
from diptych.db.script import Step
from diptych.errors import StartError
from diptych.model.model import Model

T = TypeVar("T")
Fitting = Generator[Step, Sequence[Any], T]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was done to a database, a sentence each, and what could not be verified."""

    done: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def fit(
    model: Model, have: Catalogue, parts: Mapping[str, str | None], dialect: DialectName, *,
    add: bool = False, accept: bool = False,
) -> Fitting[Fitted]:  # fmt: skip
    """Make the tables of a new database, or hold those that are there against the model.

    `add` mends what can be mended without losing anything; without it, what needs another statement than that of the
    record is refused. With `accept`, the model's meaning of the columns takes the place of what was recorded.
    """
    is_new = have.is_new_to(model)
    found = [] if is_new else (yield from _looked(compare(model, have, dialect, accept=accept)))
    refused = [each for each in found if not each.optional and not _is_settled(each, add=add)]
    if refused:
        raise StartError(_told(refused, model, have))
    settled = [each for each in found if _is_settled(each, add=add)]
    statements = create(model, dialect) if is_new else [
        *(statement for each in settled for statement in each.apply or ()),
        *(statement for each in settled for statement in each.after),
    ]  # fmt: skip
    if dialect == "postgres":
        statements += fill(model, have.tables)
    for statement in (*statements, *complete(model, dialect, parts, have)):
        yield Step(statement, ())
    yield from _record(model, have, dialect)
    done = [f"{_sentence(each.done)}." for each in settled if each.done]
    done += yield from _begin_feed_anew(model, have, dialect, accept)
    return Fitted(tuple(done), () if accept else tuple(_doubts(model, have, dialect)))


def look(model: Model, have: Catalogue, dialect: DialectName) -> Fitting[list[Difference]]:
    """What differs, and would be refused, or left as it is, by `serve`. Nothing is changed."""
    if have.is_new_to(model):
        return []
    found = yield from _looked(compare(model, have, dialect))
    return [each for each in found if not _is_settled(each, add=False)]


def refusal(differences: Iterable[Difference], model: Model, have: Catalogue) -> StartError | None:
    """The refusal of a database with these differences; None if it can be served."""
    refused = [each for each in differences if not each.optional]
    return StartError(_told(refused, model, have)) if refused else None


def _looked(differences: Iterable[Difference]) -> Fitting[list[Difference]]:
    """The same differences. One with a row in its way says so, and is for the owner to mend."""
    found = []
    for each in differences:
        rows = (yield Step(each.obstacle, ())) if each.obstacle else ()
        found.append(replace(each, sentence=each.sentence + each.because, apply=None, after=()) if rows else each)
    return found


def _is_settled(difference: Difference, *, add: bool) -> bool:
    """May it be mended now?"""
    return difference.apply is not None and (add or not difference.statements)


def _told(refused: Sequence[Difference], model: Model, have: Catalogue) -> str:
    """What differs, in one sentence, and what can be done about each difference."""
    lines = [f"The database does not fit the model: {'; '.join(each.sentence for each in refused)}."]
    if not have.has_any_of(model):
        lines.append(f"It has the tables of another model: {', '.join(have.recorded)}.")
    lines += [f"- {each.fix}." for each in refused if each.apply is None and each.fix]
    mends = [statement for part in ("apply", "after") for each in refused for statement in getattr(each, part) or ()]
    if mends:
        lines.append("These statements make it fit; `diptych dev` runs them by itself:")
        lines += [f"{statement};" for statement in mends]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# the record

_UPSERT = (
    "INSERT INTO diptych_schema (name, format, columns) VALUES ({}) "
    "ON CONFLICT (name) DO UPDATE SET format = excluded.format, columns = excluded.columns"
)
_PLACES: Mapping[DialectName, str] = {"sqlite": "?1, ?2, ?3", "postgres": "$1, $2, $3"}


def _record(model: Model, have: Catalogue, dialect: DialectName) -> Fitting[None]:
    """Write down what the model means by its columns, where that is not what stands there. What another model means by
    columns that this one does not have stays."""
    for table, means in meanings(model).items():
        before, there = have.recorded.get(table, {}), have.tables.get(table, {})
        others = {name: each for name, each in before.items() if name not in means and name in there}
        now = {**means, **others}
        if now != before:
            yield Step(_UPSERT.format(_PLACES[dialect]), (table, FORMAT, encode(now)))


_NEW_FEED: Mapping[DialectName, str] = {
    "sqlite": "lower(hex(randomblob(8)))",
    "postgres": "right(replace(gen_random_uuid()::text, '-', ''), 16), oldest = 1",
}


def _begin_feed_anew(model: Model, have: Catalogue, dialect: DialectName, accept: bool) -> Fitting[list[str]]:
    """If stored changes hold values that would be read as something else, forget all of them, even if no row has such
    a value any more. A feed of another name is another feed: clients that followed the old one get `RESUME_GAP`."""
    changed = [f"{table}.{column}" for table, column, was, now in _both(model, have)
               if change(was, now, dialect) == "other" and (accept or _is_misread(was, now, dialect))]  # fmt: skip
    if not changed:
        return []
    yield Step("DELETE FROM diptych_feed", ())
    yield Step(f"UPDATE diptych_feed_head SET feed = {_NEW_FEED[dialect]}", ())
    return [f"Forgot the changes so far, which hold {', '.join(changed)} with another meaning."]


def _is_misread(was: Meaning, now: Meaning, dialect: DialectName) -> bool:
    """Can a value in a stored change pass for one of today? Text is no number, and PostgreSQL converts."""
    kinds = {storage(was, dialect), storage(now, dialect)}
    return len(kinds) == 1 or (dialect == "sqlite" and "TEXT" not in kinds)


def _both(model: Model, have: Catalogue) -> Iterable[tuple[str, str, Meaning, Meaning]]:
    """The columns whose meaning was recorded, with that and what it is now."""
    for table, means in meanings(model).items():
        for column, now in means.items():
            was = have.recorded.get(table, {}).get(column)
            if was is not None:
                yield table, column, was, now


def _doubts(model: Model, have: Catalogue, dialect: DialectName) -> Iterable[str]:
    """What is taken from the model because nobody wrote it down, and the database cannot tell."""
    columns = [f"{table}.{column} as {now}" for table, means in meanings(model).items() for column, now in means.items()
               if now.type == "Decimal" and column in have.tables.get(table, {})
               and column not in have.recorded.get(table, {})]  # fmt: skip
    if columns and dialect == "sqlite":
        yield (
            "The database does not tell the scale of its decimals. It is taken from the model and recorded now: "
            f"{', '.join(columns)}. If they were written with another one, "
            "mend the model and run `diptych check --database … --accept`."
        )
