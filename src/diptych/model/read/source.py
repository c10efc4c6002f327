"""Source locations in model files, for mistakes, and defaults that are computed when the file is read."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from diptych.model.declare.resource import Resource


def lines_of(cls: type) -> tuple[str, Mapping[str, int]]:
    """The file of a class, and the line of each of its members ("" is the class itself)."""
    try:
        source, first = inspect.getsourcelines(cls)
        file = Path(inspect.getsourcefile(cls) or "").name
        body = ast.parse(textwrap.dedent("".join(source))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return "", {}
    lines = {"": first}
    for node in body.body if isinstance(body, ast.ClassDef) else ():
        for name in _names(node):
            lines.setdefault(name, first + node.lineno - 1)
    return file, lines


def location_of(
    cls: type, member: str, lines_of: Callable[[type], tuple[str, Mapping[str, int]]] = lines_of
) -> tuple[str, int]:
    """The file and line of a member of a class or its bases; of the class itself, if there is no such member."""
    base = next((base for base in cls.__mro__ if base is not Resource and member in lines_of(base)[1]), cls)
    file, lines = lines_of(base)
    return file, lines.get(member, lines.get("", 0))


def changing_defaults(cls: type) -> Mapping[str, str]:
    """Defaults of fields, and of arguments of functions (`remind.at`), that call a clock or a random generator.

    A default is computed once, when the file is read, so all rows would get the same value.
    """
    changing: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for node in _body(base) if base not in (Resource, object) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                positional = [*node.args.posonlyargs, *node.args.args]
                pairs = [
                    *zip(positional[::-1], node.args.defaults[::-1], strict=False),
                    *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
                ]
                defaults = {f"{node.name}.{argument.arg}": value for argument, value in pairs}
            else:
                value = node.value if isinstance(node, ast.AnnAssign | ast.Assign) else None
                defaults = dict.fromkeys(_names(node), value)
            for name, value in defaults.items():
                changing.pop(name, None)
                if value is not None and any(map(_is_changing, ast.walk(value))):
                    changing[name] = ast.unparse(value)
    return changing


_CHANGING = {
    "now",
    "utcnow",
    "today",
    "time",
    "time_ns",
    "monotonic",
    "perf_counter",
    "uuid1",
    "uuid4",
    "uuid6",
    "uuid7",
    "random",
    "randint",
    "randrange",
    "randbytes",
    "choice",
    "getrandbits",
    "urandom",
    "token_hex",
    "token_bytes",
    "token_urlsafe",
}
"""Clocks and random generators of the standard library, by the last part of their names."""
_CALL = re.compile(rf"\b({'|'.join(sorted(_CHANGING))})\(")


def _is_changing(node: ast.AST) -> bool:
    """Does it call such a function? Plain `now()` and `today()` are those of `diptych`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="time") | ast.Name(id="time"), args=[_, *_]):
            return False  # datetime.time(8, 30), and not the clock
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _CHANGING
        case ast.Call(func=ast.Name(id=name)):
            return name in _CHANGING - {"now", "today"}
    return False


_searched: tuple[list[str], bool] = ([], False)
"""The lines of the last file, and whether they call such a function: classes of one file come one after another."""


def _calls_some(lines: list[str]) -> bool:
    global _searched  # noqa: PLW0603  # a cache of one entry
    if _searched[0] is not lines:
        _searched = lines, any(map(_CALL.search, lines))
    return _searched[1]


def _body(cls: type) -> list[ast.stmt]:
    """The statements of a class; empty if nothing in its file calls such a function, since parsing is slow."""
    try:
        if not _calls_some(linecache.getlines(inspect.getsourcefile(cls) or "")):
            return []
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return []
    return tree.body if isinstance(tree, ast.ClassDef) else []


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.AnnAssign(target=ast.Name(name)):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return []
