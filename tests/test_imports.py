"""What is imported when: the names of the package on first use, and what a start does without after it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import diptych


def imported_by(statement: str) -> set[str]:
    """The modules in a new process after a statement."""
    program = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_offers_what_it_declares_for_type_checkers() -> None:
    tree = ast.parse(Path(diptych.__file__).read_text("utf-8"))
    declared = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("diptych.")
        for alias in node.names
    }
    assert declared == diptych._WHERE
    assert {*declared, "__version__"} == set(diptych.__all__) == set(dir(diptych))
    for name in diptych.__all__:
        assert getattr(diptych, name) is not None


def test_the_package_itself_imports_nothing() -> None:
    assert not any(name.startswith("diptych.") for name in imported_by("import diptych"))


def test_a_server_that_has_warmed_up_has_all_that_requests_need() -> None:
    modules = imported_by("from diptych.serve.on_demand import warm_up\nwarm_up()")
    assert {"graphql", "authlib", "argon2", "joserfc.jwt", "websockets"} <= modules
