"""`Diptych(model, database=…)` is an ASGI application like any other: it mounts under a prefix."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from diptych import Diptych
from diptych.config import Config
from diptych.demo.data import insert_sample
from diptych.demo.model import model
from diptych.errors import StartError
from tests.support.running import NewDatabase

Host = Callable[[Diptych], Any]


def with_lifespan(api: Diptych) -> Callable[[Any], Any]:
    """The lifespan of a host that starts and stops what it mounts."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await api.start()
        await insert_sample(api.store, api.model)
        yield
        await api.stop()

    return lifespan


def in_starlette(api: Diptych) -> Starlette:
    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse("hello")

    routes = [Route("/hello", hello), Mount("/api/v1", app=api)]
    return Starlette(routes=routes, lifespan=with_lifespan(api))


def in_fastapi(api: Diptych) -> FastAPI:
    app = FastAPI(lifespan=with_lifespan(api))

    @app.get("/hello")
    async def hello() -> str:
        return "hello"

    app.mount("/api/v1", api)
    return app


@pytest.mark.parametrize("host", [in_starlette, in_fastapi])
def test_both_styles_work_under_a_prefix(host: Host, database: str) -> None:
    with TestClient(host(Diptych(model, database=database))) as client:
        assert client.get("/hello").status_code == 200
        query = {"query": "{ users(first: 3) { id name } }"}
        by_query = client.post("/api/v1/graphql", json=query).json()["data"]["users"]
        by_rest = client.get("/api/v1/users?first=3&fields=id,name").json()["data"]
        assert by_query == by_rest
        assert len(by_rest) == 3
        one = client.get(f"/api/v1/users/{by_rest[0]['id']}?fields=id,name")
        assert one.json() == by_rest[0]
        assert client.get("/api/v1/nothing").json()["code"] == "NOT_FOUND"
        assert client.get("/users").status_code == 404


@pytest.mark.parametrize("host", [in_starlette, in_fastapi])
def test_links_lead_on_under_the_prefix(host: Host, new_sqlite: NewDatabase) -> None:
    with TestClient(host(Diptych(model, database=new_sqlite()))) as client:
        first = client.get("/api/v1/users?first=2&fields=id&sort=name")
        assert first.headers["link"].startswith("</api/v1/users?")
        second = client.get(first.links["next"]["url"])
        assert second.status_code == 200
        back = client.get(second.links["prev"]["url"])
        assert back.json()["data"] == first.json()["data"]
        user = first.json()["data"][0]["id"]
        related = client.get(f"/api/v1/users/{user}/posts?first=1")
        assert related.headers["link"].startswith(f"</api/v1/users/{user}/posts?")
        assert client.get(related.links["next"]["url"]).status_code == 200


def test_a_prefix_may_hold_any_letters(new_sqlite: NewDatabase) -> None:
    api = Diptych(model, database=new_sqlite())
    host = Starlette(routes=[Mount("/größe 1", app=api)], lifespan=with_lifespan(api))
    with TestClient(host) as client:
        first = client.get("/größe 1/users?first=2")
        assert first.status_code == 200
        assert first.headers["link"].startswith("</gr%C3%B6%C3%9Fe%201/users?")
        assert client.get(first.links["next"]["url"]).status_code == 200


def test_the_openapi_document_names_the_prefix(new_sqlite: NewDatabase) -> None:
    with TestClient(in_starlette(Diptych(model, database=new_sqlite()))) as client:
        assert client.get("/api/v1/openapi.json").json()["servers"] == [{"url": "/api/v1"}]


def test_one_application_under_two_prefixes_tells_each_its_own(new_sqlite: NewDatabase) -> None:
    api = Diptych(model, database=new_sqlite())
    host = Starlette(routes=[Mount("/a", app=api), Mount("/b", app=api)], lifespan=with_lifespan(api))
    with TestClient(host) as client:
        for prefix in ("/a", "/b", "/a"):
            assert client.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": prefix}]
            assert client.get(f"{prefix}/users?first=1").headers["link"].startswith(f"<{prefix}/users?")


def test_an_application_by_itself_has_a_lifespan(database: str) -> None:
    api = Diptych(model, database=database)
    for _ in range(2):  # it can be started again
        with TestClient(api) as client:
            assert client.get("/users").status_code == 200
            assert client.get("/users").headers["content-type"] == "application/json"


def test_an_application_whose_host_has_no_lifespan_starts_at_the_first_request(new_sqlite: NewDatabase) -> None:
    api = Diptych(model, database=new_sqlite())
    client = TestClient(Starlette(routes=[Mount("/api", app=api)]))
    assert client.get("/api/users").json() == {"data": [], "page": {"size": 20, "next": None, "previous": None}}
    assert client.get("/api/users").status_code == 200
    with TestClient(api):  # so that it is stopped, too
        pass


def test_a_store_that_cannot_be_opened_stops_the_host() -> None:
    with (
        pytest.raises(StartError, match="cannot be opened"),
        TestClient(in_starlette(Diptych(model, database="sqlite:////no/x.db"))),
    ):
        pass


def test_a_store_that_cannot_be_opened_at_the_first_request_is_told_nothing_internal() -> None:
    client = TestClient(Diptych(model, database="sqlite:////no/x.db"), raise_server_exceptions=False)
    answer = client.get("/users")
    assert answer.status_code == 503
    assert "/no/x.db" not in answer.text


def test_settings_are_given_as_a_config(new_sqlite: NewDatabase) -> None:
    api = Diptych(model, database=new_sqlite(), config=Config(max_page=25, introspection=False))
    with TestClient(api) as client:
        assert client.get("/users?first=25").status_code == 200
        assert client.get("/users?first=26").status_code == 400
        assert client.get("/openapi.json").status_code == 404
        answer = client.post("/graphql", json={"query": "{ __schema { types { name } } }"})
        assert answer.json()["errors"][0]["extensions"]["code"] == "FORBIDDEN"
