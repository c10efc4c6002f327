"""Random deletions, restores and purges in both styles, against a model of their own that knows no SQL."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from diptych.testing import Api, Client, serve
from tests.contract.writes.trash_model import MODEL
from tests.support.effort import scaled
from tests.support.running import NewDatabase

Edges = Mapping[str, tuple[str, ...]]
_CASCADE: Edges = {"Post": ("author",), "Comment": ("post", "parent", "by")}
_RESTRICT: Edges = {"Order": ("post",)}
_PATHS = {"User": "users", "Post": "posts", "Comment": "comments", "Order": "orders", "Note": "notes"}
_NAMES = ("ann", "bob", "cy")


@dataclass(eq=False)
class Row:
    kind: str
    id: str
    refs: dict[str, Row | None] = field(default_factory=dict)
    slug: str = ""
    version: int = 1
    mark: int = 0
    """The deletion by which it went; 0 if it is there."""


class Refused(Exception):
    pass


class Ledger:
    """What the rows should be."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.moment = 0

    def referring(self, row: Row, edges: Edges) -> list[Row]:
        return [other for other in self.rows for name in edges.get(other.kind, ()) if other.refs.get(name) is row]

    def delete(self, row: Row) -> None:
        self.moment += 1
        gone: list[Row] = []
        self._delete(row, gone)
        for each in gone:
            each.mark, each.version = self.moment, each.version + 1
            for note in self.rows:
                if note.kind == "Note" and note.refs["post"] is each:
                    note.refs["post"], note.version = None, note.version + 1

    def _delete(self, row: Row, gone: list[Row]) -> None:
        if any(not other.mark for other in self.referring(row, _RESTRICT)):
            raise Refused
        gone.append(row)
        for other in self.referring(row, _CASCADE):
            if not other.mark and other not in gone:
                self._delete(other, gone)

    def restore(self, row: Row) -> None:
        back: list[Row] = []
        if any(other is not None and other.mark for other in row.refs.values()):
            raise Refused
        self._restore(row, row.mark, back)
        slugs = [each.slug for each in self.rows if each.slug and (not each.mark or each in back)]
        if len(slugs) != len(set(slugs)):
            raise Refused
        for each in back:
            each.mark, each.version = 0, each.version + 1

    def _restore(self, row: Row, mark: int, back: list[Row]) -> None:
        back.append(row)
        for other in [*self.referring(row, _CASCADE), *self.referring(row, _RESTRICT)]:
            there = all(ref is None or not ref.mark or ref in back for ref in other.refs.values())
            if other.mark == mark and other not in back and there:
                self._restore(other, mark, back)

    def purge(self, row: Row) -> None:
        gone = [row]
        for each in gone:
            gone += [other for other in self.referring(each, _CASCADE) if other not in gone]
        if any(other not in gone for each in gone for other in self.referring(each, _RESTRICT)):
            raise Refused
        self.rows = [each for each in self.rows if each not in gone]


class Draw:
    def __init__(self, api: Api, seed: int) -> None:
        self.random = random.Random(seed)
        self.boss: Client = api.as_("admin")
        self.ledger = Ledger()
        self.history: list[str] = []

    def one(self, kind: str, *, deleted: bool = False) -> Row | None:
        rows = [row for row in self.ledger.rows if row.kind == kind and bool(row.mark) == deleted]
        return self.random.choice(rows) if rows else None

    def create(self) -> None:
        kind = self.random.choice(("User", "Post", "Post", "Comment", "Comment", "Comment", "Order", "Note"))
        row = Row(kind, "")
        body: dict[str, Any] = {}
        if kind == "User":
            body["name"] = "someone"
        if kind == "Post":
            row.refs["author"] = self.one("User")
            row.slug = body["slug"] = self.random.choice(_NAMES)
        if kind in ("Comment", "Order", "Note"):
            row.refs["post"] = self.one("Post")
        if kind == "Comment":
            body["body"] = "b"
            row.refs |= {"parent": self.one("Comment"), "by": self.one("User") if self.random.random() < 0.3 else None}
        if any(ref is None for name, ref in row.refs.items() if name in ("author", "post")):
            return
        body |= {f"{name}Id": ref.id for name, ref in row.refs.items() if ref is not None}
        taken = row.slug and any(each.slug == row.slug and not each.mark for each in self.ledger.rows)
        made = self.boss.post(f"/{_PATHS[kind]}", body).expect(409 if taken else 201).json()
        if not taken:
            row.id = made["id"]
            self.ledger.rows.append(row)

    def step(self) -> None:
        verb = self.random.choice(("create", "create", "create", "delete", "delete", "restore", "restore", "purge"))
        if verb == "create":
            return self.create()
        kinds = ("User", "Post", "Comment", "Order")
        row = self.one(self.random.choice(kinds), deleted=self.random.random() < (0.1 if verb == "delete" else 0.9))
        if row is None:
            return None
        status = 404
        if bool(row.mark) == (verb != "delete"):
            try:
                getattr(self.ledger, verb)(row)
                status = 200
            except Refused:
                status = 409
        self.history.append(f"{verb} {row.kind} {row.id} → {status}")
        assert self.sent(verb, row) == status, self.history
        return None

    def sent(self, verb: str, row: Row) -> int:
        """The status of a request, in either style."""
        path = f"/{_PATHS[row.kind]}/{row.id}"
        if self.random.random() < 0.5:
            if verb == "restore":
                return self.boss.post(path + "/restore").status
            done = self.boss.delete(path + "?deleted=only" * (verb == "purge")).status
            return 200 if done == 204 else done
        name, more = ("restore", "") if verb == "restore" else ("delete", ", deleted: ONLY" * (verb == "purge"))
        code = self.boss.graphql(f'mutation {{ {name}{row.kind}(id: "{row.id}"{more}) {{ id }} }}').code
        return {"": 200, "NOT_FOUND": 404, "CONFLICT": 409}[code]

    def check(self) -> None:
        """The rows that are there, and those in the trash, with their versions."""
        for kind, path in _PATHS.items():
            for deleted in (False, True) if kind != "Note" else (False,):
                want = {
                    row.id: row.version for row in self.ledger.rows if row.kind == kind and bool(row.mark) == deleted
                }
                url = f"/{path}?fields=id,version&first=100" + "&deleted=only" * deleted
                found: list[Any] = self.boss.get(url).expect(200).data
                assert {row["id"]: row["version"] for row in found} == want, (kind, deleted, self.history)


def test_deletions_and_restores_are_as_the_ledger_says(new_database: NewDatabase) -> None:
    for seed in range(scaled(20, 2)):
        with serve(MODEL, database=new_database()) as api:
            draw = Draw(api, seed)
            for number in range(60):
                draw.step()
                if number % 3 == 2:
                    draw.check()
