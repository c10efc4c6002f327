"""Grants move along: a refresh token that the old database cannot use any more is good in the new one."""

from __future__ import annotations

import asyncio

from diptych.db.postgres.store import PostgresStore
from diptych.demo.model import model
from diptych.move.postgres import PostgresSide
from diptych.move.runner import MoveRun
from diptych.move.side import Side
from diptych.move.sqlite import SqliteSide
from tests.support.in_process import in_process
from tests.support.running import NewDatabase
from tests.system.oauth.stage import HERE, staged


def side_of(database: str) -> Side:
    if database.startswith("sqlite"):
        return SqliteSide(database.removeprefix("sqlite:///"))
    return PostgresSide(PostgresStore(database))


def test_a_refresh_is_unavailable_until_the_switch_and_good_after_it(
    runner: asyncio.Runner, new_database: NewDatabase
) -> None:
    source, target = new_database(), new_database()

    async def move() -> None:
        here, there = side_of(source), side_of(target)
        await here.open(model)
        await there.open(model)
        await MoveRun(model, here, there, lambda label, done, total: None).run(switch=True)
        await here.close()
        await there.close()

    with staged(source, runner) as stage:
        token = stage.tokens()
        runner.run(move())
        refused = stage.app.refresh(token["refresh_token"])
        assert refused.status == 503
        assert stage.holds(token["access_token"])
        app = stage.app
    with in_process(model, target, runner, base_url=HERE) as service:
        there = app.at(lambda method, url, headers, body=b"": service.send(method, url, headers=headers, body=body))
        answer = there.refresh(token["refresh_token"])
        assert answer.status == 200, answer.body
        assert there.refresh(token["refresh_token"]).json()["error"] == "invalid_grant"
