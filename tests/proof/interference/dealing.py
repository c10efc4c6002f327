"""A deal: a viewer, and two sets of rows that look the same to that viewer.

    deal(model, Random(7))      a new data set, one of the viewers, and the rows altered behind their back

`Secrets` are what the two sets hold that the viewer may not see; whoever draws requests reaches for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from diptych.model.declare.roles import Viewer
from diptych.model.defs import FieldDef, ResourceDef
from diptych.model.model import Model
from diptych.model.rules.expr import TRUE, Col
from tests.proof.interference.altering import Rows, altered
from tests.support.asks import World
from tests.support.edge_cases import rows
from tests.support.oracle import Data, Oracle, Row, Sight
from tests.support.proof_writes import kind

LEAST_CELLS = 8
"""Values that two sets of rows must differ in."""


@dataclass(frozen=True)
class Deal:
    """Two sets of rows that look the same to one viewer."""

    model: Model
    who: str
    viewer: Viewer
    one: Data
    other: Rows
    cells: int
    twins: int

    @property
    def both(self) -> tuple[Data, Data]:
        return self.one, self.other

    @cached_property
    def secrets(self) -> Secrets:
        return Secrets(self.model, self.viewer, self.both)


def deal(
    model: Model, random: Random, who: Sequence[str], held: Callable[[FieldDef], bool] = lambda field: False
) -> Deal:
    """Rows, a viewer who does not see everything, and the same rows altered behind their back."""
    while True:
        data = kind(model, rows(model, random.getrandbits(32)))
        name = random.choice(who)
        viewer = onlookers(model, data)[name]
        other = altered(model, viewer, data, random, held)
        if other.cells >= LEAST_CELLS:
            return Deal(model, name, viewer, data, other.rows, other.cells, other.twins)


def onlookers(model: Model, data: Data) -> Mapping[str, Viewer]:
    """Viewers who see some things and not others: without a token, with one, with a role, narrowed by scopes."""
    person = next(name for name in ("User", "Person", "Writer") if name in model.resources)
    ids = [row["id"] for row in data[person]]
    path, second = (model.resources[name].path for name in (person, _first_with_rules(model)))
    roles = [name for name in model.roles if name != "signed_in"]
    return {
        "anonymous": model.anonymous,
        "someone": model.viewer(frozenset(), ids[0]),
        "another": model.viewer(frozenset(), ids[-1]),
        "middle": model.viewer(frozenset(roles[:1]), ids[2]),
        "narrow": model.viewer(frozenset(roles[:1]), ids[1], frozenset({f"{path}:read", f"{second}:read", "write"})),
        "reader": model.viewer(frozenset(roles[:1]), ids[1], frozenset({"read", f"{path}:write"})),
    }


def _first_with_rules(model: Model) -> str:
    """A resource of which rows are hidden."""
    return next(
        name
        for name, each in model.resources.items()
        if not any(rule.expr == TRUE and rule.role is None and "read" in rule.verbs for rule in each.rules)
    )


class Secrets:
    """What a viewer may not see, in any of some sets of rows."""

    def __init__(self, model: Model, viewer: Viewer, sets: Sequence[Data]) -> None:
        self.ids: dict[str, list[Any]] = {name: [] for name in model.resources}
        """The ids of hidden rows."""
        self.values: dict[tuple[str, str], list[Any]] = {}
        """The hidden values of each field."""
        self.masked: dict[str, set[str]] = {name: set() for name in model.resources}
        """The fields that are hidden on some row that can be read."""
        for data in sets:
            sight = Sight(model, viewer, data)
            for found in sight.rows.values():
                for row in found:
                    self._note(sight, row)

    def hides(self, resource: str) -> bool:
        """Is there something hidden about a resource?"""
        return bool(self.ids[resource] or self.masked[resource])

    def _note(self, sight: Sight, row: Row) -> None:
        name = row.resource.name
        readable = sight.readable(row)
        if not readable:
            self.ids[name].append(row.id)
        for field in row.resource.fields.values():
            if field.python is not None or (readable and sight.shows(field.name, row)):
                continue
            if readable:
                self.masked[name].add(field.name)
            value = sight.value(field.computed or Col((field.name,)), row)
            if value is not None:
                self.values.setdefault((name, field.name), []).append(value)


class SecretWorld(World):
    """Draws ids and values from what is hidden, about as often as from all else."""

    def __init__(self, deal: Deal) -> None:
        super().__init__(deal.model, deal.viewer, deal.one)
        self.secrets = deal.secrets
        hiding = [each for each in self.resources if self.secrets.hides(each.resource.name)]
        self.resources += hiding * 3

    def pool(self, resource: ResourceDef, field: FieldDef) -> list[Any]:
        return _evenly(self.secrets.values.get((resource.name, field.name), []), super().pool(resource, field))

    def ids(self, resource: ResourceDef) -> list[Any]:
        return _evenly([str(each) for each in self.secrets.ids[resource.name]], super().ids(resource))


def _evenly(few: list[Any], many: list[Any]) -> list[Any]:
    return many + few * max(1, len(many) // len(few)) if few else many


class AllSeeing(Sight):
    """Sees everything, as if there were no rules."""

    def readable(self, row: Row) -> bool:
        return True

    def shows(self, name: str, row: Row) -> bool:
        return True


def all_seeing(dealt: Deal, rows: Data) -> Oracle:
    """Answers as if there were no rules: where two answers differ so, the rules are what makes them equal."""
    oracle = Oracle(dealt.model, dealt.viewer, rows, lambda read, keys: keys)
    oracle.sight = AllSeeing(dealt.model, dealt.viewer, rows)
    return oracle
