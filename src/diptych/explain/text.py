"""Renders matters and findings as lines of text, short enough for a terminal and the same in every run."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from diptych.explain.rulebook import Clause, Matter, Rulebook
from diptych.model.rules.expr import FALSE, TRUE

WIDTH = 100
_LONGEST = 60
_TIE = "\N{NO-BREAK SPACE}"


def value_text(value: Any) -> str:
    """A value as JSON, truncated if it is long, with unprintable characters escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def lay(text: str, depth: int) -> Iterator[str]:
    """Wrap and indent a text; what `together` made stays on one line."""
    indent = "    " * depth
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (line.replace(_TIE, " ") for line in lines)


def unwrapped(text: str) -> str:
    """A text that is not wrapped."""
    return text.replace(" ", _TIE)


def heading(clause: Clause) -> str:
    """The name, source position and text of a clause."""
    name = f"{clause.name} ({clause.spot})" if clause.spot else clause.name
    return f"{name}  {clause.says}".rstrip()


def matter_lines(matter: Matter, rulebook: Rulebook, depth: int = 0) -> Iterator[str]:
    """The rules of a matter, independent of any row."""
    yield from lay(f"{matter.name}: {_extent(matter, rulebook)}", depth)
    for clause in matter.clauses:
        yield from lay(heading(clause), depth + 1)
        if clause.because:
            yield from lay(f"{'always' if clause.left == TRUE else 'never'}: {clause.because}", depth + 2)
        elif clause.here:
            yield from lay(f"here: {clause.here}", depth + 2)
    if not matter.clauses and matter.left == FALSE:
        yield from lay("no rule allows it to anyone", depth + 1)


def finding_lines(name: str, holds: bool, clauses: Iterable[tuple[Clause, bool, str]], depth: int = 0) -> Iterator[str]:
    """The rules evaluated on one row: each clause, whether it holds, and the values that decide it."""
    yield from lay(f"{name}: {yes(holds)}", depth)
    has_clauses = False
    for clause, met, facts in clauses:
        has_clauses = True
        yield from lay(heading(clause), depth + 1)
        yield from lay(f"{yes(met)}: {clause.because or facts}", depth + 2)
    if not has_clauses and not holds:
        yield from lay("no rule allows it to anyone", depth + 1)


def yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _extent(matter: Matter, rulebook: Rulebook) -> str:
    if matter.left == FALSE:
        return "never, so it does not exist for this viewer" if matter.is_name else "never"
    if matter.left == TRUE:
        return "always"
    return f"where {rulebook.say(matter.left, matter.resource)}"
