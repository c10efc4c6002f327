"""Spoiled requests over real connections, by the hundred thousand if wanted: `make fuzz`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.proof.fuzz.campaign import Campaign
from tests.proof.fuzz.effort import FUZZ, SEED, UNMETERED
from tests.support.cases import cases
from tests.support.running import NewDatabase, Postgres, served

BATCH = 10_000
"""Requests for one service; then another one begins with fresh rows."""
REQUESTS = 400 if FUZZ == 1 else FUZZ * 1_900
FOUND = sorted((Path(__file__).parent / "found").glob("*.http"))
Told = Callable[[str, object], None]


def fired_at(database: str, cases: int, seed: str, told: Told) -> None:
    """So many requests at a new service."""
    with served(database, "--sample", UNMETERED) as service:
        campaign = Campaign(service, seed)
        campaign.run(cases)
        told(
            "fuzz", {"what": "raw requests", "cases": campaign.cases, "seed": seed, "answers": dict(campaign.statuses)}
        )
        report = campaign.report()
        assert not report, report
        assert campaign.cases == cases and len(campaign.statuses) > 8


@pytest.mark.parametrize("batch", range(max(1, REQUESTS // BATCH)))
def test_spoiled_requests_are_answered_as_the_documents_say(
    batch: int, new_sqlite: NewDatabase, record_property: Told
) -> None:
    fired_at(new_sqlite(), min(BATCH, REQUESTS), f"{SEED}-{batch}", record_property)


def test_so_they_are_with_postgresql(postgres: Postgres, record_property: Told) -> None:
    fired_at(postgres.create(), min(BATCH, FUZZ * 150), f"{SEED}-postgres", record_property)


# what was found before


@pytest.fixture(scope="module")
def replaying(new_sqlite: NewDatabase) -> Iterator[Campaign]:
    with served(new_sqlite(), "--sample", UNMETERED) as service:
        yield Campaign(service, 0)


@cases("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_before_is_answered(replaying: Campaign, path: Path) -> None:
    fault = replaying.replay(replaying.ground.filled(path.read_bytes()))
    assert fault is None, fault.told
    assert replaying.service.err.text == ""
