"""Chromium between two origins: a page of one that the setting names reads, writes and follows; any other does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.contract.caching.kiosk import ARTICLES
from tests.support.running import PATIENCE, Service
from tests.system.caching.conftest import Tokens
from tests.system.oauth.browsing import Site, chromium

URL = f"/articles/{ARTICLES[2]}"
FETCH = """async ([url, options]) => {
  try {
    const answer = await fetch(url, options);
    return {status: answer.status, etag: answer.headers.get("etag"), body: await answer.text()};
  } catch (error) { return {failed: error.name} }
}"""
SOCKET = """url => new Promise(done => {
  const socket = new WebSocket(url, "graphql-transport-ws");
  socket.onopen = () => { done("open"); socket.close() };
  socket.onerror = () => done("failed");
})"""
STREAM = """url => new Promise(done => {
  const source = new EventSource(url);
  source.onopen = () => { done("open"); source.close() };
  source.onerror = () => { done("failed"); source.close() };
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page of the site that the service `listed` lets in."""
    found = browser.new_page()
    found.set_default_timeout(PATIENCE * 1000)
    found.goto(f"{site.url}/page")
    yield found
    found.close()


def fetch(page: Page, url: str, method: str = "GET", body: str | None = None, **headers: str) -> Any:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return page.evaluate(FETCH, [url, {"method": method, "headers": sent, **({"body": body} if body else {})}])


def test_a_page_of_an_origin_that_is_let_in(page: Page, listed: Service, tokens: Tokens) -> None:
    bearer = f"Bearer {tokens['admin']}"
    read = fetch(page, listed.url + URL, authorization=bearer)
    assert (read["status"], read["etag"][0]) == (200, '"'), "a header that browsers hide unless they are told"
    sent = {"authorization": bearer, "if_match": read["etag"], "content_type": "application/merge-patch+json"}
    changed = fetch(page, listed.url + URL, "PATCH", '{"title": "changed"}', **sent)
    assert (changed["status"], '"title":"changed"' in changed["body"]) == (200, True)
    assert changed["etag"] != read["etag"]
    again = fetch(page, listed.url + URL, "PATCH", '{"title": "lost"}', **sent)
    assert again["status"] == 412, "a page reads errors too"
    document = '{"query": "{ articles { title } }"}'
    assert fetch(page, f"{listed.url}/graphql", "POST", document, content_type="application/json")["status"] == 200
    assert fetch(page, listed.url + URL, authorization="Bearer nonsense")["status"] == 401
    assert page.evaluate(STREAM, f"{listed.url}/articles/changes") == "open"
    assert page.evaluate(SOCKET, f"ws://127.0.0.1:{listed.port}/graphql") == "open"
    assert fetch(page, f"{listed.url}/oauth/authorize") == {"failed": "TypeError"}


def tries(page: Page, service: Service, tokens: Tokens) -> None:
    """All that a page could try from outside fails, and leaves everything as it was."""
    bearer, before = f"Bearer {tokens['admin']}", service.get(f"{URL}?fields=title").body
    assert fetch(page, service.url + URL) == {"failed": "TypeError"}
    assert fetch(page, service.url + URL, authorization=bearer) == {"failed": "TypeError"}
    sent = {"authorization": bearer, "content_type": "application/json"}
    assert fetch(page, service.url + URL, "PATCH", '{"title": "evil"}', **sent) == {"failed": "TypeError"}
    assert fetch(page, f"{service.url}{URL}/like", "POST") == {"failed": "TypeError"}
    assert page.evaluate(STREAM, f"{service.url}/articles/changes") == "failed"
    assert page.evaluate(SOCKET, f"ws://127.0.0.1:{service.port}/graphql") == "failed"
    assert service.get(f"{URL}?fields=title").body == before


def test_a_page_of_another_origin(browser: Browser, listed: Service, tokens: Tokens) -> None:
    with Site() as other:
        page = browser.new_page()
        page.goto(f"{other.url}/page")
        views = listed.get(f"{URL}?fields=views").body
        tries(page, listed, tokens)
        assert listed.get(f"{URL}?fields=views").body == views, "no action was called"
        page.close()


def test_a_page_of_any_origin_where_it_is_off(page: Page, kiosk: Service, tokens: Tokens) -> None:
    tries(page, kiosk, tokens)
