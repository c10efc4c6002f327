"""SQL fragments: text with bound values, the only form in which statements of requests are composed.

A Fragment is text with the values that it binds, in order. Texts that reach a Fragment have three sources
only: templates in this program, identifiers of the model, and labels of an answer, which are checked against a
pattern. A value of a request never becomes text: it is a Bind, and `to_sql` gives each its number.

Aliases in these templates begin with an underscore, and names of a model never do (`model/naming.py`), so the two
cannot meet. A reference to an alias in the scope of a table of the model also names its sub-select
(`_p._hi`), so that a column that was added by hand cannot meet it either.

    sql("{} = {}", column("_t0", "name"), bind(SlotBind(0, STRING)))   →   _t0."name" = ?1
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from diptych.compile.plan import Bind
from diptych.model.naming import MAPPED

_MARK = "\x00"
_LABEL = re.compile(r"[_A-Za-z][_0-9A-Za-z]*", re.ASCII)


class Fragment:
    """A piece of SQL. Immutable; pieces are put together by `sql` and `join`."""

    __slots__ = ("binds", "text")

    def __init__(self, text: str, binds: tuple[Bind, ...] = ()) -> None:
        self.text = text
        self.binds = binds


class Guarded(Fragment):
    """The text of a value that is never null, and the test that its type allows the stored value."""

    __slots__ = ("test",)

    def __init__(self, out: Fragment, test: Fragment) -> None:
        super().__init__(out.text, out.binds)
        self.test = test


class Fallible(Fragment):
    """The text of a non-null object, which is null only if a stored value in it is not allowed by its type."""

    __slots__ = ()


def sql(template: str, *parts: Fragment) -> Fragment:
    """Put fragments into a template; `{0}` may repeat one."""
    order: Iterable[Fragment] = parts
    if "{}" not in template:
        order = [parts[number] for number in _numbers(template)]
    binds: tuple[Bind, ...] = ()
    for part in order:
        if part.binds:
            binds += part.binds
    return Fragment(template.format(*[part.text for part in parts]), binds)


@functools.lru_cache(maxsize=512)
def _numbers(template: str) -> tuple[int, ...]:
    """The numbers of the parts in a template of this program."""
    return tuple(map(int, re.findall(r"\{(\d)\}", template)))


def join(separator: str, parts: Iterable[Fragment]) -> Fragment:
    pieces = list(parts)
    if len(pieces) == 1:
        return pieces[0]
    return Fragment(
        separator.join([part.text for part in pieces]), tuple([value for part in pieces for value in part.binds])
    )


def bind(value: Bind) -> Fragment:
    """A placeholder for one bound value."""
    return Fragment(_MARK, (value,))


def number(value: int) -> Fragment:
    """A number as text, which the planner sees: a page size that is a literal of the request."""
    return Fragment(str(int(value)))


@functools.lru_cache(maxsize=4_096)
def identifier(name: str) -> Fragment:
    """A name of the model, quoted."""
    if not MAPPED.fullmatch(name):
        raise ValueError(f"{name!r} is no identifier")
    return Fragment(f'"{name}"')


def column(alias: str, name: str) -> Fragment:
    """A column of a table by its alias."""
    return Fragment(alias + "." + identifier(name).text)


def label(name: str) -> str:
    """A key of the answer, as JSON text with its colon."""
    if not _LABEL.fullmatch(name):
        raise ValueError(f"{name!r} is no label")
    return f'"{name}":'


def literal_text(literal: str) -> Fragment:
    """A string literal of SQL, for text that is made of labels and punctuation only."""
    return Fragment("'" + literal.replace("'", "''") + "'")


def merge_literals(pieces: Iterable[str | Fragment]) -> list[Fragment]:
    """Merge neighbouring constants into one literal."""
    parts: list[Fragment] = []
    constant = ""
    for piece in pieces:
        if isinstance(piece, str):
            constant += piece
            continue
        if constant:
            parts.append(literal_text(constant))
            constant = ""
        parts.append(piece)
    return [*parts, literal_text(constant)] if constant else parts


def substitute(fragment: Fragment, by: Mapping[Bind, Fragment]) -> Fragment:
    """The fragment with other fragments in the place of some bound values."""
    pieces = fragment.text.split(_MARK)
    text = [pieces[0]]
    binds: list[Bind] = []
    for value, piece in zip(fragment.binds, pieces[1:], strict=True):
        there = by.get(value) or bind(value)
        text += [there.text, piece]
        binds += there.binds
    return Fragment("".join(text), tuple(binds))


def to_sql(fragment: Fragment, placeholder: str) -> tuple[str, tuple[Bind, ...]]:
    """The final text with numbered placeholders, and what to bind to each; equal binds share a number."""
    numbers: dict[Bind, int] = {}
    pieces = fragment.text.split(_MARK)
    out = [pieces[0]]
    for value, piece in zip(fragment.binds, pieces[1:], strict=True):
        number = numbers.setdefault(value, len(numbers) + 1)
        out.append(f"{placeholder}{number}{piece}")
    return "".join(out), tuple(numbers)
