"""SQL text is joined here and nowhere else.

A Fragment is text with the values that it binds, in order. Texts that reach a Fragment come from three places
only: templates that stand in this program, identifiers of the model, and labels of an answer, which are held
against a pattern. A value of a request never becomes text: it is a Bind, and `finish` gives each its number.

Aliases in these templates begin with an underscore, and names of a model never do (`model/naming.py`), so the two
cannot meet. A reference to an alias that stands in the scope of a table of the model also names its sub-select
(`_p._hi`), so that a column that was added by hand cannot meet it either.

    sql("{} = {}", column("_t0", "name"), bind(SlotBind(0, STRING)))   →   _t0."name" = ?1
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from diptych.compile.plan import Bind

_MARK = "\x00"
_LABEL = re.compile(r"[_A-Za-z][_0-9A-Za-z]*", re.ASCII)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)


class Fragment:
    """A piece of SQL. Immutable; pieces are put together by `sql` and `join`."""

    __slots__ = ("binds", "text")

    def __init__(self, text: str, binds: tuple[Bind, ...] = ()) -> None:
        self.text = text
        self.binds = binds

    def __repr__(self) -> str:
        return f"Fragment({self.text!r}, {self.binds!r})"


class Guarded(Fragment):
    """Text of a value that is never null, and the test that a value outside of its type fails."""

    __slots__ = ("test",)

    def __init__(self, out: Fragment, test: Fragment) -> None:
        super().__init__(out.text, out.binds)
        self.test = test


class Fallible(Fragment):
    """Text of an object that is never null, and is so nevertheless if one of its values is outside of its type."""

    __slots__ = ()


def sql(template: str, *parts: Fragment) -> Fragment:
    """Put fragments into a template; `{0}` may repeat one."""
    numbers = re.findall(r"\{(\d)\}", template)
    order = [parts[int(number)] for number in numbers] if numbers else parts
    text = template.format(*(part.text for part in parts))
    return Fragment(text, tuple(each for part in order for each in part.binds))


def join(separator: str, parts: Iterable[Fragment]) -> Fragment:
    """Fragments one after the other."""
    pieces = list(parts)
    if len(pieces) == 1:
        return pieces[0]
    return Fragment(separator.join(part.text for part in pieces), tuple(each for part in pieces for each in part.binds))


def bind(value: Bind) -> Fragment:
    """The place of one bound value."""
    return Fragment(_MARK, (value,))


def number(value: int) -> Fragment:
    """A number that the planner should see: a page size that stands in the request's own text."""
    return Fragment(str(int(value)))


def identifier(name: str) -> Fragment:
    """A name of the model, quoted."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"{name!r} is no identifier")
    return Fragment(f'"{name}"')


def column(alias: str, name: str) -> Fragment:
    """A column of a table by its alias."""
    return Fragment(f"{alias}.{identifier(name).text}")


def label(name: str) -> str:
    """A key of the answer, as JSON text with its colon."""
    if not _LABEL.fullmatch(name):
        raise ValueError(f"{name!r} is no label")
    return f'"{name}":'


def text(literal: str) -> Fragment:
    """A string literal of SQL, for text that is made of labels and punctuation only."""
    return Fragment("'" + literal.replace("'", "''") + "'")


def merge(pieces: Iterable[str | Fragment]) -> list[Fragment]:
    """Constant and computed text in a row: neighbouring constants become one literal."""
    parts: list[Fragment] = []
    constant = ""
    for piece in pieces:
        if isinstance(piece, str):
            constant += piece
            continue
        if constant:
            parts.append(text(constant))
            constant = ""
        parts.append(piece)
    return [*parts, text(constant)] if constant else parts


def finish(fragment: Fragment, placeholder: str) -> tuple[str, tuple[Bind, ...]]:
    """The final text with numbered placeholders, and what to bind to each; equal binds share a number."""
    numbers: dict[Bind, int] = {}
    pieces = fragment.text.split(_MARK)
    out = [pieces[0]]
    for each, piece in zip(fragment.binds, pieces[1:], strict=True):
        number = numbers.setdefault(each, len(numbers) + 1)
        out.append(f"{placeholder}{number}{piece}")
    return "".join(out), tuple(numbers)
