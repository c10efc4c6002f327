"""One service and one browser for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.running import Client, NewDatabase, Service, running
from tests.system.oauth.browsing import chromium


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    """`diptych dev` with the sample rows."""
    with running("dev", database=new_sqlite(), noise="INFO") as found:
        yield found


@pytest.fixture(scope="module")
def admin(service: Service) -> Client:
    """The sample admin, with a token of the command line."""
    return service.token_of("admin", user=service.get("/users?first=1&fields=id").json()["data"][0]["id"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
