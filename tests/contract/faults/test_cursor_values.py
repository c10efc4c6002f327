"""The cursor that carries a hidden value: what a list is sorted by stands in its cursors, and can be read there.

Cursors of most products are base64 of the sort keys of a row: whoever may sort by a column that is not shown reads it
there, and whoever writes such a cursor asks what they like. Here a cursor holds what its caller would see of the
keys, and is signed for one list of one caller: another's, or one that was changed, does not open.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diptych.ask.cursor import seal
from diptych.policy import access
from tests.contract.faults.scene import Scene
from tests.contract.http.data import BEN, POST

MAC = 12
"""Bytes of the signature, before the text."""
SECRETS = ("ben@example.com", "cleo@example.com", "zoe@example.com")


def inside_of(cursor: str) -> str:
    """What a cursor holds, as anyone can read it."""
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[MAC:].decode()


def cursors(shop: Scene, who: str) -> Iterator[str]:
    """The cursors of lists that are sorted by email, in both styles, at the root and inside."""
    for sort in ("email", "-email", "name,email"):
        page = shop.get(f"/users?sort={sort}&first=1&offset=1", who)["page"]
        yield from (page["next"], page["previous"])
    order = "first: 2, orderBy: [{email: DESC}]"
    data = shop.data(
        f"{{ usersConnection({order}) {{ edges {{ cursor }} pageInfo {{ startCursor endCursor }} }} }}", who=who
    )
    yield from (edge["cursor"] for edge in data["usersConnection"]["edges"])
    yield from data["usersConnection"]["pageInfo"].values()


def leaks(shop: Scene, who: str) -> list[str]:
    """The cursors that hold an email of someone else."""
    held = [inside_of(cursor) for cursor in cursors(shop, who)]
    assert all(isinstance(json.loads(text), list) for text in held)
    return [text for text in held if any(secret in text for secret in SECRETS)]


def test_a_cursor_holds_null_where_its_caller_would_see_null(shop: Scene) -> None:
    """Sorted by emails, of which Ann sees one: her cursors hold that one, ids, and nothing else."""
    assert leaks(shop, "ann") == []
    assert len(leaks(shop, "admin")) >= 8
    assert any("null" in inside_of(cursor) for cursor in cursors(shop, "ann"))


def test_with_unmasked_keys_the_cursors_would_hold_them(shop: Scene) -> None:
    """The same check with the fault planted: a sort takes the column itself."""
    with shop.planted(access, "_column", lambda column, resource: column):
        assert leaks(shop, "ann") != []


def test_pages_lead_through_the_whole_list_though_keys_are_masked(shop: Scene) -> None:
    """Nulls are keys like others: walking on from one cursor to the next meets every row once."""
    seen, url = [], "/users?sort=-email&first=1&fields=id"
    after = ""
    while after is not None:
        found = shop.get(url + (f"&after={after}" if after else ""), "ann")
        seen += [row["id"] for row in found["data"]]
        after = found["page"]["next"]
    assert seen == [row["id"] for row in shop.get("/users?sort=-email&fields=id", "ann")["data"]]


def test_a_cursor_of_another_caller_does_not_open(shop: Scene) -> None:
    """The admin's cursor, which holds an email, is nothing to Ann, and hers is nothing to Ben: the same refusal
    as noise."""
    noise = shop.rest("GET", "/users?sort=email&first=1&after=bm9pc2U", who="ann")
    assert (noise.status, noise.code) == (400, "BAD_REQUEST")
    for maker, taker in (("admin", "ann"), ("ann", "ben"), ("ann", "anonymous"), ("anonymous", "ann"), ("ben", "ann")):
        sort = "name" if "anonymous" in (maker, taker) else "email"
        cursor = shop.get(f"/users?sort={sort}&first=1", maker)["page"]["next"]
        answer = shop.rest("GET", f"/users?sort={sort}&first=1&after={cursor}", who=taker)
        assert (answer.status, answer.body) == (400, noise.body)


def test_a_cursor_of_another_list_does_not_open(shop: Scene) -> None:
    """Bound to the resource, the sort, the filter and its values; not to the size of a page."""
    cursor = shop.get("/posts?sort=title&first=2&published=true", "ann")["page"]["next"]
    assert (
        shop.rest("GET", f"/posts?sort=title&first=3&published=true&fields=id&after={cursor}", who="ann").status == 200
    )
    for url in (
        "/posts?sort=title&first=2",
        "/posts?sort=-title&published=true",
        "/posts?published=true",
        "/posts?sort=title&published=false",
        "/posts?sort=body&published=true",
        "/users?sort=name",
        "/comments?sort=body",
    ):
        assert shop.rest("GET", f"{url}&after={cursor}", who="ann").status == 400, url


def _tampered(cursor: str, key: bytes) -> Iterator[str]:
    """Cursors that were changed: in the signature, in the text, and signed by whoever does not know the key."""
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    texts = [
        b'["a","' + BEN.encode() + b'"]',
        b'["b' + raw[MAC + 3 :],
        raw[MAC:] + b" ",
        b"[null]",
        b"[]",
        b"",
        raw[MAC:].replace(b"a1", b"a2"),
    ]
    yield from (base64.urlsafe_b64encode(raw[:MAC] + text).rstrip(b"=").decode() for text in texts)
    yield base64.urlsafe_b64encode(bytes([raw[0] ^ 1]) + raw[1:]).rstrip(b"=").decode()
    yield base64.urlsafe_b64encode(raw[MAC:]).rstrip(b"=").decode()
    yield base64.urlsafe_b64encode(bytes(MAC) + raw[MAC:]).rstrip(b"=").decode()
    yield seal(key, raw[MAC:].decode())
    yield cursor + "A"
    yield cursor[:-2]
    yield cursor.swapcase()


@pytest.mark.parametrize("parameter", ["after", "before"])
def test_a_cursor_that_was_changed_does_not_open(shop: Scene, parameter: str) -> None:
    """Text, signature or both: a binary search by cursors of one's own making finds no way in."""
    cursor = shop.get("/users?sort=email&first=1", "ann")["page"]["next"]
    size = "first" if parameter == "after" else "last"
    call = f"usersConnection({size}: 1, {parameter}: $c, orderBy: [{{email: ASC}}])"
    for each in _tampered(cursor, b""):
        answer = shop.rest("GET", f"/users?sort=email&{size}=1&{parameter}={each}", who="ann")
        assert (answer.status, answer.code) == (400, "BAD_REQUEST"), each
        reply = shop.ql(f"query($c: String) {{ {call} {{ nodes {{ id }} }} }}", {"c": each}, who="ann")
        assert reply.code == "BAD_USER_INPUT", each


def test_a_cursor_at_a_row_that_is_hidden_meanwhile_tells_nothing_of_it(shop: Scene) -> None:
    """Its text was seen when it was made; where it leads, only rows that show now are found."""
    cursor = shop.get("/posts?first=3", "anonymous")["page"]["next"]
    before: Any = shop.get(f"/posts?first=3&after={cursor}", "anonymous")
    shop.service.execute(f"UPDATE posts SET published = (1 = 0) WHERE id = '{POST[4]}'")
    assert before["data"] == [
        row for row in shop.get(f"/posts?first=3&after={cursor}", "anonymous")["data"] if row["id"] != POST[4]
    ]
