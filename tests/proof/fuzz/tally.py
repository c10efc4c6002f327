"""What was fuzzed, in a table at the end: `python -m pytest -p tests.proof.fuzz.tally …`. Tests tell of it by `record_property`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.proof.fuzz.effort import FUZZ, SEED


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what the tests told."""
    cases: Counter[str] = Counter()
    answers: dict[str, Counter[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for told in _told(report):
                what = told["what"]
                cases[what] += told["cases"]
                answers.setdefault(what, Counter()).update({int(key): count for key, count in told["answers"].items()})
    terminalreporter.section(f"fuzzed {cases.total():,} (FUZZ={FUZZ} SEED={SEED})")
    for what, count in sorted(cases.items()):
        by_status = "  ".join(f"{status or 'none'}: {number:,}" for status, number in sorted(answers[what].items()))
        terminalreporter.line(f"{count:9,}  {what}\n           {by_status}")


def _told(report: object) -> list[dict[str, Any]]:
    """What one test told, once: when it was torn down."""
    if getattr(report, "when", "") != "teardown":
        return []
    return [value for name, value in getattr(report, "user_properties", ()) if name == "fuzz"]
