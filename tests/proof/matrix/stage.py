"""A service with planted rows, and the eyes that look at it: one for each role.

    stage = Stage("diptych.demo.model:model", "sqlite:///some.db", runner)
    eye = stage.eyes["anonymous"]
    eye.send(ql("{ users { name } }"))        the answer, in which nothing was found that the role may not see

What an eye may see is told by the oracle (`tests/support/oracle.py`, and `Forecast` of `tests/support/oracle_writes.py`), which
reads the rules as they are declared. Every answer is looked through, headers and cursors too, for marks of what
the eye may not see and for names that do not exist for it. What stands in the request may stand in its answer.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote, urlencode

from diptych.ask.nodes import Field, Page, Read
from diptych.ask.slots import SIZE as PAGE
from diptych.cli.model import load_model
from diptych.compile.plan import Plan
from diptych.compile.read import compile_reads
from diptych.errors import Code
from diptych.model.declare.roles import NOBODY, Viewer
from diptych.model.defs import FieldDef, RelationDef, ResourceDef
from diptych.model.model import Model
from diptych.model.rules.expr import Slot
from diptych.serve.http.request import Request
from tests.proof.matrix.planted import Planter, Rows, marks, planted
from tests.proof.matrix.words import own_words, words
from tests.support.in_process import RESPONSE, Answer
from tests.support.oracle import Row, Sight, wire
from tests.support.oracle_writes import denial, every, forecast_of
from tests.support.proof_writes import Run

T = TypeVar("T")
NOTHING = "zzNothing"
"""A name that nobody has."""
SIZE = 20
"""The size of every page; no resource has as many rows."""


@dataclass(frozen=True)
class Sent:
    """A request, without the token."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""

    @property
    def said(self) -> str:
        """All that the client says."""
        return f"{unquote(self.url)} {self.body}"


def ql(document: str, variables: Mapping[str, Any] | None = None) -> Sent:
    """A document with its variables."""
    body = json.dumps({"query": document, "variables": variables or {}})
    return Sent("POST", "/graphql", (("content-type", "application/json"), ("accept", RESPONSE)), body)


def get(path: str, **parameters: str | int) -> Sent:
    """A GET in the resource style."""
    return Sent("GET", f"{path}?{urlencode(parameters, quote_via=quote)}" if parameters else path)


def rest(method: str, path: str, body: Any, kind: str = "application/json") -> Sent:
    """A change in the resource style."""
    return Sent(method, path, (("content-type", kind),), json.dumps(body))


@dataclass(frozen=True, eq=False)
class Member:
    """A field or a relation of a resource."""

    resource: ResourceDef
    name: str

    def __str__(self) -> str:
        return f"{self.resource.name}.{self.name}"

    @property
    def field(self) -> FieldDef | None:
        return self.resource.fields.get(self.name)

    @property
    def relation(self) -> RelationDef | None:
        return self.resource.relations.get(self.name)

    @property
    def inner(self) -> str:
        """What follows the name in a selection."""
        return "" if self.field else " { id }"


def members(model: Model) -> list[Member]:
    """Every field and every relation of every resource."""
    return [
        Member(resource, name)
        for resource in model.resources.values()
        for name in (*resource.fields, *resource.relations)
    ]


class Stage:
    """One model on one store, with its eyes."""

    def __init__(self, address: str, url: str, runner: asyncio.Runner) -> None:
        self.address = address
        """MODULE:MODEL, as the command line takes it."""
        self.model = load_model(address)
        self.runner = runner
        self.planter = Planter()
        self.data: Rows = planted(self.model, self.planter)
        self.run = Run(self.model, url, self.data, runner)
        self._plans: dict[str, Plan] = {}
        self.members = members(self.model)
        self.eyes = {name: Eye(self, name, viewer) for name, viewer in viewers(self.model, self.data).items()}

    def reset(self) -> None:
        """All rows as they were."""
        self.runner.run(self.run.reset())

    def execute(self, script: str) -> None:
        """Run statements as someone would who knows nothing of the service."""
        self.runner.run(self.run._execute(script))

    def stored(self, resource: str) -> dict[str, Any]:
        """The rows of a resource as they are, as JSON, by id."""
        (body,) = self.runner.run(self.run.app.store.run(*self._everything(resource)))
        return {row["id"]: row for row in json.loads(body or b"[]")}

    def _everything(self, resource: str) -> tuple[Plan, Sequence[Any]]:
        """What reads all rows of a resource, whoever may."""
        if resource not in self._plans:
            fields = self.model.resources[resource].fields.values()
            picks = tuple(Field(each.name, each.name) for each in fields if each.stored)
            ask = Read(resource, "list", picks, page=Page(Slot(0, PAGE)))
            self._plans[resource] = compile_reads([ask], self.model, self.run.app.store.dialect)
        plan = self._plans[resource]
        return plan, plan.parameters([10_000], NOBODY, {})

    def token(self, viewer: Viewer) -> str | None:
        if not viewer.signed_in:
            return None
        roles = [name for name in self.model.roles if name in viewer.roles]
        return self.run.handler.context.tokens.make(viewer.id, roles, viewer.scopes, ttl=3_600)

    def close(self) -> None:
        self.runner.run(self.run.stop())


def viewers(model: Model, data: Rows) -> dict[str, Viewer]:
    """A viewer of every role, each someone to whom many rows belong, and one whose token is narrow."""
    who = next(name for name in ("User", "Person") if name in model.resources)
    ids = sorted(_owners(model, who, data), key=lambda id: not _is_known(model, id))
    roles = [name for name in model.roles if name != "signed_in"]
    found = {"anonymous": model.anonymous, "signed_in": model.viewer(frozenset(), ids[0])}
    found |= {role: model.viewer(frozenset({role}), ids[number]) for number, role in enumerate(roles, 1)}
    paths = [each.path for each in model.resources.values()]
    scopes = frozenset({f"{paths[0]}:read", f"{paths[-1]}:read", f"{paths[-1]}:write"})
    return found | {"narrow": model.viewer(frozenset(roles), ids[0], scopes)}


def _owners(model: Model, who: str, data: Rows) -> list[str]:
    """The people to whom most rows belong, first."""
    ways = [
        (name, each.name + "Id")
        for name, found in model.resources.items()
        for each in found.relations.values()
        if (each.kind, each.target) == ("one", who)
    ]
    owned = Counter({row["id"]: 0 for row in data[who]})
    owned.update(row[key] for name, key in ways for row in data[name] if row[key] is not None)
    return [id for id, _ in owned.most_common()]


def _is_known(model: Model, id: str) -> bool:
    """Has this viewer every value that rules may ask of one? (The documents of a role are those of such a viewer.)"""
    viewer = model.viewer(frozenset(), id)
    return all(getattr(viewer, name) not in (None, ()) for name in model.viewer_values)


class Eye:
    """What one viewer may see, and what the service shows."""

    def __init__(self, stage: Stage, name: str, viewer: Viewer) -> None:
        self.stage = stage
        self.model = stage.model
        self.name = name
        self.viewer = viewer
        self.token = stage.token(viewer)
        self.sight = Sight(self.model, viewer, stage.data)
        self.forecast = forecast_of(self.model, viewer)
        self.secrets = marks(_text(stage.data)) - self.shown(self.sight)
        self.unspoken = self._unspoken()
        self._answers: dict[Sent, Answer] = {}
        self._kept: dict[str, Any] = {}

    # what the oracle says

    def exists(self, member: Member) -> bool | None:
        """Does the member show: always, never, or does it depend on the row?"""
        resource, relation = member.resource, member.relation
        parts = [self.opens(resource), self.forecast.shows(resource, member.name)]
        if relation is not None:
            parts += [self.opens(self.model.resources[relation.target]), *self._way_back(relation)]
        return every(parts)

    def opens(self, resource: ResourceDef) -> bool:
        """Are there rows that the viewer may ever read?"""
        return self.forecast.may("read", resource) is not False

    def _way_back(self, relation: RelationDef) -> Iterator[bool | None]:
        """Who is related is told on the other side, too: what hides it there hides it here."""
        if relation.kind == "many":
            yield self.forecast.shows(self.model.resources[relation.target], relation.inverse)
        elif relation.kind == "through":
            link = self.model.resources[relation.link]
            yield self.opens(link)
            yield from (self.forecast.shows(link, end) for end in (relation.link_mine, relation.link_theirs))

    def known(self, resource: ResourceDef) -> list[Member]:
        """The members of a resource that exist for the viewer."""
        return [each for each in self.stage.members if each.resource is resource and self.exists(each) is not False]

    def rows(self, resource: ResourceDef) -> list[Row]:
        """The rows that the viewer may read, in the order of a list."""
        found = [row for row in self.sight.rows[resource.name] if self.sight.readable(row)]
        return sorted(found, key=lambda row: row.id)

    def value(self, member: Member, row: Row) -> Any:
        """What a selection of the member shows: a value, or the ids of related rows."""
        if member.field is not None:
            return wire(member.field.scalar, self.sight.shown(member.name, row))
        assert member.relation is not None
        there = self.related(member.relation, row)
        return there[:1] if member.relation.kind == "one" else there

    def related(self, relation: RelationDef, row: Row) -> list[str]:
        found = sorted(self.sight.related(relation, row), key=lambda other: other.id)
        return [str(other.id) for other in found]

    def way_to(self, resource: ResourceDef) -> tuple[ResourceDef, RelationDef] | None:
        """A relation that leads to the resource, if the viewer can follow one."""
        ways = (each for each in self.stage.members if each.relation and each.relation.target == resource.name)
        found = next((each for each in ways if self.exists(each) is not False), None)
        return (found.resource, found.resource.relations[found.name]) if found else None

    @property
    def denial(self) -> Code:
        """What the viewer is told who may never do something."""
        return denial(self.viewer)

    def shown(self, sight: Sight) -> set[str]:
        """The marks of all that the viewer may see."""
        return marks(
            _text(
                [
                    [sight.shown(name, row) for name in resource.fields]
                    for resource in self.model.resources.values()
                    for row in sight.rows[resource.name]
                    if sight.readable(row)
                ]
            )
        )

    def _unspoken(self) -> set[str]:
        """The names that do not exist for the viewer anywhere, and that a service says of itself nowhere."""
        spoken = {each.name for each in self.stage.members if self._may_say(each)}
        spoken |= {name for each in self.model.resources.values() if self.opens(each) for name in (each.one, each.many)}
        return {each.name for each in self.stage.members} - spoken - own_words()

    def _may_say(self, member: Member) -> bool:
        """Does the name exist for the viewer: to be read, or to be written?"""
        if self.exists(member) is not False:
            return True
        field, resource = member.field, member.resource
        if field is None or not self.opens(resource):
            return False
        return (
            self.forecast.creates(resource, field) is not False or self.forecast.updates(resource, field) is not False
        )

    # what the service says

    def once(self, what: str, make: Callable[[], T]) -> T:
        """Something that is the same for every member."""
        if what not in self._kept:
            self._kept[what] = make()
        return cast("T", self._kept[what])

    def send(self, sent: Sent) -> Answer:
        """The answer to a read; the same request is sent once."""
        if sent not in self._answers:
            self._answers[sent] = self.change(sent)
        return self._answers[sent]

    def change(self, sent: Sent, after: Rows | None = None) -> Answer:
        """The answer to a request that may change rows, so that more may be seen: `after` are the new ones."""
        answer = self.stage.runner.run(self._send(sent))
        self._look_through(sent, answer, after)
        return answer

    async def _send(self, sent: Sent) -> Answer:
        path, _, query = sent.url.partition("?")
        headers = {name.encode(): value.encode() for name, value in sent.headers}
        if self.token is not None:
            headers[b"authorization"] = b"Bearer " + self.token.encode()

        async def read(most: int) -> bytes:
            return sent.body.encode()

        reply = await self.stage.run.handler.handle(Request(sent.method, path, query, headers, read))
        found = {name.decode(): value.decode("latin-1") for name, value in reply.headers}
        return Answer(reply.status, found, reply.body, True)

    def _look_through(self, sent: Sent, answer: Answer, after: Rows | None) -> None:
        """Nothing that the viewer may not see stands in the answer, unless the request said it."""
        text = "\n".join([*(f"{name}: {value}" for name, value in answer.headers.items()), answer.body.decode()])
        found = (marks(text) & self.secrets) - marks(sent.said)
        if found and after is not None:
            found -= self.shown(Sight(self.model, self.viewer, after))
        assert not found, f"{self.name} was shown {sorted(found)}\n{sent}\n{text[:2000]}"
        names = (words(text) & self.unspoken) - words(sent.said)
        assert not names, f"{self.name} was told of {sorted(names)}\n{sent}\n{text[:2000]}"


def _text(values: Any) -> str:
    return json.dumps(values, default=str)
