"""A model whose own code fails to tell who asks: every door says so by a code, and none just ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych import Claims, Diptych, Model, Resource, Viewer, grant
from diptych.config import Config
from tests.contract.live.clients import WebSocket
from tests.support.running import NewDatabase
from tests.system.wire.here import Here, here

FAILS: list[bool] = [True]


class Member(Viewer):
    """Someone whom nobody can tell, while it fails."""

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        if FAILS[0]:
            raise RuntimeError("the directory is away")
        return cls(id=claims.subject)


class Paper(Resource):
    """Anything."""

    text: str

    access = (grant("read"),)


model = Model(Paper, viewer=Member)


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[tuple[Here, str]]:
    with here(Diptych(model, config=Config(database=new_sqlite()))) as found:
        assert found.client.get("/health/ready").status == 200
        handler = found.app._handler
        assert handler is not None
        yield found, handler.context.tokens.make("00000000-0000-7000-8000-000000000001", (), None, 3600)


@pytest.fixture(autouse=True)
def failing() -> Iterator[None]:
    FAILS[0] = True
    yield
    FAILS[0] = True


def number_of(text: str) -> str:
    found, _, number = text.rstrip(".").rpartition(" ")
    assert found == "Something went wrong. Its number is"
    return number


def test_the_first_message_of_a_socket_closes_it_with_a_code(
    service: tuple[Here, str], caplog: pytest.LogCaptureFixture
) -> None:
    found, bearer = service
    with WebSocket(found.client.port) as socket:
        socket.send(type="connection_init", payload={"authorization": f"Bearer {bearer}"})
        code, reason = socket.closed()
        assert code == 4500
        assert number_of(reason) in caplog.text


def test_a_handshake_is_refused_by_500(service: tuple[Here, str], caplog: pytest.LogCaptureFixture) -> None:
    found, bearer = service
    with WebSocket(found.client.port, token=bearer) as socket:
        assert socket.status == 500
        told: Any = json.loads(socket.take(int(socket.headers["content-length"])))
        assert told["code"] == "INTERNAL"
        assert number_of(told["detail"]) in caplog.text


def test_an_operation_is_told_and_the_socket_goes_on(service: tuple[Here, str]) -> None:
    found, bearer = service
    FAILS[0] = False
    with WebSocket(found.client.port, token=bearer) as socket:
        socket.begin()
        FAILS[0] = True
        socket.subscribe("1", "{ papers { id } }")
        assert socket.receive()["payload"][0]["extensions"]["code"] == "INTERNAL"
        FAILS[0] = False
        socket.subscribe("2", "{ papers { id } }")
        assert socket.receive()["payload"] == {"data": {"papers": []}}


def test_a_request_is_told(service: tuple[Here, str]) -> None:
    found, bearer = service
    answer = found.client.signed_in(bearer).get("/papers")
    assert (answer.status, answer.json()["code"]) == (500, "INTERNAL")
