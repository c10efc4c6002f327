"""Constraints of a class as a whole: unique keys and indexes over several fields, and checks across fields.

class Membership(Resource):
    team: Team
    user: User
    since: date
    until: date | None = None

    keys = (unique("team", "user"), index("team", "since"))

    @check("It must end after it began.")
    def in_order(self) -> bool:
        return is_null(self.until) | (self.since <= given(self.until))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

Condition = TypeVar("Condition", bound=Callable[[Any], bool])


class DeclaredKey(Struct, frozen=True):
    """A key over fields; as a decorator, a partial one: it is about the rows that match the decorated condition."""

    fields: tuple[str, ...]
    unique: bool

    def __call__(self, condition: Condition) -> Condition:
        condition.__dict__["__keys__"] = (*partial_keys(condition), self)
        return condition


class DeclaredCheck(Struct, frozen=True):
    """The sentence of a check."""

    message: str


def unique(*fields: str) -> DeclaredKey:
    """A unique key: `keys = (unique("team", "user"),)`. Rows in which one of the fields is null do not conflict.

    As a decorator, it holds among the rows that match the condition:

        @unique("desk")
        def one_open_visit(self) -> bool:
            return is_null(self.left_at)
    """
    return DeclaredKey(fields, unique=True)


def index(*fields: str) -> DeclaredKey:
    """An index over several fields, in this order: `keys = (index("team", "since"),)`."""
    return DeclaredKey(fields, unique=False)


def check(message: str) -> Callable[[Condition], Condition]:
    """Refuse rows that do not match the decorated condition, with this sentence.

    The condition is traced like a rule. It is about the fields of the row alone, and holds for every viewer.
    """

    def note(condition: Condition) -> Condition:
        condition.__dict__["__check__"] = DeclaredCheck(message)
        return condition

    return note


def partial_keys(member: object) -> tuple[DeclaredKey, ...]:
    """The keys that decorate a condition; empty for other members of a class."""
    noted: tuple[DeclaredKey, ...] = getattr(member, "__dict__", {}).get("__keys__", ())
    return noted


def declared_check(member: object) -> DeclaredCheck | None:
    """The check that decorates a condition; None for other members of a class."""
    noted: DeclaredCheck | None = getattr(member, "__dict__", {}).get("__check__")
    return noted
