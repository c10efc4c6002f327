"""Imports flow one way, in the order of the pipeline: docs/explanation/architecture.md says why, MAY_IMPORT says how.

All import statements under src/ count, also those for the type checker alone: a name in a signature is a
dependency too. A package that Python runs on the way to a module (`model` for `model.expr`) does not count.
"""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"

# What a layer may import besides itself and `errors`. A dotted name opens that one module, not its layer.
MAY_IMPORT: dict[str, list[str]] = {
    "errors": [],
    "setting_parsers": [],
    "config": ["setting_parsers"],
    "lru": [],
    "nesting": [],
    "look": [],
    "metrics": [],
    "fair": ["lru"],
    "model": ["lru"],
    "ask": ["model"],
    "api": ["ask", "model", "lru", "nesting"],
    "policy": ["ask", "model", "lru"],
    "compile": ["ask", "model", "lru"],
    # db runs plans and makes tables: it needs what the compiler says of both, and SQLite signs cursors by itself
    "db": [
        "compile.plan",
        "compile.dialect",
        "compile.fragment",
        "compile.tables",
        "compile.indexes",
        "compile.system",
        "compile.catalogue",
        "compile.differences",
        "compile.existing",
        "compile.meaning",
        "ask.act",
        "ask.cursor",
        "model",
        "config",
        "fair",
        "lru",
    ],
    "migrate": ["compile", "db", "model", "config"],
    "move": ["migrate", "compile", "db", "model"],
    "identity": ["db", "model", "config", "setting_parsers", "fair", "lru"],
    # model code is a third way to ask: it builds its Asks as both styles do
    "engine": ["api.ask_builder", "policy", "compile", "db", "ask", "model", "identity", "fair", "lru", "nesting"],
    "live": ["engine", "audit", "compile.system", "db", "identity", "ask", "model", "config", "fair"],
    # a webhook is a Watch as REST translates it, evaluated like one, and sent to an address
    "webhooks": [
        "live",
        "engine",
        "api",
        "db",
        "compile.dialect",
        "compile.plan",
        "identity",
        "ask",
        "model",
        "config",
        "fair",
    ],
    # a job is a call as REST translates it, run later
    "jobs": ["engine", "api", "ask.act", "db", "identity", "model", "config", "fair"],
    # the audit log is a reader of the feed, beside the pipeline
    "audit": ["db", "compile.plan", "ask.act", "model", "fair"],
    # explaining goes the way of a request beside the pipeline, and runs nothing but what it asks of rows
    "explain": ["engine", "api", "policy", "compile", "db", "ask", "model"],
    "serve": [
        "metrics",
        "explain",
        "engine",
        "live",
        "webhooks",
        "jobs",
        "audit",
        "api",
        "ask",
        "policy",
        "db",
        "identity",
        "model",
        "config",
        "setting_parsers",
        "lru",
        "fair",
        "look",
        "migrate.status",
    ],
    # many services in one process, a database for each tenant
    "cells": [
        "serve",
        "metrics",
        "api.reply",
        "policy.limits",
        "identity",
        "fair",
        "model",
        "config",
        "setting_parsers",
    ],
    # the documents of a model under version control, beside the pipeline
    "contract": ["api", "model"],
    # a database of others as the text of a model file
    "inspection": ["compile.affinity", "model"],
    # a model file like any other, and rows for it
    "demo": ["__init__", "db", "model"],
}
MAY_IMPORT |= {
    "cli": [*MAY_IMPORT],  # all of the above
    # a service for tests of one's own model
    "testing": ["serve", "engine", "db", "model", "config"],
    "pytest_plugin": ["testing"],
    # what `from diptych import …` offers
    "__init__": ["serve", "engine", "identity", "policy.limits", "ask.measures", "model", "config"],
    "__main__": ["cli"],
}


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


FILES = {module_name(file): file for file in sorted(SRC.rglob("*.py"))}


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text("utf-8"), str(FILES[module]))


def layer(module: str) -> str:
    """`diptych.api.query_string` → `api`; the package itself is `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def place(module: str, line: int) -> str:
    return f"src/{FILES[module].relative_to(SRC)}:{line}"


def origin(importer: str, node: ast.ImportFrom) -> str:
    """The module that an import names after `from`, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    dots = node.level - (FILES[importer].name == "__init__.py")
    parts = importer.split(".")
    return ".".join([*parts[: len(parts) - dots], *filter(None, [node.module])])


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node, at any depth; there is none in an expression."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.expr):
            yield from statements(child)


@functools.cache
def imports(importer: str) -> list[tuple[str, int]]:
    """Each module of ours that `importer` names, with the line."""
    return [*read_imports(importer)]


def read_imports(importer: str) -> Iterator[tuple[str, int]]:
    for node in statements(tree(importer)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = origin(importer, node)
            members = [f"{base}.{alias.name}" for alias in node.names]
            names = sorted({member if member in FILES else base for member in members})
        else:
            continue
        for name in names:
            if name.split(".")[0] == "diptych":
                yield name, node.lineno


def allowed(importer: str, target: str) -> bool:
    home = layer(importer)
    if layer(target) == "__init__":
        return "__init__" in MAY_IMPORT[home]
    opened = [f"diptych.{name}" for name in ["errors", home, *MAY_IMPORT[home]]]
    return any(target == name or target.startswith(name + ".") for name in opened)


def test_every_module_belongs_to_a_layer() -> None:
    assert "diptych" in FILES, f"no package in {SRC}"
    assert {layer(name) for name in FILES} - MAY_IMPORT.keys() == set()


def test_a_layer_imports_only_the_layers_below_it() -> None:
    faults = [
        f"{place(importer, line)}: {layer(importer)} may not import {target}"
        for importer in FILES
        for target, line in imports(importer)
        if not allowed(importer, target)
    ]
    assert not faults, "\n".join(faults)


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {importer: {target for target, _ in imports(importer)} for importer in FILES}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(" is imported by ".join(error.args[1])) from None


def functions(module: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The outermost functions and methods: each line of code is walked over once."""
    for node in ast.iter_child_nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif not isinstance(node, ast.expr):
            yield from functions(node)


def test_imports_stand_at_the_top_of_a_file() -> None:
    faults = [
        f"{place(name, function.lineno)}: an import inside {function.name}"
        for name in FILES
        for function in functions(tree(name))
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in statements(function))
    ]
    assert not faults, "\n".join(faults)


# tests/unit mirrors src/diptych: the tests of a/b.py are tests/unit/a/test_b.py


UNIT = Path(__file__).parent / "unit"


def module_of(file: Path) -> Path:
    """The module that a file of tests/unit is named after."""
    return SRC / "diptych" / file.relative_to(UNIT).with_name(file.name.removeprefix("test_"))


def test_unit_tests_are_named_after_the_module_that_they_test() -> None:
    files = [file for file in UNIT.rglob("*.py") if file.name != "conftest.py"]
    assert files
    faults = [
        f"{file.relative_to(UNIT.parents[1])}: there is no {module_of(file).relative_to(SRC.parent)}"
        for file in files
        if not file.name.startswith("test_") or not module_of(file).exists()
    ]
    assert not faults, "\n".join(faults)
