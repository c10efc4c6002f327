"""`diptych login`: someone signs in at a terminal, in a browser elsewhere."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

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


def test_it_goes_on_while_the_service_starts_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A poll that nobody answers, or a proxy for it, is sent again, more slowly."""
    begun = {"device_code": "x", "user_code": "BCDF-GHJK", "verification_uri": "/", "expires_in": 600, "interval": 5}
    polls: list[tuple[int, object]] = [(0, None), (503, {"code": "UNAVAILABLE"}), (502, "<html>")]
    polls += [(400, {"error": "authorization_pending"}), (200, {"access_token": "token"})]
    waited: list[float] = []

    class Flaky(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]  # of an HTTPServer
            ends = {"device_authorization_endpoint": f"{here}/device", "token_endpoint": f"{here}/token"}
            self.answer(200, {"issuer": here, **ends})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(*((200, begun) if self.path == "/device" else polls.pop(0)))

        def answer(self, status: int, body: object) -> None:
            self.close_connection = True
            if status:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        def log_message(self, *args: object) -> None:
            """Nothing."""

    monkeypatch.setattr("diptych.cli.login.time.sleep", waited.append)
    with HTTPServer(("127.0.0.1", 0), Flaky) as server, ThreadPoolExecutor(1) as threads:
        threads.submit(server.serve_forever)
        try:
            login.main([f"http://127.0.0.1:{server.server_port}", "--client", "tool"], standalone_mode=False)
        finally:
            server.shutdown()
    assert capsys.readouterr().out.strip() == "token"
    assert waited == [5, 10, 15, 20, 20]
