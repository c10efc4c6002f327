"""What is gone after its sunset breaks nothing: it was announced."""

from __future__ import annotations

from datetime import date
from functools import cache

import pytest

from diptych.contract import sunsets
from diptych.contract.change import ContractChange
from diptych.contract.lock import changes_between, contract_of
from tests.contract.deprecation.diary import SOURCE
from tests.support.model_files import model_of

DIARY = SOURCE.replace('since="2026-03-01")', 'since="2026-03-01", sunset="2026-12-31")')
REMOVALS = {
    "a field": (
        'title: Annotated[\n        str, deprecated("Use headline.", since="2026-01-01", sunset="2026-12-31", '
        'link="https://example.com/title")\n    ] = "-"\n    ',
        "",
    ),
    "a number": (
        'rank: Annotated[int, deprecated("Count them.", since="2026-02-01", sunset="2027-06-30")] = 0\n    ',
        "",
    ),
    "a value": ('@deprecated_values(low=deprecated("Use calm.", since="2026-03-01", sunset="2026-12-31"))\n', ""),
    "a resource": ('notes: list[Note] = inverse("page")\n    ', ""),
}


@cache
def contract(source: str) -> dict[str, str]:
    return contract_of(model_of(source))


def changes(what: str, today: str, monkeypatch: pytest.MonkeyPatch, source: str = DIARY) -> list[ContractChange]:
    old, new = REMOVALS[what]
    assert old in source
    text = source.replace(old, new)
    if what == "a value":
        text = text.replace('    low = "low"\n', "")
    if what == "a resource":
        text = text[: text.index("class Note")]
    monkeypatch.setattr(sunsets, "current_day", lambda: date.fromisoformat(today))
    return [*changes_between(contract(source), contract(text))]


@pytest.mark.slow
@pytest.mark.parametrize("what", REMOVALS)
def test_what_is_gone_after_its_sunset_was_announced(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = changes(what, "2028-01-01", monkeypatch)
    assert found
    assert [str(change) for change in found if not change.announced] == []
    assert not any(change.breaking for change in found)


@pytest.mark.slow
@pytest.mark.parametrize("what", REMOVALS)
def test_what_is_gone_before_its_sunset_breaks_clients(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = changes(what, "2026-08-01", monkeypatch)
    assert all(change.breaking for change in found)
    assert all("has not come" in change.sentence for change in found), found


@pytest.mark.slow
def test_what_has_no_sunset_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    source = DIARY.replace(', sunset="2027-06-30"', "")
    REMOVALS["without"] = ('rank: Annotated[int, deprecated("Count them.", since="2026-02-01")] = 0\n    ', "")
    found = changes("without", "2028-01-01", monkeypatch, source)
    assert all(change.breaking and "without a sunset" in change.sentence for change in found)
    del REMOVALS["without"]
