"""A service whose rows are put back before every test, and the people who write to it.

    shop.rest("PATCH", f"/posts/{POST[1]}", {"title": "New"}, who="ann").status == 200
    shop.ql('mutation { deletePost(id: "…") { id } }', who="zoe")
    with shop.unchanged(): …                                        not one column of one row is another after it

Ann and Ben are owners of what is theirs in `tests/contract/http/data.py`, and Zoë is a stranger to all of it. The staff and
the admin are people of whom there is no row. Whoever is "anonymous" has no token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.contract.http.data import ANN, BEN, CLEO, ZOE, an_id
from tests.support.in_process import Answer, Headers, Service

STAFF, ADMIN = an_id("e", 1), an_id("e", 2)
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "ann": (ANN,),
    "ben": (BEN,),
    "cleo": (CLEO,),
    "zoe": (ZOE,),
    "staff": (STAFF, "staff"),
    "admin": (ADMIN, "admin"),
}
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class Shop:
    """A service with its rows."""

    def __init__(self, service: Service, rows: Rows) -> None:
        self.service = service
        self.model = service.app.model
        self._rows = self._original = rows
        self._filled: dict[str, list[tuple[Any, ...]]] | None = None
        """What there is when the rows have just been put back, if that is known."""
        self._tokens: dict[str, str] = {}

    def refill(self) -> None:
        """All rows as they were, and no answer that is kept. Most tests change nothing, which takes less to see."""
        if self._rows is not self._original:
            self._put_back()
        elif self._filled is None or self.dump() != self._filled:
            self._put_back()
            self._filled = self._filled or self.dump()

    def _put_back(self) -> None:
        tables = ("diptych_replays", *(each.table for each in reversed([*self.model.resources.values()])))
        self.service.execute("; ".join(f'DELETE FROM "{table}"' for table in tables))
        for name, some in self._rows.items():
            resource = self.model.resources[name]
            names = [field.name for field in resource.fields.values() if field.stored]
            values = [[row.get(field) for field in names] for row in some]
            self.service.runner.run(self.service.app.store.insert(resource, names, values))

    # who asks

    def token(self, who: str) -> str | None:
        """The token of one of PEOPLE, or whatever else is given; nobody has none."""
        if who == "anonymous":
            return None
        if who in PEOPLE and who not in self._tokens:
            self._tokens[who] = self.service.token(*PEOPLE[who], ttl=86_400)  # a session of tests may take long
        return self._tokens.get(who, who)

    def narrow(self, who: str, *scopes: str) -> str:
        """A token of one of PEOPLE that has scopes."""
        return self.service.token(*PEOPLE[who], scopes=scopes)

    # requests

    def rest(
        self,
        method: str,
        url: str,
        body: Any = None,
        *,
        who: str = "admin",
        kind: str = "application/json",
        headers: Headers | None = None,
    ) -> Answer:
        """A request of the resource style; bytes go as they are, anything else as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        given = {**({"content-type": kind} if kind and method not in ("GET", "DELETE") else {}), **(headers or {})}
        return self.service.send(method, url, headers=given, body=raw, token=self.token(who))

    def ql(self, document: str, variables: Any = None, *, who: str = "admin", headers: Headers | None = None) -> Answer:
        """A request of the query style."""
        request = {"query": document} | ({} if variables is None else {"variables": variables})
        accept = "application/graphql-response+json"
        return self.service.post(request, token=self.token(who), accept=accept, headers=headers)

    def get(self, url: str, who: str = "admin") -> Any:
        """What GET gives, which must be there."""
        answer = self.rest("GET", url, who=who)
        assert answer.status == 200, answer.body
        return answer.json()

    def data(self, document: str, variables: Any = None, *, who: str = "admin") -> Any:
        """The data of an operation that must succeed."""
        answer = self.ql(document, variables, who=who)
        assert answer.status == 200 and "errors" not in answer.json(), answer.body
        return answer.json()["data"]

    # the rows themselves

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every column of every row, and every answer that is kept."""
        tables = [each.table for each in self.model.resources.values()]
        statements = [f'SELECT * FROM "{table}" ORDER BY id' for table in tables]
        found = self._select(*statements, "SELECT * FROM diptych_replays ORDER BY caller, key")
        return dict(zip([*tables, "replays"], found, strict=True))

    def count(self, table: str) -> int:
        """How many rows a table has."""
        (((found,),),) = self._select(f'SELECT count(*) FROM "{table}"')
        return int(found)

    def version(self, table: str, id: Any) -> int:
        """The version of a row."""
        (((found,),),) = self._select(f"SELECT version FROM \"{table}\" WHERE id = '{id}'")
        return int(found)

    def _select(self, *statements: str) -> list[list[tuple[Any, ...]]]:
        async def look() -> list[list[tuple[Any, ...]]]:
            session = await self.service.app.store.session()
            try:
                return [[tuple(row) for row in await session.rows(sql, ())] for sql in statements]
            finally:
                await session.end()

        return self.service.runner.run(look())

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Nothing is written, and the next request is served."""
        before = self.dump()
        yield
        assert self.dump() == before
        assert self.rest("GET", "/health/ready").status == 200


def error_of(answer: Answer) -> dict[str, Any]:
    """The one error of an answer in the query style that was running: there is data, and it is null."""
    body = answer.json()
    assert answer.status == 200 and body["data"] is None, answer.body
    (error,) = body["errors"]
    assert isinstance(error, dict)
    return error


def without(body: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The same object without some of its members."""
    return {key: value for key, value in body.items() if key not in names}
