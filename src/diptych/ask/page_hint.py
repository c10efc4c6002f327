"""A hint for a request over the price limit: which page would have to be smaller, and by how much.

    users(20) × (1 + posts(20) × (1 + comments(20) × 1)) = 8420, of 5000   →   users.posts.comments, 20 → 11

A price is linear in the size of each list, so the largest size that fits follows from one division. Of all lists, the
hint names the one that keeps most of its page; if no single list is enough, it names a size for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_LONGEST = 200
"""Characters of a path that are shown: names may be aliases of any length."""


class PagedList(NamedTuple):
    """A list of a request: the number of the list around it (0 is none), its page size, the price of one row without
    its nested lists, and its name. Outer lists come before inner ones."""

    outer: int
    size: int
    row_price: int
    name: str


class PageHint(NamedTuple):
    """A page size that would help: of the list `list` (a path of names), or of all lists if that is empty."""

    list: str
    size: int
    first: int

    def __str__(self) -> str:
        where = f"{self.list}, instead of {self.size}," if self.list else "each of its lists"
        return f"A `first` of at most {self.first} on {where} would help."


def page_hint(constant: int, lists: Sequence[PagedList], allowed: int) -> PageHint | None:
    """The hint for a request whose price is over what is allowed; None if no page size would help."""
    total, parts = _parts(constant, lists)
    best: PageHint | None = None
    for number, part in enumerate(parts, 1):
        size = lists[number - 1].size
        fits = (allowed - total + part) * size // part if part else 0  # what is left, in rows of this list
        if 1 <= fits < size and (best is None or fits * best.size >= best.first * size):
            best = PageHint(_path(lists, number), size, fits)
    if best is not None:
        return best
    low, high = 0, max((page.size for page in lists), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        capped = [page._replace(size=min(page.size, middle)) for page in lists]
        low, high = (middle, high) if _parts(constant, capped)[0] <= allowed else (low, middle - 1)
    return PageHint("", 0, low) if low else None


def _parts(constant: int, lists: Sequence[PagedList]) -> tuple[int, list[int]]:
    """The whole price, and the part of it inside each list."""
    counts, parts = [1], []
    for outer, size, row_price, _ in lists:
        counts.append(count := counts[outer] * size)
        parts.append(count * row_price)
    for number in range(len(lists), 0, -1):
        outer = lists[number - 1].outer
        if outer:
            parts[outer - 1] += parts[number - 1]
    return constant + sum(part for page, part in zip(lists, parts, strict=True) if not page.outer), parts


def _path(lists: Sequence[PagedList], number: int) -> str:
    names: list[str] = []
    while number:
        names.append(lists[number - 1].name)
        number = lists[number - 1].outer
    path = ".".join(reversed(names))
    return path if len(path) <= _LONGEST else f"…{path[-_LONGEST:]}"
