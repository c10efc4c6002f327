"""The sort oracle: the order of rows tells of a field that is not shown.

Published for Django REST framework (until 2.3.12 a list could be ordered by any column, a password's hash too) and
for Parse Server (GHSA-r2m8-pxm9-9c4g). Here a field that its caller never sees has no name to sort by, and one that
is hidden on some rows sorts there as null: last in both directions.
"""

from __future__ import annotations

import pytest

from diptych.policy import access
from tests.contract.faults import club
from tests.contract.faults.club import PERSON
from tests.contract.faults.scene import Question, Scene, changed, documents, urls
from tests.contract.http import data
from tests.contract.http.data import ANN, BEN, CLEO, ZOE

WORLDS = [changed(data.ROWS, "User", BEN, email=each) for each in ("ben@example.com", "zz@example.org")]
QUESTIONS = [
    *urls("/users", ({"sort": keys, "fields": "id"} for keys in ("email", "-email", "-email,name", "email,-id"))),
    *urls(
        "/users",
        [
            {"sort": "email", "first": "1", "offset": "1", "fields": "id"},
            {"sort": "-email", "last": "2", "fields": "id"},
            {"sort": "-email", "first": "2", "count": "exact", "fields": "id"},
        ],
    ),
    *documents("{ …users(orderBy: [{email: ASC}]) { id } }", ["", "mine: "]),
    Question("{ users(orderBy: [{email: DESC}], first: 2) { id } }"),
    Question("{ usersConnection(orderBy: [{email: DESC}], first: 2) { edges { cursor } pageInfo { endCursor } } }"),
]
RELATED = [
    *urls("/posts", ({"sort": keys, "fields": "id"} for keys in ("author.email", "-author.email,title"))),
    Question("{ posts(orderBy: [{author: {email: DESC}}]) { id } }"),
]
CLUB_WORLDS = [changed(club.ROWS, "Person", PERSON[3], score=each) for each in (30, 5)]
CLUB_QUESTIONS = [
    *urls("/persons", ({"sort": keys, "fields": "id"} for keys in ("score", "-score"))),
    Question(
        f"/persons/{PERSON[2]}?fields=id,pupils[sort=score](id),mentor(pupils[sort=-score](pupils[sort=score](id)))"
    ),
]


def test_a_sort_by_a_masked_field_is_the_same_whatever_its_value(shop: Scene) -> None:
    """Ann, who sees no email but her own, gets Ben in the same place wherever his would sort."""
    assert shop.told_apart(WORLDS, QUESTIONS, who="ann") == []
    assert shop.told_apart(WORLDS, QUESTIONS, who="admin") == QUESTIONS


def test_a_sort_by_a_masked_field_of_a_related_row_does_not_depend_on_its_value(shop: Scene) -> None:
    assert shop.told_apart(WORLDS, RELATED, who="ann") == []
    assert shop.told_apart(WORLDS, RELATED, who="admin") == RELATED


def test_with_unmasked_sorts_the_order_would_tell(shop: Scene) -> None:
    """The same check with the fault planted: sorts look at the column itself."""
    with shop.planted(access, "_column", lambda column, resource: column):
        assert shop.told_apart(WORLDS, QUESTIONS, who="ann") == QUESTIONS


def test_a_number_that_is_masked_sorts_as_null_too(members: Scene) -> None:
    """As with emails, through a relation of people to people; Ben sees his own score alone."""
    assert members.told_apart(CLUB_WORLDS, CLUB_QUESTIONS[:2], who="ben") == []
    assert members.told_apart(CLUB_WORLDS, CLUB_QUESTIONS[:2], who="admin") == CLUB_QUESTIONS[:2]
    assert members.told_apart(CLUB_WORLDS, CLUB_QUESTIONS, who="ann") == []


def test_what_is_masked_stands_last_in_both_directions(shop: Scene) -> None:
    """Ann stands first, by the one email that she sees; the others stand by their ids, as if they had none."""
    rest = [BEN, CLEO, ZOE]
    for keys, order in (("email", [ANN, *rest]), ("-email", [ANN, *rest]), ("email,-id", [ANN, *reversed(rest)])):
        assert [row["id"] for row in shop.get(f"/users?sort={keys}&fields=id", who="ann")["data"]] == order
    for way in ("ASC", "DESC"):
        found = shop.data(f"{{ users(orderBy: [{{email: {way}}}]) {{ id }} }}", who="ann")
        assert [row["id"] for row in found["users"]] == [ANN, *rest]


@pytest.mark.parametrize(
    ("who", "path", "hidden"), [("ann", "orders", "internalNote"), ("anonymous", "users", "email")]
)
def test_a_field_that_the_role_never_sees_cannot_be_sorted_by(shop: Scene, who: str, path: str, hidden: str) -> None:
    """It is refused as a name that no one has, in every place of a sort."""
    for keys in ("NAME", "-NAME", "id,NAME"):
        answer, other = (
            shop.rest("GET", f"/{path}?sort={keys.replace('NAME', name)}", who=who) for name in (hidden, "nothing")
        )
        assert answer.status == 400
        assert answer.body.replace(hidden.encode(), b"nothing") == other.body
    for root in (path, f"{path}Connection"):
        text = f"{{ {root}(orderBy: [{{NAME: ASC}}]) {{ __typename }} }}"
        answer, other = (shop.ql(text.replace("NAME", name), who=who) for name in (hidden, "nothing"))
        assert answer.status == 400
        assert answer.body.replace(hidden.encode(), b"nothing") == other.body


@pytest.mark.parametrize(
    "key",
    [
        "author.posts.title",
        "author.email.id",
        "author(email)",
        "author/email",
        "author[email]",
        "author__email",
        "email%00",
        "EMAIL",
        "email desc",
        "id;email",
    ],
)
def test_a_sort_has_no_other_way_through_a_relation(shop: Scene, key: str) -> None:
    """Dots were the way in at Parse Server, two underscores in Django: here one dot leads to a field of a related row."""
    for who in ("ann", "admin"):
        assert shop.rest("GET", f"/posts?sort={key}", who=who).status == 400
