"""`diptych login`: someone signs in at a terminal, in a browser elsewhere."""

from __future__ import annotations

import re

import pytest

from diptych.cli.login import login
from diptych.cli.records import run_on_store
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from tests.support.running import NewDatabase, served
from tests.system.oauth.flow import PASSWORD, Browser, forms

EMAIL = "ann@example.org"


async def prepare(store: Store, revoked: RevocationList) -> tuple[str, str]:
    """An account, a client with the device flow and one without."""
    await Accounts(store, revoked).add(EMAIL, PASSWORD, ("staff",))
    clients = Clients(store, revoked)
    tool, other = await clients.add("Tool", device=True), await clients.add("App", ["https://app.example/"])
    return tool[0].id, other[0].id


def test_it_prints_a_token_when_the_code_was_typed(
    new_sqlite: NewDatabase, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    database, waited = new_sqlite(), []
    with served(database) as service:
        tool, other = run_on_store({"database": database, "model": None}, prepare)
        browser = Browser(service.request)
        form = forms(browser.get("/oauth/device"))["login"]
        browser.post("/oauth/login", {**form, "email": EMAIL, "password": PASSWORD})

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == 2:
                code = re.search(r"type the code (\S+)", capsys.readouterr().err)
                assert code is not None
                page = browser.submit(browser.get("/oauth/device"), "device", user_code=code[1])
                browser.post("/oauth/device", {**forms(page)["device"], "decision": "allow"})

        monkeypatch.setattr("diptych.cli.login.time.sleep", sleep)
        login.main([service.url, "--client", tool, "--scope", "read"], standalone_mode=False)
        token = capsys.readouterr().out.strip()
        assert waited == [5, 5]
        assert service.signed_in(token).get("/orders?first=1").status == 200
        for arguments, said in (
            ([service.url, "--client", other], "The client was not added with the device flow"),
            ([service.url, "--client", tool, "--scope", "x"], "The service refuses"),
            (
                [service.url.replace("127.0.0.1", "localhost") + "/x", "--client", tool],
                "does not answer|says that it is",
            ),
            (["http://example.org", "--client", tool], "no https address"),
            (["http://127.0.0.1:1", "--client", tool], "cannot be reached"),
        ):
            with pytest.raises(StartError, match=said):
                login.main(arguments, standalone_mode=False)
