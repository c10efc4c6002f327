"""The tenant that changed and did not arrive: what a model's own code says of a viewer is remembered too long.

The same fault as that of the stale role, where the model knows more of its viewers than a token says: a membership
that was taken back, a tenant that was changed. Here the model is asked on every request, and what was answered
before, planned, kept or pointed to is of no use to whom it no longer fits. One token comes to one process all the
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from diptych import Claims, Id, Model, ReadBy, Resource, Role, Viewer, allow, grant, one_of, signed_in
from diptych.identity.viewer import Context
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, an_id, day
from tests.contract.writes.shop import ADMIN, Rows
from tests.support.in_process import Answer, in_process
from tests.support.running import NewDatabase

boss = Role("boss")
RED, BLUE = an_id("2", 1), an_id("2", 2)
MEMBERS: dict[str, dict[str, Any]] = {}
"""What is known of each person at this moment, wherever a model may get it from."""


class Member(Viewer):
    """Someone who belongs to a tenant, and to teams."""

    tenant: Id | None = None
    teams: tuple[str, ...] = ()

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        found = MEMBERS.get(claims.subject or "")
        return None if found is None else cls(id=claims.subject, **found)


class Paper(Resource):
    """What a tenant has; one with a team is for that team alone."""

    tenant: Id
    team: str | None = None
    text: str
    price: Annotated[int, ReadBy(boss)] = 0

    access = (grant("create", to=signed_in),)

    @allow("read", "update")
    def of_tenant(self, viewer: Member) -> bool:
        return self.tenant == viewer.tenant

    @allow("read", field="price")
    def of_team(self, viewer: Member) -> bool:
        return one_of(self.team, viewer.teams)


model = Model(Paper, viewer=Member)
PAPER = [an_id("1", number) for number in range(7)]
ROWS: Rows = {
    "Paper": [
        {
            "id": PAPER[number],
            "version": 1,
            "createdAt": day(1),
            "updatedAt": day(1),
            "tenant": RED if number < 4 else BLUE,
            "team": "chess" if number % 2 else None,
            "text": f"{'red' if number < 4 else 'blue'} {number}",
            "price": number,
        }
        for number in range(1, 7)
    ]
}
URLS = [
    "/papers",
    "/papers?count=exact&first=1",
    "/papers?sort=-price&fields=text,price",
    "/papers?price[gte]=1&fields=text",
    f"/papers/{PAPER[1]}",
    f"/papers/{PAPER[5]}",
    "/papers?text[startsWith]=red&count=exact",
]
DOCUMENT = "{ papersConnection(first: 2, orderBy: [{text: DESC}]) { totalCount nodes { text price } pageInfo { hasNextPage } } }"
RED_CHESS: dict[str, Any] = {"tenant": RED, "teams": ("chess",)}


@pytest.fixture(scope="module")
def open_office(runner: asyncio.Runner, new_database: NewDatabase) -> Iterator[Scene]:
    with in_process(model, new_database(), runner) as service:
        yield Scene(service, ROWS)


@pytest.fixture
def office(open_office: Scene) -> Iterator[Scene]:
    """Papers of two tenants; Ann and Ben are in the red one, in a team."""
    open_office.fill(ROWS)
    MEMBERS.update({ANN: RED_CHESS, BEN: RED_CHESS, ADMIN: {}})
    yield open_office
    MEMBERS.clear()


def asked(office: Scene) -> list[Any]:
    """All that Ann's one token gets."""
    answers: list[Answer] = [*(office.rest("GET", url, who="ann") for url in URLS), office.ql(DOCUMENT, who="ann")]
    return [(answer.status, dict(answer.headers), answer.body) for answer in answers]


def stale(office: Scene, now: dict[str, Any]) -> bool:
    """Does Ann get something else than she would get if what is known of her now had always been so?"""
    for _ in range(3):
        asked(office)
    MEMBERS[ANN] = now
    after = [asked(office) for _ in range(2)]
    office.forget()
    office.service.handler.context._cache.clear()
    return after != [asked(office)] * 2


CHANGES: list[dict[str, Any]] = [
    {"tenant": BLUE},
    {"tenant": RED},
    {"tenant": None},
    {"tenant": BLUE, "teams": ("chess",)},
    {"tenant": RED, "teams": ("go",)},
    {"tenant": RED, "roles": frozenset({"boss"})},
]


@pytest.mark.parametrize("now", CHANGES)
def test_what_the_model_knows_now_holds_at_once(office: Scene, now: dict[str, Any]) -> None:
    """Another tenant, none, other teams or another role, between two requests of one token."""
    assert not stale(office, now)


@pytest.mark.parametrize("now", CHANGES)
def test_with_viewers_that_are_remembered_the_old_answers_would_be_served(office: Scene, now: dict[str, Any]) -> None:
    """The same check with the fault planted: the model is asked once for each token."""
    with office.planted(Context, "_reviewed", lambda self, found: found):
        assert stale(office, now)


def test_who_is_no_member_any_more_is_refused_at_once(office: Scene) -> None:
    """The model's code gives no viewer: the token does not hold, though it was verified and has not expired."""
    assert office.rest("GET", "/papers", who="ann").status == 200
    del MEMBERS[ANN]
    assert office.rest("GET", "/papers", who="ann").status == 401
    assert office.ql(DOCUMENT, who="ann").status == 401
    assert office.rest("GET", "/papers", who="ben").status == 200


def test_a_cursor_and_a_tag_of_the_tenant_before_open_nothing(office: Scene) -> None:
    """A place in the list of the red tenant is none in that of the blue one, nor for another team of the same."""
    page = office.rest("GET", "/papers?first=1", who="ann")
    cursor, mark = page.json()["page"]["next"], page.headers["etag"]
    assert office.rest("GET", f"/papers?first=1&after={cursor}", who="ann").status == 200
    for now in ({"tenant": BLUE}, {"tenant": RED, "teams": ("go",)}):
        MEMBERS[ANN] = now
        assert office.rest("GET", f"/papers?first=1&after={cursor}", who="ann").status == 400
        assert office.rest("GET", "/papers?first=1", who="ann", headers={"if-none-match": mark}).status == 200


def test_the_order_in_which_teams_are_known_is_none(office: Scene) -> None:
    """A set has another order in every process: what is the same to rules is the same to cursors."""
    MEMBERS[ANN] = {"tenant": RED, "teams": ("chess", "go", "chess")}
    cursor = office.rest("GET", "/papers?first=1", who="ann").json()["page"]["next"]
    MEMBERS[ANN] = {"tenant": RED, "teams": ("go", "chess", "chess")}
    assert office.rest("GET", f"/papers?first=1&after={cursor}", who="ann").status == 200


def test_an_answer_that_was_kept_for_the_tenant_before_is_not_replayed(office: Scene) -> None:
    """The same token, key, URL and body: what was made for the red tenant is not told to whom is of the blue one
    now."""
    key, body = {"idempotency-key": "k1"}, {"text": "new"}
    first = office.rest("PATCH", f"/papers/{PAPER[1]}", body, who="ann", headers=key)
    assert first.status == 200 and first.json()["price"] == 1
    assert (
        office.rest("PATCH", f"/papers/{PAPER[1]}", body, who="ann", headers=key).headers["idempotency-replayed"]
        == "true"
    )
    for now in ({"tenant": BLUE}, {"tenant": RED}):
        MEMBERS[ANN] = now
        with office.unchanged():
            answer = office.rest("PATCH", f"/papers/{PAPER[1]}", body, who="ann", headers=key)
        assert answer.status in (404, 422) and b"red" not in answer.body and b"price" not in answer.body


def test_a_change_is_judged_by_what_is_known_now(office: Scene) -> None:
    """A hot update of a red paper is not made once Ann is blue, and nothing is made for a tenant that is not hers."""
    for _ in range(3):
        assert office.rest("PATCH", f"/papers/{PAPER[1]}", {"text": "x"}, who="ann").status == 200
    MEMBERS[ANN] = {"tenant": BLUE}
    with office.unchanged():
        assert office.rest("PATCH", f"/papers/{PAPER[1]}", {"text": "y"}, who="ann").status == 404
        assert office.rest("PATCH", f"/papers/{PAPER[5]}", {"tenant": RED}, who="ann").status == 403
        assert office.rest("POST", "/papers", {"tenant": RED, "text": "t"}, who="ann").status == 403
    assert office.rest("PATCH", f"/papers/{PAPER[5]}", {"text": "y"}, who="ann").status == 200
