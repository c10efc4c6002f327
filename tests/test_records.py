"""Records are Structs (CONTRIBUTING.md, Conventions): a dataclass has a reason, and only dataclasses are treated as such."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "diptych"
SETTINGS = ("Config", "Issuer")
"""Applications make these, and may pass them to functions of `dataclasses`."""
CALLERS = {
    "api/graphql/merge.py": "nodes of graphql-core",
    "cells/directory.py": "Config",
    "cli/cells.py": "Config",
    "cli/dev.py": "Config",
    "cli/move.py": "Config",
    "cli/operators.py": "Config",
    "cli/database.py": "Config",
    "cli/server.py": "Config",
    "config.py": "Config",
    "contract/lock.py": "nodes of graphql-core",
    "model/model.py": "Viewer",
    "model/read/viewers.py": "Viewer",
    "serve/app.py": "Config",
    "setting_parsers.py": "Issuer",
}
"""Where functions of `dataclasses` are called, and with what."""


@functools.cache
def texts() -> dict[str, str]:
    found = {str(path.relative_to(SRC)): path.read_text("utf-8") for path in SRC.rglob("*.py")}
    return {name: text for name, text in found.items() if "dataclass" in text}


def is_dataclass(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        ast.unparse(each).partition("(")[0] == "dataclass" for each in node.decorator_list
    )


def has_reason(node: ast.ClassDef) -> bool:
    """Does it need what a Struct lacks: a constructor of its own, another base, or a field that `repr` leaves out?"""
    has_constructor = any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in node.body)
    fields = [ast.unparse(part) for part in node.body if isinstance(part, ast.AnnAssign)]
    return has_constructor or bool(node.bases) or any("repr=False" in field for field in fields)


def test_a_dataclass_needs_what_a_struct_lacks() -> None:
    nodes = [node for text in texts().values() for node in ast.walk(ast.parse(text)) if is_dataclass(node)]
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    assert classes.keys() >= {"Config", "Viewer", "Search"}
    assert [name for name, node in classes.items() if name not in SETTINGS and not has_reason(node)] == []


def test_functions_of_dataclasses_are_called_with_dataclasses_alone() -> None:
    """No type checker sees a Struct there, since it has the same fields for them."""
    used = re.compile(
        r"^from dataclasses import .*\b(?:as\w+|fields|is_\w+|replace)\b|\bdataclasses\.\w+\(", re.MULTILINE
    )
    assert {name for name, text in texts().items() if used.search(text)} == set(CALLERS)
