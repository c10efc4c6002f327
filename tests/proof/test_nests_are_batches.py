"""A random nested write is its unfolded batch: equal Asks in both styles, and the same rows afterwards.

The unfolding here is another one than that of the service: it prints the rows of a drawn tree as the requests of a
batch, with names for references, by the order that the documentation gives.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

import pytest
from msgspec.structs import replace

from diptych import Model, OnDelete, Resource, grant, inverse
from diptych.api.graphql.http import Parameters
from diptych.api.graphql.schema import build_schema
from diptych.api.graphql.understand import read_operation, translate_operation
from diptych.api.rest.query import read_query
from diptych.api.rest.target import find_target
from diptych.api.understand import METHOD_VERBS, understand_writes
from diptych.ask.measures import RequestMeasures
from diptych.ask.nodes import Write
from diptych.policy.limits import Checks
from tests.support.effort import scaled
from tests.support.in_process import Service, in_process
from tests.support.running import NewDatabase

DRAWS = scaled(300, 10)


class Owner(Resource):
    """Has boxes and notes."""

    name: str
    boxes: list[Box] = inverse("owner")
    notes: list[Note] = inverse("owner")

    access = (grant("read", "create", "update", "delete"),)


class Box(Resource, ids="integer"):
    """Has an owner, perhaps, and things."""

    owner: Annotated[Owner | None, OnDelete("set null")] = None
    label: str
    size: int = 1
    things: list[Thing] = inverse("box")

    access = (grant("read", "create", "update", "delete"),)


class Thing(Resource):
    """Is in a box, and may be part of another thing."""

    box: Annotated[Box, OnDelete("cascade")]
    whole: Annotated[Thing | None, OnDelete("cascade")] = None
    name: str
    parts: list[Thing] = inverse("whole")

    access = (grant("read", "create", "update", "delete"),)


class Note(Resource):
    """Belongs to an owner."""

    owner: Annotated[Owner | None, OnDelete("set null")] = None
    text: str

    access = (grant("read", "create", "update", "delete"),)


MODEL = Model(Owner, Box, Thing, Note)
TABLES = ("notes", "things", "boxes", "owners")
CHILDREN = {
    "Owner": (("boxes", "Box", "ownerId"), ("notes", "Note", "ownerId")),
    "Box": (("things", "Thing", "boxId"),),
    "Thing": (),
    "Note": (),
}
PARENT = {"Box": ("owner", "Owner"), "Note": ("owner", "Owner")}
TEXT = {"Owner": "name", "Box": "label", "Thing": "name", "Note": "text"}
NULLABLE = {"Box", "Note"}


@dataclass
class Batch:
    """The requests that a nested write is equal to."""

    requests: list[dict[str, Any]] = field(default_factory=list)

    def add(self, method: str, url: str, body: Any, version: int | None = None) -> str:
        name = f"s{len(self.requests)}"
        found = {"id": name, "method": method, "url": f"{url}?fields=id", "body": body}
        if body is None:
            del found["body"]
            found["url"] = url
        if version is not None:
            found["headers"] = {"if-match": f'"{version}."'}
        self.requests.append(found)
        return f"${name}"


class Drawn:
    """Draws a tree: the body of a nested write, and its batch."""

    def __init__(self, random: Random, rows: dict[str, list[dict[str, Any]]]) -> None:
        self.random = random
        self.rows = rows
        self.batch = Batch()
        self.used: set[Any] = set()

    def text(self) -> str:
        return "".join(self.random.choices("abcdef", k=4))

    def new(self, kind: str, levels: int, under: tuple[str, str] | None = None) -> tuple[dict[str, Any], str]:
        """A new row with all that is nested in it; its name in the batch."""
        own: dict[str, Any] = {TEXT[kind]: self.text()}
        body = dict(own)
        if under is not None:
            own[under[0]] = under[1]
        elif kind in PARENT and levels and self.random.random() < 0.4:
            relation, target = PARENT[kind]
            inner, name = self.new(target, levels - 1)
            body[relation] = {"create": inner}
            own[relation + "Id"] = name
        name = self.batch.add("POST", f"/{MODEL.resources[kind].path}", own)
        if levels:
            self.many(kind, body, name, levels, None)
        return body, name

    def many(self, kind: str, body: dict[str, Any], name: str, levels: int, old: str | None) -> None:
        for relation, target, key in CHILDREN[kind]:
            if self.random.random() < 0.7:
                words = self.words(target, key, name, levels - 1, old)
                if words:
                    body[relation] = words

    def words(self, target: str, key: str, name: str, levels: int, old: str | None) -> dict[str, Any]:
        path = f"/{MODEL.resources[target].path}"
        words: dict[str, Any] = {}
        mine = [row for row in self.rows[target] if old is not None and row[key] == old and row["id"] not in self.used]
        others = [row for row in self.rows[target] if row["id"] not in self.used and row not in mine]
        self.random.shuffle(mine)
        for word in ("disconnect", "delete", "update"):
            if mine and (word != "disconnect" or target in NULLABLE) and self.random.random() < 0.5:
                row = mine.pop()
                self.used.add(row["id"])
                version = row["version"] if self.random.random() < 0.5 else None
                item: dict[str, Any] = {"id": row["id"]} | ({"ifVersion": version} if version else {})
                url = f"{path}/{row['id']}"
                if word == "disconnect":
                    self.batch.add("PATCH", url, {key: None}, version)
                elif word == "delete":
                    self.batch.add("DELETE", url, None, version)
                    self.used |= {thing["id"] for thing in self.rows["Thing"] if thing["boxId"] == row["id"]}
                else:
                    item["patch"] = {TEXT[target]: self.text()}
                    step = self.batch.add("PATCH", url, dict(item["patch"]), version)
                    self.many(target, item["patch"], step, levels, row["id"]) if levels > 0 else None
                words[word] = [item]
        if others and self.random.random() < 0.4:
            row = self.random.choice(others)
            self.used.add(row["id"])
            words["connect"] = [{"id": row["id"]}]
            self.batch.add("PATCH", f"{path}/{row['id']}", {key: name})
        if self.random.random() < 0.7:
            words["create"] = [
                self.new(target, max(levels, 0), (key, name))[0] for _ in range(self.random.randint(1, 3))
            ]
        return words


def asks_of_batch(batch: Batch) -> list[Write]:
    view = MODEL.view(MODEL.signature(MODEL.anonymous))
    found = []
    for request in batch.requests:
        path, _, query = request["url"].partition("?")
        target = find_target(path, MODEL)
        assert target is not None
        verb = METHOD_VERBS[request["method"]]
        ((wish, _),), _ = understand_writes(
            verb, target, read_query(query, target), request.get("body"), view, answer=False
        )
        found.append(wish.ask)
    return found


def bare(ask: Write) -> Write:
    """Without what a batch cannot say (the row belongs to the one around it), and what only the head has."""
    return replace(ask, within=None, pick=(), version=None)


def graphql_of(verb: str, kind: str, body: Any, id: Any) -> tuple[str, dict[str, Any]]:
    if verb == "create":
        return f"mutation($b: {kind}Create!) {{ create{kind}(input: $b) {{ id }} }}", {"b": body}
    return f"mutation($i: ID!, $b: {kind}Patch!) {{ update{kind}(id: $i, patch: $b) {{ id }} }}", {"i": id, "b": body}


def state(service: Service) -> dict[str, Any]:
    """All rows without their own ids: what refers to what, by texts."""
    found = {}
    for name in ("owners", "boxes", "things", "notes"):
        rows = service.rows(
            f"/{name}?first=100&fields=*,owner(name)" if name in ("boxes", "notes") else f"/{name}?first=100"
        )
        keep = ("name", "label", "text", "size", "version", "owner")
        found[name] = sorted(json.dumps({key: row[key] for key in keep if key in row}) for row in rows)
    return found


@pytest.fixture(scope="module")
def runner() -> Any:
    with asyncio.Runner() as found:
        yield found


def test_random_nests_are_their_unfolded_batches(new_database: NewDatabase, runner: asyncio.Runner) -> None:
    random = Random(43)
    sizes = []
    view = MODEL.view(MODEL.signature(MODEL.anonymous))
    with in_process(MODEL, new_database(), runner, max_roots=100) as service:
        for _ in range(DRAWS):
            start(service)
            rows = {
                name: service.rows(f"/{each.path}?first=100&fields=*")
                for name, each in MODEL.resources.items()
                if name in TEXT
            }
            drawn = Drawn(random, rows)
            kind = random.choice(("Owner", "Box"))
            old = random.choice(rows[kind]) if random.random() < 0.6 else None
            if old is None:
                body, _ = drawn.new(kind, 3)
                method, path = "POST", f"/{MODEL.resources[kind].path}"
            else:
                drawn.used.add(old["id"])
                body = {TEXT[kind]: drawn.text()}
                method, path = "PATCH", f"/{MODEL.resources[kind].path}/{old['id']}"
                name = drawn.batch.add(method, path, dict(body))
                drawn.many(kind, body, name, 2, old["id"])
            target = find_target(path, MODEL)
            assert target is not None
            verb = METHOD_VERBS[method]
            nested, _ = understand_writes(verb, target, read_query("", target), body, view)
            batch = asks_of_batch(drawn.batch)
            assert [bare(wish.ask) for wish, _ in nested] == [bare(ask) for ask in batch], body
            document, variables = graphql_of(verb, kind, body, old and old["id"])
            assert [bare(ask) for ask in graphql_asks(document, variables)] == [bare(ask) for ask in batch]
            sizes.append(len(batch))
            ends: list[Any] = []
            for way in ("rest", "graphql", "batch"):
                if ends:
                    restore(service, rows)
                if way == "graphql":
                    answer = service.query(document, variables)
                    assert "errors" not in answer.json(), (body, answer.body)
                else:
                    sent: Any = {"requests": drawn.batch.requests} if way == "batch" else body
                    where = ("POST", "/batch") if way == "batch" else (method, path)
                    headers = {"content-type": "application/json"}
                    answer = service.send(*where, body=json.dumps(sent).encode(), headers=headers)
                    assert answer.status in (200, 201), (body, sent, answer.body)
                ends.append(state(service))
            assert ends[0] == ends[1] == ends[2], body
    assert max(sizes) > 8 and sum(sizes) / len(sizes) > 3


def graphql_asks(text: str, variables: dict[str, Any]) -> list[Write]:
    view = MODEL.view(MODEL.signature(MODEL.anonymous))
    schema = build_schema(view)
    sent = Parameters(query=text, variables=variables)
    document = read_operation(sent, RequestMeasures("graphql", MODEL.anonymous), Checks(), view, lambda: schema)
    found = [wish.ask for wish in translate_operation(document, variables, view, schema).parts]
    assert all(isinstance(ask, Write) for ask in found)
    return [ask for ask in found if isinstance(ask, Write)]


def start(service: Service) -> None:
    for table in TABLES:
        service.execute(f"DELETE FROM {table}")
    headers = {"content-type": "application/json"}
    for number in range(2):
        boxes = [{"label": f"b{number}{n}", "things": {"create": [{"name": f"t{number}{n}"}]}} for n in range(2)]
        notes = [{"text": f"n{number}{n}"} for n in range(2)]
        body = {"name": f"o{number}", "boxes": {"create": boxes}, "notes": {"create": notes}}
        answer = service.send("POST", "/owners", body=json.dumps(body).encode(), headers=headers)
        assert answer.status == 201, answer.body


def restore(service: Service, rows: dict[str, list[dict[str, Any]]]) -> None:
    """The rows as they were, with their ids."""
    for table in TABLES:
        service.execute(f"DELETE FROM {table}")
    for name in ("Owner", "Box", "Thing", "Note"):
        resource = MODEL.resources[name]
        for row in rows[name]:
            names = [field for field in row if resource.fields[field].stored]
            columns = ", ".join(f'"{resource.fields[field].column}"' for field in names)
            values = ", ".join(_sql(row[field]) for field in names)
            service.execute(f"INSERT INTO {resource.table} ({columns}) VALUES ({values})")


def _sql(value: Any) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"
