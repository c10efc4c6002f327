"""orval 8: functions of the document, for fetch."""

from __future__ import annotations

from pathlib import Path

from tests.fit.rest import generate_with_orval, hold
from tests.fit.scenario import Scenarios, Tool
from tests.support.running import Service

TOOL = Tool("orval 8", "REST clients", npm=("orval",))


def test_orval(service: Service, admin: str, scenario: Scenarios, tmp_path: Path) -> None:
    found = generate_with_orval("orval", service, admin, scenario, tmp_path)
    hold(found, scenario, service, admin, "orval-8@fit.example")
