"""A reference to a hidden row is refused exactly like one to no row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.engine import refusals
from tests.support import edge_cases
from tests.support.in_process import Service, in_process
from tests.support.proof_writes import kind
from tests.support.running import NewDatabase

HIDDEN_TAG, NO_TAG = "00000000-0000-7000-8000-000000000007", "00000000-0000-7000-8000-000000000008"


@pytest.fixture
def tags(new_database: NewDatabase) -> Iterator[Service]:
    """A thing that anyone may read, and a tag that only keepers may."""
    rows = kind(edge_cases.model, edge_cases.rows(edge_cases.model, 1))
    thing = {**rows["Thing"][0], "id": 1, "ownerId": None, "parentId": None, "flag": True}
    tag = {**rows["Tag"][0], "id": HIDDEN_TAG, "hidden": True}
    with (
        asyncio.Runner() as runner,
        in_process(edge_cases.model, new_database(), runner, {"Thing": [thing], "Tag": [tag]}) as found,
    ):
        yield found


def references(service: Service, tag: str) -> list[Any]:
    """What someone is told who ties a thing to a tag, in both styles."""
    body = {"thingId": "1", "tagId": tag, "public": True}
    document = "mutation ($input: TaggingCreate!) { createTagging(input: $input) { id } }"
    token = service.token("00000000-0000-7000-8000-000000000001")
    headers, data = {"content-type": "application/json"}, json.dumps(body).encode()
    rest = service.send("POST", "/taggings", headers=headers, body=data, token=token)
    return [rest.json(), service.query(document, {"input": body}, token=token).json()]


def test_a_reference_to_a_hidden_row_is_refused_exactly_like_one_to_no_row(tags: Service) -> None:
    assert references(tags, HIDDEN_TAG) == references(tags, NO_TAG)
    assert references(tags, NO_TAG)[0]["errors"][0]["pointer"] == "/tagId"


def test_where_rules_are_told_first_the_hidden_row_shows(tags: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_reportable", lambda failed: failed)
    assert references(tags, HIDDEN_TAG) != references(tags, NO_TAG)
