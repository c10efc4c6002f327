"""Services for the tests of this folder: the kiosk with its rows, and tokens of all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest

from tests.contract.caching.kiosk import ANN, BOB, ROWS, model
from tests.support.in_process import in_process
from tests.support.running import ROOT, NewDatabase, Service, served
from tests.system.oauth.browsing import Site

MODEL = "tests.contract.caching.kiosk:model"
Tokens = Mapping[str, str]


def filled(database: str) -> Tokens:
    """Tokens of all who ask, for a new database that now has the rows of the kiosk."""
    with asyncio.Runner() as runner, in_process(model, database, runner, ROWS) as service:
        return {
            "ann": service.token(ANN, ttl=86_400),
            "bob": service.token(BOB, ttl=86_400),
            "admin": service.token(None, "admin", ttl=86_400),
            "nobody": "nonsense",
        }


@pytest.fixture(scope="package")
def database(new_sqlite: NewDatabase) -> str:
    return new_sqlite()


@pytest.fixture(scope="package")
def tokens(database: str) -> Tokens:
    return filled(database)


@pytest.fixture(scope="package")
def kiosk(database: str, tokens: Tokens) -> Iterator[Service]:
    """The kiosk as anyone would serve it."""
    with served(database, model=MODEL, cwd=ROOT) as service:
        yield service


@pytest.fixture(scope="package")
def site() -> Iterator[Site]:
    """A site whose pages may read answers of the service `listed`."""
    with Site() as found:
        yield found


@pytest.fixture(scope="package")
def listed(database: str, tokens: Tokens, site: Site) -> Iterator[Service]:
    """The kiosk, with a list of origins."""
    origins = f"https://App.Example.org:443, {site.url}"
    with served(database, "--cors-origins", origins, model=MODEL, cwd=ROOT) as service:
        yield service
