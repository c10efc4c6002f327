"""Where in a model file a declaration stands, so that a mistake can name its line."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
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


def changing_defaults(cls: type) -> Mapping[str, str]:
    """The defaults of a class, and of the arguments of its functions (`remind.at`), that call what gives another value
    each time: a default is computed once, when the file is read."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for node in _body(base) if base not in (Resource, object) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args]
                pairs = [*zip(given[::-1], node.args.defaults[::-1], strict=False),
                         *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]  # fmt: skip
                defaults = {f"{node.name}.{each.arg}": value for each, value in pairs}
            else:
                value = node.value if isinstance(node, ast.AnnAssign | ast.Assign) else None
                defaults = dict.fromkeys(_names(node), value)
            for name, value in defaults.items():
                found.pop(name, None)
                if value is not None and any(map(_gives_another, ast.walk(value))):
                    found[name] = ast.unparse(value)
    return found


_CHANGING = {
    "now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter", "uuid1", "uuid4", "uuid6", "uuid7",
    "random", "randint", "randrange", "randbytes", "choice", "getrandbits", "urandom", "token_hex", "token_bytes",
    "token_urlsafe",
}  # fmt: skip
"""Functions of Python's library by the last part of their names."""
_CALL = re.compile(rf"\b({'|'.join(sorted(_CHANGING))})\(")


def _gives_another(node: ast.AST) -> bool:
    """Does it call such a function? `now()` and `today()` by themselves are words of a model file."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _CHANGING
        case ast.Call(func=ast.Name(id=name)):
            return name in _CHANGING - {"now", "today"}
    return False


def _body(cls: type) -> list[ast.stmt]:
    """The statements of a class; none, if nothing in its file calls such a function: to parse it takes a while."""
    try:
        if not any(map(_CALL.search, linecache.getlines(inspect.getsourcefile(cls) or ""))):
            return []
        found = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return []
    return found.body if isinstance(found, ast.ClassDef) else []


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.AnnAssign(target=ast.Name(name)):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return []
