"""Static check of rules: rejects Python syntax that would be evaluated while tracing, not in SQL.

Python cannot overload `and or not in is`, so a rule that uses them would be decided once, at the start, for every row.
`scan` parses the source of a rule, and of every plain function that it names, and rejects them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any


class Untraceable(TypeError):
    """A rule or a computed field that cannot become SQL; the message says how to write it."""


_WORDS: dict[type[ast.AST], str] = {
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
    ast.IfExp: "if",
    ast.If: "if",
    ast.While: "while",
    ast.For: "for",
    ast.AsyncFor: "for",
    ast.comprehension: "for",
    ast.JoinedStr: "f-string",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.NamedExpr: ":=",
    ast.Match: "match",
    ast.Assert: "assert",
    ast.With: "with",
    ast.AsyncWith: "with",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.AsyncFunctionDef: "async",
}
_INSTEAD = {
    "is": "is_null(x)",
    "is not": "not_(is_null(x))",
    "in": "one_of(x, …)",
    "not in": "not_(one_of(x, …))",
    "not": "not_(x)",
    "and": "&",
    "or": "|",
    "if": "either(condition, a, b)",
    "f-string": "a + b",
}
_CLOCKS = ("now", "utcnow", "today")
_OWN = "diptych.model."


def scan(function: Callable[..., Any]) -> None:
    """Raise Untraceable if the function, or one that it calls, uses syntax that cannot be traced."""
    if not isinstance(function, FunctionType):
        raise Untraceable("it is no plain function, so it cannot be checked")
    if not function.__module__.startswith(_OWN):
        _scan(function, set())


def _scan(function: FunctionType, seen: set[CodeType]) -> None:
    seen.add(function.__code__)
    body = _body(function.__code__)
    for node in body:
        _refuse(node)
    for named in _named(function, body):
        if named.__code__ not in seen and not named.__module__.startswith(_OWN):
            try:
                _scan(named, seen)
            except Untraceable as error:
                raise Untraceable(f"it calls {named.__name__}(), where {error}") from None


def _body(code: CodeType) -> list[ast.AST]:
    """All nodes of the function, without its decorators and annotations."""
    try:
        source = inspect.getsource(code)
        tree = ast.parse("if 1:\n" + source if source[:1].isspace() else source).body[0]
    except (OSError, SyntaxError, IndexError):
        raise Untraceable("its source cannot be read, so it cannot be checked") from None
    outer = tree.body[0] if isinstance(tree, ast.If) else tree
    if not isinstance(outer, ast.FunctionDef):
        return list(ast.walk(outer))
    return [node for statement in outer.body for node in ast.walk(statement)]


def _refuse(node: ast.AST) -> None:
    word = _WORDS.get(type(node))
    if word:
        instead = f"; write {_INSTEAD[word]}" if word in _INSTEAD else ""
        raise Untraceable(f"'{word}' cannot be traced to SQL{instead}")
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise Untraceable("a chained comparison cannot be traced to SQL; write (a < b) & (b < c)")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CLOCKS:
        raise Untraceable(
            f"'{node.func.attr}()' would be the moment of the start for every request to come; write now()"
        )


def _named(function: FunctionType, body: list[ast.AST]) -> Iterator[FunctionType]:
    """The plain functions that are named here, since they may be called, here or by another function."""
    inside = inspect.getclosurevars(function).nonlocals
    hidden = function.__code__.co_varnames
    names = {name: value for name, value in {**function.__globals__, **inside}.items() if name not in hidden}
    for node in body:
        target = _look_up(node, names)
        if isinstance(target, FunctionType):
            yield target


def _look_up(node: ast.AST, names: Mapping[str, object]) -> object:
    match node:
        case ast.Name(name):
            return names.get(name)
        case ast.Attribute(owner, name):
            holder = _look_up(owner, names)
            return getattr(holder, name, None) if isinstance(holder, ModuleType | type) else None
    return None
