"""The pages of a service that is mounted below a path: the cookie of a browser finds its way back to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from tests.support.running import NewDatabase
from tests.system.oauth.flow import PASSWORD, App

BACK = "http://127.0.0.1/back"
HOST = "http://127.0.0.1:8000"


@pytest.mark.parametrize("base_url", ["", f"{HOST}/api/v1"])
def test_people_sign_in_below_a_path(new_sqlite: NewDatabase, base_url: str) -> None:
    api = Diptych(model, config=Config(database=new_sqlite(), base_url=base_url))
    ids: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        handler = await api.start()
        await Accounts(api.store, handler.context.revoked).add("ann@example.org", PASSWORD)
        client, _secret = await Clients(api.store, handler.context.revoked).add("App", [BACK])
        ids.append(client.id)
        yield
        await api.stop()

    host = Starlette(routes=[Mount("/api/v1", app=api)], lifespan=lifespan)
    with TestClient(host, base_url=HOST) as browser:
        query = App(lambda *_: NotImplemented, ids[0], None, BACK).asks()
        page = browser.get(f"/api/v1/oauth/authorize?{query}").text
        token = page.partition('name="token" value="')[2].partition('"')[0]
        form = {"request": query, "token": token, "email": "ann@example.org", "password": PASSWORD}
        shown = browser.post("/api/v1/oauth/login", data=form)
        assert shown.status_code == 200
        assert "Allow App to act for you?" in shown.text
