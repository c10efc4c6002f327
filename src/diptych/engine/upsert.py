"""An upsert as a script: find the row by its key, then update it, or else create it.

On PostgreSQL another transaction may create the row between the search and the creation. The unique key refuses the
second one, and the script is retried: it finds the row then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from diptych.compile.dialect import Dialect
from diptych.compile.find import Lock
from diptych.compile.plan import Plan
from diptych.db.script import Again, Script, Violation
from diptych.engine.write_op import BoundWrite, PreparedWrite, WriteResult
from diptych.engine.write_steps import checked, steps
from diptych.errors import Code, Refusal

LOCKS: Mapping[bool, Lock] = {True: "KEY SHARE", False: "NO KEY UPDATE"}
"""How a row that is found is locked, by whether it is kept."""


class Upsert(Struct, frozen=True, eq=False):
    """The plans of an upsert. `update` is None if a row that is found is kept; `answer` reads it then."""

    columns: tuple[str, ...]
    """The columns of its key."""
    find: Plan
    create: PreparedWrite
    update: PreparedWrite | None
    answer: Plan | None

    @property
    def size(self) -> int:
        parts = (self.find, self.answer, None if self.update is None else self.update.plan)
        return sum(part.size for part in parts if part is not None)

    def steps(self, bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
        row = yield bound.step(self.find)
        if row is not None and row[1]:
            return (yield from self._existing(bound, row[0], dialect))
        try:
            return (yield from steps(bound.part(self.create, bound.id), dialect))
        except Refusal as refusal:
            if row is None and dialect.lock and self._is_taken(refusal.__cause__):
                raise Again from None
            raise

    def _existing(self, bound: BoundWrite, id: Any, dialect: Dialect) -> Script[WriteResult]:
        if self.update is None:
            part = bound.part(self.create, id)
            assert self.answer is not None
            shown = yield part.step(self.answer)
            answer = checked(shown[0] if shown else None, self.create.write)
            return WriteResult(id, answer, self.create.finish)
        try:
            return (yield from steps(bound.part(self.update, id), dialect))
        except Refusal as refusal:
            if refusal.code is Code.NOT_FOUND and dialect.lock:  # what its rules look at was changed meanwhile
                raise Again from None
            raise

    def _is_taken(self, cause: BaseException | None) -> bool:
        """Does another row have the key by now?"""
        return _breaks(cause, self.columns)


class CreateUnder(Struct, frozen=True, eq=False):
    """A creation under an id that no row may have before (`If-None-Match: *`)."""

    find: Plan
    create: PreparedWrite

    @property
    def size(self) -> int:
        return self.find.size

    def steps(self, bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
        if (yield bound.step(self.find)) is not None:
            raise _there_is_one()
        try:
            return (yield from steps(bound.part(self.create, bound.id), dialect))
        except Refusal as refusal:
            if _breaks(refusal.__cause__, ("id",)):
                raise _there_is_one() from None
            raise


class DeleteByKey(Struct, frozen=True, eq=False):
    """The deletion of the row that has a unique key, if the viewer may know of it."""

    find: Plan
    delete: PreparedWrite

    @property
    def size(self) -> int:
        return self.find.size

    def steps(self, bound: BoundWrite, dialect: Dialect) -> Script[WriteResult]:
        row = yield bound.step(self.find)
        if row is None or not row[1]:
            raise Refusal(Code.NOT_FOUND, "There is nothing here.")
        return (yield from steps(bound.part(self.delete, row[0]), dialect))


def _breaks(cause: BaseException | None, columns: tuple[str, ...]) -> bool:
    """Is an error the violation of the unique key of these columns?"""
    return isinstance(cause, Violation) and cause.kind == "unique" and set(cause.columns) == set(columns)


def _there_is_one() -> Refusal:
    return Refusal(Code.PRECONDITION_FAILED, "There is one with this id.")
