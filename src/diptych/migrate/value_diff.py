"""Two kinds of a value object → what happens to its members, or the questions that come first."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from diptych.compile.meaning import SCALARS, member_kinds
from diptych.errors import StartError

Ask = Callable[..., None]
"""Notes a question: its kind, the name that it is about, its sentence, and candidates."""


class Members(Struct):
    """What happens to the members of a value object."""

    renames: dict[str, str] = field(default_factory=dict)
    drops: list[str] = field(default_factory=list)
    fills: dict[str, Any] = field(default_factory=dict)


class ValueDiff:
    """Finds what happens to the members of the value object in a column, by what the owner has said."""

    def __init__(self, place: str, was: str, now: str, said: Any, ask: Ask) -> None:
        self.place, self.said, self.ask = place, said, ask
        self.before, self.after = member_kinds(was), member_kinds(now)
        self.fresh = [name for name in self.after if name not in self.before]

    def find(self) -> Members | None:
        """The changes; None if a member has another type, whose values only the owner can convert."""
        members = Members()
        for gone in [name for name in self.before if name not in self.after]:
            self._gone(gone, members)
        came_from = {new: old for old, new in members.renames.items()}
        for name, kind in self.after.items():
            was = self.before.get(came_from.get(name, name))
            if was is not None and not _holds(kind.removesuffix("?"), was.removesuffix("?")):
                return None
            may_lack = was is None or was.endswith("?")
            if may_lack and not kind.endswith("?"):
                self._fill(name, kind, members)
        return members

    def _gone(self, name: str, members: Members) -> None:
        place = f"{self.place}.{name}"
        renamed = self.said.renames.get(place, "").rpartition(".")[2]
        if renamed:
            if renamed not in self.fresh:
                raise StartError(f"--rename {place}={renamed}: {self.place} has no new member {renamed}.")
            members.renames[name] = renamed
        elif self.fresh and place not in self.said.drops:
            new = ", ".join(self.fresh)
            self.ask("rename", place, f"the member {place} is gone, and {new} is new: was it renamed?", *self.fresh)
        else:
            members.drops.append(name)

    def _fill(self, name: str, kind: str, members: Members) -> None:
        place = f"{self.place}.{name}"
        text = self.said.fills.get(place)
        if text is None:
            self.ask("fill", place, f"{place} must not be null: what do the values that are there get?")
            return
        try:
            members.fills[name] = value = json.loads(text)
            valid = _is_valid(value, kind)
        except ValueError:
            valid = False
        if not valid:
            raise StartError(f"--fill {place}={text}: that is no JSON value of {kind}.")


def _holds(kind: str, was: str) -> bool:
    """Does a member of a kind hold all values of another?"""
    return kind == was or (was, kind) == ("Int", "BigInt") or ("|" in was and {*was.split("|")} <= {*kind.split("|")})


def _is_valid(value: Any, kind: str) -> bool:
    if "|" in kind:
        return value in kind.split("|")
    scalar = SCALARS.get(kind)
    if scalar is not None and value is not None:
        scalar.parse(value)  # raises ValueError
    return value is not None
