"""Diptych as a library: its public names, what `import diptych` loads, and the page that documents both."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from starlette.testclient import TestClient

import diptych
from diptych import config, errors
from tests.support.running import environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "library.md").read_text("utf-8")
BLOG = (ROOT / "tests" / "typing" / "blog.py").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
LOADED = "import sys; before = set(sys.modules); import diptych; {}; print(*sorted(set(sys.modules) - before))"
SERVER = {"uvicorn", "httptools", "websockets", "asyncpg", "apsw", "authlib", "cryptography", "diptych.serve.app"}


def modules(statement: str) -> set[str]:
    """The modules that `import diptych` and one more statement load in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(statement)], env=environment(), capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_every_public_name_is_there() -> None:
    assert sorted(diptych.__all__) == diptych.__all__
    assert [name for name in diptych.__all__ if not hasattr(diptych, name)] == []
    assert (diptych.Config, diptych.ModelError) == (config.Config, errors.ModelError)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = diptych.Nothing


def test_the_version_is_the_one_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert diptych.__version__ == project["version"]


def test_neither_a_model_nor_the_settings_nor_the_version_load_the_server() -> None:
    assert not SERVER & modules("diptych.Config(), diptych.ModelError, diptych.Model, diptych.__version__")
    assert modules("diptych.Diptych") >= {"apsw", "diptych.serve.app"}


@pytest.mark.parametrize("name", ["Diptych", "Config", "ModelError", "__version__"])
def test_the_page_has_a_section_for_each_name(name: str) -> None:
    assert f"\n## `{name}`\n" in PAGE
    assert f"- [`{name}`](#{name.lower()})" in PAGE


def test_the_page_documents_every_argument_of_the_application() -> None:
    parameters = [*diptych.Diptych.__init__.__annotations__]
    parameters.remove("return")
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == parameters


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_page_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "blog.py").write_text(BLOG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "blog", ModuleType("blog"))  # whatever is imported there is removed again
    del sys.modules["blog"]
    scope: dict[str, object] = {"__name__": "example"}
    exec(compile(example, "library.md", "exec"), scope)
    if "app" in scope:
        with TestClient(scope["app"]) as client:  # type: ignore[arg-type]  # an ASGI application
            assert client.get("/api/authors?fields=name").json()["data"] == []
            asked = {"query": "{ authors(first: 1) { name } }"}
            assert client.post("/api/graphql", json=asked).json() == {"data": {"authors": []}}
