"""GraphQL over HTTP: every audit of the public graphql-http suite, against a served process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.running import NewDatabase, Service, node, served

AUDITS = 61
"""How many audits version 1.23 of the suite has."""


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with served(new_database(), "--sample") as service:
        yield service


def test_every_audit_of_the_public_suite_is_ok(service: Service) -> None:
    results = json.loads(node("audit.mjs", f"{service.url}/graphql"))
    assert len(results) == AUDITS
    assert [result for result in results if result["status"] != "ok"] == []
