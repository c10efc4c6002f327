"""A slow, obvious evaluator of changes: what the contract says, over lists of dicts.

    ledger = Ledger(model, rows)
    ledger.transact([Wish("update", "Post", "0189…", {"title": "…"}, pick=…)], viewer, moment)     [{"title": "…"}]

It reads the rules as the model declares them and tries them on the rows as they are and as they become: nothing
of `check`, of `compile` or of the folding of views is used here. A change that may not be made raises Refused,
and nothing has changed. The checks stand in the order of the contract:

    the role never may → the body → the row is not readable → the rules of the row → the version → what a
    replacement gives back unchanged → states → references → what is unique

Where a reference leads to no row, or to none that the viewer may read, rules are not tried on the row as it would
become: what they say could tell of a hidden row.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uuid_utils import uuid7

from diptych.ask.nodes import Pick, Read, WriteVerb
from diptych.errors import Code
from diptych.model.constraints import fault_of
from diptych.model.declare.resource import Verb
from diptych.model.declare.roles import Viewer
from diptych.model.defs import SERVER_FIELDS, FieldDef, KeyDef, RelationDef, ResourceDef, RuleDef
from diptych.model.model import Model
from diptych.model.rules.expr import (
    TRUE,
    And,
    Choose,
    Compare,
    Expr,
    Has,
    HasRole,
    IsNull,
    May,
    Not,
    Or,
    Slot,
    ViewerId,
    ViewerValue,
)
from diptych.model.scalars import INTEGER_ID, JSON
from tests.support.oracle import Data, Oracle, Row, Sight, columns

Rows = dict[str, list[dict[str, Any]]]
Place = tuple[int, str]
"""Which of several changes, and which field of it; "" is the whole body."""
Values = dict[str, Any]
TOUCHED = "2030-01-01T00:00:00.000000Z"
"""The `updatedAt` of a row that the database itself changed."""
FIRST_NUMBER = 50_000_000
"""Integer ids of new rows begin here."""


@dataclass(frozen=True)
class Wish:
    """A change as a client asks for it: values are raw, as they are sent."""

    verb: WriteVerb
    resource: str
    id: Any = None
    body: Any = None
    versions: tuple[int, ...] | None = None
    pick: tuple[Pick, ...] = ()
    slots: tuple[Slot, ...] = ()
    """The slots of what is picked, and their raw values."""
    raw: tuple[Any, ...] = ()
    key: str = ""
    """The unique key of an upsert."""
    keep: bool = False
    where: Expr | None = None
    """The filter of a change of many rows, with its slots and their raw values; at most `most` rows."""
    filter_slots: tuple[Slot, ...] = ()
    filter_raw: tuple[Any, ...] = ()
    most: int = 0
    dry: bool = False
    whole: bool = False
    """Does an update set objects of JSON as a whole? Else they are merged into what is stored."""

    def __repr__(self) -> str:
        picked = ", ".join(pick.label for pick in self.pick)
        if self.where is not None:
            how = f"{self.where} {self.filter_raw}, at most {self.most}{' (dry)' * self.dry}"
            return f"{self.verb} many {self.resource} {self.body} where {how} → {picked}"
        by = f" by {self.key}{' (keep)' * self.keep}" if self.key else ""
        return f"{self.verb}{by} {self.resource} {self.id} {self.body} if {self.versions} → {picked}"


class Refused(Exception):
    """A change is not made. `at` tells which one, if it had begun; `typed` if it is a fault of types in GraphQL."""

    def __init__(self, code: Code, places: Sequence[Place] = (), at: int | None = None, typed: bool = False) -> None:
        super().__init__(code, places, at)
        self.code = code
        self.places = sorted(places)
        self.at = at
        self.typed = typed


class Forecast:
    """What can be said of a viewer before any row is seen: True (always), False (never), None (it depends)."""

    def __init__(self, model: Model, viewer: Viewer) -> None:
        self.model = model
        self.viewer = viewer
        self._live: dict[tuple[str, str, str], list[RuleDef]] = {}

    def says(self, expr: Expr, resource: ResourceDef) -> bool | None:
        match expr:
            case And(of):
                return every(self.says(part, resource) for part in of)
            case Or(of):
                return some(self.says(part, resource) for part in of)
            case Not(of):
                found = self.says(of, resource)
                return None if found is None else not found
            case HasRole(role):
                return role in self.viewer.roles
            case IsNull(ViewerId()):
                return self.viewer.id is None
            case Compare(_, ViewerId(), _) | Compare(_, _, ViewerId()) if self.viewer.id is None:
                return False
            case IsNull(ViewerValue(name)):
                return getattr(self.viewer, name) is None
            case Compare(_, _, ViewerValue(name)) | Compare(_, ViewerValue(name), _):
                return False if getattr(self.viewer, name) in (None, ()) else None
            case Has(name, where):
                target = self.model.resources[resource.relations[name].target]
                return False if self.says(where, target) is False else None
            case Choose(when, then, other):
                chosen = self.says(when, resource)
                return None if chosen is None else self.says(then if chosen else other, resource)
            case May(path):
                return self._may(path, resource)
        return None

    def _may(self, path: tuple[str, ...], resource: ResourceDef) -> bool | None:
        there: list[bool | None] = []
        for step in path:
            relation = resource.relations[step]
            there.append(None if relation.nullable else True)
            resource = self.model.resources[relation.target]
        return every([*there, self.may("read", resource)])

    def _scoped(self, verb: Verb, resource: ResourceDef) -> bool:
        kind = "read" if verb == "read" else "write"
        scopes = self.viewer.scopes
        return scopes is None or kind in scopes or f"{resource.path}:{kind}" in scopes

    def live(self, verb: Verb, resource: ResourceDef, field: str = "") -> list[RuleDef]:
        """The rules about the row, or about a field, that may hold for this viewer."""
        key = (verb, resource.name, field)
        if key not in self._live:
            self._live[key] = self._find(verb, resource, field) if self._scoped(verb, resource) else []
        return self._live[key]

    def _find(self, verb: Verb, resource: ResourceDef, field: str) -> list[RuleDef]:
        return [
            rule
            for rule in resource.rules
            if verb in rule.verbs
            and self._is_about(rule, field)
            and (rule.role is None or rule.role in self.viewer.roles)
            and self.says(rule.expr, resource) is not False
        ]

    @staticmethod
    def _is_about(rule: RuleDef, field: str) -> bool:
        return field in rule.fields if field else not rule.fields

    def may(self, verb: Verb, resource: ResourceDef, field: str = "") -> bool | None:
        return some(self.says(rule.expr, resource) for rule in self.live(verb, resource, field))

    def is_open(self, field: FieldDef) -> bool:
        """May the viewer write the field as far as roles decide?"""
        return field.write_roles is None or any(role in self.viewer.roles for role in field.write_roles)

    def creates(self, resource: ResourceDef, field: FieldDef) -> bool | None:
        given = True if self.is_open(field) else self.may("create", resource, field.name)
        return every((self.may("create", resource), given))

    def updates(self, resource: ResourceDef, field: FieldDef) -> bool | None:
        return some(self.says(rule.expr, resource) for rule in self.updating(resource, field))

    def updating(self, resource: ResourceDef, field: FieldDef) -> list[RuleDef]:
        """The rules by which the viewer may update a field."""
        row = self.live("update", resource) if self.is_open(field) else []
        return row + self.live("update", resource, field.name)

    def shows(self, resource: ResourceDef, name: str) -> bool | None:
        """Does the field or relation show?"""
        field = resource.fields.get(name) or resource.fields.get(name + "Id")
        roles = field.read_roles if field else None
        rules = [rule for rule in resource.rules if "read" in rule.verbs and name in rule.fields]
        own: bool | None = True
        if (roles is not None or rules) and not any(role in self.viewer.roles for role in roles or ()):
            own = some(
                self.says(rule.expr, resource) for rule in rules if rule.role is None or rule.role in self.viewer.roles
            )
        made = field.computed if field else None
        return every([own, *(self._along(path, resource) for path in (columns(made) if made else ()))])

    def _along(self, path: Sequence[str], resource: ResourceDef) -> bool | None:
        name, *rest = path
        if not rest:
            return self.shows(resource, name)
        relation = resource.relations[name]
        target = self.model.resources[relation.target]
        there = every((self.may("read", target), self._along(rest, target)))
        return every((self.shows(resource, name), some((None if relation.nullable else False, there))))

    def has(self, verb: WriteVerb, resource: ResourceDef) -> bool:
        """Could the viewer ever do this?"""
        if self.may("read", resource) in (False,):
            return False
        if verb == "delete":
            return self.may(verb, resource) is not False
        if verb in ("create", "upsert"):
            wanted = (self.creates(resource, field) for field in writable(resource) if field.required)
            return every([self.may("create", resource), *wanted]) is not False
        return any(self.updates(resource, field) is not False for field in writable(resource))

    def keys(self, resource: ResourceDef) -> dict[str, tuple[str, ...]]:
        """The unique keys of all rows that the viewer could give, and could see."""
        found: dict[str, tuple[str, ...]] = {each.name: (each.name,) for each in writable(resource) if each.unique}
        found |= {"_".join(key.fields): key.fields for key in resource.keys if key.unique and key.where == TRUE}
        return {
            name: fields
            for name, fields in found.items()
            if not any(
                self.creates(resource, resource.fields[each]) is False or self.shows(resource, each) is False
                for each in fields
            )
        }

    def requires(self, resource: ResourceDef, field: FieldDef) -> bool:
        """Must a replacement have the field, whatever the row is? (It can be read, and it can be written wherever
        anything can.)"""
        own = self.updating(resource, field)
        if any(self.says(rule.expr, resource) is True for rule in own):
            everywhere = True
        else:
            all_rules = [rule for each in writable(resource) for rule in self.updating(resource, each)]
            everywhere = all(rule in own for rule in (*all_rules, *self.live("update", resource)))
        return field.required and not field.moves and self.shows(resource, field.name) is True and everywhere


forecast_of = functools.lru_cache(maxsize=64)(Forecast)
"""The same for the same viewer."""


def every(parts: Iterator[bool | None] | Sequence[bool | None] | Any) -> bool | None:
    found = list(parts)
    return False if False in found else None if None in found else True


def some(parts: Any) -> bool | None:
    found = list(parts)
    return True if True in found else None if None in found else False


def writable(resource: ResourceDef) -> list[FieldDef]:
    """The fields that clients give."""
    return [field for name, field in resource.fields.items() if field.stored and name not in SERVER_FIELDS]


class Ledger:
    """The rows of a model, and the changes that are made to them."""

    def __init__(self, model: Model, data: Data) -> None:
        self.model = model
        self.rows: Rows = {name: [dict(row) for row in data[name]] for name in model.resources}
        self.made: list[tuple[int, Any]] = []
        """The new rows of the last transaction: which change made it, and its id."""
        self._making = 0
        self._numbers = itertools.count(FIRST_NUMBER)

    def new_id(self, resource: ResourceDef) -> Any:
        return next(self._numbers) if resource.key is INTEGER_ID else str(uuid7())

    def transact(self, wishes: Sequence[Wish], viewer: Viewer, moment: str) -> list[Any]:
        """Make all changes, or none. Gives what each answers."""
        forecast = forecast_of(self.model, viewer)
        self.made = []
        for wish in wishes:
            resource = self.model.resources[wish.resource]
            updates = wish.verb == "upsert" and not wish.keep
            if not forecast.has(wish.verb, resource) or (updates and not forecast.has("update", resource)):
                raise Refused(denial(viewer))
        bodies = [Body(wish, self.model.resources[wish.resource], forecast) for wish in wishes]
        denied = [(index, name) for index, body in enumerate(bodies) for name in body.denied]
        faults = [(index, name) for index, body in enumerate(bodies) for name in body.faults]
        if denied:
            raise Refused(denial(viewer), denied, typed=True)
        if faults:
            raise Refused(Code.BAD_USER_INPUT, faults)
        before = {name: list(rows) for name, rows in self.rows.items()}
        answers = []
        ids: list[Any] = []
        for index, (wish, body) in enumerate(zip(wishes, bodies, strict=True)):
            self._making = index
            try:
                deed = Deed(self, *self._resolved(wish, body.values, ids), viewer, moment)
                answers.append(deed.done())
                ids.append(deed.id)
            except Refused as refused:
                self.rows, self.made = before, []
                places = [(index, name) for _, name in refused.places]
                raise Refused(refused.code, places, at=index) from None
        return answers

    def note_made(self, id: Any) -> None:
        self.made.append((self._making, id))

    @staticmethod
    def _resolved(wish: Wish, values: Values, ids: Sequence[Any]) -> tuple[Wish, Values]:
        """The wish and its values with the ids of the rows of earlier ones."""
        key = ids[int(wish.id[2:])] if isinstance(wish.id, str) and wish.id.startswith("$m") else wish.id
        found = {name: ids[value.index] if isinstance(value, Step) else value for name, value in values.items()}
        return replace(wish, id=None if key is None else str(key)), found


def denial(viewer: Viewer) -> Code:
    return Code.FORBIDDEN if viewer.signed_in else Code.UNAUTHENTICATED


class Body:
    """What a client gives for a row: canonical values, the fields that are at fault, and those it may not give."""

    def __init__(self, wish: Wish, resource: ResourceDef, forecast: Forecast) -> None:
        self.values: Values = {}
        self.faults: list[str] = []
        self.denied: list[str] = []
        if wish.verb == "delete":
            return
        if not isinstance(wish.body, dict):
            self.faults.append("")
            return
        verb: WriteVerb = "create" if wish.verb == "upsert" else wish.verb
        for name, given in wish.body.items():
            self._read(name, given, verb, resource, forecast)
        for name, field in resource.fields.items():
            wanted = (
                field.required or name in forecast.keys(resource).get(wish.key, ())
                if verb == "create"
                else wish.verb == "replace" and forecast.requires(resource, field)
            )
            if wanted and name not in wish.body:
                self.faults.append(name)
        for name in forecast.keys(resource).get(wish.key, ()):
            if wish.body.get(name, 0) is None and name not in self.faults:
                self.faults.append(name)

    def _read(self, name: str, given: Any, verb: WriteVerb, resource: ResourceDef, forecast: Forecast) -> None:
        field = resource.fields.get(name)
        if field is None:
            self.faults.append(name)
            return
        mine = name not in SERVER_FIELDS and field.stored
        may = forecast.creates(resource, field) if verb == "create" else forecast.updates(resource, field)
        writes = mine and may is not False
        shows = forecast.shows(resource, name)
        unknown, read_only = not writes and shows is False, not mine and verb != "replace"
        if unknown or read_only:
            self.faults.append(name)
        elif verb != "replace" and not writes:
            self.denied.append(name)
        elif given is None:
            self.values[name] = None
            if not field.nullable and not (verb == "replace" and shows is None):
                self.faults.append(name)
        else:
            self._parse(field, given)

    def _parse(self, field: FieldDef, given: Any) -> None:
        if field.relation and isinstance(given, str) and given.startswith("$m"):
            self.values[field.name] = Step(int(given[2:]))
            return
        try:
            value = field.scalar.parse(given)
            if fault_of(value, field.constraints):
                raise ValueError
            self.values[field.name] = NOTHING if value is None else value
        except ValueError:
            self.faults.append(field.name)


def same(one: Any, other: Any) -> bool:
    """Are two values equal? (A boolean is no number.)"""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


@dataclass(frozen=True)
class Step:
    """The row of an earlier change of the same transaction."""

    index: int


class _Nothing:
    """An ill-formed id: it names nothing, and equals nothing."""


NOTHING = _Nothing()


def merged(before: Any, patch: Any) -> Any:
    """A JSON value after a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    kept = {name: value for name, value in before.items() if name not in patch} if isinstance(before, dict) else {}
    old = before if isinstance(before, dict) else {}
    return kept | {name: merged(old.get(name), value) for name, value in patch.items() if value is not None}


def stored(value: Any) -> Any:
    return None if value is NOTHING else value


class Deed:
    """One change that is being made."""

    def __init__(self, grant_store: Ledger, wish: Wish, given: Values, viewer: Viewer, moment: str) -> None:
        self.grant_store = grant_store
        self.model = grant_store.model
        self.resource = grant_store.model.resources[wish.resource]
        self.wish = wish
        self.given = given
        self.viewer = viewer
        self.moment = moment
        self.forecast = forecast_of(grant_store.model, viewer)
        self.before = Sight(self.model, viewer, grant_store.rows)
        self.id: Any = None if wish.id is None else self.resource.key.parse(wish.id)

    def done(self) -> Any:
        if self.wish.verb == "create":
            return self._create()
        if self.wish.verb == "upsert":
            return self._upsert()
        if self.wish.where is not None:
            return self._many(self.wish.where)
        key = self.resource.key.parse(self.wish.id)
        row = self.before.find(self.resource.name, key)
        if row is None or not self.before.readable(row):
            raise Refused(Code.NOT_FOUND)
        return self._delete(row) if self.wish.verb == "delete" else self._change(row)

    # either

    def _upsert(self) -> Any:
        """The row that has the key is changed, if the viewer may read it and its key; or else a new one is made."""
        names = self.forecast.keys(self.resource)[self.wish.key]
        rows = [Row(self.resource, each) for each in self._table()]
        has = [row for row in rows if all(same(row.data[name], self.given[name]) for name in names)]
        seen = [row for row in has if self.before.readable(row) and all(self.before.shows(name, row) for name in names)]
        if not seen:
            return self._create()
        (row,) = seen
        self.id = row.id
        if self.wish.keep:
            return self._answer(row.data)
        self.wish = replace(self.wish, verb="update", whole=True)
        self.given = {name: value for name, value in self.given.items() if name not in names}
        return self._change(row)

    # many rows

    def _many(self, where: Expr) -> Any:
        """Change the rows that match, one after another in the order of ids; all of them, or none."""
        wish, store = self.wish, self.grant_store
        oracle = Oracle(self.model, self.viewer, store.rows)
        pairs = zip(wish.filter_slots, wish.filter_raw, strict=True)
        values = [
            [slot.scalar.parse(each) for each in raw] if slot.many else slot.scalar.parse(raw) for slot, raw in pairs
        ]
        found = oracle.listed(Read(self.resource.name, "list", (), where), values)
        rows = [row for row in found if self._may_change(row)]
        if len(rows) > wish.most:
            raise Refused(Code.CONFLICT)
        before = {name: list(each) for name, each in store.rows.items()}
        shown = [self._answer(row.data) for row in rows]
        for row in rows:
            if any(each["id"] == row.id for each in self._table()):
                one = replace(wish, id=str(row.id), where=None, pick=())
                try:
                    Deed(store, one, self.given, self.viewer, self.moment).done()
                except Refused as refused:
                    raise Refused(denial(self.viewer)) if refused.code is Code.NOT_FOUND else refused from None
        if wish.verb == "update":
            now = {each["id"]: each for each in self._table()}
            shown = [self._answer(now[row.id]) for row in rows]
        if wish.dry:
            store.rows = before
        counts = {"matched": len(rows), "changed": 0 if wish.dry else len(rows), "dryRun": wish.dry}
        return {**counts, "data": shown} if wish.pick else counts

    def _may_change(self, row: Row) -> bool:
        """May the viewer change the row, as it is?"""
        if self.wish.verb == "delete":
            return self._allows("delete", row, self.before)
        fields = [each for each in writable(self.resource) if each.name in self.given]
        return self._may_something(row, self.before) and all(self._may(each, row, self.before) for each in fields)

    # a new row

    def _create(self) -> Any:
        resource = self.resource
        self._check_references(None)
        data = {
            "id": self.grant_store.new_id(resource),
            "version": 1,
            "createdAt": self.moment,
            "updatedAt": self.moment,
        }
        for field in writable(resource):
            data[field.name] = stored(self.given.get(field.name, field.default))
        after = self._with(data)
        row = after.find(resource.name, data["id"])
        assert row is not None
        open_ = [name for name in self.given if not self.forecast.is_open(resource.fields[name])]
        if not all(self._allows("create", row, self.before, name) for name in ("", *open_)):  # it is not yet there
            self._deny()
        if not after.readable(row):
            self._deny()
        self._check_row(data)
        for name in self._states():
            initial = self.given[name] == resource.fields[name].default
            if not initial and not self._allows("create", row, self.before, name):
                raise Refused(Code.CONFLICT, [(0, name)])
        self._check_unique(data)
        self.grant_store.rows[resource.name].append(data)
        self.grant_store.note_made(data["id"])
        self.id = data["id"]
        return self._answer(data)

    # a row that is there

    def _change(self, row: Row) -> Any:
        data = {**row.data, "version": row.data["version"] + 1, "updatedAt": self.moment}
        data |= {name: stored(value) for name, value in self._kept_or_new(row)}
        changed = [
            each
            for each in writable(self.resource)
            if each.name in self.given and not self._is_unchanged(each.name, row)
        ]
        self._check_rules(row, self.before, changed)
        if not self._dangling(row):
            after = self._with(data)
            self._check_rules(Row(self.resource, data), after, [*changed, *self._reset(row)])
            if not after.readable(Row(self.resource, data)):
                self._deny()
        if any(self._move(name, row) == "of others" for name in self._states()):
            self._deny()
        self._check_version(row)
        if self.wish.verb == "replace":
            self._check_replaced(row)
        if not self._dangling(row):
            self._check_row(data)
        for name in self._states():
            if self._move(name, row) == "none":
                raise Refused(Code.CONFLICT, [(0, name)])
        self._check_references(row)
        self._check_unique(data)
        self.grant_store.rows[self.resource.name] = [data if each["id"] == row.id else each for each in self._table()]
        return self._answer(data)

    def _check_rules(self, row: Row, sight: Sight, changed: Sequence[FieldDef]) -> None:
        """May the viewer update the row, and each of the fields?"""
        if not self._may_something(row, sight) or not all(self._may(each, row, sight) for each in changed):
            self._deny()

    def _kept_or_new(self, row: Row) -> Iterator[tuple[str, Any]]:
        """The values that change."""
        for field in writable(self.resource):
            name = field.name
            shows = self.before.shows(name, row)
            if name in self.given:
                hidden_null = self.given[name] is None and not shows
                if self.wish.verb == "update":
                    merges = field.scalar is JSON and not self.wish.whole
                    yield name, merged(row.data[name], self.given[name]) if merges else self.given[name]
                elif not (self._is_unchanged(name, row) or hidden_null):
                    yield name, self.given[name]
            elif self._may_reset(field) and shows and self._may(field, row, self.before):
                yield name, field.default

    def _reset(self, row: Row) -> Iterator[FieldDef]:
        """The fields that a replacement does not give, and that become another value for that."""
        new = {name: value for name, value in self._kept_or_new(row) if name not in self.given}
        return (self.resource.fields[name] for name, value in new.items() if not same(value, row.data[name]))

    def _may_reset(self, field: FieldDef) -> bool:
        """Does it become its default where it is absent?"""
        return self.wish.verb == "replace" and not field.moves and not field.required

    def _is_unchanged(self, name: str, row: Row) -> bool:
        """Of a replacement: is it what the viewer was shown?"""
        return self.wish.verb == "replace" and self._same(name, row)

    def _same(self, name: str, row: Row) -> bool:
        if self.forecast.shows(self.resource, name) is False:
            return False
        shown = self.before.shown(name, row)
        return same(shown, self.given[name])

    def _check_replaced(self, row: Row) -> None:
        """What is read-only is as it was, and nothing is missing."""
        wrong = [
            name
            for name in self.given
            if name != "version" and not self._is_writable(name) and not self._same(name, row)
        ]
        for field in writable(self.resource):
            shows = self.before.shows(field.name, row)
            if field.name not in self.given:
                if field.required and not field.moves and shows and self._may(field, row, self.before):
                    wrong.append(field.name)
            elif self.given[field.name] is None and not field.nullable and shows:
                wrong.append(field.name)
        if wrong:
            raise Refused(Code.BAD_USER_INPUT, [(0, name) for name in wrong])

    def _is_writable(self, name: str) -> bool:
        return name not in SERVER_FIELDS and self.resource.fields[name].stored

    # rules

    def _deny(self) -> None:
        raise Refused(denial(self.viewer))

    def _allows(self, verb: Verb, row: Row, sight: Sight, field: str = "") -> bool:
        return any(sight.holds(rule.expr, row) for rule in self.forecast.live(verb, self.resource, field))

    def _may(self, field: FieldDef, row: Row, sight: Sight) -> bool:
        """May the viewer update the field on this row?"""
        row_rule = self.forecast.is_open(field) and self._allows("update", row, sight)
        return row_rule or self._allows("update", row, sight, field.name)

    def _may_something(self, row: Row, sight: Sight) -> bool:
        return self._allows("update", row, sight) or any(
            self._may(each, row, sight) for each in writable(self.resource)
        )

    def _check_version(self, row: Row) -> None:
        wanted = self.wish.versions
        if wanted is not None and row.data["version"] not in wanted:
            raise Refused(Code.PRECONDITION_FAILED)
        if self.given.get("version") is not None and self.given["version"] != row.data["version"]:
            raise Refused(Code.PRECONDITION_FAILED)

    def _states(self) -> list[str]:
        return [
            name
            for name in self.resource.fields
            if self.resource.fields[name].moves and self.given.get(name) is not None
        ]

    def _move(self, name: str, row: Row) -> str:
        """Is the move of a state the viewer's, of others, or none at all? (Of a hidden one that is all that is told.)"""
        old, new = row.data[name], self.given[name]
        moves = [
            move for move in self.resource.fields[name].moves if (move.source.value, move.target.value) == (old, new)
        ]
        if old == new or any(move.to is None or move.to.name in self.viewer.roles for move in moves):
            return "own"
        return "of others" if moves and self.before.shows(name, row) else "none"

    def _check_references(self, row: Row | None) -> None:
        if wrong := self._dangling(row):
            raise Refused(Code.CONFLICT, wrong)

    def _dangling(self, row: Row | None) -> list[Place]:
        """The references that lead to no row, or to none that the viewer may read."""
        wrong: list[Place] = []
        for name, value in self.given.items():
            relation = self.resource.relations.get(self.resource.fields[name].relation)
            if relation is None or value is None:
                continue
            stays = row is not None and self.before.shows(name, row) and row.data[name] == value
            target = self.before.find(relation.target, value)
            if not stays and (target is None or not self.before.readable(target)):
                wrong.append((0, name))
        return wrong

    def _check_row(self, data: dict[str, Any]) -> None:
        """The checks of the class."""
        row = Row(self.resource, data)
        broken = [check for check in self.resource.checks.values() if not self.before.holds(check.expr, row)]
        if broken:
            places = [(0, name) for check in broken for name in check.fields if name in self.given]
            raise Refused(Code.BAD_USER_INPUT, places)

    def _check_unique(self, data: Mapping[str, Any]) -> None:
        """Of several values that others have, the first is told."""
        wrong = [
            (0, field.name)
            for field in writable(self.resource)
            if field.unique
            and data[field.name] is not None
            and any(each[field.name] == data[field.name] and each["id"] != data["id"] for each in self._table())
        ]
        if wrong:
            raise Refused(Code.CONFLICT, wrong[:1])
        for key in self.resource.keys:
            covered = [each for each in self._table() if each["id"] != data["id"] and self._is_covered(key, each)]
            values = [data[name] for name in key.fields]
            taken = [[each[name] for name in key.fields] for each in covered]
            if key.unique and None not in values and values in taken and self._is_covered(key, data):
                raise Refused(Code.CONFLICT, [(0, name) for name in key.fields if name in self.given])

    def _is_covered(self, key: KeyDef, data: Mapping[str, Any]) -> bool:
        return self.before.holds(key.where, Row(self.resource, data))

    # deletion

    def _delete(self, row: Row) -> Any:
        if not self._allows("delete", row, self.before):
            self._deny()
        self._check_version(row)
        gone = {(self.resource.name, row.id)}
        left = list(gone)
        while left:
            for name, _, child in list(self._referring(*left.pop(), "cascade")):
                if (name, child["id"]) not in gone:
                    gone.add((name, child["id"]))
                    left.append((name, child["id"]))
        if any(
            True
            for each in gone
            for name, _, child in self._referring(*each, "restrict")
            if (name, child["id"]) != each
        ):
            raise Refused(Code.CONFLICT)
        answer = self._answer(row.data)
        self._empty(gone)
        for name, rows in self.grant_store.rows.items():
            self.grant_store.rows[name] = [each for each in rows if (name, each["id"]) not in gone]
        return answer

    def _referring(self, resource: str, id: Any, how: str) -> Iterator[tuple[str, RelationDef, Mapping[str, Any]]]:
        """The rows that refer to a row."""
        for name, other in self.model.resources.items():
            for relation in other.relations.values():
                if (relation.kind, relation.target, relation.on_delete) == ("one", resource, how):
                    for each in self.grant_store.rows[name]:
                        if each[relation.name + "Id"] == id:
                            yield name, relation, each

    def _empty(self, gone: set[tuple[str, Any]]) -> None:
        """Rows that refer to what goes, and stay, refer to nothing; each time they have a new version."""
        for each in gone:
            while found := next(self._left(each, gone), None):
                name, relation, child = found
                new = {**child, relation.name + "Id": None, "version": child["version"] + 1, "updatedAt": TOUCHED}
                rows = self.grant_store.rows[name]
                self.grant_store.rows[name] = [new if row["id"] == new["id"] else row for row in rows]

    def _left(
        self, row: tuple[str, Any], gone: set[tuple[str, Any]]
    ) -> Iterator[tuple[str, RelationDef, Mapping[str, Any]]]:
        """The rows that stay, and still refer to one that goes."""
        return (each for each in self._referring(*row, "set null") if (each[0], each[2]["id"]) not in gone)

    # around

    def _table(self) -> list[dict[str, Any]]:
        return self.grant_store.rows[self.resource.name]

    def _with(self, data: dict[str, Any]) -> Sight:
        """All rows, as they would be with this one."""
        others = [each for each in self._table() if each["id"] != data["id"]]
        return Sight(self.model, self.viewer, {**self.grant_store.rows, self.resource.name: [*others, data]})

    def _answer(self, data: Mapping[str, Any]) -> Any:
        if not self.wish.pick:
            return None
        oracle = Oracle(self.model, self.viewer, self.grant_store.rows)
        pairs = zip(self.wish.slots, self.wish.raw, strict=True)
        values = [
            [slot.scalar.parse(each) for each in raw] if slot.many else slot.scalar.parse(raw) for slot, raw in pairs
        ]
        return oracle.picked(self.wish.pick, Row(self.resource, data), values)
