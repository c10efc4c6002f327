"""Fixtures of the tests with tools of others: real services, and the record of what works.

`make fit` runs all of them and writes docs/reference/clients.md. `make test` runs the SHORT ones, which take a second each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fit.page import merge, printed
from tests.fit.scenario import Scenarios, Tool
from tests.fit.tools import ALL, MODULES, need
from tests.support.running import NewDatabase, Service, running, served

SHORT = {"test_page.py", "test_relay.py", "test_rest_client.py", "test_urql.py"}
"""What `make test` runs."""
_ROWS: dict[str, dict[str, Any]] = {}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "tool(tool): the tool of a test in a module about several")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    short = ALL or collection_path.name in SHORT or not collection_path.name.startswith("test_")
    return None if short and collection_path != MODULES else True


@pytest.fixture(scope="session")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    """`diptych serve` with sample data."""
    with served(new_sqlite(), "--sample") as service:
        yield service


@pytest.fixture(scope="session")
def dev(new_sqlite: NewDatabase) -> Iterator[Service]:
    """`diptych dev`, as it is in the first hour."""
    with running("dev", database=new_sqlite()) as service:
        yield service


@pytest.fixture
def own(new_sqlite: NewDatabase) -> Iterator[Service]:
    """A service of a test's own, which pages of this machine may ask."""
    with served(new_sqlite(), "--sample", "--cors-origins", "localhost") as service:
        yield service


@pytest.fixture(scope="session")
def admin(service: Service) -> str:
    """A token of an admin for `service`."""
    return service.token_of("admin").token


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Iterator[Scenarios]:
    """The record of the tool that the module names, or the mark of the test."""
    mark = request.node.get_closest_marker("tool")
    tool: Tool = mark.args[0] if mark else request.module.TOOL
    if tool.npm:
        need(MODULES)
    scenarios = Scenarios(tool)
    yield scenarios
    row = {"kind": tool.kind, "versions": tool.versions, "scenarios": scenarios.found}
    request.node.user_properties.append(("fit", json.dumps([tool.name, row])))
    if scenarios.failures:
        pytest.fail("\n".join(scenarios.failures), pytrace=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        for name, value in report.user_properties:
            if name == "fit":
                tool, row = json.loads(str(value))
                known = _ROWS.setdefault(tool, {**row, "scenarios": {}})
                known["scenarios"].update(row["scenarios"])


def pytest_sessionfinish(session: pytest.Session) -> None:
    if ALL and _ROWS and not hasattr(session.config, "workerinput"):
        merge(_ROWS, before=os.environ["FIT"] == "before")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _ROWS:
        terminalreporter.section("tools and scenarios")
        for line in printed(_ROWS):
            terminalreporter.write_line(line)
        terminalreporter.write_line("written to docs/reference/clients.md" if ALL else "")
