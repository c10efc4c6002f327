"""The clients of graphql-ws and graphql-sse from npm, a scenario each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.running import NewDatabase, Service, node, served


@pytest.fixture(scope="module")
def service(new_database: NewDatabase) -> Iterator[Service]:
    with served(new_database(), "--sample", DIPTYCH_HEARTBEAT="0.5") as service:
        yield service


def told(service: Service, script: str, url: str) -> Any:
    cursor = service.get("/users?first=1", prefer="change-cursor").headers["change-cursor"]
    return json.loads(node(script, url, service.token_of("admin").token, cursor))


def test_graphql_ws(service: Service) -> None:
    found = told(service, "socket.mjs", service.url.replace("http:", "ws:") + "/graphql")
    assert found["made"] == {"results": [{"data": {"createUser": {"name": "Nia"}}}]}
    change = found["change"]["data"]["userChanged"]
    assert (change["kind"], change["user"]) == ("CREATED", {"name": "Nia", "email": "nia@example.com"})
    assert found["asked"] == {"results": [{"data": {"__typename": "Query"}}]}
    assert found["refused"]["error"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert found["again"] == {"data": {"userChanged": {"user": {"name": "Nia"}}}}
    assert found["closed"] == [1000]


def test_graphql_sse(service: Service) -> None:
    found = told(service, "events.mjs", service.url + "/graphql")
    assert found["made"] == [{"data": {"createUser": {"name": "Noa"}}}]
    change = found["change"]["data"]["userChanged"]
    assert (change["kind"], change["user"]) == ("CREATED", {"name": "Noa", "email": "noa@example.com"})
    assert found["asked"] == [{"data": {"__typename": "Query"}}]
    assert found["refused"][0]["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert found["again"] == {"data": {"userChanged": {"user": {"name": "Noa"}}}}
    assert found["forbidden"] == 401
