"""Limits that hold in both styles for what a client sends, whatever it asks for.

(What a request may cost once it is an Ask is a matter of `check/cost.py`.)
"""

from __future__ import annotations

from typing import Any

from diptych.errors import Code, Refusal

MAX_NESTING = 64
"""Levels of JSON, of a document, of `fields`: what reads them further on is recursive."""
MAX_ALIASES = 30
MAX_SELECTIONS = 100
"""Fields of one selection."""


def allow(asked: int, allowed: int, what: str, code: Code = Code.TOO_COMPLEX) -> None:
    """Refuse more of something than is allowed, with both numbers."""
    if asked > allowed:
        raise Refusal(code, f"{what.format(asked)}; {allowed} are allowed.")


def check_nesting(value: Any, brackets: int) -> None:
    """Refuse JSON that is nested too deeply; `brackets` opened in its text, and few cannot nest deep."""
    if brackets <= MAX_NESTING:
        return
    deep = -1
    level: list[Any] = [value]
    while level:
        deep += 1
        level = [inner for part in level if isinstance(part, dict | list) for inner in _inside(part)]
    allow(deep, MAX_NESTING, "The JSON is nested {} levels deep", Code.TOO_DEEP)


def _inside(part: dict[str, Any] | list[Any]) -> list[Any]:
    """What a value holds; what is empty holds nothing, and is a level nonetheless."""
    return (list(part.values()) if isinstance(part, dict) else part) or [None]


def too_deep() -> Refusal:
    """JSON that is nested too deeply even to be parsed."""
    return Refusal(Code.TOO_DEEP, f"The JSON is nested too deeply to be read; {MAX_NESTING} levels are allowed.")
