"""Random changes, as clients could ask for them, and how they are sent in either style.

    Wishes(model, random).transaction(viewer, rows)      → Transaction: one Wish, or several that are one
    Sender(model, names).graphql(transaction, viewer)    → Sent: a request, and where its parts stand in it

Most changes are such as the viewer may make; some have wrong values, names that are not there, rows that are
hidden, versions that are stale. Ids of new rows differ from database to database: `Names` keeps which is which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

import msgspec

from diptych.api.graphql.printer import print_mutation
from diptych.api.rest.printer import print_rest_write
from diptych.ask.nodes import Assign, BulkPart, Field, Nodes, OrderBy, Page, Pick, RowSet, Write, WriteVerb
from diptych.ask.slots import MOST, SIZE
from diptych.model.constraints import fault_of
from diptych.model.declare.roles import Viewer
from diptych.model.defs import SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import TRUE, Expr, Slot
from diptych.model.scalars import BOOLEAN, INT, JSON
from tests.support.asks import ABSENT, ILL_FORMED, Dice, Numbers, World, beside
from tests.support.oracle import Data, Row, wire
from tests.support.oracle_writes import TOUCHED, Wish, forecast_of, writable

Style = Literal["graphql", "rest", "batch"]
STYLES: tuple[Style, ...] = ("graphql", "rest")
VERBS: tuple[WriteVerb, ...] = (
    "create",
    "create",
    "update",
    "update",
    "update",
    "replace",
    "replace",
    "delete",
    "delete",
    "upsert",
    "upsert",
)
INPUTS: Mapping[WriteVerb, str] = {"create": "Create", "update": "Patch", "replace": "Replace", "upsert": "Create"}
WRONG: Sequence[Any] = (5, "nope", True, [], {}, 1.5, "x" * 400)


@dataclass(frozen=True)
class Transaction:
    """Some changes that are made together, and the styles in which that can be asked."""

    wishes: tuple[Wish, ...]
    styles: tuple[Style, ...] = STYLES
    whole: bool = True
    """In GraphQL, is each body one variable, rather than each value?"""


# drawing


class Hand(Dice):
    """Draws what a change answers: fields, rows and lists of rows that both styles can pick."""

    def __init__(self, random: Random, world: World) -> None:
        super().__init__(random, world)
        self.rest = True
        self.picks_left = 4
        self.terms_left = 3

    def paged(self, each: ResourceView, where: Expr, order: tuple[OrderBy, ...], *, page: bool) -> Page:
        return Page(self.slot(SIZE, self.one_of((1, 2, 5))))

    def key(self, each: ResourceView) -> OrderBy:
        """No sort by a time that the database itself sets: its clock is not ours."""
        found = super().key(each)
        return found if "updatedAt" not in str(found) else self.key(each)

    def compare(self, each: ResourceView, field: FieldDef) -> Expr:
        return super().compare(each, each.fields["id"].field if field.name == "updatedAt" else field)


def fitting(each: FieldDef, value: Any) -> Any:
    """A value like this one that satisfies the markers of the field; random ones hardly ever match a pattern."""
    if value is None or not fault_of(value, each.constraints):
        return value
    tries: tuple[Any, ...] = ()
    if isinstance(value, str):
        tries = (value[:80], f"{value.split()[0] if value.split() else 'a'}@x", "a", "EUR")
    else:
        tries = (abs(value), each.scalar.parse("1"))
    return next((each_try for each_try in tries if not fault_of(each_try, each.constraints)), value)


class Wishes:
    """Draws changes of one model."""

    def __init__(self, model: Model, random: Random, *, many: bool = False) -> None:
        self.model = model
        self.random = random
        self.fresh = 0
        self.many = many
        """Are there changes of many rows by a filter?"""

    def transaction(self, viewer: Viewer, rows: Data) -> Transaction:
        drawer = _Wishes(self, viewer, rows)
        match self.random.choices(("one", "several", "bulk", "many"), (7, 2, 1, 2 * self.many))[0]:
            case "many" if (many := drawer.many()) is not None:
                return Transaction((many,), whole=self.random.random() < 0.5)
            case "several":
                several: list[Wish] = []
                for _ in range(self.random.randint(2, 4)):
                    many = drawer.many() if self.many and self.random.random() < 0.1 else None
                    several.append(many or drawer.referring(drawer.wish(), several))
                return Transaction(tuple(several), ("graphql", "batch"), self.random.random() < 0.5)
            case "bulk":
                offered = [each for each in self.model.resources.values() if each.offers("create")]
                resource = self.random.choice(offered)
                first = drawer.wish("create", resource)
                more = (drawer.wish("create", resource) for _ in range(self.random.randint(1, 3)))
                alike = [replace(each, pick=first.pick, slots=first.slots, raw=first.raw) for each in more]
                return Transaction((first, *alike), whole=self.random.random() < 0.5)
        wish = drawer.wish()
        if wish.verb == "delete" and self.random.random() < 0.2:
            return Transaction((replace(wish, pick=(), slots=(), raw=()),), ("rest",))
        if wish.versions is not None and wish.versions[0] > 0 and self.random.random() < 0.2:
            return Transaction((replace(wish, versions=(*wish.versions, 77)),), ("rest",))
        return Transaction((wish,), whole=self.random.random() < 0.5)


class _Wishes:
    """Draws changes for one viewer of some rows."""

    def __init__(self, wishes: Wishes, viewer: Viewer, rows: Data) -> None:
        self.wishes = wishes
        self.random = wishes.random
        self.viewer = viewer
        self.model = wishes.model
        self.world = World(self.model, viewer, rows)
        self.sight = self.world.oracle.sight
        self.forecast = forecast_of(self.model, viewer)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def wish(self, verb: WriteVerb | None = None, resource: ResourceDef | None = None) -> Wish:
        if verb is None or resource is None:
            verb, resource = self._what()
        pick, slots, raw = self._picks(resource, verb)
        if verb == "create":
            return Wish(verb, resource.name, None, self._create(resource), None, pick, slots, raw)
        if verb == "upsert":
            key, body = self._upsert(resource)
            return Wish(verb, resource.name, None, body, None, pick, slots, raw, key, self.chance(0.3))
        row = self._row(resource, verb)
        key = str(row.id) if row else self.random.choice((ABSENT[resource.key], *ILL_FORMED))
        body = (
            None
            if verb == "delete"
            else self._replace(resource, row)
            if verb == "replace"
            else self._update(resource, row)
        )
        return Wish(verb, resource.name, key, body, self._versions(row), pick, slots, raw)

    def many(self) -> Wish | None:
        """A change of many rows, if the viewer could make one."""
        offered = [
            (each, verb)
            for each in self.world.view.resources.values()
            for verb in ("update", "delete")
            if each.resource.name in self.model.resources and each.may(verb)
        ]
        if not offered:
            return None
        each, verb = self.random.choice(offered)
        resource = each.resource
        body = self._update(resource, self._row(resource, "update")) if verb == "update" else None
        if verb == "update" and not isinstance(body, dict):
            return None
        hand = Hand(self.random, self.world)
        where = hand.where(each, 0)
        numbers = Numbers()
        where = numbers.where(where)
        if where == TRUE:
            return None
        raw = tuple(hand.raw[index] for index in numbers.order)
        pick, slots, shown = self._picks(resource, "update") if self.chance(0.6) else ((), (), ())
        most = self.random.choice((1, 2, 5, 50, 50))
        wish = Wish(verb, resource.name, None, body, None, pick, slots, shown)  # type: ignore[arg-type]  # a verb
        return replace(
            wish, where=where, filter_slots=tuple(numbers.slots), filter_raw=raw, most=most, dry=self.chance(0.3)
        )

    def referring(self, wish: Wish, earlier: Sequence[Wish]) -> Wish:
        """The same wish; where a row of an earlier one is what it could name, it often refers to that."""
        resource = self.model.resources[wish.resource]
        steps = [
            (index, each.resource) for index, each in enumerate(earlier) if each.verb != "delete" and each.where is None
        ]
        own = [index for index, name in steps if name == wish.resource]
        if own and wish.verb not in ("create", "upsert") and self.chance(0.4):
            wish = replace(wish, id=f"$m{self.random.choice(own)}", versions=None)
        if not isinstance(wish.body, dict):
            return wish
        body = dict(wish.body)
        for name in body:
            field = resource.fields.get(name)
            target = resource.relations[field.relation].target if field is not None and field.relation else ""
            fit = [index for index, other in steps if other == target]
            if fit and self.chance(0.5):
                body[name] = f"$m{self.random.choice(fit)}"
        return replace(wish, body=body)

    def _what(self) -> tuple[WriteVerb, ResourceDef]:
        """A verb on a resource that someone has; mostly the viewer too."""
        for _ in range(20):
            resource = self.random.choice(list(self.model.resources.values()))
            verb = self.random.choice(VERBS)
            offered = resource.offers(verb)
            if verb == "upsert" and not self.forecast.keys(resource):
                continue
            if offered and (self.forecast.has(verb, resource) or self.chance(0.03)):
                return verb, resource
        offered_all = [each for each in self.model.resources.values() if each.offers("create")]
        return "create", self.random.choice(offered_all)

    def _picks(
        self, resource: ResourceDef, verb: WriteVerb
    ) -> tuple[tuple[Pick, ...], tuple[Slot, ...], tuple[Any, ...]]:
        each = self.world.view.resources.get(resource.name)
        own = Field("id", "id")
        if each is None:
            return (own,), (), ()
        if self.chance(0.3):
            return tuple(Field(name, name) for name in each.fields), (), ()
        hand = Hand(self.random, self.world)
        found = {pick.label: pick for pick in hand.picks(each, 3)}
        if verb in ("create", "upsert"):
            found = {own.label: own, **{label: pick for label, pick in found.items() if label != "id"}}
        numbers = Numbers()
        picks = tuple(map(numbers.inner, found.values()))
        return picks, tuple(numbers.slots), tuple(hand.raw[index] for index in numbers.order)

    def _row(self, resource: ResourceDef, verb: WriteVerb) -> Row | None:
        """A row: mostly one that the viewer may change, or at least read."""
        rows = self.sight.rows[resource.name]
        if not rows or self.chance(0.04):
            return None
        readable = [row for row in rows if self.sight.readable(row)]
        rules = self.forecast.live("delete" if verb == "delete" else "update", resource)
        fields = (
            []
            if verb == "delete"
            else [rule for each in writable(resource) for rule in self.forecast.live("update", resource, each.name)]
        )
        mine = [row for row in readable if any(self.sight.holds(rule.expr, row) for rule in (*rules, *fields))]
        for choices, share in ((mine, 0.75), (readable, 0.7)):
            if choices and self.chance(share):
                return self.random.choice(choices)
        return self.random.choice(rows)

    def _versions(self, row: Row | None) -> tuple[int, ...] | None:
        if self.chance(0.6):
            return None
        now = row.data["version"] if row else 1
        return (self.random.choice((now, now, now, now + 1, -1)),)

    # bodies

    def _create(self, resource: ResourceDef) -> Any:
        body: dict[str, Any] = {}
        for each in writable(resource):
            if each.moves and self.chance(0.7):
                continue
            may = self.forecast.creates(resource, each) is not False or self.chance(0.02)
            if may and self.chance(0.98 if each.required else 0.4):
                body[each.name] = self._value(resource, each)
        return self._spoilt(body, resource)

    def _upsert(self, resource: ResourceDef) -> tuple[str, Any]:
        """A key, and a new row that often has the key of one that is there."""
        key = self.random.choice(list(keys := self.forecast.keys(resource)))
        body = self._create(resource)
        row = self._row(resource, "update")
        if isinstance(body, dict) and row is not None and self.chance(0.7):
            body |= {name: wire(resource.fields[name].scalar, row.data[name]) for name in keys[key]}
        elif isinstance(body, dict) and self.chance(0.9):
            missing = [name for name in keys[key] if body.get(name) is None]
            body |= {name: self._value(resource, resource.fields[name]) for name in missing}
        return key, body

    def _update(self, resource: ResourceDef, row: Row | None) -> Any:
        may = [each for each in writable(resource) if self.forecast.updates(resource, each) is not False]
        here = [each for each in may if row and self._may_here(each, resource, row)]
        body = {}
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 2, 3))):
            choices = here if here and self.chance(0.9) else may if may and self.chance(0.9) else writable(resource)
            each = self._one_of(choices)
            old: Any = row.data[each.name] if row else None
            merges = each.scalar is JSON and isinstance(old, dict) and self.chance(0.5)
            body[each.name] = self._merge_patch(old) if merges else self._value(resource, each, row)
        return self._spoilt(body, resource)

    def _merge_patch(self, old: dict[str, Any]) -> dict[str, Any]:
        """An object for a field of JSON that changes and removes keys of the stored one, and gives a new one."""
        names = [*old, "new"]
        chosen = self.random.sample(names, self.random.randint(1, len(names)))
        return {name: self.random.choice((None, 1, [None], {"a": None, "b": {"c": 2}})) for name in chosen}

    def _replace(self, resource: ResourceDef, row: Row | None) -> Any:
        if row is None or not self.sight.readable(row) or self.chance(0.2):
            return self._create(resource)
        shown = [name for name in resource.fields if self.forecast.shows(resource, name) is not False]
        body = {name: wire(resource.fields[name].scalar, self.sight.shown(name, row)) for name in shown}
        for name in [*SERVER_FIELDS, *(name for name in shown if not resource.fields[name].stored)]:
            if self.chance(0.5) or (name == "updatedAt" and body[name] == TOUCHED):
                body.pop(name, None)
        changeable = [each for each in writable(resource) if self.forecast.updates(resource, each) is not False]
        here = [each for each in changeable if self._may_here(each, resource, row)]
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            choices = here if here and self.chance(0.8) else writable(resource)
            each = self._one_of(choices)
            if self.chance(0.3):
                body.pop(each.name, None)
            elif each in changeable or each.name in shown:
                body[each.name] = self._value(resource, each, row)
        if self.chance(0.06):
            wrong = self.random.choice([name for name in shown if not resource.fields[name].stored] or ["createdAt"])
            body[wrong] = self._value(resource, resource.fields[wrong], row)
        if self.chance(0.04):
            body["version"] = row.data["version"] + 1
        return self._spoilt(body, resource)

    def _one_of(self, fields: Sequence[FieldDef]) -> FieldDef:
        """A field; often a state, a reference or a unique one, of which there are few."""
        special = [each for each in fields if each.moves or each.relation or each.unique]
        return self.random.choice(special if special and self.chance(0.35) else fields)

    def _may_here(self, each: FieldDef, resource: ResourceDef, row: Row) -> bool:
        return any(self.sight.holds(rule.expr, row) for rule in self.forecast.updating(resource, each))

    def _spoilt(self, body: dict[str, Any], resource: ResourceDef) -> Any:
        """Now and then something is wrong with it, and its fields stand in any order."""
        if self.chance(0.05):
            match self.random.choice(("value", "null", "missing", "unknown", "other", "read-only", "shape")):
                case "value" if body:
                    body[self.random.choice(list(body))] = self.random.choice(WRONG)
                case "null" if body:
                    body[self.random.choice(list(body))] = None
                case "missing" if body:
                    del body[self.random.choice(list(body))]
                case "unknown":
                    body["nope"] = 1
                case "other":
                    each = self.random.choice(writable(resource))
                    body[each.name] = self._value(resource, each)
                case "read-only":
                    body["createdAt"] = "2026-01-31T12:00:00.000000Z"
                case "shape":
                    return self.random.choice(([], "x", 5, None))
        names = list(body)
        self.random.shuffle(names)
        return {name: body[name] for name in names}

    def _value(self, resource: ResourceDef, each: FieldDef, row: Row | None = None) -> Any:
        """A raw value for a field."""
        if each.relation:
            return self._reference(resource, each, row)
        if each.nullable and self.chance(0.2):
            return None
        if each.unique:
            there = [found.data[each.name] for found in self.sight.rows[resource.name]]
            self.wishes.fresh += 1
            return self.random.choice(there) if there and self.chance(0.3) else f"fresh{self.wishes.fresh}@x"
        if each.moves and row is not None and self.chance(0.6):
            old = row.data[each.name]
            return self.random.choice([move.target.value for move in each.moves if move.source.value == old] or [old])
        if each.moves and row is None and self.chance(0.5):
            return each.default
        value = self.random.choice(self.world.pool(resource, each))
        if self.chance(0.3):
            value = self.random.choice(list(beside(each.scalar, value)))
        if not self.chance(0.03):
            value = fitting(each, value)
        if each.scalar is JSON and isinstance(value, dict):
            value = dict(sorted(value.items(), reverse=self.chance(0.5)))
        return wire(each.scalar, value)

    def _reference(self, resource: ResourceDef, each: FieldDef, row: Row | None) -> Any:
        target = resource.relations[each.relation].target
        rows = self.sight.rows[target]
        if each.nullable and self.chance(0.25):
            return None
        if self.viewer.id is not None and self.chance(0.7) and any(str(found.id) == self.viewer.id for found in rows):
            return self.viewer.id
        if row is not None and row.data[each.name] is not None and self.chance(0.2):
            return str(row.data[each.name])
        readable = [found for found in rows if self.sight.readable(found)]
        for choices in (readable, rows):
            if choices and self.chance(0.85):
                return str(self.random.choice(choices).id)
        return self.random.choice((ABSENT[self.model.resources[target].key], *ILL_FORMED))


# sending


@dataclass
class Names:
    """Which id of a database is which of the ledger, for rows that were made."""

    theirs: dict[str, str] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)

    def add(self, ours: str, theirs: str) -> None:
        self.theirs[ours] = theirs
        self.ours[theirs] = ours

    def outgoing(self, value: Any) -> Any:
        return mapped(value, lambda text: self.theirs.get(text, text))


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with its texts changed; not its keys."""
    if isinstance(value, dict):
        return {key: mapped(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(inner, change) for inner in value)
    return change(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Sent:
    """A request, and where the values of its changes stand in it."""

    style: Style
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    places: Mapping[tuple[Any, ...], tuple[int, str]]
    several: bool
    document: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    asks: tuple[Write, ...] = ()
    """The Asks that it must be translated to, where its bodies have only known fields."""

    def place(self, steps: Sequence[Any]) -> tuple[int, str]:
        """Which field of which change a place in the request is."""
        found = self.places.get(tuple(steps[:2]))
        if found is None:
            raise AssertionError(
                f"an error names {steps}, which is not in the request {self.document} {self.variables}"
            )
        index, name = found
        return (index, name) if name or len(steps) < 3 else (index, str(steps[2]))


def ask_of(wish: Wish, model: Model) -> tuple[Write, list[Any]]:
    """The Ask of a wish, and its raw values. Fields that are not in the model are left out."""
    resource = model.resources[wish.resource]
    values: list[Any] = [wish.id]
    assigns: list[Assign] = []
    body = wish.body if isinstance(wish.body, dict) else {}
    for name, each in resource.fields.items():
        if name in body:
            slot = None if body[name] is None else Slot(len(values), each.scalar)
            values += [] if slot is None else [body[name]]
            assigns.append(Assign(name, slot, merge=slot is not None and each.scalar is JSON and wish.verb == "update"))
    version = None
    if wish.versions is not None:
        many = len(wish.versions) > 1
        version = Slot(len(values), INT, many)
        values.append(list(wish.versions) if many else wish.versions[0])
    rows = None
    if wish.where is not None:
        where = Numbers(len(values)).where(wish.where)
        values += wish.filter_raw
        rows = RowSet(where, Slot(len(values), MOST), Slot(len(values) + 1, BOOLEAN))
        values += [wish.most, wish.dry]
    numbers = Numbers(len(values))
    picks = tuple(map(numbers.inner, wish.pick))
    values += wish.raw
    key = Slot(0, resource.key)
    if rows is not None:
        counts = (BulkPart("matched", "matched"), BulkPart("changed", "changed"), BulkPart("dryRun", "dryRun"))
        parts = (*counts, *((Nodes("data", picks),) if picks else ()))
        return Write(wish.verb, wish.resource, key, tuple(assigns), rows=rows, parts=parts), values
    return Write(wish.verb, wish.resource, key, tuple(assigns), version, picks, wish.key, wish.keep), values


def send_graphql(transaction: Transaction, model: Model, names: Names) -> Sent:
    """The changes as one mutation."""
    places: dict[tuple[Any, ...], tuple[int, str]] = {}
    labels = [f"m{index}" for index in range(len(transaction.wishes))]
    printable = [ask_of(_outgoing(wish, names), model) for wish in transaction.wishes]
    whole = transaction.whole or not all(_is_plain(wish, model) for wish in transaction.wishes)
    printed = [
        (label, msgspec.structs.replace(ask, values=()) if whole else ask, values)
        for label, (ask, values) in zip(labels, printable, strict=True)
    ]
    document, variables = print_mutation(printed, model)
    first = 0
    for index, (_, ask, values) in enumerate(printed):
        for assign in ask.values:
            if assign.value is not None:
                places["variables", f"v{first + assign.value.index}"] = (index, assign.name)
        first += len(values)
        places[labels[index], "input"] = places[labels[index], "patch"] = (index, "")
    if whole:
        document, variables = _with_bodies(document, variables, transaction, names, places)
    body = json.dumps({"query": document, "variables": variables}).encode()
    headers = {"content-type": "application/json", "accept": "application/graphql-response+json"}
    asks = tuple(ask for ask, _ in printable)
    return Sent("graphql", "POST", "/graphql", headers, body, places, True, document, variables, asks)


def _with_bodies(
    document: str,
    variables: dict[str, Any],
    transaction: Transaction,
    names: Names,
    places: dict[tuple[Any, ...], tuple[int, str]],
) -> tuple[str, dict[str, Any]]:
    declared = []
    for index, wish in enumerate(transaction.wishes):
        if wish.verb != "delete":
            name = f"i{index}"
            declared.append(f"${name}: {wish.resource}{INPUTS[wish.verb]}!")
            variables[name] = names.outgoing(wish.body)
            places["variables", name] = (index, "")
            document = re.sub(rf"(m{index}: \w+\([^{{]*)\{{\}}", rf"\1${name}", document, count=1)
    if declared:
        head, brace, rest = document.partition(" {\n")
        old = head.removeprefix("mutation").strip().removeprefix("(").removesuffix(")")
        both = ", ".join(filter(None, (old, *declared)))
        document = f"mutation ({both}){brace}{rest}"
    return document, variables


def send_rest(transaction: Transaction, model: Model, names: Names) -> Sent:
    """The change as a request, or several new rows as one."""
    wishes = [_outgoing(wish, names) for wish in transaction.wishes]
    ask, values = ask_of(wishes[0], model)
    printed = print_rest_write(ask, values, model)
    several = len(wishes) > 1
    body: Any = [wish.body for wish in wishes] if several else wishes[0].body
    data = b"" if wishes[0].verb == "delete" else json.dumps(body).encode()
    return Sent("rest", printed.method, printed.url, printed.headers, data, {}, several, asks=(ask,))


def send_batch(transaction: Transaction, model: Model, names: Names) -> Sent:
    """The changes as requests of one batch."""
    requests: list[dict[str, Any]] = []
    asks = []
    for index, wish in enumerate(_outgoing(wish, names) for wish in transaction.wishes):
        ask, values = ask_of(wish, model)
        asks.append(ask)
        printed = print_rest_write(ask, values, model)
        headers = {name: value for name, value in printed.headers.items() if name != "content-type"}
        request = {"id": f"m{index}", "method": printed.method, "url": printed.url, "headers": headers}
        requests.append(request if wish.verb == "delete" else {**request, "body": wish.body})
    body = json.dumps({"requests": requests}).encode()
    headers = {"content-type": "application/json"}
    return Sent("batch", "POST", "/batch", headers, body, {}, True, asks=tuple(asks))


def _outgoing(wish: Wish, names: Names) -> Wish:
    raw, filtered = names.outgoing(list(wish.raw)), names.outgoing(list(wish.filter_raw))
    sent = replace(wish, id=names.outgoing(wish.id), body=names.outgoing(wish.body))
    return replace(sent, raw=tuple(raw), filter_raw=tuple(filtered))


def _is_plain(wish: Wish, model: Model) -> bool:
    """Has the body only fields that the model knows?"""
    if wish.verb == "delete":
        return True
    return isinstance(wish.body, dict) and all(name in model.resources[wish.resource].fields for name in wish.body)


def pointer_place(pointer: str, several: bool) -> tuple[int, str]:
    """Which field of which change a JSON pointer names."""
    steps = pointer.split("/")[1:]
    if steps[:1] == ["requests"]:
        return int(steps[1]), "/".join(steps[3:])
    index = int(steps.pop(0)) if several and steps else 0
    return index, "/".join(steps)


def argument_places(errors: Iterable[Any], sent: Sent) -> list[tuple[int, str]] | None:
    """The places that the errors of a GraphQL answer name; None if they name none."""
    found = []
    for error in errors:
        told = error["extensions"]
        arguments = [each["argument"] for each in told["errors"]] if "errors" in told else [told.get("argument")]
        if arguments == [None]:
            return None
        found += [sent.place(each) for each in arguments]
    return found
