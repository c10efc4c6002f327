"""Every golden case typed into one leaf of the page Request: the other leaf, the price, the rules and the rows.

The short form types a sample: the other text of every case, its price and its rules are those of `/console/api/twin`,
which `tests/contract/console/test_twin.py` tries with all of them.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Response, expect

from diptych.ask.nodes import Read, Watch
from diptych.config import Config
from diptych.explain.stages import Explanation
from diptych.serve.request_limits import request_limits
from tests.contract.console.test_twin import in_rest, plain, sent_of
from tests.contract.test_cases import FOLDER, MODELS, NAMES, WRITTEN, Case, rows_of
from tests.support.effort import sampled
from tests.support.in_process import in_process
from tests.support.running import PATIENCE, Client, NewDatabase, Service, running, token
from tests.system.console.opening import Console, console

FILES: dict[str, list[str]] = {
    "default": [],
    "shelf": ["tests.contract.http.shelf:model"],
    "vault": ["tests.contract.writes.vault:model"],
}
GRAPHQL, REST, VARIABLES = "GraphQL document", "REST request", "Variables as JSON"


class Stocked:
    """The services of the models of the cases, with their rows; and the cases."""

    def __init__(self, new_sqlite: NewDatabase, stack: ExitStack) -> None:
        databases = {name: new_sqlite() for name in MODELS}
        self.cases: dict[str, tuple[str, Case]] = {}
        filling = threading.Thread(target=self._fill, args=(databases,))  # a browser may have the loop of this one
        filling.start()
        filling.join()
        self._services = {
            name: stack.enter_context(running("dev", *file, database=databases[name], noise="INFO"))
            for name, file in FILES.items()
        }
        self._clients: dict[object, Client] = {}

    def _fill(self, databases: Mapping[str, str]) -> None:
        with asyncio.Runner() as runner, ExitStack() as stack:
            filled = {
                name: stack.enter_context(in_process(model, databases[name], runner, rows))
                for name, (model, rows) in MODELS.items()
            }
            for name in NAMES:
                model = tomllib.loads((FOLDER / f"{name}.toml").read_text().partition(WRITTEN)[0])["model"]
                self.cases[name] = model, Case.read(name, filled[model])

    def client(self, model: str, roles: tuple[str, ...] | None, user: str | None = None) -> Client:
        """Someone who asks a service."""
        service: Service = self._services[model]
        if roles is None:
            return Client(service.url)
        key = model, roles, user
        if key not in self._clients:
            self._clients[key] = service.signed_in(token(service.database, *roles, user=user, model=MODELS[model][0]))
        return self._clients[key]


@pytest.fixture(scope="module")
def stocked(new_sqlite: NewDatabase) -> Iterator[Stocked]:
    with ExitStack() as stack:
        yield Stocked(new_sqlite, stack)


def rest_text(case: Case) -> str:
    head = "".join(f"\n{name}: {value}" for name, value in case.headers.items())
    return f"{case.method} {case.url}{head}" + (f"\n\n{case.body}" if case.body else "")


def price(page: Console) -> str:
    return page.tab.locator(".price").inner_text().partition(" =")[0]


def write_graphql(page: Console, document: str, variables: Mapping[str, Any]) -> None:
    """Type a document with its variables, and wait until the other leaf has followed."""

    def whole(response: Response) -> bool:
        sent = response.request.post_data_json if response.url.endswith("/console/api/twin") else None
        return sent is not None and (sent.get("query"), sent.get("variables")) == (document, variables)

    with page.tab.expect_response(whole):
        page.write(GRAPHQL, document)
        if page.tab.get_by_role("button", name="Variables").get_attribute("aria-pressed") != "true":
            page.tab.get_by_role("button", name="Variables").click()
        page.write(VARIABLES, json.dumps(variables))
    settle(page)


def write_rest(page: Console, text: str) -> None:
    """Type a request, and wait until the other leaf has followed."""
    with page.tab.expect_response("**/console/api/twin"):
        page.write(REST, text)
    settle(page)


def shown_rules(page: Console) -> str:
    """The rules that decide, without the place below each."""
    rules = page.tab.get_by_role("region", name="Explanation").get_by_role("tabpanel")
    return plain([re.sub(r"^\S+\.py:\d+$", "", rules.inner_text(), flags=re.MULTILINE)])


def settle(page: Console) -> None:
    """Until what was answered is shown."""
    expect(page.tab.locator(".price b, .price.refused")).not_to_have_count(0)
    page.tab.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")


def answered(page: Console) -> Any:
    """The rows of the answer to what is written."""
    with page.tab.expect_response(lambda response: "/console/" not in response.url):
        page.tab.keyboard.press("Control+Enter")
    answer = page.tab.get_by_role("region", name="Answer")
    answer.get_by_role("tab", name="Raw").click()
    body = json.loads(answer.locator("pre").inner_text())
    assert "errors" not in body, body
    return rows_of(next(iter(body["data"].values())) if isinstance(body.get("data"), dict) else body)


def leaf(page: Console, label: str) -> str:
    return page.editor(label).inner_text().replace("\u200b", "").strip()


def follow(page: Console, case: Case) -> None:
    """Type a case into either leaf: the other has the same wish, at the same price, with the same rows."""
    reads = isinstance(case.ask(), Read)
    write_graphql(page, case.document, case.variables)
    expect(page.editor(REST)).to_contain_text(case.url.partition("?")[0].rsplit("/", 1)[0])
    followed, cost = leaf(page, REST), price(page)
    assert followed.splitlines()[0].startswith(f"{case.method} /"), followed
    by_graphql = answered(page) if reads else None
    write_rest(page, rest_text(case))
    expect(page.editor(GRAPHQL)).not_to_contain_text("# ")
    assert price(page) == cost
    assert not reads or answered(page) == by_graphql
    write_rest(page, followed)  # what followed is a request itself
    expect(page.editor(GRAPHQL)).not_to_contain_text("# ")
    assert price(page) == cost
    assert not reads or answered(page) == by_graphql


def test_a_case_in_one_leaf_is_the_same_wish_in_the_other(stocked: Stocked, browser: Browser) -> None:
    viewers = {(model, case.roles, case.user) for model, case in stocked.cases.values()}
    for model, roles, user in sampled(sorted(viewers, key=repr), 3):
        with console(browser, stocked.client(model, roles, user)) as page:
            page.goto("request") if roles is not None else look_around(page)
            asked = (MODELS[model][0], roles, user)
            own = [case for _, case in stocked.cases.values() if (case.model, case.roles, case.user) == asked]
            for case in sampled(own, 12):
                follow(page, case)


def look_around(page: Console) -> None:
    """Without an account."""
    page.tab.goto(f"{page.url}/console/request")
    page.tab.get_by_role("button", name="Look around").click()
    page.tab.wait_for_selector("main h1")


def test_price_and_rules_of_every_case_are_those_of_explain(stocked: Stocked, browser: Browser) -> None:
    limits = request_limits(Config())
    with console(browser, stocked.client("default", ("admin",))) as page:
        page.goto("request")
        for case in sampled([case for model, case in stocked.cases.values() if model == "default"], 12):
            write_rest(page, rest_text(case))
            explained = Explanation(case.model, case.model.viewer(frozenset({"admin"})), limits, sent_of(in_rest(case)))
            stages, _, expected = plain(explained.lines()).partition(" Rules ")
            end = time.monotonic() + PATIENCE
            while (shown := shown_rules(page)) != expected and time.monotonic() < end:  # asked for after the leaf
                page.tab.wait_for_timeout(50)
            assert shown == expected, case.file.name
            if explained.refusal is not None:
                assert stages.startswith(f"Refused {price(page)}"), case.file.name
                continue
            assert isinstance(case.ask(), Watch) or price(page).partition(" · ")[2] in stages, case.file.name
