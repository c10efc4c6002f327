"""One service for all tests of the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.running import NewDatabase, Service, served


@pytest.fixture(scope="session")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample") as service:
        yield service
