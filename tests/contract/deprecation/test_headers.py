"""A request that uses what is deprecated is answered with the headers of RFC 9745 and RFC 8594, and counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.usage import UsageRow, all_usage
from diptych.testing import Api, serve
from tests.contract.deprecation.diary import SOURCE, model
from tests.contract.formats.test_http import send
from tests.support.model_files import model_of
from tests.support.running import NewDatabase

OF_TITLE = {
    "deprecation": "@1767225600",
    "sunset": "Thu, 31 Dec 2026 00:00:00 GMT",
    "link": '<https://example.com/title>; rel="deprecation"',
}
OF_RANK = {"deprecation": "@1769904000", "sunset": "Wed, 30 Jun 2027 00:00:00 GMT"}
OF_NOTES = {"deprecation": "@1780272000", "sunset": "Wed, 30 Sep 2026 00:00:00 GMT"}


@pytest.fixture
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(model(), database=new_database()) as api:
        yield api


def stored_usage(url: str) -> list[UsageRow]:
    """The counts that a database has."""

    async def work() -> list[UsageRow]:
        store = connect(Config(database=url))
        await store.open(model())
        try:
            return await all_usage(store)
        finally:
            await store.close()

    return asyncio.run(work())


def _headers(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in ("deprecation", "sunset", "link")}


def _where(**conditions: Any) -> str:
    return json.dumps(conditions)


def test_what_a_request_names_is_announced(api: Api) -> None:
    client = api.anonymous
    page = client.post("/pages", {"headline": "one"}).expect(201).json()["id"]
    reads: list[tuple[str, str, dict[str, str]]] = [
        ("/pages?fields=title", "{ pages { title } }", OF_TITLE),
        ("/pages?fields=headline", "{ pages { headline } }", {}),
        ("/pages", "{ pages { id headline mood } }", {}),
        ("/pages?fields=*", "{ pages { id } }", {}),
        (f"/pages/{page}", f'{{ page(id: "{page}") {{ headline }} }}', {}),
        (f"/pages/{page}?fields=rank", f'{{ page(id: "{page}") {{ rank }} }}', OF_RANK),
        ("/pages?fields=rank,title", "{ pages { rank title } }", OF_TITLE),
        ("/pages?title=x", '{ pages(where: {title: {eq: "x"}}) { id } }', OF_TITLE),
        ("/pages?sort=-title", "{ pages(orderBy: [{title: DESC}]) { id } }", OF_TITLE),
        (
            f"/authors?where={_where(pages={'some': {'title': {'eq': 'x'}}})}".replace(" ", "%20").replace('"', "%22"),
            '{ authors(where: {pages: {some: {title: {eq: "x"}}}}) { id } }',
            OF_TITLE,
        ),
        ("/pages/summary?fields=rank(sum)", "{ pagesSummary { rank { sum } } }", OF_RANK),
        ("/pages/groups?by=rank", "{ pagesGroups(by: [{rank: VALUE}]) { count } }", OF_RANK),
        ("/notes", "{ notes { id } }", OF_NOTES),
        ("/pages?fields=notes(text)", "{ pages { notes { text } } }", OF_NOTES),
        (f"/pages/{page}/notes", f'{{ page(id: "{page}") {{ notes {{ id }} }} }}', OF_NOTES),
        ("/pages?fields=authorId", "{ pages { authorId } }", {"deprecation": "@1775001600"}),
        ("/pages?fields=author(name)", "{ pages { author { name } } }", {"deprecation": "@1775001600"}),
        ("/pages?mood=low", "{ pages(where: {mood: {eq: low}}) { id } }", {"deprecation": "@1772323200"}),
        ("/pages?mood=calm", "{ pages(where: {mood: {eq: calm}}) { id } }", {}),
        (
            "/pages?mood[in]=calm,low",
            "{ pages(where: {mood: {in: [calm, low]}}) { id } }",
            {"deprecation": "@1772323200"},
        ),
        ("/pages/top?limit=2", "{ topPages(limit: 2) { id } }", {"deprecation": "@1777766400"}),
        ("/pages/top", "{ topPages { id } }", {}),
        ("/notes/changes", "", OF_NOTES),
    ]
    wrong = {}
    for again in (1, 2):  # planned, and then from the cache
        for path, document, wanted in reads:
            headers = client.get(path).expect(200).headers
            got = {name: each for name, each in _headers(headers).items() if name != "link" or "deprecation" in each}
            if got != wanted:
                wrong[path, again] = got
            got = _headers(client.graphql(document).expect(200).headers) if document else wanted
            if got != wanted:
                wrong[document, again] = got
    assert wrong == {}


def test_links_of_a_page_and_about_what_is_deprecated_are_one_header(new_database: NewDatabase) -> None:
    with serve(model(), database=new_database()) as api:
        for title in ("one", "two"):
            api.anonymous.post("/pages", {"headline": title}).expect(201)
        link = api.anonymous.get("/pages?fields=title&first=1").expect(200).headers["link"]
        assert link.startswith("</pages?fields=title&first=1&after=")
        assert link.endswith(f'>; rel="next", {OF_TITLE["link"]}')


@pytest.mark.parametrize("media", ["text/csv", "application/x-ndjson"])
def test_lists_in_other_formats_are_announced_and_counted_once(new_database: NewDatabase, media: str) -> None:
    url = new_database()
    source = SOURCE.replace('"delete"),)', '"delete", "export"),)')
    with serve(model(source), database=url) as api:
        for _ in range(3):
            api.anonymous.post("/pages/batch", [{"headline": str(number)} for number in range(70)]).expect(201)
        for path, wanted in {
            "/pages?first=all&fields=title": OF_TITLE,  # three pages of a stream
            "/pages?first=2&fields=title": OF_TITLE,
            "/pages?first=all&sort=rank&fields=headline": OF_RANK,
            "/pages?first=all&mood=low&fields=headline": {"deprecation": "@1772323200"},
            "/pages?first=all&mood=calm&fields=headline": {},
            "/pages?first=all": {},
            "/notes?first=all": OF_NOTES,
        }.items():
            status, headers, _ = send(api, "GET", path, b"", accept=media)
            got = _headers(headers)
            links = [link for link in got.pop("link", "").split(", ") if "deprecation" in link]
            assert (status, got | ({"link": ", ".join(links)} if links else {})) == (200, wanted), path
    assert {row.name: row.requests for row in stored_usage(url)} == {
        "Page.title": 2,
        "Page.rank": 1,
        "Mood.low": 1,
        "Note": 1,
    }


def test_writes_and_calls_are_announced(api: Api) -> None:
    client = api.anonymous
    page = client.post("/pages", {"headline": "one"}).expect(201).json()["id"]
    turn, flip = {"deprecation": "@1777593600"}, {"deprecation": "@1777680000"}
    wrong = {}
    for method, path, body, wanted in (
        ("POST", "/pages", {"title": "x"}, OF_TITLE),
        ("POST", "/pages", {"headline": "x"}, {}),
        ("POST", "/pages?fields=title", {"headline": "x"}, OF_TITLE),
        ("PATCH", f"/pages/{page}", {"title": "y"}, OF_TITLE),
        ("PATCH", f"/pages/{page}", {"mood": "low"}, {"deprecation": "@1772323200"}),
        ("PATCH", f"/pages/{page}", {"mood": "calm"}, {}),
        ("POST", "/pages/batch", [{"headline": "x"}, {"rank": 2}], OF_RANK),
        ("POST", "/pages", {"headline": "x", "notes": {"create": [{"text": "n"}]}}, OF_NOTES),
        ("POST", "/notes", {"text": "x"}, OF_NOTES),
        ("POST", f"/pages/{page}/turn", {}, {}),
        ("POST", f"/pages/{page}/turn", {"note": "x"}, turn),
        ("POST", f"/pages/{page}/flip", {}, flip),
        ("POST", "/graphql", {"query": 'mutation { createPage(input: {title: "x"}) { id } }'}, OF_TITLE),
        ("POST", "/graphql", {"query": "mutation { createPage(input: {mood: calm}) { id } }"}, {}),
        ("POST", "/graphql", {"query": f'mutation {{ turnPage(id: "{page}", note: "x") {{ id }} }}'}, turn),
    ):
        answer = client.request(method, path, body)
        if answer.status >= 300 or _headers(answer.headers) != wanted:
            wrong[method, path, str(body)] = (answer.status, answer.body, _headers(answer.headers))
    assert wrong == {}


def test_uses_are_counted_by_role_and_added_to_the_database(new_database: NewDatabase) -> None:
    url = new_database()
    for _ in range(2):
        with serve(model(), database=url) as api:
            api.anonymous.get("/pages?fields=title").expect(200)
            api.anonymous.get("/pages").expect(200)
            api.as_("signed_in").graphql("{ pages { title rank } }").expect(200)

    rows = stored_usage(url)
    assert sorted((row.name, row.role, row.client, row.requests) for row in rows) == [
        ("Page.rank", "signed_in", "diptych-cli", 2),
        ("Page.title", "anonymous", "", 2),
        ("Page.title", "signed_in", "diptych-cli", 2),
    ]
    assert all(0 < row.first_at <= row.last_at for row in rows)


def test_nothing_is_looked_at_where_nothing_is_deprecated(new_database: NewDatabase) -> None:
    plain = model_of('class Page(Resource):\n    title: str = "-"\n    access = (grant("read"),)\n')
    with serve(plain, database=new_database()) as api:
        assert api._handler.engine.usage is None
        assert not _headers(api.anonymous.get("/pages?fields=title").headers)
