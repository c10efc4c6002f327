"""Paths through relations, and expressions seen from the row at their beginning.

    ("post", "author", "name")        a field of the author of the post of this row
"""

from __future__ import annotations

from diptych.model.expr import Col, Expr, Has, May, rewrite


class Scope(str):
    """Begins the paths of one of many rows while its condition is traced, so that no other row is taken for it."""

    __slots__ = ()


def shorten(path: tuple[str, ...]) -> tuple[str, ...]:
    """The id of a related row stands in this row: author.id is authorId."""
    related = len(path) > 1 and path[-1] == "id" and not isinstance(path[-2], Scope)
    return (*path[:-2], path[-2] + "Id") if related else path


def through(path: tuple[str, ...], inner: Expr) -> Expr:
    """Is there a row at the end of the path for which the condition holds?"""
    for step in reversed(path):
        inner = Has(step, inner)
    return inner


def rebase(expr: Expr, path: tuple[str, ...]) -> Expr:
    """The same expression, seen from the row at whose `path` it holds."""

    def leaf(part: Expr) -> Expr | None:
        match part:
            case Col(steps):
                return Col(shorten((*path, *steps)))
            case May(steps):
                return May((*path, *steps))
            case Has():
                return through(path, part)
        return None

    return rewrite(expr, leaf) if path else expr
