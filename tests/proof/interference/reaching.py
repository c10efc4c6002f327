"""Random changes that reach for what is hidden.

A drawn transaction gets, here and there, the id of a hidden row, a reference to one, or a value that a hidden row or
a hidden field has; some updates become a JSON Patch that tests hidden values before it changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from tests.proof.interference.dealing import Deal, all_seeing
from tests.support.oracle import Data, Sight, wire
from tests.support.oracle_writes import Ledger, Wish
from tests.support.proof_writes import SENDERS
from tests.support.random_writes import Names, Sent, Style, Transaction, Wishes, fitting


@dataclass(frozen=True)
class Step:
    """A transaction in one style; with `tests`, the one update in it is sent as a JSON Patch that begins with them."""

    transaction: Transaction
    style: Style
    tests: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        tests = "" if self.tests is None else f", a patch with the tests {dict(self.tests)}"
        return "\n".join([self.style + tests, *map(repr, self.wishes)])

    @property
    def wishes(self) -> Sequence[Wish]:
        return self.transaction.wishes

    def sent(self, model: Model, names: Names) -> Sent:
        sent = SENDERS[self.style](self.transaction, model, names)
        if self.tests is None:
            return sent
        body = names.outgoing(self.wishes[0].body)
        operations = [{"op": "test", "path": f"/{name}", "value": value} for name, value in self.tests.items()]
        operations += [{"op": "add", "path": f"/{name}", "value": value} for name, value in body.items()]
        headers = {**sent.headers, "content-type": "application/json-patch+json"}
        return replace(sent, headers=headers, body=json.dumps(operations).encode())

    def asked_of(self, grant_store: Ledger, sight: Sight) -> Sequence[Wish] | None:
        """What a ledger is asked for; None if the patch does not fit the row as it is shown."""
        if self.tests is None:
            return self.wishes
        (wish,) = self.wishes
        resource = grant_store.model.resources[wish.resource]
        row = sight.find(resource.name, resource.key.parse(wish.id))
        if row is None or not sight.readable(row):
            return self.wishes
        shown = {name: wire(field.scalar, sight.shown(name, row)) for name, field in resource.fields.items()}
        if any(shown.get(name) != value for name, value in self.tests.items()):
            return None
        changed = {name: value for name, value in wish.body.items() if name not in shown or shown[name] != value}
        return [replace(wish, body=changed, whole=True)]


class Reach:
    """Draws the steps of one sequence."""

    def __init__(self, dealt: Deal, random: Random) -> None:
        self.dealt = dealt
        self.random = random
        self.model = dealt.model
        self.secrets = dealt.secrets
        self.wishes = Wishes(dealt.model, random)

    def step(self, both: Sequence[Data]) -> Step:
        drawn = self.wishes.transaction(self.dealt.viewer, both[1])
        sights = [Sight(self.model, self.dealt.viewer, rows) for rows in both]
        wishes = tuple(self._reaching(wish, sights) if self._chance(0.5) else wish for wish in drawn.wishes)
        style = self.random.choice(drawn.styles)
        patches = (
            style == "rest" and wishes[0].verb == "update" and isinstance(wishes[0].body, dict) and self._chance(0.5)
        )
        tests = self._hidden(wishes[0], sights) if patches else None
        return Step(replace(drawn, wishes=wishes), style, tests)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _reaching(self, wish: Wish, sights: Sequence[Sight]) -> Wish:
        resource = self.model.resources[wish.resource]
        hidden = self.secrets.ids[resource.name]
        if wish.id is not None and hidden and self._chance(0.35):
            wish = replace(wish, id=str(self.random.choice(hidden)))
        if not isinstance(wish.body, dict):
            return wish
        body = {name: self._value(resource, name, value) for name, value in wish.body.items()}
        if wish.verb == "replace" and self._chance(0.6):
            body |= self._hidden(wish, sights)
        return replace(wish, body=body)

    def _hidden(self, wish: Wish, sights: Sequence[Sight]) -> dict[str, Any]:
        """A field of the row that is hidden, with the value that it has in one of the databases."""
        resource, sight = self.model.resources[wish.resource], self.random.choice(sights)
        row = sight.find(resource.name, resource.key.parse(wish.id))
        if row is None or not sight.readable(row):
            return {}
        masked = [field for field in resource.fields.values() if field.stored and not sight.shows(field.name, row)]
        if not masked:
            return {}
        field = self.random.choice(masked)
        return {field.name: wire(field.scalar, row.data[field.name])}

    def _value(self, resource: ResourceDef, name: str, value: Any) -> Any:
        """The value that was drawn, or a hidden one."""
        field = resource.fields.get(name)
        if field is None or not self._chance(0.5 if field.relation else 0.3):
            return value
        if field.relation:
            ids = self.secrets.ids[resource.relations[field.relation].target]
            return str(self.random.choice(ids)) if ids else value
        found = self.secrets.values.get((resource.name, name))
        return _raw(field, self.random.choice(found)) if found else value


def _raw(field: FieldDef, value: Any) -> Any:
    return wire(field.scalar, fitting(field, value))


class Touch:
    """Tells whether a step has to do with what is hidden."""

    def __init__(self, dealt: Deal) -> None:
        self.dealt = dealt
        self.ids = {name: set(map(str, ids)) for name, ids in dealt.secrets.ids.items()}

    def __call__(self, step: Step, both: Sequence[Data]) -> bool:
        return bool(step.tests) or any(self._reaches(wish) or self._shows(wish, both) for wish in step.wishes)

    def _reaches(self, wish: Wish) -> bool:
        """Does it name a hidden row, or a hidden value that it could be compared with?"""
        resource = self.dealt.model.resources[wish.resource]
        body = wish.body if isinstance(wish.body, dict) else {}
        given = ((resource.fields[name], value) for name, value in body.items() if name in resource.fields)
        return wish.id in self.ids[resource.name] or any(self._is_secret(resource, *each) for each in given)

    def _is_secret(self, resource: ResourceDef, field: FieldDef, value: Any) -> bool:
        if field.relation:
            return str(value) in self.ids[resource.relations[field.relation].target]
        if not field.unique and field.name not in self.dealt.secrets.masked[resource.name]:
            return False
        hidden = self.dealt.secrets.values.get((resource.name, field.name), ())
        return value in [wire(field.scalar, each) for each in hidden]

    def _shows(self, wish: Wish, both: Sequence[Data]) -> bool:
        """Would its answer differ if there were no rules?"""
        if wish.id is None or not wish.pick:
            return False
        one, other = (self._picked(wish, data) for data in both)
        return bool(one != other)

    def _picked(self, wish: Wish, data: Data) -> Any:
        oracle, resource = all_seeing(self.dealt, data), self.dealt.model.resources[wish.resource]
        row = oracle.sight.find(resource.name, resource.key.parse(wish.id))
        pairs = zip(wish.slots, wish.raw, strict=True)
        values = [
            [slot.scalar.parse(each) for each in raw] if slot.many else slot.scalar.parse(raw) for slot, raw in pairs
        ]
        return None if row is None else oracle.picked(wish.pick, row, values)
