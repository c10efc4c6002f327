"""The console below a path: mounted in another application (`root_path`), and with `--base-url`; signing in included."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from diptych import Diptych
from diptych.config import Config
from diptych.demo.data import insert_sample
from diptych.demo.model import model
from diptych.identity.accounts import Accounts
from tests.support.running import PATIENCE, Client, NewDatabase, free_port, served
from tests.system.console.opening import console

EMAIL, PASSWORD = "boss@example.org", "correct horse battery"


@contextmanager
def mounted(database: str, path: str) -> Iterator[str]:
    """A service mounted in a Starlette application, on a port of this machine; gives its address."""
    api = Diptych(model, config=Config(database=database, console=True))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        handler = await api.start()
        await insert_sample(api.store, api.model)
        await Accounts(api.store, handler.context.revoked).add(EMAIL, PASSWORD, roles=("admin",))
        yield
        await api.stop()

    port = free_port()
    app = Starlette(routes=[Mount(path, app=api)], lifespan=lifespan)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    end = time.monotonic() + PATIENCE
    while not server.started and time.monotonic() < end:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}{path}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def journey(browser: Browser, address: str) -> None:
    """Sign in, go from page to page, ask in both styles, read a row, and reload."""
    with console(browser, Client(address)) as page:
        page.tab.goto(f"{address}/console/data/orders")
        page.tab.get_by_role("button", name="Sign in", exact=True).click()
        page.tab.locator("input[name=email]").fill(EMAIL)
        page.tab.locator("input[type=password]").fill(PASSWORD)
        page.tab.keyboard.press("Enter")
        expect(page.tab.locator("tbody tr").first).to_be_visible()
        assert page.tab.url == f"{address}/console/data/orders"
        page.tab.locator("tbody a").first.click()
        expect(page.tab.get_by_role("tab", name="History")).to_be_visible()
        page.tab.get_by_role("navigation").get_by_role("link", name="Request").click()
        page.write("GraphQL document", "{ users(first: 2) { name } }")
        expect(page.editor("REST request")).to_contain_text("GET /users")
        page.tab.keyboard.press("Control+Enter")
        expect(page.tab.get_by_role("region", name="Answer")).to_contain_text("200")
        page.tab.reload()
        expect(page.tab.get_by_role("heading", name="Request", level=1)).to_be_visible()
        assert page.tab.url == f"{address}/console/request"


def test_it_works_mounted_in_another_application(new_sqlite: NewDatabase, browser: Browser) -> None:
    with mounted(new_sqlite(), "/api/v1") as address:
        journey(browser, address)


def test_it_works_below_the_path_of_base_url(new_sqlite: NewDatabase, browser: Browser) -> None:
    database, port = new_sqlite(), free_port()
    address = f"http://127.0.0.1:{port}/shop"
    with served(database, "--console", "--sample", "--base-url", address, port=port):
        words = ("account", "add", EMAIL, "--role", "admin", "--password-stdin", "--database", database)
        subprocess.run([sys.executable, "-m", "diptych", *words], input=f"{PASSWORD}\n", text=True, check=True)
        journey(browser, address)
