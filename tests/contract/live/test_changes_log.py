"""The log of changes as a job polls it: pages, what leads on from them, tags, and what is in a row."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from diptych import Model, Resource, computed, grant, inverse
from diptych.compile import read as reading
from diptych.compile.fragment import Fragment
from diptych.demo.model import model
from tests.contract.http import data
from tests.contract.http.data import ANN, BEN, CLEO, COMMENT, POST, day
from tests.support.in_process import Service, encoded, in_process
from tests.support.running import NewDatabase


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def service(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Service]:
    with in_process(model, new_database(), runner, data.ROWS) as found:
        yield found


def titles(service: Service, *titles: str, post: str = POST[1]) -> None:
    for title in titles:
        service.execute(f"UPDATE posts SET title = '{title}' WHERE id = '{post}'")


def told(page: Any) -> list[Any]:
    return [each["post"] and each["post"]["title"] for each in page["data"]]


def test_without_a_cursor_it_begins_with_the_oldest_and_a_stream_begins_now(service: Service) -> None:
    titles(service, "a")
    stream = service.follow("subscription { postChanged { post { title } } }")
    titles(service, "b")
    service.settle()
    page = service.changes("/posts/changes?fields=title&first=100")
    assert [each["kind"] for each in page["data"]] == ["CREATED"] * 6 + ["UPDATED"] * 2
    assert told(page)[-2:] == ["a", "b"] and stream.events == [{"post": {"title": "b"}}]


def test_the_id_of_an_event_is_the_same_wherever_it_is_reported(service: Service) -> None:
    start = service.end_of_changes()
    streams = [
        service.follow("subscription { postChanged { eventId post { title } } }", token=token)
        for token in (None, service.token(ANN), service.token(BEN, "admin"))
    ]
    titles(service, *"abc")
    service.settle()
    pages = [service.changes(f"/posts/changes?after={start}&fields=title") for _ in range(2)]
    ids = [[each["eventId"] for each in page["data"]] for page in pages]
    assert ids[0] == ids[1] and len(set(ids[0])) == 3
    assert all([event["eventId"] for event in stream.events] == ids[0] for stream in streams)
    again = service.changes(f"/posts/changes?first=1&after={pages[0]['data'][1]['cursor']}")["data"]
    assert [each["eventId"] for each in again] == ids[0][2:]


@pytest.mark.parametrize("size", range(1, 8))
def test_pages_of_every_size_make_up_the_whole(service: Service, size: int) -> None:
    start = service.end_of_changes()
    titles(service, *"abcdef")
    found: list[str] = []
    after, lasts = start, []
    while after is not None:
        page = service.changes(f"/posts/changes?fields=title&first={size}&after={after}")
        found += told(page)
        assert len(page["data"]) <= size
        if page["page"]["next"] is not None:
            assert (
                page["page"]["next"] == page["page"]["last"] == page["data"][-1]["cursor"] and len(page["data"]) == size
            )
        lasts.append(page["page"]["last"])
        after = page["page"]["next"]
    assert found == [*"abcdef"]
    assert service.changes(f"/posts/changes?after={lasts[-1]}")["data"] == []
    titles(service, "g")
    assert told(service.changes(f"/posts/changes?fields=title&after={lasts[-1]}")) == ["g"]


def test_last_leads_on_although_nothing_was_told(service: Service) -> None:
    start = service.end_of_changes()
    service.execute(f"UPDATE posts SET title = 'hidden' WHERE id = '{POST[3]}'")
    page = service.changes(f"/posts/changes?after={start}")
    assert page["data"] == [] and page["page"]["next"] is None
    titles(service, "seen")
    assert told(service.changes(f"/posts/changes?fields=title&after={page['page']['last']}")) == ["seen"]


def test_a_tag_tells_pages_apart_and_nothing_else(service: Service) -> None:
    start = service.end_of_changes()
    url = f"/posts/changes?fields=title&first=2&after={start}"

    def tag() -> str:
        return service.get(url).headers["etag"]

    nothing = tag()
    service.execute(f"UPDATE posts SET title = 'hidden' WHERE id = '{POST[3]}'")
    assert tag() == nothing and nothing.startswith('W/"')
    same = service.get(url, headers={"if-none-match": nothing})
    assert same.status == 304
    seen = [nothing]
    for number in range(3):
        titles(service, f"t{number}")
        answer = service.get(url, headers={"if-none-match": seen[-1]})
        assert answer.status == 200, "a page that leads on is another than one that does not"
        seen.append(answer.headers["etag"])
    assert len(set(seen)) == 4
    later = service.changes(f"/posts/changes?fields=title&after={same.headers['change-cursor']}")
    assert [each["post"]["title"] for each in later["data"]] == ["t0", "t1", "t2"]
    titles(service, "beyond the page")
    assert tag() == seen[-1]


@pytest.mark.parametrize(
    "parameters",
    [
        {"first": "0"},
        {"first": "101"},
        {"first": "x"},
        {"first": ""},
        {"last": "2"},
        {"before": "x"},
        {"sort": "title"},
        {"offset": "1"},
        {"count": "exact"},
        {"kinds": "MOVED"},
        {"kinds": ""},
        {"kinds": "created"},
        {"kinds": "CREATED,"},
        {"where": "[]"},
        {"where": "{"},
        {"where": '{"title":{"eq":null}}'},
        {"fields": "zz"},
        {"fields": ""},
        {"zz": "1"},
        {"title[zz]": "1"},
        {"after": "x"},
    ],
)
def test_what_is_wrong_with_the_query_is_told(service: Service, parameters: dict[str, str]) -> None:
    answer = service.get(f"/posts/changes?{encoded(**parameters)}")
    assert (answer.status, answer.code) == (400, "BAD_REQUEST"), answer.body
    assert service.handler.live._members == {}


@pytest.mark.parametrize("name", ["orders", "nothings"])
def test_a_path_that_is_not_there_or_not_theirs(service: Service, name: str) -> None:
    assert service.get(f"/{name}/changes").status == {"orders": 401, "nothings": 404}[name]
    assert (
        service.send("POST", "/posts/changes", headers={"content-type": "application/json"}, body=b"{}").status == 405
    )


# what is in a row


def handed_over(service: Service) -> str:
    """A post is Cleo's, and then Ann's, and Cleo is gone; gives the URL of its changes."""
    start = service.end_of_changes()
    titles(service, "by Cleo", post=POST[7])
    service.execute(f"UPDATE posts SET author_id = '{ANN}' WHERE id = '{POST[7]}'")
    service.execute(f"DELETE FROM orders WHERE customer_id = '{CLEO}'")
    service.execute(f"DELETE FROM users WHERE id = '{CLEO}'")
    return f"/posts/changes?id={POST[7]}&after={start}&fields="


def test_a_relation_that_led_to_a_row_that_is_gone(service: Service) -> None:
    """What is never null cannot be shown without it, and so the row is not; the change is told."""
    whole = handed_over(service)
    for fields in ("title,author(name)", "author(id)", "id,title,body,published,version,author(name,id),createdAt"):
        page = service.changes(whole + fields)
        assert [each["kind"] for each in page["data"]] == ["UPDATED", "UPDATED"]
        assert page["data"][0]["post"] is None and page["data"][1]["post"]["author"] is not None
    assert told(service.changes(whole + "title")) == ["by Cleo", "by Cleo"]


def test_without_a_look_for_what_is_gone_the_log_would_break(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with the fault planted: an answer in which a value is missing is no JSON."""
    monkeypatch.setattr(reading, "Fallible", Fragment)
    monkeypatch.setattr(logging.getLogger("diptych"), "disabled", True)
    with in_process(model, "sqlite:///:memory:", runner, data.ROWS) as service:
        url = handed_over(service)
        assert service.get(url + "id,title,body,published,version,author(name,id),createdAt").status == 500


def test_lists_in_a_row_are_as_they_are_now_and_their_cursors_lead_on(service: Service) -> None:
    document = """subscription { postChanged { post { title commentsConnection(first: 1) {
                    totalCount pageInfo { endCursor hasNextPage } nodes { id } } } } }"""
    stream = service.follow(document, token=service.token(BEN))
    titles(service, "x")
    service.settle()
    (event,) = stream.events
    found = event["post"]["commentsConnection"]
    cursor = found["pageInfo"]["endCursor"]
    assert found["totalCount"] > 1 and found["nodes"] == [{"id": COMMENT[1]}]
    query = f'{{ post(id: "{POST[1]}") {{ commentsConnection(first: 99, after: "{cursor}") {{ nodes {{ id }} }} }} }}'
    rest = service.data(query, token=service.token(BEN))["post"]["commentsConnection"]["nodes"]
    assert len(rest) == found["totalCount"] - 1 and {"id": COMMENT[1]} not in rest


class Author(Resource):
    """Writes lines."""

    name: str
    lines: list[Line] = inverse("author")

    access = (grant("read"),)

    @computed(needs="name")
    def shout(self) -> str:
        return self.name.upper()


class Line(Resource):
    """Python computes something of it, and of its author."""

    author: Author
    text: str

    access = (grant("read"),)

    @computed
    def signed(self) -> str:
        return self.text + ", " + self.author.name

    @computed(needs="text")
    def letters(self) -> int:
        return len(self.text)


def _row(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "version": 1, "createdAt": day(1), "updatedAt": day(1), **values}


def test_what_is_computed_is_computed_of_the_row_as_it_became(
    runner: asyncio.Runner, new_database: NewDatabase
) -> None:
    rows = {"Author": [_row(ANN, name="Ann"), _row(BEN, name="Ben")], "Line": [_row(POST[1], authorId=ANN, text="x")]}
    with in_process(Model(Author, Line), new_database(), runner, rows) as service:
        start = service.end_of_changes()
        service.execute("UPDATE lines SET text = 'abc'")
        service.execute(f"UPDATE lines SET text = 'abcdef', author_id = '{BEN}'")
        fields = "letters,signed,author(shout,lines(letters))"
        page = service.changes(f"/lines/changes?fields={fields}&after={start}")
        now = {"lines": [{"letters": 6}]}
        assert [each["line"] for each in page["data"]] == [
            {"letters": 3, "signed": "abc, Ann", "author": {"shout": "ANN", "lines": []}},
            {"letters": 6, "signed": "abcdef, Ben", "author": {"shout": "BEN", **now}},
        ]
        service.execute(f"DELETE FROM authors WHERE id = '{ANN}'")
        found = [each["line"] for each in service.changes(f"/lines/changes?fields=signed&after={start}")["data"]]
        assert found == [None, {"signed": "abcdef, Ben"}]
        found = [each["line"] for each in service.changes(f"/lines/changes?fields=letters&after={start}")["data"]]
        assert found == [{"letters": 3}, {"letters": 6}]
