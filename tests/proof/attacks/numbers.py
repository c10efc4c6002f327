"""Groups, summaries and searches that would be of too much: refused before any SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

from tests.proof.attacks.case import Case, family, get, post, times

_KEYS = ["title", "body", "published", "authorId", "createdAt:year", "updatedAt:day"]
_HAVING = {"or": [{"count": {"gte": number}} for number in range(900)]}
_GROUPS = "query($by: [OrdersGroupBy!]!) { ordersGroups(by: $by, first: 100) { count } }"
_DEAR = "a§: users(first: 100) { ordersSummary { count total { sum avg min max } } posts(first: 50) { commentsSummary { count } } }"


def _get(name: str, url: str, code: str) -> Case:
    return get(name, url, "other", code).by("admin")


CASES: Mapping[str, Case] = family(
    "numbers",
    [
        _get("six keys", f"/posts/groups?by={','.join(_KEYS)}&fields=count", "TOO_COMPLEX"),
        _get("1,000 keys", f"/orders/groups?by={','.join(['status'] * 1_000)}&fields=count", "BAD_REQUEST"),
        _get(
            "900 conditions on groups", f"/orders/groups?by=status&having={quote(json.dumps(_HAVING))}", "TOO_COMPLEX"
        ),
        _get("a page of 10,000 groups", "/orders/groups?by=status&first=10000&fields=count", "BAD_REQUEST"),
        _get("a search where there is none", f"/orders?search={'a' * 6_000}", "BAD_REQUEST"),
        post("1,000 keys in variables", _GROUPS, "other", "BAD_USER_INPUT", {"by": [{"status": "VALUE"}] * 1_000}).by(
            "admin"
        ),
        post("numbers of each row of a page of each row", f"{{ {times(3, _DEAR)} }}", "other", "TOO_COMPLEX").by(
            "admin"
        ),
        post(
            "60 measures",
            "{ ordersSummary { " + times(15, "a§: total { sum avg min max }") + " } }",
            "other",
            "TOO_COMPLEX",
        ).by("admin"),
    ],
)
