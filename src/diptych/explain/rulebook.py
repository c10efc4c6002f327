"""The access rules of a model for one viewer, independent of the data.

A Matter is something that is allowed or denied: reading a Post, seeing its title, calling an action on it. Its clauses
are the rules about it; any of them can allow it. `left` is a clause partially evaluated for the viewer: always, never,
or a condition on the row.

    Post: read              where published or author.id = viewer.id
      Post.published_or_own   published or author.id = viewer.id
      access                  read, update, delete to admin             never: the viewer is not admin

`left` of a Matter is taken from the View, which the service itself uses. The clauses only say what it was made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from diptych.model.call_defs import CallDef, QueryDef
from diptych.model.declare.markers import Move
from diptych.model.defs import FieldDef, RelationDef, ResourceDef, RuleDef
from diptych.model.describe.rule_text import in_words, render
from diptych.model.model import Model
from diptych.model.read.source import lines_of
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import (
    FALSE,
    TRUE,
    Col,
    Compare,
    Const,
    Expr,
    HasRole,
    ViewerId,
    ViewerValue,
    all_leaves,
    leaves,
    or_,
)
from diptych.model.view import View

RuleKind = Literal["read", "write"]


class Clause(Struct, frozen=True):
    """One rule about a matter."""

    name: str
    spot: str
    """Its file and line, if they are known."""
    says: str
    left: Expr
    because: str = ""
    """Why it always or never holds, if that does not depend on the row."""
    here: str = ""
    """The rest of the condition, if the viewer decides a part of it."""


class Matter(Struct, frozen=True):
    """Something that is allowed or denied, on the rows of a resource."""

    name: str
    resource: str
    left: Expr
    clauses: tuple[Clause, ...] = ()
    is_name: bool = False
    """Is it about a name, which does not exist for a viewer to whom it is never allowed?"""

    @property
    def is_open(self) -> bool:
        """Is the operation allowed without any rule?"""
        return self.left == TRUE and not self.clauses


class Rulebook:
    """The rules of a model, for one viewer."""

    def __init__(self, model: Model, view: View) -> None:
        self.model = model
        self.view = view

    def say(self, expr: Expr, resource: str) -> str:
        """The source text of an expression over a row, in the names of the model file."""
        return render(in_words(expr, self.model.resources, resource))

    # verbs

    def verb(self, resource: str, verb: str) -> Matter:
        """Reading, creating, updating or deleting a row."""
        definition, seen = self.model.resources[resource], self.view.resources.get(resource)
        rules = [rule for rule in definition.rules if verb in rule.verbs and _is_whole(rule, verb)]
        clauses = self._of_rules(definition, rules, named=True)
        return Matter(
            f"{resource}: {verb}", resource, _left(seen, verb), tuple(self._scoped(definition, verb, clauses))
        )

    def call(self, resource: str, call: CallDef) -> Matter:
        """Calling an action or a query."""
        definition = self.model.resources[resource]
        rules = [rule for rule in definition.rules if call.on == "row" and call.attr in rule.actions]
        clauses = self._of_rules(definition, rules)
        if not rules and call.role is not None:
            clauses = iter([self._by_roles(f"to {call.role}", definition, call.attr, (call.role,))])
        left = self.view.call_rule(definition, call) if call.root in self.view.calls else FALSE
        kind = "read" if isinstance(call, QueryDef) else call.attr
        return Matter(f"{resource}: {call.name}", resource, left, tuple(self._scoped(definition, kind, clauses)))

    # fields and relations

    def field(self, resource: str, name: str) -> Matter:
        """Seeing a field of a row that can be read."""
        definition, seen = self.model.resources[resource], self.view.resources.get(resource)
        field = definition.fields[name]
        shown = seen.fields.get(name) if seen else None
        own = tuple(self._of_reading(definition, name, field.read_roles, field.attr))
        left = _any(own) if seen is None else shown.rule if shown else FALSE
        clauses = (*own, *self._of_parts(definition, field, left))
        return Matter(f"{resource}.{name}: read", resource, left, clauses, is_name=True)

    def way(self, resource: str, name: str) -> Matter:
        """The rules about following a relation from a row that can be read; the row at its end has rules of its own."""
        definition, seen = self.model.resources[resource], self.view.resources.get(resource)
        relation = definition.relations[name]
        key = definition.fields.get(name + "Id") if relation.kind == "one" else None
        clauses = tuple(self._of_reading(definition, name, key.read_roles if key else None, relation.attr))
        known = seen.relations.get(name) if seen else None
        left = known.rule if known else _any(clauses)
        return Matter(f"{resource}.{name}: follow", resource, left, clauses, is_name=True)

    def behind(self, relation: RelationDef) -> Iterator[Matter]:
        """What must be readable besides, for a relation to show a row: the row itself, and the link to it."""
        yield self.verb(relation.target, "read")
        if relation.kind == "many":
            yield self.way(relation.target, relation.inverse)
        elif relation.kind == "through":
            yield self.verb(relation.link, "read")
            yield from (self.way(relation.link, end) for end in (relation.link_mine, relation.link_theirs))

    def writing(self, resource: str, name: str, verb: Literal["create", "update"]) -> Matter:
        """Writing a field, of a new row or of an existing one."""
        definition, seen = self.model.resources[resource], self.view.resources.get(resource)
        known = seen.writes.get(name) if seen else None
        left = FALSE if known is None else known.create if verb == "create" else known.update
        clauses = tuple(self._scoped(definition, verb, self._of_writing(definition, name, verb)))
        return Matter(f"{resource}.{name}: {verb}", resource, left, clauses, is_name=True)

    def moving(self, resource: str, name: str, target: str) -> Matter:
        """A state transition of an existing row."""
        definition = self.model.resources[resource]
        field = definition.fields[name]
        stays = Compare("eq", Col((name,)), Const(target, field.scalar))
        already = Clause("States", self._spot(definition, field.attr), f"{self.say(stays, resource)} already", stays)
        moves = (self._move(definition, field, move) for move in field.moves if move.target.value == target)
        clauses = (already, *moves)
        return Matter(f"{resource}.{name}: become {target}", resource, _any(clauses), clauses)

    def beginning(self, resource: str, name: str, state: str) -> Matter:
        """The initial state of a new row."""
        definition = self.model.resources[resource]
        field = definition.fields[name]
        initial = TRUE if state == field.default else FALSE
        first = Clause(
            "States", self._spot(definition, field.attr), f"begins as {field.default}", initial, f"it is {state}"
        )
        rules = [rule for rule in definition.rules if "create" in rule.verbs and name in rule.fields]
        left = or_(initial, self.view.rule(definition, "create", name))
        return Matter(
            f"{resource}.{name}: begin as {state}", resource, left, (first, *self._of_rules(definition, rules))
        )

    # clauses

    def _of_rules(self, resource: ResourceDef, rules: Iterable[RuleDef], *, named: bool = False) -> Iterator[Clause]:
        """A clause for each rule; if `named`, with the fields that it is about."""
        for rule in rules:
            mine = rule.role is None or rule.role in self.view.signature.roles
            left = self.view.fold(rule.expr, resource.name) if mine else FALSE
            if rule.name == "access":
                says = f"{', '.join((*rule.verbs, *rule.actions))} to {rule.role or 'everyone'}"
            else:
                says = self.say(rule.expr, resource.name)
                says += f", on {', '.join(rule.fields)}" if named and rule.fields else ""
                says += f", to {rule.role}" if rule.role else ""
            name = "access" if rule.name == "access" else f"{resource.name}.{rule.name}"
            because = self._reason(rule.role, rule.expr, left)
            here = "" if because or left == rule.expr else self.say(left, resource.name)
            yield Clause(name, self._spot(resource, rule.name), says, left, because, here)

    def _of_reading(
        self, resource: ResourceDef, name: str, roles: tuple[str, ...] | None, attr: str
    ) -> Iterator[Clause]:
        if roles is not None:
            yield self._by_roles(f"ReadBy({', '.join(roles)})", resource, attr, roles)
        yield from self._of_rules(
            resource, [rule for rule in resource.rules if "read" in rule.verbs and name in rule.fields]
        )

    def _of_parts(self, resource: ResourceDef, field: FieldDef, left: Expr) -> Iterator[Clause]:
        """The clause of a computed field: it is visible where all fields that it is made of are."""
        parts: list[Expr] = [Col((need,)) for need in field.needs]
        if field.computed is not None:
            parts += [part for part in leaves(field.computed) if isinstance(part, Col)]
        if parts and left != TRUE:
            names = ", ".join(dict.fromkeys(self.say(part, resource.name) for part in parts))
            because = "the viewer may never see all of these" if left == FALSE else ""
            yield Clause("computed", self._spot(resource, field.attr), f"made of {names}", left, because)

    def _of_writing(self, resource: ResourceDef, name: str, verb: str) -> Iterator[Clause]:
        """Clauses of writing a field: the rules of the row for the roles in WriteBy, and the rules of the field."""
        field = resource.fields[name]
        roles = field.write_roles
        rules = [rule for rule in resource.rules if verb in rule.verbs]
        if roles is not None and not self.view.signature.roles.intersection(roles):
            yield self._by_roles(f"WriteBy({', '.join(roles)})", resource, field.attr, roles)
        else:
            yield from self._of_rules(resource, [rule for rule in rules if not rule.fields])
        yield from self._of_rules(resource, [rule for rule in rules if name in rule.fields])

    def _by_roles(self, name: str, resource: ResourceDef, attr: str, roles: tuple[str, ...]) -> Clause:
        mine = sorted(self.view.signature.roles.intersection(roles))
        because = f"the viewer is {' and '.join(mine)}" if mine else f"the viewer is not {' or '.join(roles)}"
        return Clause(name, self._spot(resource, attr), "", TRUE if mine else FALSE, because)

    def _move(self, resource: ResourceDef, field: FieldDef, move: Move) -> Clause:
        before = Compare("eq", Col((field.name,)), Const(move.source.value, field.scalar))
        mine = move.to is None or move.to.name in self.view.signature.roles
        says = self.say(before, resource.name) + (f", to {move.to.name}" if move.to else "")
        because = "" if mine or move.to is None else f"the viewer is not {move.to.name}"
        spot = self._spot(resource, field.attr)
        return Clause(f"Move to {move.target.value}", spot, says, before if mine else FALSE, because)

    def _scoped(self, resource: ResourceDef, verb: str, clauses: Iterator[Clause]) -> Iterator[Clause]:
        """The same clauses, or the scope of the token if it denies all of them."""
        kind: RuleKind = "read" if verb == "read" else "write"
        if self.view.signature.allows(resource.path, kind):
            yield from clauses
        else:
            held = ", ".join(sorted(self.view.signature.scopes or ())) or "none"
            yield Clause("scope", "", f"{kind} or {resource.path}:{kind}", FALSE, f"of these the token has {held}")

    def _reason(self, role: str | None, expr: Expr, left: Expr) -> str:
        """Why a rule always or never holds for this viewer."""
        if left == TRUE:
            return "to everyone" if role is None else f"the viewer is {role}"
        if left != FALSE:
            return ""
        if role is not None and role not in self.view.signature.roles:
            return f"the viewer is not {role}"
        missing = list(dict.fromkeys(filter(None, map(self._missing, all_leaves(expr)))))
        return f"the viewer {' and '.join(missing)}" if missing else "no row can meet it"

    def _missing(self, part: Expr) -> str:
        """What a rule requires and the viewer lacks."""
        signature = self.view.signature
        match part:
            case ViewerId() if not signature.has_id:
                return "has no id"
            case ViewerValue(name) if name not in signature.knows:
                return f"has no {name}"
            case HasRole(role) if role not in signature.roles:
                return f"is not {role}"
        return ""

    def _spot(self, resource: ResourceDef, attr: str) -> str:
        file, lines = _sources(self.model)[resource.name]
        return f"{file}:{lines[attr]}" if attr in lines else ""


@lru_cache(maxsize=16)
def _sources(model: Model) -> Mapping[str, tuple[str, Mapping[str, int]]]:
    """The file of every resource, and the lines of its members; cached."""
    return {name: lines_of(resource.cls) for name, resource in model.resources.items()}


def _is_whole(rule: RuleDef, verb: str) -> bool:
    """Is a rule about the row as a whole? One that lets a field be updated lets the row be updated, in that field."""
    return not rule.fields or verb == "update"


def _left(seen: ResourceView | None, verb: str) -> Expr:
    if seen is None:
        return FALSE
    return {"read": seen.read, "create": seen.create, "update": seen.update, "delete": seen.delete}[verb]


def _any(clauses: Iterable[Clause]) -> Expr:
    known = [clause.left for clause in clauses]
    return or_(*known) if known else TRUE
