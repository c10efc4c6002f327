"""The service's cursors. They are signed, so they cannot be made up: walk the list once and note them all.

Cursors are bound to the list (resource, sort, filter, viewer) and not to page size or fields (CONTRACT B5),
so what a connection gives is good for `posts(after:)` and for `GET /orders?after=` too.
"""

from __future__ import annotations

import json

from bench.cases import Request
from bench.rows import COUNTS, Table
from bench.servers import BenchError, Server

PAGE = 100
QUERY = "query($after: String){ %s(first: 100, after: $after) { edges { cursor node { id } } } }"


def cursors(server: Server, table: Table) -> dict[str, str]:
    """The cursor of every row of a table that the viewer may see, by id."""
    found: dict[str, str] = {}
    after: str | None = None
    for _ in range(COUNTS[table] // PAGE + 1):
        page = _page(server, f"{table}Connection", after)
        found.update(page)
        if len(page) < PAGE:
            break
        after = page[-1][1]
    return found


def _page(server: Server, field: str, after: str | None) -> list[tuple[str, str]]:
    body = json.dumps({"query": QUERY % field, "variables": {"after": after}})
    status, answer = server.ask(Request("POST", "/graphql", body))
    decoded = json.loads(answer)
    if status != 200 or decoded.get("errors"):
        raise BenchError(f"{server.name}: {field} answered {status}: {answer[:300]!r}")
    return [(edge["node"]["id"], edge["cursor"]) for edge in decoded["data"][field]["edges"]]
