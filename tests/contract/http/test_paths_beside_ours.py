"""A resource whose path begins like one of the service itself (`/consoles`, `/health-records`) is a resource as any."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from diptych import Model, Resource, Role, grant
from diptych.serve.explaining import ExplainingHandler
from diptych.serve.http.cors import Cors
from diptych.serve.http.request import Request
from tests.support.in_process import Service, in_process

admin, clerk = Role("admin"), Role("clerk")
APP = "https://app.example.org"


class Console(Resource):
    name: str
    access = (grant("read"), grant("delete", to=clerk), grant("create", to=admin))


class HealthRecord(Resource):
    text: str
    access = (grant("read"),)


BESIDE = ["/consoles", "/consoles/changes", "/health-records"]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """As `diptych dev` has it, with a rate and a console."""
    rates = ({"requests": 5, "per": "day"},)
    with (
        asyncio.Runner() as runner,
        in_process(Model(Console, HealthRecord), "sqlite:///:memory:", runner, console=True, rates=rates) as service,
    ):
        old = service.handler
        service.handler = ExplainingHandler(old.engine, old.context, old.config)
        service.handler.recent = old.recent
        yield service


@pytest.mark.parametrize("path", BESIDE)
def test_it_has_a_rate(service: Service, path: str) -> None:
    token = service.token(path)
    assert [service.get(path, token=token).status for _ in range(6)] == [200] * 5 + [429]


def test_the_paths_of_the_service_have_none(service: Service) -> None:
    token = service.token("ours")
    for path in ("/console", "/console/", "/console/api/boot", "/health/live"):
        answers = [service.get(path, token=token, headers={"host": "127.0.0.1"}) for _ in range(6)]
        assert {answer.status for answer in answers} <= {200, 303} and "ratelimit" not in answers[0].headers


@pytest.mark.parametrize("path", BESIDE)
def test_pages_of_other_origins_may_read_it(service: Service, path: str) -> None:
    assert b"access-control-allow-origin" in cors_of(service, path)


@pytest.mark.parametrize("path", ["/console", "/console/", "/console/api/boot", "/oauth/authorize"])
def test_pages_of_other_origins_may_not_read_ours(service: Service, path: str) -> None:
    assert not cors_of(service, path)


def cors_of(service: Service, path: str) -> set[bytes]:
    """The headers of CORS that an answer gets."""

    async def answer() -> set[bytes]:
        async def read(most: int) -> bytes:
            return b""

        request = Request("GET", path, "", {b"origin": APP.encode(), b"host": b"127.0.0.1"}, read)
        reply = Cors((APP,)).apply(request, await service.handler.handle(request))
        return {name for name, _ in reply.headers if name.startswith(b"access-control-")}

    return service.runner.run(answer())


@pytest.mark.parametrize("path", BESIDE)
def test_the_console_shows_its_requests(service: Service, path: str) -> None:
    recent = service.handler.recent
    assert recent is not None
    for number, sent in enumerate(("/console", "/console/api/boot", "/health/live", path)):
        before = recent.count
        recent.record(Request("GET", sent, "", {}, _nothing), 200, 0)
        assert recent.count - before == (number == 3)


async def _nothing(_: int) -> bytes:
    return b""


def test_an_admin_learns_why_it_refuses(service: Service) -> None:
    answer = service.send(
        "DELETE", "/consoles/00000000-0000-7000-8000-000000000001", token=service.token(None, "admin")
    )
    assert answer.status == 401 and answer.json()["why"]


def test_its_operations_are_described_with_429(service: Service) -> None:
    paths = service.get("/openapi.json", token=service.token("reader")).json()["paths"]
    assert {path: "429" in paths[path]["get"]["responses"] for path in (*BESIDE, "/health/live")} == {
        **dict.fromkeys(BESIDE, True),
        "/health/live": False,
    }
