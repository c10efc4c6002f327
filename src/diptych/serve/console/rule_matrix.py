"""The access matrix of the model for the console: the cells of `diptych rules`, each with its file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diptych.explain.rulebook import Matter, Rulebook
from diptych.model.declare.resource import VERBS
from diptych.model.defs import ResourceDef
from diptych.model.describe.matrix import Permission, ResourceMatrix, matrices
from diptych.model.model import Model
from diptych.model.rules.expr import FALSE

Json = dict[str, Any]
_ALLOWED = {"always": "always", "never": "never", "where": "when"}


def rule_matrices(model: Model) -> Iterator[Json]:
    """The matrix of each resource, for all roles."""
    books = {role: Rulebook(model, model.view_as(role)) for role in model.role_names}
    for of_resource in matrices(model, model.role_names):
        yield {"name": of_resource.resource.name, "rows": [*_rows(of_resource, books)], "moves": _moves(of_resource)}


def _rows(matrix: ResourceMatrix, books: Mapping[str, Rulebook]) -> Iterator[Json]:
    for index, column in enumerate(matrix.columns):
        cells = {role: row[index] for role, row in matrix.rows.items()}
        yield {
            "verb": column,
            "cells": _cells(cells, {role: _verb(book, matrix.resource, column) for role, book in books.items()}),
        }
    for group in matrix.fields:
        for index, touch in enumerate(group.columns):
            cells = {role: row[index] for role, row in group.rows.items()}
            yield {"field": ", ".join(group.names), "verb": touch, "cells": _cells(cells, {})}
    if matrix.plain:
        yield {"field": ", ".join(matrix.plain), "cells": {role: _PLAIN for role in books}}


_PLAIN = {"allowed": "when", "words": "as the row", "file": None, "line": None}


def _verb(book: Rulebook, resource: ResourceDef, column: str) -> Matter | None:
    if column in VERBS:
        return book.verb(resource.name, column)
    call = next((call for call in resource.calls if call.attr == column), None)
    return None if call is None else book.call(resource.name, call)


def _cells(cells: Mapping[str, Permission], matters: Mapping[str, Matter | None]) -> Json:
    return {role: _cell(cell, matters.get(role)) for role, cell in cells.items()}


def _cell(cell: Permission, matter: Matter | None) -> Json:
    file, line = place_of(matter) if matter is not None else (None, None)
    return {"allowed": _ALLOWED[cell.kind], "words": cell.text, "file": file, "line": line}


def place_of(matter: Matter) -> tuple[str | None, int | None]:
    """Where the rule that decides is declared: the first that can hold, or else the first."""
    spots: Sequence[str] = [clause.spot for clause in matter.clauses if clause.spot and clause.left != FALSE]
    spots = spots or [clause.spot for clause in matter.clauses if clause.spot]
    if not spots:
        return None, None
    file, _, line = spots[0].rpartition(":")
    return file, int(line)


def _moves(matrix: ResourceMatrix) -> Json:
    return {name: list(moves) for name, moves in matrix.moves.items()}
