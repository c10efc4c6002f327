"""Rows of the default model that expected answers are written down from.

    Ann    posts 1 Alpha, 2 Beta, 3 Draft (not published)        orders 1, 2, 3
    Ben    posts 4 Alpha, 5 beta, 6 Hidden (not published)       orders 4, 5, 7
    Cleo   posts 7 Émile, 8 Alpha                                order  6
    Zoë    nothing

Titles and totals have duplicates, notes have nulls, and ids ascend as the numbers do.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

Rows = dict[str, list[dict[str, Any]]]


def an_id(kind: str, number: int) -> str:
    """A fixed UUIDv7: kind is a hexadecimal digit."""
    return f"01900000-0000-7000-8000-0000000000{kind}{number}"


ANN, BEN, CLEO, ZOE = (an_id("a", number) for number in range(1, 5))
POST = [an_id("b", number) for number in range(9)]
COMMENT = [an_id("c", number) for number in range(9)]
ORDER = [an_id("d", number) for number in range(8)]
NOBODY = an_id("e", 9)
"""A well-formed id that no row has."""
ILL_FORMED = ("1", "x", "0", ANN.upper(), ANN.replace("-", ""), ANN + "0", "{" + ANN + "}", " " + ANN, "null")
"""What PostgreSQL or a kind parser might take for an id; it names nothing."""


def day(number: int) -> str:
    return f"2026-01-{number:02}T00:00:00.000000Z"


def _row(id: str, number: int, **values: Any) -> dict[str, Any]:
    return {"id": id, "version": 1, "createdAt": day(number), "updatedAt": day(number), **values}


def _user(id: str, number: int, name: str, email: str, version: int = 1) -> dict[str, Any]:
    return _row(id, number, name=name, email=email) | {"version": version}


def _post(number: int, author: str, title: str, body: str, published: bool = True) -> dict[str, Any]:
    return _row(POST[number], number, authorId=author, title=title, body=body, published=published)


def _comment(number: int, post: int, author: str, body: str) -> dict[str, Any]:
    return _row(COMMENT[number], number, postId=POST[post], authorId=author, body=body)


def _order(
    number: int, customer: str, status: str, total: str, note: str | None = None, internal: str | None = None
) -> dict[str, Any]:
    return _row(
        ORDER[number],
        number,
        customerId=customer,
        status=status,
        total=Decimal(total),
        currency="EUR",
        note=note,
        internalNote=internal,
    )


ROWS: Rows = {
    "User": [
        _user(ANN, 1, "Ann", "ann@example.com", version=3),
        _user(BEN, 2, "Ben", "ben@example.com"),
        _user(CLEO, 3, "Cleo", "cleo@example.com"),
        _user(ZOE, 4, "Zoë", "zoe@example.com"),
    ],
    "Post": [
        _post(1, ANN, "Alpha", "first words"),
        _post(2, ANN, "Beta", "100% of_it"),
        _post(3, ANN, "Draft", "not yet", published=False),
        _post(4, BEN, "Alpha", "again"),
        _post(5, BEN, "beta", "lower case"),
        _post(6, BEN, "Hidden", "for Ben alone", published=False),
        _post(7, CLEO, "Émile", 'é "quoted" \\ 😀'),
        _post(8, CLEO, "Alpha", "third"),
    ],
    "Comment": [
        _comment(1, 1, BEN, "nice"),
        _comment(2, 1, CLEO, "so-so"),
        _comment(3, 1, ANN, "thanks"),
        _comment(4, 2, BEN, "hm"),
        _comment(5, 3, ANN, "note to self"),
        _comment(6, 4, ANN, "again?"),
        _comment(7, 6, BEN, "hidden too"),
        _comment(8, 8, CLEO, "me"),
    ],
    "Order": [
        _order(1, ANN, "pending", "10.00"),
        _order(2, ANN, "paid", "20.50", "gift", "checked"),
        _order(3, ANN, "paid", "20.50"),
        _order(4, BEN, "shipped", "5.00", "Gift"),
        _order(5, BEN, "cancelled", "0.00", None, "odd"),
        _order(6, CLEO, "delivered", "99999.99", "50% off"),
        _order(7, BEN, "paid", "20.50", "a_b"),
    ],
}
