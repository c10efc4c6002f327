"""Where in a model file a declaration stands, so that a mistake can name its line."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from diptych.model.resource import Resource


def lines_of(cls: type) -> tuple[str, Mapping[str, int]]:
    """The file of a class, and the line of each of its members ("" is the class itself)."""
    try:
        source, first = inspect.getsourcelines(cls)
        file = Path(inspect.getsourcefile(cls) or "").name
        body = ast.parse(textwrap.dedent("".join(source))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return "", {}
    found = {"": first}
    for node in body.body if isinstance(body, ast.ClassDef) else ():
        for name in _names(node):
            found.setdefault(name, first + node.lineno - 1)
    return file, found


def place_of(
    cls: type, member: str, lines_of: Callable[[type], tuple[str, Mapping[str, int]]] = lines_of
) -> tuple[str, int]:
    """The file and line of a member of a class, also of one that it inherits; of the class, if there is no such."""
    base = next((base for base in cls.__mro__ if base is not Resource and member in lines_of(base)[1]), cls)
    file, lines = lines_of(base)
    return file, lines.get(member, lines.get("", 0))


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.AnnAssign(target=ast.Name(name)):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return []
