"""Events tell what a read would not: of rows that were hidden since, of fields that are hidden, of rows whose rule looks at
something that is gone.

A subscription is a second way to read, with a memory: it is easily given rules of its own, or none, and what was open
once is told for ever. Here a change is compiled like a read, over the row as it was stored; what is shown of it can be
read now, too; and where a rule would need a row that is gone by now, it allows nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

from diptych import Model, OnDelete, Resource, Role, Viewer, allow, grant, inverse, none, not_
from diptych.compile import watch as compiling
from diptych.compile.read import Reads
from diptych.engine import watch
from diptych.errors import Refusal
from diptych.model.rules.expr import TRUE
from diptych.policy import access
from tests.contract.faults import club
from tests.contract.faults.club import PERSON
from tests.contract.faults.scene import Scene, changed
from tests.contract.http import data
from tests.contract.http.data import BEN, CLEO, ORDER, POST, an_id, day
from tests.contract.writes.shop import Rows
from tests.support.in_process import encoded, in_process
from tests.support.running import NewDatabase

_NEVER_TWICE = re.compile(rb'"[A-Za-z0-9_-]{64}"|"eventId":"[A-Za-z0-9_-]{20}"|"\d{4}-\d\d-\d\dT[0-9:.]{15}Z"')
Do = Callable[[Scene], None]


def told(scene: Scene, who: str, start: str, urls: list[str], documents: list[str]) -> list[Any]:
    """All that someone is told of what happened since a cursor, but for cursors, ids of events and times."""
    found: list[Any] = []
    for url in urls:
        answer = scene.rest("GET", f"{url}{'&' if '?' in url else '?'}after={start}", who=who)
        assert answer.status == 200, answer.body
        found.append(_NEVER_TWICE.sub(b"", answer.body))
    for document in documents:
        stream = scene.service.follow(document, {"after": start}, token=scene.token(who))
        scene.service.settle()
        stream.close()
        found.append([_NEVER_TWICE.sub(b"", body) for body in stream.bodies])
    return found


def told_apart(scene: Scene, who: str, worlds: list[Rows], do: Do, urls: list[str], documents: list[str]) -> list[str]:
    """The questions that get another answer in one world than in another, after the same was done in each."""
    answers = []
    for rows in worlds:
        scene.fill(rows)
        start = scene.service.end_of_changes()
        do(scene)
        answers.append(told(scene, who, start, urls, documents))
    return [
        question
        for question, *given in zip([*urls, *documents], *answers, strict=True)
        if any(each != given[0] for each in given)
    ]


# a row that was hidden since

WORLDS = [changed(data.ROWS, "Post", POST[1], body=body) for body in ("a secret", "another one")]


def touched_and_hidden(scene: Scene) -> None:
    """A post is public while its title changes, and then it is not."""
    scene.service.execute(f"UPDATE posts SET title = 'New' WHERE id = '{POST[1]}'")
    scene.service.execute(f"UPDATE comments SET body = 'x' WHERE post_id = '{POST[1]}'")
    scene.service.execute(f"UPDATE posts SET published = false WHERE id = '{POST[1]}'")


PAGES = [
    "/posts/changes",
    "/posts/changes?fields=body&first=1",
    "/posts/changes?kinds=UPDATED&fields=b:body",
    f"/posts/changes?id={POST[1]}",
    "/comments/changes?fields=body,post(body)",
]
STREAMS = [
    "subscription($after: String) { postChanged(after: $after) { kind rowId post { body } again: post { b: body } } }",
    "subscription($after: String) { commentChanged(after: $after) { rowId comment { post { body } } } }",
]


def test_a_row_that_was_hidden_since_is_not_told_by_an_old_cursor(shop: Scene) -> None:
    assert told_apart(shop, "zoe", WORLDS, touched_and_hidden, PAGES, STREAMS) == []
    assert told_apart(shop, "anonymous", WORLDS, touched_and_hidden, PAGES, STREAMS) == []
    assert told_apart(shop, "admin", WORLDS, touched_and_hidden, PAGES, STREAMS) == [*PAGES, *STREAMS]
    shop.fill(WORLDS[0])
    start = shop.service.end_of_changes()
    touched_and_hidden(shop)
    found = shop.rest("GET", f"/posts/changes?after={start}", who="zoe").json()["data"]
    assert [(each["kind"], each["post"]) for each in found] == [("UPDATED", None), ("LEFT", None)]


def test_without_a_look_at_the_row_as_it_is_now_it_would_be_told(shop: Scene) -> None:
    """The same check with the fault planted."""
    original = access.narrow_watch

    def then_only(asked: Any, view: Any) -> Any:
        found = original(asked, view)
        return access.Watched(found.watch, found.seen, found.deleted, TRUE)

    with shop.planted(watch, "narrow_watch", then_only):
        found = told_apart(shop, "zoe", WORLDS, touched_and_hidden, PAGES, STREAMS)
    assert found == [*PAGES[:4], STREAMS[0]]


# a field that was hidden since

CODES = [changed(club.ROWS, "Person", PERSON[1], code=code) for code in ("a-17", "a-99")]


def given_away(scene: Scene) -> None:
    """Ann's row changes while it is hers, and then it is Cleo's."""
    scene.service.execute(f"UPDATE persons SET name = 'Anna' WHERE id = '{PERSON[1]}'")
    scene.service.execute(f"UPDATE persons SET account = '{CLEO}' WHERE id = '{PERSON[1]}'")


PEOPLE = ["/persons/changes?fields=name,code", f"/persons/changes?fields=c:code&id={PERSON[1]}"]
PERSON_STREAMS = ["subscription($after: String) { personChanged(after: $after) { person { code } } }"]


def test_a_field_that_was_hidden_since_is_not_told_by_an_old_cursor(members: Scene) -> None:
    assert told_apart(members, "ann", CODES, given_away, PEOPLE, PERSON_STREAMS) == []
    assert told_apart(members, "admin", CODES, given_away, PEOPLE, PERSON_STREAMS) == [*PEOPLE, *PERSON_STREAMS]


def test_without_a_look_at_the_rule_as_it_is_now_the_field_would_be_told(members: Scene) -> None:
    """The same check with the fault planted."""
    with members.planted(compiling.WatchStatements, "shows", Reads.condition):
        found = told_apart(members, "ann", CODES, given_away, PEOPLE, PERSON_STREAMS)
    assert found == [*PEOPLE, *PERSON_STREAMS]


# a row whose rule looks at something that is gone

admin = Role("admin")


class Folder(Resource):
    """Papers lie in it."""

    secret: bool = False

    access = (grant("read", to=admin),)


class Paper(Resource):
    """Whoever is told that it is there knows something: it is hidden with its folder, and while it is disputed."""

    folder: Annotated[Folder, OnDelete("cascade")]
    text: str
    disputes: list[Dispute] = inverse("paper")

    access = (grant("read", to=admin),)

    @allow("read")
    def open(self, viewer: Viewer) -> bool:
        return not_(self.folder.secret) & none(self.disputes, lambda each: each.open)


class Dispute(Resource):
    """About a paper."""

    paper: Annotated[Paper, OnDelete("cascade")]
    open: bool = True

    access = (grant("read", to=admin),)


FOLDER, PAPER, DISPUTE = (an_id(kind, 1) for kind in "124")


def _row(id: str, **values: Any) -> dict[str, Any]:
    return {"id": id, "version": 1, "createdAt": day(1), "updatedAt": day(1), **values}


def papers(text: str, *, secret: bool, disputed: bool) -> Rows:
    return {
        "Folder": [_row(FOLDER, secret=secret)],
        "Paper": [_row(PAPER, folderId=FOLDER, text=text)],
        "Dispute": [_row(DISPUTE, paperId=PAPER, open=True)] if disputed else [],
    }


@pytest.fixture(scope="module")
def open_archive(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Scene]:
    with in_process(Model(Folder, Paper, Dispute), new_database(), runner) as service:
        yield Scene(service, papers("", secret=False, disputed=False))


def gone(what: str) -> Do:
    """The paper changes, and then it is gone, by itself or with its folder."""

    def do(scene: Scene) -> None:
        scene.service.execute("UPDATE papers SET text = text || '!'")
        scene.service.execute(f"DELETE FROM {what}")

    return do


PAPERS = ["/papers/changes", "/papers/changes?text[startsWith]=a", "/papers/changes?kinds=DELETED&text[contains]=lph"]
PAPER_STREAMS = [
    'subscription($after: String) { paperChanged(after: $after, where: {text: {startsWith: "a"}}) { kind } }'
]


@pytest.mark.parametrize(
    ("what", "secret", "disputed"),
    [
        ("folders", True, False),
        ("papers", False, True),
        ("papers", True, False),
        ("folders", False, True),
    ],
)
def test_a_hidden_row_is_not_told_once_what_hid_it_is_gone(
    open_archive: Scene, what: str, secret: bool, disputed: bool
) -> None:
    worlds = [papers(text, secret=secret, disputed=disputed) for text in ("alpha", "beta")]
    assert told_apart(open_archive, "zoe", worlds, gone(what), PAPERS, PAPER_STREAMS) == []
    start = open_archive.service.end_of_changes()
    open_archive.fill(worlds[0])
    gone(what)(open_archive)
    assert open_archive.rest("GET", f"/papers/changes?after={start}", who="zoe").json()["data"] == []
    kinds = [
        each["kind"] for each in open_archive.rest("GET", f"/papers/changes?after={start}", who="admin").json()["data"]
    ]
    assert kinds[-1] == "DELETED"
    assert told_apart(open_archive, "admin", worlds, gone(what), PAPERS[1:], PAPER_STREAMS) == [
        *PAPERS[1:],
        *PAPER_STREAMS,
    ]


@pytest.mark.parametrize(("what", "secret"), [("folders", True), ("papers", False)])
def test_with_the_rules_of_reads_it_would_be_told(open_archive: Scene, what: str, secret: bool) -> None:
    """The same check with the fault planted: what is gone is taken for something of which the rule does not hold."""
    worlds = [papers(text, secret=secret, disputed=not secret) for text in ("alpha", "beta")]
    with open_archive.planted(access, "certain", lambda rule, resource, resources, *, there: rule):
        found = told_apart(open_archive, "zoe", worlds, gone(what), PAPERS, PAPER_STREAMS)
    assert found == [*PAPERS[1:], *PAPER_STREAMS]


def test_what_can_be_seen_is_told_to_the_end(open_archive: Scene) -> None:
    """A paper that is open, and of which the folder stays, is told as long as the rule can be asked."""
    open_archive.fill(papers("alpha", secret=False, disputed=False))
    start = open_archive.service.end_of_changes()
    open_archive.service.execute("UPDATE papers SET text = 'b'")
    open_archive.service.execute("UPDATE folders SET secret = true")
    open_archive.service.execute("UPDATE papers SET text = 'c'")
    assert open_archive.rest("GET", f"/papers/changes?after={start}", who="zoe").json()["data"] == []
    open_archive.service.execute("UPDATE folders SET secret = false")
    data_ = open_archive.rest("GET", f"/papers/changes?after={start}", who="zoe").json()["data"]
    assert [each["paper"]["text"] for each in data_] == ["b", "c"]


# filters and names

EMAILS = [changed(data.ROWS, "User", BEN, email=each) for each in ("ben@example.com", "zed@example.org")]
GUESSES = [
    f"/users/changes?{encoded(fields='name', where=tree)}"
    for tree in (
        {"email": {"startsWith": "b"}},
        {"email": {"eq": "ben@example.com"}},
        {"not": {"email": {"gt": "m"}}},
        {"or": [{"email": {"contains": "com"}}, {"name": {"eq": "nobody"}}]},
        {"email": {"in": ["ben@example.com"]}},
    )
]
GUESSING = ['subscription($after: String) { userChanged(after: $after, where: {email: {startsWith: "b"}}) { kind } }']


def renamed(scene: Scene) -> None:
    scene.service.execute(f"UPDATE users SET name = 'Benny' WHERE id = '{BEN}'")


def test_a_filter_of_changes_sees_null_where_its_caller_would(shop: Scene) -> None:
    assert told_apart(shop, "ann", EMAILS, renamed, GUESSES, GUESSING) == []
    assert told_apart(shop, "admin", EMAILS, renamed, GUESSES, GUESSING) == [*GUESSES, *GUESSING]
    with shop.planted(access, "mask", lambda rule, of: of):
        assert told_apart(shop, "ann", EMAILS, renamed, GUESSES, GUESSING) == [*GUESSES, *GUESSING]


@pytest.mark.parametrize("who", ["anonymous", "ann"])
def test_a_field_of_another_role_is_no_field_of_changes(shop: Scene, who: str) -> None:
    """It has no name: to pick, to filter by, or in the words of an error."""
    token = shop.token(who)

    def refused(name: str) -> list[str]:
        said = []
        for url in (
            f"/orders/changes?fields={name}",
            f"/orders/changes?{name}=x",
            f"/orders/changes?{name}[isNull]=true",
            f"/orders/changes?{encoded(where={name: {'isNull': True}})}",
        ):
            answer = shop.rest("GET", url, who=who)
            assert answer.status >= 400
            said.append(answer.body.decode())
        for inner, where in ((name, "{}"), ("id", f"{{{name}: {{isNull: true}}}}")):
            with pytest.raises(Refusal) as raised:
                shop.service.follow(
                    f"subscription {{ orderChanged(where: {where}) {{ order {{ {inner} }} }} }}", token=token
                )
            said.append(f"{raised.value.code} {raised.value.message} {[str(each) for each in raised.value.faults]}")
        return [each.replace(name, "…") for each in said]

    assert refused("internalNote") == refused("nothingAtAll")


def test_changes_of_what_a_role_never_sees_are_refused_like_reads(shop: Scene) -> None:
    for who, code, status in (
        ("anonymous", "UNAUTHENTICATED", 401),
        (shop.narrow("ann", "posts:read"), "FORBIDDEN", 403),
    ):
        answer = shop.rest("GET", "/orders/changes", who=who)
        assert (answer.status, answer.code) == (status, code)
        assert shop.rest("GET", "/orders", who=who).code == code
        with pytest.raises(Refusal) as raised:
            shop.service.follow("subscription { orderChanged { rowId } }", token=shop.token(who))
        assert raised.value.code == code
        assert shop.ql("{ orders { id } }", who=who).code == code


def test_a_note_for_the_staff_is_in_no_event_of_others(shop: Scene) -> None:
    streams = {
        who: shop.service.follow("subscription { orderChanged { order { id note } } }", token=shop.token(who))
        for who in ("ann", "ben", "staff")
    }
    start = shop.service.end_of_changes()
    shop.service.execute(f"UPDATE orders SET internal_note = 'do not tell' WHERE id = '{ORDER[1]}'")
    shop.service.settle()
    assert [len(stream.events) for stream in streams.values()] == [1, 0, 1]
    for who in ("ann", "ben"):
        answer = shop.rest("GET", f"/orders/changes?after={start}", who=who)
        assert b"do not tell" not in answer.body and b"internalNote" not in answer.body
    assert b"do not tell" in shop.rest("GET", f"/orders/changes?after={start}", who="staff").body
    for stream in streams.values():
        stream.close()
    assert streams["ann"].events[0]["order"]["id"] == ORDER[1]
