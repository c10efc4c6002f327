"""The console of the default model, as `diptych dev` and as `diptych serve --console` have it, on each store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from diptych.demo.model import model
from diptych.serve.explaining import ExplainingHandler
from tests.contract.http import data
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase

HERE = {"host": "127.0.0.1:8000"}


class Console:
    """A service with its console."""

    def __init__(self, service: Service) -> None:
        self.service = service

    @property
    def admin(self) -> str:
        return self.service.token(None, "admin")

    def get(self, path: str, token: str | None = None, **headers: str) -> Answer:
        return self.service.get(f"/console/api/{path}", token=token, headers={**HERE, **headers})

    def send(self, path: str, body: Any, token: str | None = None, method: str = "POST", **headers: str) -> Answer:
        return self.service.send(
            method,
            f"/console/api/{path}",
            headers={**HERE, "content-type": "application/json", **headers},
            body=json.dumps(body).encode(),
            token=token,
        )

    def twin(self, sent: Mapping[str, Any], token: str | None = None) -> Any:
        answer = self.send("twin", sent, token)
        assert answer.status == 200, answer.body
        return answer.json()


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of these tests."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="session")
def console(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Console]:
    """As in `serve --console`."""
    with in_process(model, new_database(), runner, data.ROWS, console=True) as service:
        yield Console(service)


@pytest.fixture(scope="session")
def dev(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Console]:
    """As in `dev`."""
    with in_process(model, new_database(), runner, data.ROWS, console=True) as service:
        old = service.handler
        service.handler = ExplainingHandler(old.engine, old.context, old.config)
        yield Console(service)


@pytest.fixture(scope="session")
def off(runner: asyncio.Runner) -> Iterator[Service]:
    """Without a console, as by default."""
    with in_process(model, "sqlite:///:memory:", runner) as service:
        yield service
