"""orval 7: functions of the document, for fetch."""

from __future__ import annotations

from pathlib import Path

from tests.fit.rest import generate_with_orval, hold
from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Service

TOOL = Tool("orval 7", "REST clients", npm=("orval-7",))


def test_orval(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    found = generate_with_orval("orval-7", service, admin, scenario, tmp_path)
    hold(found, scenario, service, admin, "orval-7@fit.example")
