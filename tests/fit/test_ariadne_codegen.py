"""ariadne-codegen, as the page "GraphQL in Python" says: generated, checked by mypy, and run."""

from __future__ import annotations

from pathlib import Path

from tests.fit.guides import blocks, schema, write
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import PYTHON, need, pypi, run
from tests.support.running import Service

PAGE = "graphql-python.md"
TOOL = Tool("ariadne-codegen", "GraphQL clients", pypi=("ariadne-codegen",))
SHOWN = {"nested": 0, "update": 1, "page": 2, "in": 3, "error": 4, "stream": 5}


def test_the_page(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    need(PYTHON)
    (queries,), (settings,) = blocks(PAGE, "graphql"), blocks(PAGE, "toml")
    (main,), (printed,) = blocks(PAGE, "python"), blocks(PAGE, "text")
    folder = write(tmp_path, {"queries.graphql": queries, "pyproject.toml": settings, "main.py": main})
    schema(folder)
    with scenario("generate"):
        pypi("ariadne-codegen", cwd=folder)
    with scenario("compile"):
        pypi("mypy", "--strict", "--follow-imports=silent", "main.py", cwd=folder)
        wrong = write(folder, {"wrong.py": "from api import UserCreate\nUserCreate(name=1)"})
        assert "arg-type" in pypi("mypy", "--strict", "--follow-imports=silent", "wrong.py", cwd=wrong, fine=False)
    found = run(PYTHON / "python", "main.py", service.url, admin, cwd=folder).splitlines()
    lines = printed.splitlines()
    for name in ("create", "read", "where", "sort"):
        with scenario(name):
            assert found == lines
    for name, line in SHOWN.items():
        with scenario(name):
            assert found[line] == lines[line]
