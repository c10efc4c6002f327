"""Requests that come together are batched on PostgreSQL, and answered as if each had come by itself."""

from __future__ import annotations

import asyncio
import json
from collections import Counter as Count
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from diptych import Audited, Counter, Model, Resource, auto, grant
from diptych.api.reply import Reply
from diptych.demo.model import model
from diptych.serve.http.request import Request
from tests.contract.http.data import ANN, BEN, NOBODY, ROWS
from tests.support.behind_pooler import needs_own_session
from tests.support.in_process import Service, in_process
from tests.support.running import Postgres
from tests.unit.db.postgres.test_read_batches import sizes

pytestmark = needs_own_session(
    reason="a creation there is a transaction with an id, not a statement that commits itself"
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


def together(service: Service, *requests: tuple[str, str, Any], token: str) -> list[Reply]:
    """The replies to requests that come in one moment."""

    def sent(method: str, url: str, body: Any) -> Request:
        async def read(most: int) -> bytes:
            return json.dumps(body).encode()

        path, _, query = url.partition("?")
        headers = {b"authorization": f"Bearer {token}".encode()} if token else {}
        if body is not None:
            headers[b"content-type"] = b"application/json"
        return Request(method, path, query, headers, read)

    async def all_of_them() -> list[Reply]:
        tasks = [asyncio.create_task(service.handler.handle(sent(*request))) for request in requests]
        return await asyncio.gather(*tasks)

    return service.runner.run(all_of_them())


def users(*names: str) -> list[tuple[str, str, Any]]:
    return [("POST", "/users", {"name": name, "email": f"{name}@example.org"}) for name in names]


def test_each_creation_has_its_own_status_and_each_row_one_event(postgres: Postgres, runner: asyncio.Runner) -> None:
    with in_process(model, postgres.create(), runner, ROWS) as service:
        admin = service.token(BEN, "admin")
        together(service, *users("warm", "up"), token=admin)
        before = service.end_of_changes()
        names = [f"new{number % 25}" for number in range(40)]
        orders = [
            ("POST", "/orders", {"customerId": NOBODY if number % 4 == 1 else ANN, "total": "1.00", "currency": "EUR"})
            for number in range(30)
        ]
        with sizes(nobody_is_slow=True) as found:
            replies = together(service, *users(*names), *orders, token=admin)
        assert len(found) > 1
        statuses = [reply.status for reply in replies]
        assert Count(statuses[:40]) == {201: 25, 409: 15}
        assert statuses[40:] == [409 if number % 4 == 1 else 201 for number in range(30)]
        made = [json.loads(reply.body)["id"] for reply in replies if reply.status == 201]
        assert len(set(made)) == len(made)
        for path, name in (("users", "user"), ("orders", "order")):
            changes = service.changes(f"/{path}/changes?after={before}&first=100&fields=id", token=admin)["data"]
            created = [change[name]["id"] for change in changes if change["kind"] == "CREATED"]
            assert sorted(created) == sorted(set(created) & set(made)), "each row has one event"
            assert len(created) == (25 if path == "users" else statuses[40:].count(201))


def test_reads_and_creations_of_both_styles_agree(postgres: Postgres, runner: asyncio.Runner) -> None:
    with in_process(model, postgres.create(), runner, ROWS) as service:
        admin = service.token(BEN, "admin")
        query = "query($id: ID!) { user(id: $id) { name posts { title } } }"
        ids = [ANN, NOBODY, BEN]
        requests = [
            request
            for id in ids
            for request in (
                ("GET", f"/users/{id}?fields=name,posts(title)", None),
                ("POST", "/graphql", {"query": query, "variables": {"id": id}}),
            )
        ]
        alone = [together(service, request, token=admin)[0] for request in requests]
        for _ in range(4):
            replies = together(service, *requests * 8, token=admin)
            assert [(reply.status, reply.body) for reply in replies] == [(one.status, one.body) for one in alone] * 8


class Ticket(Resource):
    name: str
    number: Annotated[int, Counter()] = auto()
    access = (grant("read", "create"),)


def test_what_takes_a_number_is_not_batched(postgres: Postgres, runner: asyncio.Runner) -> None:
    with in_process(Model(Ticket), postgres.create(), runner) as service:
        requests = [("POST", "/tickets", {"name": "x"})] * 30
        with sizes(nobody_is_slow=True) as found:
            replies = together(service, *requests[:3], token="") + together(service, *requests, token="")
        assert not found
        assert sorted(json.loads(reply.body)["number"] for reply in replies) == list(range(1, 34))


class Note(Resource, audit=Audited()):
    text: str
    access = (grant("read", "create"),)


class Plain(Resource):
    text: str
    access = (grant("read", "create"),)


def test_nor_is_anything_of_an_audited_model_as_a_transaction_has_one_actor(
    postgres: Postgres, runner: asyncio.Runner
) -> None:
    with in_process(Model(Note, Plain), postgres.create(), runner) as service:
        with sizes(nobody_is_slow=True) as found:
            for path in ("/notes", "/plains") * 2:
                replies = together(service, *[("POST", path, {"text": "x"})] * 30, token="")
                assert {reply.status for reply in replies} == {201}
        assert not found
