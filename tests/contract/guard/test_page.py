"""docs/reference/limits.md tells the truth: its numbers, its checks, and its requests."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from diptych import Check, Diptych, Limits
from diptych.config import Config
from diptych.demo.model import model
from diptych.serve.request_limits import request_limits
from tests.contract.guard.conftest import Pressed
from tests.contract.http.test_limits import STANDARD
from tests.support.cases import cases
from tests.support.in_process import Service
from tests.support.running import ROOT

TEXT = (ROOT / "docs" / "reference" / "limits.md").read_text("utf-8")
(SOURCE,) = re.findall(r"```python\n(.+?)```", TEXT, re.DOTALL)
ROWS = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\d+) \| (?:`(\w+)` )?\| `(\w+)` \|$", TEXT, re.MULTILINE)


def test_every_limit_is_in_the_table_with_its_number() -> None:
    assert {name: int(number) for name, number, _, _ in ROWS} == msgspec.structs.asdict(Limits())


@cases(("name", "number", "setting"), [row[:3] for row in ROWS if row[2]])
def test_the_setting_of_a_limit_is_the_one_that_moves_it(name: str, number: str, setting: str) -> None:
    assert getattr(Config(), setting) == int(number)
    chosen: dict[str, Any] = {setting: 77}
    assert getattr(request_limits(Config(**chosen)), name) == 77


def test_a_limit_without_a_setting_has_none() -> None:
    chosen: dict[str, Any] = {setting: 77 for _, _, setting, _ in ROWS if setting}
    moved = request_limits(Config(**chosen))
    assert {name for name, _, setting, _ in ROWS if not setting} == {
        name for name in Limits.__struct_fields__ if getattr(moved, name) != 77
    }


@pytest.fixture
def service(serving: Pressed, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(compile(SOURCE.replace("from __future__", ""), "limits.md", "exec", dont_inherit=True), found)
    assert isinstance(found["app"], Diptych)
    checks: list[Check] = [found["named"], found["modest"], found["no_orders"]]
    assert found["app"]._checks == tuple(checks)
    return serving(*checks, model=model)


def test_the_checks_that_are_shown_do_what_they_say(service: Service) -> None:
    much, most = (
        "{ users(first: 100) { posts(first: 5) { id } } }",
        "query Q { users(first: 100) { posts(first: 10) { id } } }",
    )
    staff = service.token(None, "staff")
    for _ in range(3):
        assert service.query(much).json()["errors"][0]["message"] == "Give an operation a name that asks for so much."
        assert service.query(most).json()["errors"][0]["extensions"] == {
            "code": "TOO_COMPLEX",
            "price": 1100,
            "allowed": 500,
        }
        assert service.query("{ users { id } }").status == 200
        assert service.get("/users?first=100&fields=posts[first=10](id)").code == "TOO_COMPLEX"
        assert service.get("/orders", token=staff).code == "FORBIDDEN"
        assert service.query("{ orders { id } }", token=staff).status == 200


def test_the_standard_introspection_counts_what_is_said(serving: Pressed) -> None:
    seen = []
    service = serving(lambda asked, limits: seen.append(asked.described), model=model)
    assert service.query(STANDARD).status == 200
    assert f"counts {max(seen):,} of {Limits().described:,}" in TEXT
