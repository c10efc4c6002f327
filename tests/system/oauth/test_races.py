"""Many at once with one refresh token, or one code: one succeeds, and then all that came of the grant ends.

Within one process, and over two that share a database.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest

from diptych.api.reply import Reply
from diptych.identity.records import REFRESHES, hashed
from diptych.serve.http.request import Request
from tests.support.effort import scaled
from tests.support.running import PATIENCE, Client
from tests.system.oauth.conftest import Shared
from tests.system.oauth.flow import FORM, VERIFIER, encoded, forms
from tests.system.oauth.stage import HERE, Stage
from tests.system.oauth.test_codes import refused

REFRESHERS = scaled(1_000)
EXCHANGERS = 64
Result = tuple[int, bytes]


def many(
    stage: Stage, path: str, form: dict[str, Any], count: int, cookie: str = ""
) -> list[Coroutine[Any, Any, Reply]]:
    """The same form, so many times, to the handler of one process."""
    body = encoded(form).encode()
    headers = {b"content-type": FORM.encode(), b"cookie": cookie.encode()}

    async def read(most: int) -> bytes:
        return body

    return [stage.service.handler.handle(Request("POST", path, "", headers, read)) for _ in range(count)]


def at_once(stage: Stage, form: dict[str, Any], count: int) -> list[Result]:
    """The same request for tokens, so many times."""

    async def work() -> list[Result]:
        replies = await asyncio.gather(*many(stage, "/oauth/token", form, count))
        return [(reply.status, reply.body) for reply in replies]

    return stage.run(work())


def over_sockets(services: Sequence[Client], form: dict[str, Any], count: int) -> list[Result]:
    """The same form, so many times, to several processes in turn, each on a connection of its own."""
    body = encoded(form).encode()
    head = f"POST /oauth/token HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: {FORM}\r\ncontent-length: {len(body)}\r\n\r\n"

    async def send(port: int) -> Result:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head.encode() + body)
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
        finally:
            writer.close()
            await writer.wait_closed()
        top, _, found = answer.partition(b"\r\n\r\n")
        return int(top.split(b" ", 2)[1]), found

    async def work() -> list[Result]:
        return await asyncio.gather(*(send(services[number % len(services)].port) for number in range(count)))

    return asyncio.run(work())


def refresh_form(stage: Stage, token: str) -> dict[str, Any]:
    return {"grant_type": "refresh_token", "client_id": stage.app.id, "refresh_token": token}


def code_form(stage: Stage, code: str) -> dict[str, Any]:
    more = {"code": code, "redirect_uri": stage.app.redirect, "code_verifier": VERIFIER}
    return {"grant_type": "authorization_code", "client_id": stage.app.id, **more}


def the_one(results: Sequence[Result]) -> dict[str, Any]:
    """What the one who succeeded has; all others were refused alike."""
    assert Counter(status for status, _ in results) == {200: 1, 400: len(results) - 1}, Counter(results).most_common(5)
    assert len({body for status, body in results if status == 400}) == 1
    (body,) = (body for status, body in results if status == 200)
    return dict(json.loads(body))


def ended(stage: Stage, *tokens: dict[str, Any]) -> None:
    """Nothing of the grant holds."""
    for token in tokens:
        assert not stage.holds(token["access_token"])
        refused(stage.app.refresh(token["refresh_token"]), "invalid_grant")


# one process


def test_rotation_race(stage: Stage) -> None:
    first, other = stage.tokens(), stage.tokens()
    second = the_one(at_once(stage, refresh_form(stage, first["refresh_token"]), REFRESHERS))
    ended(stage, first, second)
    assert stage.holds(other["access_token"])


def test_code_race(stage: Stage) -> None:
    code, other = stage.browser.decide(stage.app)["code"], stage.tokens()
    ended(stage, the_one(at_once(stage, code_form(stage, code), EXCHANGERS)))
    assert stage.holds(other["access_token"])


class Gate:
    """Holds back who has found something until another has found it too: neither has changed anything by then."""

    def __init__(self, find: Callable[[str], Awaitable[Any]]) -> None:
        self.find = find
        self.waiting = 2
        self.open = asyncio.Event()

    async def __call__(self, text: str) -> Any:
        found = await self.find(text)
        self.waiting -= 1
        if self.waiting <= 0:
            self.open.set()
        await self.open.wait()
        return found


def test_rotation_race_of_two_who_come_at_the_same_moment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second learns by the compare-and-swap alone that it is not the first, and ends the grant even so."""
    grant_store = stage.service.handler.oauth.oauth.grant_store
    first = stage.tokens()
    with monkeypatch.context() as held:
        held.setattr(grant_store, "refresh", Gate(grant_store.refresh))
        second = the_one(at_once(stage, refresh_form(stage, first["refresh_token"]), 2))
    assert not stage.holds(second["access_token"]) and not stage.holds(first["access_token"])
    refused(stage.app.refresh(second["refresh_token"]), "invalid_grant")


def test_code_race_of_two_who_come_at_the_same_moment(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    grant_store = stage.service.handler.oauth.oauth.grant_store
    code = stage.browser.decide(stage.app)["code"]
    with monkeypatch.context() as held:
        held.setattr(grant_store, "code", Gate(grant_store.code))
        found = the_one(at_once(stage, code_form(stage, code), 2))
    assert not stage.holds(found["access_token"])
    refused(stage.app.refresh(found["refresh_token"]), "invalid_grant")


def test_a_refresh_beside_a_revocation_leaves_nothing_that_holds(stage: Stage) -> None:
    """Whichever comes first."""
    for _ in range(20):
        first = stage.tokens()
        form = refresh_form(stage, first["refresh_token"])

        async def both(form: dict[str, Any] = form, token: str = first["refresh_token"]) -> Any:
            oauth = stage.service.handler.oauth.oauth
            revoke = {"client_id": stage.app.id, "token": token}
            return await asyncio.gather(
                oauth.token({}, list(form.items()), HERE), oauth.revoke({}, list(revoke.items()), HERE)
            )

        refreshed, revoked = stage.run(both())
        assert revoked.status == 200
        ended(stage, first, *([refreshed.body] if refreshed.status == 200 else []))


def test_no_code_comes_behind_a_change_of_the_password(stage: Stage) -> None:
    """Someone with a stolen cookie allows, again and again, while its owner changes the password."""
    for _ in range(5):
        account = stage.add_account()
        browser = stage.signed_in(account)
        form = {**forms(browser.authorize(stage.app))["authorize"], "decision": "allow"}
        ((name, value),) = [each for each in browser.cookies.items() if not each[0].endswith("-known")]
        stolen = many(stage, "/oauth/authorize", form, 30, f"{name}={value}")

        async def work(stolen: list[Coroutine[Any, Any, Reply]] = stolen, email: str = account.email) -> list[Reply]:
            changing = asyncio.create_task(stage.accounts.set_password(email, "another horse"))
            replies = await asyncio.gather(*stolen)
            await changing
            return replies

        for reply in stage.run(work()):
            if found := re.search(rb"[?&]code=(\w+)", dict(reply.headers).get(b"location", b"")):
                refused(stage.app.exchange(found[1].decode()), "invalid_grant")


# two processes


def test_rotation_race_of_two_processes(shared: Shared) -> None:
    stage, services = shared
    first = stage.tokens()
    second = the_one(over_sockets(services, refresh_form(stage, first["refresh_token"]), REFRESHERS))
    stage.run(stage.service.handler.context.revoked.poll())
    ended(stage, first, second)


def test_code_race_of_two_processes(shared: Shared) -> None:
    stage, services = shared
    code = stage.browser.decide(stage.app)["code"]
    found = the_one(over_sockets(services, code_form(stage, code), EXCHANGERS))
    stage.run(stage.service.handler.context.revoked.poll())
    ended(stage, found)


def test_a_used_token_is_kept_as_used(stage: Stage) -> None:
    """What a race leaves behind: one token that was used, one new one."""
    token = stage.tokens()["refresh_token"]
    found = the_one(at_once(stage, refresh_form(stage, token), 20))
    kept = {each.hash: each for each in stage.run(REFRESHES.all(stage.service.app.store, "hash"))}
    assert kept[hashed(token)].used_at is not None
    assert len({each.hash for each in kept.values() if each.grant_id == kept[hashed(token)].grant_id}) == 2
    assert hashed(found["refresh_token"]) in kept
