"""The oracle through a relation: what is hidden is reached from a row that is not, along one relation or several.

Published for Strapi (CVE-2022-30618: content that was related to users, directly or not, told of their secrets),
PocketBase (until 0.32 a filter or sort through a relation took no notice of the rules of where it led) and API
Platform (#4169: a relation of GraphQL was followed without the rules of its target). Here the rules of every row on
the way are part of the question.
"""

from __future__ import annotations

from typing import Any

import pytest

from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import Has, and_
from diptych.model.view import View
from diptych.policy import access
from tests.contract.faults import club
from tests.contract.faults.club import CIRCLE, PERSON, SEAT
from tests.contract.faults.scene import Question, Scene, changed, documents, urls, without
from tests.contract.http import data
from tests.contract.http.data import ANN, BEN, COMMENT, ORDER, POST

STARTS = {"startsWith": "b"}


def wheres(path: str, *filters: dict[str, Any]) -> list[Question]:
    """The same filters, each as a parameter of one path."""
    return urls(path, ({"where": each, "fields": "id", "count": "exact"} for each in filters))


EMAILS = [changed(data.ROWS, "User", BEN, email=each) for each in ("ben@example.com", "zed@example.org")]
BY_EMAIL = [
    *wheres(
        "/posts",
        {"author": {"email": STARTS}},
        {"not": {"author": {"email": STARTS}}},
        {"author": {"not": {"email": STARTS}}},
        {"author": {"or": [{"email": {"gt": "m"}}]}},
        {"comments": {"some": {"author": {"email": STARTS}}}},
        {"comments": {"none": {"author": {"email": STARTS}}}},
        {"comments": {"every": {"author": {"email": STARTS}}}},
        {"comments": {"some": {"post": {"author": {"email": STARTS}}}}},
    ),
    *wheres("/comments", {"author": {"email": STARTS}}, {"post": {"author": {"email": {"lt": "m"}}}}),
    *wheres(
        "/users",
        {"posts": {"some": {"author": {"email": STARTS}}}},
        {"posts": {"none": {"author": {"email": STARTS}}}},
        {"comments": {"every": {"author": {"email": {"ne": "ben@example.com"}}}}},
    ),
    *documents(
        "{ posts(where: …) { id } }",
        [
            '{author: {email: {startsWith: "b"}}}',
            '{comments: {none: {author: {email: {gt: "m"}}}}}',
            '{author: {posts: {some: {author: {email: {eq: "ben@example.com"}}}}}}',
        ],
    ),
    Question('{ users { id posts(where: {author: {email: {startsWith: "b"}}}) { id } } }'),
    Question("/users?fields=id,posts[where=" + '{"author":{"email":{"startsWith":"b"}}}' + "](id)"),
    Question("/posts?fields=id,author(email,posts(author(email)))"),
    Question("{ comments { author { email } post { author { email } comments { author { email } } } } }"),
]


def test_a_masked_field_cannot_be_guessed_through_a_relation(shop: Scene) -> None:
    """`posts?where={"author": {"email": …}}` and its kind: to one, to many, and back to the row itself."""
    assert shop.told_apart(EMAILS, BY_EMAIL, who="ann") == []
    assert shop.told_apart(EMAILS, BY_EMAIL, who="admin") == BY_EMAIL


OWN_ORDERS = [changed(data.ROWS, "Order", ORDER[4], note=each) for each in ("Gift", "other")]
BY_ORDER = [
    *wheres(
        "/users",
        {"orders": {"some": {"note": {"eq": "Gift"}}}},
        {"orders": {"none": {"note": {"eq": "Gift"}}}},
        {"orders": {"every": {"note": {"isNull": True}}}, "not": {"orders": {"some": {"note": {"eq": "other"}}}}},
        {"posts": {"some": {"author": {"orders": {"some": {"note": {"startsWith": "G"}}}}}}},
    ),
    *wheres("/posts", {"author": {"orders": {"some": {"customer": {"orders": {"some": {"note": {"eq": "Gift"}}}}}}}}),
    Question(f"/users/{BEN}?fields=name,orders(note)"),
    Question(f"/users/{BEN}/orders?fields=note&count=exact"),
    Question(f"/orders/{ORDER[4]}"),
    *documents(
        f'{{ user(id: "{BEN}") {{ … }} }}',
        ["orders { note }", 'ordersConnection(where: {note: {eq: "Gift"}}) { totalCount }'],
    ),
]


def test_rows_that_are_hidden_do_not_count_in_a_relation(shop: Scene) -> None:
    """Ben's orders are not there for Ann: neither `some` nor `none` nor `every` over them tells what they hold."""
    assert shop.told_apart(OWN_ORDERS, BY_ORDER, who="ann") == []
    told = shop.told_apart(OWN_ORDERS, BY_ORDER, who="staff")
    assert told == [each for each in BY_ORDER if "every" not in each.text]
    fewer = without(data.ROWS, "Order", ORDER[4], ORDER[5], ORDER[7])
    assert shop.told_apart([data.ROWS, fewer], BY_ORDER, who="ann") == []


DRAFTS = [changed(data.ROWS, "Post", POST[6], title=each) for each in ("Hidden", "Bidden")]
HIDES = {"title": {"startsWith": "H"}}
BY_DRAFT = [
    *wheres("/comments", {"post": HIDES}, {"not": {"post": HIDES}}, {"post": {"not": HIDES}}),
    *wheres(
        "/users",
        {"comments": {"some": {"post": HIDES}}},
        {"posts": {"some": HIDES}},
        {"posts": {"none": HIDES}},
        {"posts": {"every": {"not": HIDES}}},
        {"comments": {"none": {"post": HIDES}}},
    ),
    Question(f"/comments/{COMMENT[7]}?fields=body,post(title)"),
    Question(f'{{ comment(id: "{COMMENT[7]}") {{ post {{ title }} }} }}'),
    Question(
        f'{{ user(id: "{BEN}") {{ posts(orderBy: [{{title: ASC}}]) {{ title }} comments {{ post {{ title }} }} }} }}'
    ),
]


def test_the_title_of_a_draft_does_not_come_through_its_comments(shop: Scene) -> None:
    """comments → post → title: a comment on a draft is as hidden as the draft."""
    assert shop.told_apart(DRAFTS, BY_DRAFT, who="ann") == []
    assert shop.told_apart(DRAFTS, BY_DRAFT, who="anonymous") == []
    assert shop.told_apart(DRAFTS, BY_DRAFT, who="ben") == BY_DRAFT


def test_without_the_rules_of_the_target_a_relation_would_tell(shop: Scene) -> None:
    """The same check with the fault planted: a filter through a relation ranges over all rows."""

    def unruled(has: Has, resource: ResourceView, view: View) -> Has:
        way = resource.relations[has.relation]
        return Has(
            has.relation, and_(access.narrow_expr(has.where, view.resources[way.relation.target], view)), way.link
        )

    with shop.planted(access, "_has", unruled):
        told = shop.told_apart(DRAFTS, BY_DRAFT, who="ann")
    assert told == [each for each in BY_DRAFT if each.text.startswith("/users")]


# a relation to itself, and a linking resource

CODES = [changed(club.ROWS, "Person", PERSON[1], code=each) for each in ("a-17", "x-17")]
A = {"code": {"startsWith": "a"}}
BY_CODE = [
    *wheres(
        "/persons",
        {"mentor": A},
        {"not": {"mentor": A}},
        {"mentor": {"mentor": A}},
        {"pupils": {"some": {"mentor": A}}},
        {"pupils": {"none": {"mentor": A}}},
        {"pupils": {"every": {"mentor": A}}},
    ),
    *wheres("/seats", {"person": A}, {"circle": {"people": {"some": A}}}),
    *wheres("/circles", {"people": {"some": A}}, {"people": {"none": A}}, {"seats": {"some": {"person": A}}}),
    Question(f"/persons/{PERSON[2]}?fields=name,mentor(code,pupils(mentor(code)))"),
    Question(f'{{ person(id: "{PERSON[3]}") {{ mentor {{ mentor {{ code pupils {{ mentor {{ code }} }} }} }} }} }}'),
]


def test_a_relation_to_itself_does_not_unmask_in_either_direction(members: Scene) -> None:
    """Ben sees his own code; from him to his mentor, from the mentor back to himself and up again, it stays so."""
    assert members.told_apart(CODES, BY_CODE, who="ben") == []
    assert members.told_apart(CODES, BY_CODE, who="admin") == BY_CODE
    found = members.get(
        f"/persons/{PERSON[2]}?fields=code,mentor(code,pupils(code,pupils(code,mentor(code))))", who="ben"
    )
    assert found == {
        "code": "b-42",
        "mentor": {"code": None, "pupils": [{"code": "b-42", "pupils": [{"code": None, "mentor": {"code": "b-42"}}]}]},
    }


SEATS = [club.ROWS, without(club.ROWS, "Seat", SEAT[4], SEAT[5])]
BY_SEAT = [
    *wheres(
        "/circles",
        {"people": {"some": {"name": {"eq": "Cleo"}}}},
        {"people": {"none": {"name": {"eq": "Cleo"}}}},
        {"people": {"every": {"name": {"ne": "Cleo"}}}},
        {"seats": {"some": {"person": {"name": {"eq": "Cleo"}}}}},
        {"seats": {"none": {"quiet": {"eq": True}}}},
    ),
    *wheres(
        "/persons",
        {"circles": {"some": {"name": {"eq": "choir"}}}},
        {"seats": {"some": {"circle": {"open": {"eq": True}}}}},
        {"circles": {"none": {}}},
    ),
    Question(f"/circles/{CIRCLE[3]}?fields=name,people(name),seats(id)"),
    Question(f"/persons/{PERSON[3]}?fields=name,circles(name),seats(id)"),
    Question(f"/circles/{CIRCLE[3]}/people?count=exact"),
    Question("{ circles { peopleConnection { totalCount } seatsConnection { totalCount } } }"),
]


def test_hidden_rows_of_a_linking_resource_link_nothing(members: Scene) -> None:
    """Cleo sits quietly in the choir: for others no filter, list or count through seats tells so."""
    assert members.told_apart(SEATS, BY_SEAT, who="ann") == []
    assert members.told_apart(SEATS, BY_SEAT, who="cleo") == BY_SEAT


HEISTS = [changed(club.ROWS, "Circle", CIRCLE[2], name=each) for each in ("heist", "opera")]
BY_HEIST = [
    *wheres(
        "/persons",
        {"circles": {"some": {"name": {"eq": "heist"}}}},
        {"circles": {"every": {"name": {"ne": "heist"}}}},
        {"seats": {"some": {"circle": {"name": {"startsWith": "h"}}}}},
        {"seats": {"none": {"circle": {"name": {"startsWith": "h"}}}}},
        {"seats": {"every": {"circle": {"name": {"ne": "heist"}}}}},
    ),
    *wheres("/seats", {"circle": {"name": {"eq": "heist"}}}),
    Question(f"/seats/{SEAT[3]}?fields=id,circle(name)"),
    Question("{ seats { circle { name } } }"),
]


def test_a_hidden_row_behind_a_link_that_shows_stays_hidden(members: Scene) -> None:
    """The seat of Ben in a closed circle can be read, the circle cannot: its name is told by nothing around it."""
    assert members.told_apart(HEISTS, BY_HEIST, who="ann") == []
    assert members.told_apart(HEISTS, BY_HEIST, who="ben") == []
    assert members.told_apart(HEISTS, BY_HEIST, who="admin") == BY_HEIST


@pytest.mark.parametrize(
    ("who", "hidden", "url"),
    [
        ("anonymous", "email", '/posts?where={"author":{"NAME":{"startsWith":"b"}}}'),
        ("anonymous", "email", "/posts?fields=author(NAME)"),
        ("anonymous", "email", "/posts?fields=comments(post(author(NAME)))"),
        ("anonymous", "orders", '/posts?where={"author":{"NAME":{"some":{}}}}'),
        ("anonymous", "orders", "/posts?fields=author(NAME(total))"),
        ("ann", "internalNote", "/users?fields=orders(NAME)"),
        ("ann", "internalNote", "/users?fields=orders[sort=NAME](id)"),
        ("ann", "internalNote", '/users?where={"orders":{"some":{"NAME":{"isNull":false}}}}'),
        ("ann", "internalNote", f"/users/{ANN}/orders?NAME=x"),
        ("ann", "internalNote", f"/users/{ANN}/orders?sort=NAME"),
    ],
)
def test_what_the_role_never_sees_has_no_name_at_the_end_of_a_relation(
    shop: Scene, who: str, hidden: str, url: str
) -> None:
    """Refused with the same words as a name that no one has, however deep it stands."""
    answer, other = (shop.rest("GET", url.replace("NAME", name), who=who) for name in (hidden, "nothing"))
    assert answer.status == 400
    assert answer.body.replace(hidden.encode(), b"nothing") == other.body
