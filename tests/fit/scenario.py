"""Records which scenarios work with a tool: the rows of docs/reference/clients.md.

A test file is about one tool, which it names, and walks through scenarios. One that fails does not keep the others from
being tried; the test fails at its end.

    TOOL = Tool("@apollo/client", "GraphQL clients", npm=("@apollo/client",))

    def test_apollo(service: Service, scenario: Scenarios) -> None:
        found = run_node("apollo.mjs", service.url)
        with scenario("create"):
            assert found["create"] == …
        with scenario("in", fails="it sends no lists"):      # a known failure: the test fails once it works
            …
        scenario.none("compile", "it has no types")          # not applicable
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.support.running import ROOT

FOLDER = ROOT / "tests" / "fit"
ORDER = (
    *("generate", "lint", "compile", "sign in", "create", "read", "update", "delete", "where", "in", "sort", "page"),
    *("nested", "refetch", "error", "stream", "store", "cache", "event stream", "WebSocket"),
)
"""The usual scenarios in the order of the columns; others follow."""


@dataclass(frozen=True)
class Tool:
    """A tool that others wrote: its name, the table it is in, and where its versions are pinned.

    `program` is a command that prints the version of what a distribution installs.
    """

    name: str
    kind: str
    npm: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    program: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        found = {name: _npm()[name] for name in self.npm} | {name: _pypi()[name] for name in self.pypi}
        if self.program:
            found[self.program[0]] = program_version(*self.program)
        return found


@cache
def _npm() -> dict[str, str]:
    """The versions of both locks: clients of OAuth are in that of `make test`."""
    found: dict[str, str] = {}
    for folder in (ROOT / "tests" / "js", FOLDER):
        entries = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"].items()
        found |= {path.removeprefix("node_modules/"): entry["version"] for path, entry in entries if path}
    return found


@cache
def _pypi() -> dict[str, str]:
    locks = "\n".join((ROOT / "requirements" / name).read_text("utf-8") for name in ("dev.txt", "fit.txt"))
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[^\]]*\])?==(\S+)", locks, re.MULTILINE))


def find_program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def program_version(name: str, *arguments: str) -> str:
    program = find_program(name)
    assert program, f"there is no {name}"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)*", done.stdout + done.stderr)
    assert found, done
    return found[0]


@dataclass
class Scenarios:
    """What a test has found out about its tool."""

    tool: Tool
    found: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The state of each scenario, `ok`, `fails` or `none`, and the reason."""
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def __call__(self, name: str, fails: str = "", but: str = "") -> Iterator[None]:
        """Try one scenario. With `fails` it is known to fail, for that reason; `but` says what was left out, and why."""
        try:
            yield
        except Exception as error:
            self.found[name] = ("fails", fails or _first_line(error))
            if not fails:
                self.failures.append(f"{name}: {''.join(traceback.format_exception(error))}")
        else:
            self.found[name] = ("ok", but)
            if fails:
                self.failures.append(f"{name} works, and was known to fail: {fails}")

    def none(self, name: str, why: str) -> None:
        """Say why a scenario does not apply to the tool."""
        self.found[name] = ("none", why)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return re.sub(r"/\S+/", "…/", lines[0] if lines else type(error).__name__)[:160]


def record(scenario: Scenarios, found: Mapping[str, Any], *names: str) -> None:
    """Record the steps of a script: what it printed, or the error of a step that failed."""
    for name in names or found:
        with scenario(name):
            assert name in found, f"no step {name} was tried"
            value = found[name]
            assert not (isinstance(value, dict) and "failed" in value), value["failed"]
