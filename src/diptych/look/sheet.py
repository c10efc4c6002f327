"""Style sheets of pages that the server renders, made from the tokens that all pages share.

`tokens.css` is the source. The console imports it as it is, the documentation site serves it, and pages that the
server renders have it inline, together with `page.css` and their own rules.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
_TOKEN = re.compile(r"^\s*(--[\w-]+):\s*(.+);$", re.MULTILINE)
_PAIR = re.compile(r"light-dark\(")

MARK = (
    '<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><path class="mark-left" d="M15 5 4 8v18l11 3z"/>'
    '<path class="mark-right" d="m17 5 11 3v18l-11 3z"/></svg>'
)
"""The sign of Diptych: two leaves."""


@cache
def style(own: str) -> str:
    """The style sheet of a page that the server renders; `own` are the rules of this page alone.

    `light-dark()` is resolved into two sets of tokens, since browsers of before 2024 do not know it, and only tokens
    that the page uses are in it.
    """
    rules = _COMMENT.sub("", (_FOLDER / "page.css").read_text("utf-8")) + own.lstrip("\n")
    used = set(re.findall(r"var\((--[\w-]+)\)", rules))
    tokens = [(name, value) for name, value in _tokens() if name in used]
    light = "".join(f"  {name}: {themed(value, 0)};\n" for name, value in tokens)
    dark = "".join(f"  {name}: {themed(value, 1)};\n" for name, value in tokens if _PAIR.search(value))
    return (
        f"\n:root {{\n  color-scheme: light dark;\n{light}}}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{\n{dark}}} }}\n{rules}"
    )


def style_source(css: str) -> str:
    """The source of a style element for a Content-Security-Policy: the hash of its content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()}'"


def _tokens() -> list[tuple[str, str]]:
    return _TOKEN.findall((_FOLDER / "tokens.css").read_text("utf-8"))


def themed(value: str, theme: int) -> str:
    """A value with each `light-dark(…)` replaced by its first (0) or second (1) argument."""
    return "".join(_themed(value, theme))


def _themed(value: str, theme: int) -> Iterator[str]:
    end = 0
    for pair in _PAIR.finditer(value):
        yield value[end : pair.start()]
        depth, comma, end = 1, 0, pair.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(value[end], 0)
            if value[end] == "," and depth == 1:
                comma = end
            end += 1
        yield (value[pair.end() : comma], value[comma + 1 : end - 1])[theme].strip()
    yield value[end:]
