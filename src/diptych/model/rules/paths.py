"""Paths through relations, and expressions rebased onto the row where a path starts.

("post", "author", "name")        a field of the author of the post of this row
"""

from __future__ import annotations

from diptych.model.rules.expr import Col, Expr, Has, May, rewrite


class PathScope(str):
    """The start of paths in a condition on one of many rows, while it is traced: distinguishes it from other rows."""

    __slots__ = ()


def shorten(path: tuple[str, ...]) -> tuple[str, ...]:
    """Replace `author.id` by the foreign key `authorId` of this row."""
    related = len(path) > 1 and path[-1] == "id" and not isinstance(path[-2], PathScope)
    return (*path[:-2], path[-2] + "Id") if related else path


def exists_through(path: tuple[str, ...], inner: Expr) -> Expr:
    """Is there a row at the end of the path that matches the condition?"""
    for step in reversed(path):
        inner = Has(step, inner)
    return inner


def rebase(expr: Expr, path: tuple[str, ...]) -> Expr:
    """Prefix all paths of an expression, so that it applies to the row from which `path` starts."""

    def leaf(part: Expr) -> Expr | None:
        match part:
            case Col(steps):
                return Col(shorten((*path, *steps)))
            case May(steps):
                return May((*path, *steps))
            case Has():
                return exists_through(path, part)
        return None

    return rewrite(expr, leaf) if path else expr
