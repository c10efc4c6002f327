"""One issuer everywhere: a database remembers the address that it was given first, and all that names it agrees."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from diptych.config import Config
from diptych.demo.model import model
from diptych.errors import StartError
from diptych.identity.issuer import remembered_issuer, set_issuer, settled_issuer
from diptych.identity.signed import parse_token
from diptych.identity.tokens import load_tokens
from diptych.serve.app import Diptych
from diptych.setting_parsers import Issuer
from tests.contract.identity.desk import Desk, NewDesk
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

HERE, THERE = "https://api.example.org", "https://new.example.org/v1"


def claims(token: str) -> Any:
    return parse_token(token).claims


def test_the_first_address_is_remembered_and_later_ones_must_be_the_same(new_desk: NewDesk) -> None:
    one, two = new_desk(), new_desk()
    assert one.run(settled_issuer(one.store, "")) == ""
    assert one.run(settled_issuer(one.store, HERE)) == HERE
    assert two.run(settled_issuer(two.store, "")) == two.run(settled_issuer(two.store, HERE)) == HERE
    with pytest.raises(StartError, match=f"is {HERE}, and base_url is {THERE}.*diptych issuer set {THERE}"):
        two.run(settled_issuer(two.store, THERE))
    assert one.run(remembered_issuer(one.store)) == HERE


def test_it_is_changed_on_purpose(one: Desk) -> None:
    assert one.run(set_issuer(one.store, HERE)) == ""
    assert one.run(set_issuer(one.store, THERE)) == HERE
    assert one.run(settled_issuer(one.store, "")) == THERE


def test_of_several_that_start_at_once_one_wins_and_the_others_are_told(one: Desk) -> None:
    async def start() -> list[Any]:
        given = [f"https://n{number}.example.org" for number in range(6)]
        return await asyncio.gather(*(settled_issuer(one.store, each) for each in given), return_exceptions=True)

    found = one.run(start())
    assert [each for each in found if isinstance(each, str)] == [one.run(remembered_issuer(one.store))]
    assert all(isinstance(each, str | StartError) for each in found)


def test_tokens_of_the_command_line_need_no_address_once_it_is_known(one: Desk) -> None:
    assert claims(one.run(load_tokens(one.store)).make(None, (), None))["iss"] == "diptych"
    one.run(load_tokens(one.store, HERE))
    found = claims(one.run(load_tokens(one.store)).make(None, (), None))
    assert (found["iss"], found["aud"]) == (HERE, [HERE, "diptych"])


def test_the_moment_of_issue_is_a_whole_number(one: Desk) -> None:
    found = claims(one.run(load_tokens(one.store)).make(None, (), None))
    assert type(found["iat"]) is type(found["exp"]) is int
    assert found["iat_ms"] // 1000 == found["iat"]


def started(database: str, runner: asyncio.Runner, **settings: Any) -> Service:
    return Service(Diptych(model, config=Config(database=database, **settings)), runner)


def test_a_later_start_knows_the_address_with_its_path(new_sqlite: NewDatabase, runner: asyncio.Runner) -> None:
    database = new_sqlite()
    with in_process(model, database, runner, base_url=THERE) as service:
        token = service.token(None, "admin")
    service = started(database, runner)
    try:
        assert service.get("/.well-known/oauth-authorization-server").json()["issuer"] == THERE
        assert service.get("/users?first=1", token=token).status == 200
        found = service.send("GET", "/openapi.json", token=token).json()
        assert found["servers"] == [{"url": THERE}]
    finally:
        runner.run(service.app.stop())


def test_another_issuer_cannot_be_this_service_itself(new_sqlite: NewDatabase, runner: asyncio.Runner) -> None:
    database = new_sqlite()
    with in_process(model, database, runner, base_url=HERE):
        pass
    with pytest.raises(StartError, match="this service itself"):
        started(database, runner, issuers=(Issuer(HERE, "x"),))


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]"])
def test_without_an_address_tokens_name_the_one_that_was_asked(new_desk: NewDesk, shop: Service, host: str) -> None:
    """As the metadata does, so that a client that compares them is content."""
    from_desk = shop.token(None, "admin")
    tokens = shop.handler.context.tokens
    asked = tokens.make(None, ["admin"], None, issuer=f"http://{host}")
    for token in (from_desk, asked):
        assert shop.get("/users?first=1", token=token).status == 200
    for wrong in (f"https://{host}", "http://evil.example", "http://127.0.0.1.evil.example", "http://127.0.0.1@evil"):
        forged = tokens.make(None, ["admin"], None, issuer=wrong)
        assert shop.get("/users?first=1", token=forged).status == 401
    metadata = shop.get("/.well-known/oauth-authorization-server", headers={"host": host})
    assert json.loads(metadata.body)["issuer"] == claims(asked)["iss"]
