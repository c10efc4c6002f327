"""Cursors have a bound, whatever they are sorted by: long texts are cut, and pages are exact all the same."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest

from diptych import BigInt, Digits, Model, Resource, allow, grant, not_
from diptych.ask.cursor import CUT, Cut, key_digest
from diptych.model.declare.roles import Viewer
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

LITERAL = 4_096
"""Bytes that a string literal of GraphQL may have."""
STEM = "\x01" * CUT
"""What takes most bytes in JSON."""
TEXTS: list[str | None] = [
    STEM + tail for tail in ("", "a" * 200_000, "a" * 199_999 + "b", "b", "\U0010ffff", "\U0010ffff" * 2, "c")
]
TEXTS += [None, "", "a", "\x01", STEM[:-1], STEM[:-1] + "\x02", STEM[:-1] + "\x02" * 9, "\U0010ffff" * 300, "z" * CUT]


class Note(Resource, ids="integer"):
    """Texts of any length, nullable and not, and one of every other type."""

    a: str
    b: str | None = None
    c: str = ""
    d: str = ""
    e: str = ""
    big: BigInt = 0
    money: Annotated[Decimal, Digits(18, 6)] = Decimal(0)
    real: float = 0.0
    day: date = date(2026, 1, 1)
    moment: datetime | None = None
    hidden: bool = False

    access = (grant("create", "update", "delete"),)

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return not_(self.hidden)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(Model(Note), new_database(), runner) as found:
        for number, text in enumerate(TEXTS):
            row = {
                "a": text or "",
                "b": text,
                "c": STEM * 3,
                "d": STEM * 4,
                "e": (text or "")[::-1],
                "big": str(2**63 - 1),
                "money": "-123456789012.123456",
                "real": -1.2345678901234567e-300,
                "moment": None if number % 2 else "9999-12-31T23:59:59.999999Z",
            }
            assert send(found, "POST", "/notes", row) == 201
        yield found


def send(service: Service, method: str, url: str, body: Any = None) -> int:
    sent = b"" if body is None else json.dumps(body).encode()
    return service.send(method, url, body=sent, headers={"content-type": "application/json"}).status


def ids(rows: Sequence[Any]) -> list[int]:
    return [int(row["id"]) for row in rows]


def in_order(name: str, descending: bool) -> list[int]:
    """The ids, by one of the texts: nulls last in both directions, equals by their ids."""
    known: dict[str, list[str | None]] = {
        "a": [text or "" for text in TEXTS],
        "b": TEXTS,
        "e": [(text or "")[::-1] for text in TEXTS],
    }
    column = known[name]
    texts = sorted({text for text in column if text is not None}, reverse=descending)
    rank: dict[str | None, int] = {text: place for place, text in enumerate(texts)}
    return sorted(range(1, len(TEXTS) + 1), key=lambda each: (rank.get(column[each - 1], len(texts)), each))


def rest(service: Service, sort: str, size: int, way: str) -> list[int]:
    """All ids by following Link, in pages: forward, or backward from the end."""
    found: list[int] = []
    url: str | None = f"/notes?fields=id&sort={sort}&{'first' if way == 'next' else 'last'}={size}"
    while url and len(found) <= len(TEXTS):
        answer = service.get(url)
        assert answer.status == 200, answer.body
        page = ids(answer.json()["data"])
        found = found + page if way == "next" else page + found
        head = sum(len(name) + len(value) + 4 for name, value in answer.headers.items())
        assert head < 14_000 and len(answer.json()["page"]["next"] or "") < LITERAL
        match = re.search(rf'<([^>]*)>; rel="{way}"', answer.headers.get("link", ""))
        url = match[1] if match else None
        assert bool(url) == bool(answer.json()["page"]["next" if way == "next" else "previous"])
    return found


def query(service: Service, order: str, size: int) -> list[int]:
    """All ids by GraphQL, with the cursor as a literal of the document."""
    found: list[int] = []
    after = ""
    while len(found) <= len(TEXTS):
        page = service.data(
            f"{{ notesConnection(first: {size}, orderBy: [{order}]{after}) "
            "{ edges { cursor } nodes { id } pageInfo { hasNextPage endCursor } } }"
        )["notesConnection"]
        found += ids(page["nodes"])
        assert page["edges"][-1]["cursor"] == page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            return found
        after = f', after: "{page["pageInfo"]["endCursor"]}"'
    return found


@pytest.mark.parametrize("name", ["a", "b", "e"])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_by_a_long_text_are_exact_in_both_styles(service: Service, name: str, descending: bool) -> None:
    expected = in_order(name, descending)
    sort = "-" * descending + name
    for size in (1, 4):
        assert rest(service, sort, size, "next") == expected
        assert rest(service, sort, size, "prev") == expected
    assert query(service, f"{{{name}: {'DESC' if descending else 'ASC'}}}", 3) == expected


def test_five_keys_of_the_longest_values_make_a_cursor_that_any_head_and_literal_takes(service: Service) -> None:
    expected = in_order("b", True)
    assert rest(service, "c,d,-b,e,a", 1, "next") == expected
    assert query(service, "{c: ASC}, {d: DESC}, {b: DESC}, {e: ASC}, {a: ASC}", 1) == expected
    for name in ("big", "money", "real", "day", "-moment", "hidden", "version", "createdAt", "updatedAt", "id"):
        assert sorted(rest(service, name, 5, "next")) == list(range(1, len(TEXTS) + 1))


def test_a_link_that_would_be_too_long_is_left_to_the_body(service: Service) -> None:
    for length, linked in ((1_000, True), (4_000, False)):
        url = "/notes?first=1&fields=id&" + "&".join(f"{name}[ne]={name * length}" for name in "bcde")
        answer = service.get(url)
        assert answer.status == 200 and ("link" in answer.headers) is linked
        after = answer.json()["page"]["next"]
        assert service.get(f"{url}&after={after}").status == 200


# when the row of a cursor has gone


@pytest.mark.parametrize("sort", ["a", "-a"])
@pytest.mark.parametrize("change", ["delete", "patch", "hide"])
def test_no_row_is_lost_when_the_row_of_a_cursor_has_gone(
    runner: asyncio.Runner, new_database: NewDatabase, sort: str, change: str
) -> None:
    with in_process(Model(Note), new_database(), runner) as service:
        texts = [STEM + tail for tail in "abcdef"] + ["\x01", "\x02", "~" * 200]
        for text in texts:
            assert send(service, "POST", "/notes", {"a": text}) == 201
        first = service.get(f"/notes?fields=id&first=4&sort={sort}").json()
        seen = ids(first["data"])
        last = seen[-1]
        match change:
            case "delete":
                assert send(service, "DELETE", f"/notes/{last}") == 204
            case "patch":
                assert send(service, "PATCH", f"/notes/{last}", {"a": STEM + "changed"}) == 200
            case "hide":
                service.execute(f"UPDATE notes SET hidden = {'true' if is_postgres(service) else 1} WHERE id = {last}")
        url = f"/notes?fields=id&first=100&sort={sort}&after={first['page']['next']}"
        answer = service.get(url)
        rest_of = ids(answer.json()["data"])
        everyone = {each for each in range(1, len(texts) + 1) if change == "patch" or each != last}
        assert everyone <= {*seen, *rest_of}
        assert rest_of == [
            each for each in ids(service.rows(f"/notes?fields=id&first=100&sort={sort}")) if each in rest_of
        ]
        if change == "hide":  # what becomes of a row that cannot be seen alters nothing
            service.execute(f"UPDATE notes SET a = 'other' WHERE id = {last}")
            assert ids(service.get(url).json()["data"]) == rest_of


def is_postgres(service: Service) -> bool:
    return service.app.store.dialect.name == "postgres"


@pytest.mark.parametrize("text", ["a", "\ud7ff", "a\U0010ffff", "\U0010ffff", "\x7f" * CUT])
def test_the_ceiling_of_a_beginning_is_after_all_that_begin_so(text: str) -> None:
    cut = Cut(text, "")
    assert text + "z" < cut.ceiling and cut.ceiling.encode()
    assert text.startswith("\U0010ffff") or not cut.ceiling.startswith(text)
    assert key_digest(b"a") == key_digest(b"a") != key_digest(b"b") and key_digest(None) is None
