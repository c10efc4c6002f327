"""Nested writes that would write or nest too much: refused before any SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.contract.http.data import ANN
from tests.proof.attacks.case import Case, family, post, send

_CREATE = "mutation($user: UserCreate!) { createUser(input: $user) { id } }"
_NEW = {"name": "a", "email": "a@example.org"}


def _tower(rounds: int) -> dict[str, Any]:
    """A user whose post has a comment by a user whose post has a comment …: three levels each round."""
    user: dict[str, Any] = dict(_NEW)
    for _ in range(rounds):
        comment = {"body": "b", "author": {"create": user}}
        user = {**_NEW, "posts": {"create": [{"title": "t", "body": "b", "comments": {"create": [comment]}}]}}
    return user


def _orders(count: int, **more: Any) -> dict[str, Any]:
    return {**_NEW, "orders": {"create": [{"total": "1", **more}] * count}}


def _deep(levels: int) -> dict[str, Any]:
    """Orders that name a customer who is made with orders, so many levels."""
    user: dict[str, Any] = _orders(1)
    for _ in range(levels):
        user = {**_NEW, "posts": {"update": [{"id": ANN, "patch": {"author": {"create": user}}}]}}
    return user


CASES: Mapping[str, Case] = family(
    "nests",
    [
        send("100 rows in a row", "POST", "/users", _orders(100), "other", "TOO_COMPLEX").by("admin"),
        send("9,000 rows in a row", "POST", "/users", _orders(4_000), "other", "TOO_COMPLEX").by("admin"),
        send("a hundred arrays", "POST", "/users/batch", [_orders(40)] * 100, "other", "TOO_COMPLEX").by("admin"),
        send(
            "20 requests of 99 rows",
            "POST",
            "/batch",
            {"requests": [{"method": "POST", "url": "/users", "body": _orders(99)}] * 20},
            "other",
            "TOO_COMPLEX",
        ).by("admin"),
        send("rows of a new row that are changed", "POST", "/users", _deep(9), "other", "BAD_USER_INPUT").by("admin"),
        send(
            "1,000 references",
            "POST",
            "/batch",
            {
                "requests": [
                    {"id": f"s{n}", "method": "PATCH", "url": f"/users/$s{n - 1}", "body": {}} for n in range(1_000)
                ]
            },
            "other",
            "TOO_COMPLEX",
        ).by("admin"),
        post(
            "20 root fields of 1,000 references",
            "mutation($u: UserPatch!) { "
            + " ".join(f'a{n}: updateUser(id: "$a{n - 1}", patch: $u) {{ id }}' for n in range(20))
            + " }",
            "other",
            "TOO_COMPLEX",
            {"u": {"orders": {"connect": [{"id": f"$a{n}"} for n in range(1_000)]}}},
        ).by("admin"),
        send("12 levels", "POST", "/users", _tower(4), "other", "TOO_DEEP").by("admin"),
        post("12 levels in variables", _CREATE, "other", "TOO_DEEP", {"user": _tower(4)}).by("admin"),
        send(
            "9,000 words",
            "POST",
            "/users",
            {**_NEW, "orders": {f"w{n}": [] for n in range(9_000)}},
            "other",
            "BAD_USER_INPUT",
        ).by("admin"),
        send(
            "9,000 faults", "POST", "/users", {**_NEW, "orders": {"create": [1] * 9_000}}, "other", "BAD_USER_INPUT"
        ).by("admin"),
        send("a stranger", "POST", "/users", _orders(4_000), "other", "UNAUTHENTICATED"),
        post("100 rows in variables", _CREATE, "other", "TOO_COMPLEX", {"user": _orders(100)}).by("admin"),
        post("4,000 rows in variables", _CREATE, "other", "TOO_COMPLEX", {"user": _orders(4_000)}).by("admin"),
        post(
            "20 root fields of 99 rows",
            "mutation($u: UserCreate!) { "
            + " ".join(f"a{n}: createUser(input: $u) {{ id }}" for n in range(20))
            + " }",
            "other",
            "TOO_COMPLEX",
            {"user": 1, "u": _orders(99)},
        ).by("admin"),
    ],
)
