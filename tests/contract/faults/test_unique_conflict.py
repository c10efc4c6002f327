"""The unique violation that tells whose: the text of a conflict names a row or a value that its reader may not see.

PostgreSQL's own text says `Key (email)=(…) already exists`, and PostgREST, Hasura and most products hand it on. Here
a conflict tells the one thing that it cannot hide, that the caller's own value is taken: the same words whoever has
it, seen or hidden, and only where the caller could have made the change.
"""

from __future__ import annotations

from typing import Any

from tests.contract.faults.club import CIRCLE, PERSON
from tests.contract.faults.scene import Scene
from tests.contract.http.data import ANN, BEN, CLEO, ZOE
from tests.contract.writes.shop import JSON_PATCH
from tests.support.in_process import Answer

IDS = [id.encode() for id in (ANN, BEN, CLEO, ZOE, *PERSON, *CIRCLE)]


def tells_of_no_row(answer: Answer) -> bool:
    """No id, no value, and none of the words that databases use."""
    words = (
        b"key",
        b"constraint",
        b"duplicate",
        b"users",
        b"circles",
        b"sqlite",
        b"unique",
        b"index",
        b"@example.com",
        b"heist",
        b"chess",
    )
    return not any(each in answer.body.lower() for each in (*words, *IDS))


def test_a_conflict_is_the_same_whoever_has_the_value(members: Scene) -> None:
    """A circle with the name of one that Zoë sees, and of one that she does not: byte by byte the same answer."""
    with members.unchanged():
        seen, hidden = (members.rest("POST", "/circles", {"name": name}, who="zoe") for name in ("chess", "heist"))
        assert (seen.status, seen.code, seen.places) == (409, "CONFLICT", ["/name"])
        assert (seen.body, dict(seen.headers)) == (hidden.body, dict(hidden.headers))
        assert tells_of_no_row(hidden)
        document = "mutation($n: String!) { createCircle(input: {name: $n}) { id } }"
        one, other = (members.ql(document, {"n": name}, who="zoe") for name in ("chess", "heist"))
        assert one.code == "CONFLICT" and one.body == other.body and tells_of_no_row(other)
    assert members.rest("POST", "/circles", {"name": "opera"}, who="zoe").status == 201


def test_a_conflict_names_the_callers_own_field_and_no_other(shop: Scene) -> None:
    """By every way to give an email; the place is where the caller put it."""
    taken = "ben@example.com"
    ways: list[tuple[str, str, Any, str, list[str]]] = [
        ("PATCH", f"/users/{ANN}", {"email": taken}, "ann", ["/email"]),
        ("PATCH", f"/users/{ANN}", {"name": "x", "email": taken}, "ann", ["/email"]),
        ("PUT", f"/users/{ANN}", {"name": "x", "email": taken}, "ann", ["/email"]),
        ("POST", "/users", {"name": "x", "email": taken}, "admin", ["/email"]),
        (
            "POST",
            "/users",
            [{"name": "x", "email": "free@x.org"}, {"name": "y", "email": taken}],
            "admin",
            ["/1/email"],
        ),
        (
            "POST",
            "/users",
            [{"name": "x", "email": "free@x.org"}, {"name": "y", "email": "free@x.org"}],
            "admin",
            ["/1/email"],
        ),
    ]
    with shop.unchanged():
        for method, url, body, who, places in ways:
            answer = shop.rest(method, url, body, who=who)
            assert (answer.status, answer.code, answer.places) == (409, "CONFLICT", places)
            assert tells_of_no_row(answer)
        patch = [{"op": "replace", "path": "/email", "value": taken}]
        answer = shop.rest("PATCH", f"/users/{ANN}", patch, who="ann", kind=JSON_PATCH)
        assert answer.status == 409 and tells_of_no_row(answer)
        reply = shop.ql(f'mutation {{ updateUser(id: "{ANN}", patch: {{email: "{taken}"}}) {{ id }} }}', who="ann")
        assert reply.code == "CONFLICT" and tells_of_no_row(reply)


def test_who_may_not_make_the_change_learns_nothing_of_the_value(shop: Scene, members: Scene) -> None:
    """A conflict comes after every rule: taken or free, the answer is the one that the rules give."""
    tries: list[tuple[Scene, str, str, str, str, str]] = [
        (shop, "POST", "/users", "email", "ben@example.com", "free@x.org"),
        (shop, "PATCH", f"/users/{CLEO}", "email", "ben@example.com", "free@x.org"),
        (members, "PATCH", f"/persons/{PERSON[2]}", "code", "c-99", "x-00"),
    ]
    for place, method, url, field, taken, free in tries:
        with place.unchanged():
            one, other = (place.rest(method, url, {"name": "x", field: value}, who="ann") for value in (taken, free))
            assert one.status == 403
            assert (one.status, one.body, dict(one.headers)) == (other.status, other.body, dict(other.headers))


def test_a_stale_version_is_told_before_a_conflict(shop: Scene) -> None:
    """412, taken or free: whoever has not read the row anew cannot ask it for others' emails."""
    with shop.unchanged():
        answers = [
            shop.rest("PATCH", f"/users/{ANN}", {"email": email}, who="ann", headers={"if-match": '"1.x"'})
            for email in ("ben@example.com", "free@x.org")
        ]
    assert [answer.status for answer in answers] == [412, 412]
    assert answers[0].body == answers[1].body


def test_a_conflict_is_as_exact_as_the_value(shop: Scene) -> None:
    """There is no conflict by prefix, by case or by pattern: the oracle that is left takes the whole value to ask."""
    for email in (
        "ben@example.co",
        "en@example.com",
        "BEN@example.com",
        "%@example.com",
        "b_n@example.com",
        "ben@example.com ",
    ):
        shop.refill()
        assert shop.rest("PATCH", f"/users/{ANN}", {"email": email}, who="ann").status in (200, 422), email


def test_a_reference_that_is_kept_names_no_row(shop: Scene) -> None:
    """Deleting a user who has orders is refused; whose and how many they are is not said."""
    with shop.unchanged():
        for who, id in (("ben", BEN), ("admin", BEN), ("cleo", CLEO)):
            answer = shop.rest("DELETE", f"/users/{id}", who=who)
            assert (answer.status, answer.code) == (409, "CONFLICT")
            assert tells_of_no_row(answer) and b"order" not in answer.body.lower()
