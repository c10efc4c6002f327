"""Random sequences of nested writes, links, sets, upserts, changes by filters, references and restores: both styles on
both stores and a ledger that knows none of them agree about each error and about all rows.

`make test` makes 30 sequences of eight changes, `make prove` 3,000.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from diptych.engine import write as engine
from diptych.policy.cost import cost_of
from tests.support.effort import LONG, scaled
from tests.support.in_process import Answer, Service, in_process
from tests.support.oracle_nests import MODEL, Change, Drawer, Ledger, batch_of
from tests.support.running import Postgres

SEQUENCES = scaled(3_000, 12)
LENGTH = 8
TABLES = ("post_tags", "posts", "tags", "writers", "memos")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[list[Service]]:
    path = tmp_path_factory.mktemp("nests") / "rows.db"
    with (
        asyncio.Runner() as runner,
        in_process(MODEL, f"sqlite:///{path}", runner, max_roots=100) as one,
        in_process(MODEL, postgres.create(), runner, max_roots=100) as other,
    ):
        yield [one, other]


def test_sequences_agree_with_the_ledger(services: list[Service]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    seeds = Random().sample(range(10**9), SEQUENCES) if LONG else range(SEQUENCES)
    for seed in seeds:
        try:
            sequence(services, Random(seed), seen)
        except AssertionError as error:
            raise AssertionError(f"in the sequence {seed}: {error}") from error
    names = {name for name, _ in seen}
    assert {"link", "unlink", "set", "upsert", "bulk", "refs", "restore", "purge", "update Post"} <= names
    assert {"done", "CONFLICT", "NOT_FOUND", "FORBIDDEN"} <= {code for _, code in seen}
    done = sum(count for (_, code), count in seen.items() if code == "done")
    assert 0.5 < done / sum(seen.values()) < 0.98, seen


def test_a_price_that_forgets_rows_is_noticed(services: list[Service], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "cost_of_write", lambda *_: cost_of([], {}, 0))
    for service in services:
        service.forget()
    with pytest.raises(AssertionError, match=r"\d+ rows for \d+"):
        for seed in range(4):
            sequence(services[:1], Random(seed), Counter())
    for service in services:
        service.forget()


def sequence(services: list[Service], random: Random, seen: Counter[tuple[str, str]]) -> None:
    for service in services:
        clear(service)
    ledger = Ledger()
    drawer = Drawer(random, ledger)
    for step in range(LENGTH):
        ledger.all_seeing = step < 2 or random.random() < 0.3
        change = drawer.new_post() if step < 2 else drawer.change()
        before = ledger.state()
        wanted = ledger.make(change)
        written = rows_written(before, ledger.state())
        seen[change.name, wanted or "done"] += 1
        style = random.random() < 0.5
        for service in services:
            style = not style
            code, price = made(service, change, style, ledger.all_seeing, random)
            assert code == wanted, f"{change.name} {change.rest}: {code}, not {wanted}"
            assert price is None or price >= written, f"{change.name} {change.rest}: {written} rows for {price}"
            got = state(service)
            assert got == ledger.state(), f"{change.name} {change.rest}:\n{got}\n{ledger.state()}"


def clear(service: Service) -> None:
    for table in TABLES:
        service.execute(f"DELETE FROM {table}")


def rows_written(before: dict[str, Any], after: dict[str, Any]) -> int:
    """How many rows a change wrote; links that went with their post are not its own."""
    count = 0
    for name, rows in after.items():
        old = before[name]
        gone = [key for key in old if key not in rows and (name != "links" or key[0] in after["posts"])]
        count += len(gone) + sum(old.get(key) != row for key, row in rows.items())
    return count - len(after["trash"].keys() ^ before["trash"].keys())  # a row that moves is one row


def made(service: Service, change: Change, graphql: bool, root: bool, random: Random) -> tuple[str | None, int | None]:
    """Send a change in one of the styles; the code of its error, and its price if REST tells it."""
    token = service.token(None, *(["root"] if root else []))
    if graphql and change.graphql is not None:
        answer = service.query(*change.graphql, token=token)
        return (refused(answer) if "errors" in answer.json() else None), None
    method, url, body = change.rest
    if url != "/batch" and (graphql or random.random() < 0.2):  # GraphQL has no word for it
        method, url, body = batch_of(change.rest)
    answer = send(service, method, url, body, token)
    if answer.status >= 300:
        return refused(answer), None
    price = re.match(r"price=(\d+)", answer.headers.get("cost", ""))
    return None, int(price[1]) if price else None


def send(service: Service, method: str, url: str, body: Any, token: str) -> Answer:
    if body is None:
        return service.send(method, url, headers={"prefer": "cost"}, token=token)
    head = {"content-type": "application/json", "prefer": "cost"}
    return service.send(method, url, body=json.dumps(body).encode(), headers=head, token=token)


def state(service: Service) -> dict[str, Any]:
    """All rows, by a query of root."""
    token = service.token(None, "root")
    found = service.data(
        """{ writers(first: 100) { id name version }
             posts(first: 100) { id title size hidden locked writerId version }
             tags(first: 100) { id name note secret version }
             links: postTags(first: 100) { postId tagId position pinned }
             memos(first: 100) { id text } trash: memos(first: 100, deleted: ONLY) { id text } }""",
        token=token,
    )
    by_id = {name: {row.pop("id"): row for row in found[name]} for name in found if name != "links"}
    return {**by_id, "links": {(row.pop("postId"), row.pop("tagId")): row for row in found["links"]}}


def refused(answer: Answer) -> str:
    assert answer.code not in ("BAD_USER_INPUT", "BAD_REQUEST", "INTERNAL"), answer.body
    return answer.code
