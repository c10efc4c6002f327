"""What the rules of a model say about a thing, for one viewer: whatever the data is.

A Matter is something that is allowed or not: reading a Post, seeing its title, calling an action on it. Its clauses
are the rules that speak about it; any of them can allow it. Each has what is left of it once all is decided that
depends on the viewer alone: always, never, or a condition on the row.

    Post: read              where published or author.id = viewer.id
      Post.published_or_own   published or author.id = viewer.id
      access                  read, update, delete to admin             never: the viewer is not admin

What is left of a Matter is taken from the View, which is what the service goes by. The clauses only tell of what it
was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from diptych.model.defs import CallDef, FieldDef, QueryDef, RelationDef, ResourceDef, RuleDef
from diptych.model.expr import (
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
from diptych.model.markers import Move
from diptych.model.model import Model
from diptych.model.source import lines_of
from diptych.model.telling import in_words, tell
from diptych.model.view import ResourceView, View

Kind = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule that speaks about a matter."""

    name: str
    spot: str
    """Its file and line, where they are known."""
    says: str
    left: Expr
    because: str = ""
    """Why it always or never holds, where that does not depend on the row."""
    here: str = ""
    """What is left of it, where that is another condition than it says."""


@dataclass(frozen=True, slots=True)
class Matter:
    """Something that is allowed or not, on the rows of a resource."""

    name: str
    resource: str
    left: Expr
    clauses: tuple[Clause, ...] = ()
    is_name: bool = False
    """Is it about a name, which does not exist for a viewer to whom it is never allowed?"""

    @property
    def is_open(self) -> bool:
        """Does no rule speak about it?"""
        return self.left == TRUE and not self.clauses


class Rulebook:
    """The rules of a model, for one viewer."""

    def __init__(self, model: Model, view: View) -> None:
        self.model = model
        self.view = view

    def say(self, expr: Expr, resource: str) -> str:
        """An expression over a row, in the words of the model file."""
        return tell(in_words(expr, self.model.resources, resource))

    # verbs

    def verb(self, resource: str, verb: str) -> Matter:
        """Reading, creating, updating or deleting a row."""
        found, seen = self.model.resources[resource], self.view.resources.get(resource)
        rules = [rule for rule in found.rules if verb in rule.verbs and _is_whole(rule, verb)]
        clauses = self._of_rules(found, rules, named=True)
        return Matter(f"{resource}: {verb}", resource, _left(seen, verb), tuple(self._scoped(found, verb, clauses)))

    def call(self, resource: str, call: CallDef) -> Matter:
        """Calling an action or a query."""
        found = self.model.resources[resource]
        rules = [rule for rule in found.rules if call.on == "row" and call.attr in rule.actions]
        clauses = self._of_rules(found, rules)
        if not rules and call.role is not None:
            clauses = iter([self._by_roles(f"to {call.role}", found, call.attr, (call.role,))])
        left = self.view.call_rule(found, call) if call.root in self.view.calls else FALSE
        kind = "read" if isinstance(call, QueryDef) else call.attr
        return Matter(f"{resource}: {call.name}", resource, left, tuple(self._scoped(found, kind, clauses)))

    # fields and relations

    def field(self, resource: str, name: str) -> Matter:
        """Seeing a field of a row that can be read."""
        found, seen = self.model.resources[resource], self.view.resources.get(resource)
        field = found.fields[name]
        shown = seen.fields.get(name) if seen else None
        own = tuple(self._of_reading(found, name, field.read_roles, field.attr))
        left = _any(own) if seen is None else shown.rule if shown else FALSE
        clauses = (*own, *self._of_parts(found, field, left))
        return Matter(f"{resource}.{name}: read", resource, left, clauses, is_name=True)

    def way(self, resource: str, name: str) -> Matter:
        """Following a relation of a row that can be read; what it leads to has rules of its own."""
        found, seen = self.model.resources[resource], self.view.resources.get(resource)
        relation = found.relations[name]
        key = found.fields.get(name + "Id") if relation.kind == "one" else None
        clauses = tuple(self._of_reading(found, name, key.read_roles if key else None, relation.attr))
        known = seen.relations.get(name) if seen else None
        left = known.rule if known else _any(clauses)
        return Matter(f"{resource}.{name}: follow", resource, left, clauses, is_name=True)

    def behind(self, relation: RelationDef) -> Iterator[Matter]:
        """What must be readable besides, for a relation to lead to a row: the row, and what ties it to this one."""
        yield self.verb(relation.target, "read")
        if relation.kind == "many":
            yield self.way(relation.target, relation.inverse)
        elif relation.kind == "through":
            yield self.verb(relation.link, "read")
            yield from (self.way(relation.link, end) for end in (relation.link_mine, relation.link_theirs))

    def writing(self, resource: str, name: str, verb: Literal["create", "update"]) -> Matter:
        """Giving a value for a field, of a new row or of one that is there."""
        found, seen = self.model.resources[resource], self.view.resources.get(resource)
        known = seen.writes.get(name) if seen else None
        left = FALSE if known is None else known.create if verb == "create" else known.update
        clauses = tuple(self._scoped(found, verb, self._of_writing(found, name, verb)))
        return Matter(f"{resource}.{name}: {verb}", resource, left, clauses, is_name=True)

    def moving(self, resource: str, name: str, target: str) -> Matter:
        """Moving the state of a row that is there."""
        found = self.model.resources[resource]
        field = found.fields[name]
        stays = Compare("eq", Col((name,)), Const(target, field.scalar))
        already = Clause("States", self._spot(found, field.attr), f"{self.say(stays, resource)} already", stays)
        moves = (self._move(found, field, move) for move in field.moves if move.target.value == target)
        clauses = (already, *moves)
        return Matter(f"{resource}.{name}: become {target}", resource, _any(clauses), clauses)

    def beginning(self, resource: str, name: str, state: str) -> Matter:
        """The state of a new row."""
        found = self.model.resources[resource]
        field = found.fields[name]
        initial = TRUE if state == field.default else FALSE
        first = Clause("States", self._spot(found, field.attr), f"begins as {field.default}", initial, f"it is {state}")
        rules = [rule for rule in found.rules if "create" in rule.verbs and name in rule.fields]
        left = or_(initial, self.view.rule(found, "create", name))
        return Matter(f"{resource}.{name}: begin as {state}", resource, left, (first, *self._of_rules(found, rules)))

    # clauses

    def _of_rules(self, found: ResourceDef, rules: Iterable[RuleDef], *, named: bool = False) -> Iterator[Clause]:
        """A clause for each rule; `named`, with the fields that it is about."""
        for rule in rules:
            mine = rule.role is None or rule.role in self.view.signature.roles
            left = self.view.fold(rule.expr, found.name) if mine else FALSE
            if rule.name == "access":
                says = f"{', '.join((*rule.verbs, *rule.actions))} to {rule.role or 'everyone'}"
            else:
                says = self.say(rule.expr, found.name)
                says += f", on {', '.join(rule.fields)}" if named and rule.fields else ""
                says += f", to {rule.role}" if rule.role else ""
            name = "access" if rule.name == "access" else f"{found.name}.{rule.name}"
            because = self._reason(rule.role, rule.expr, left)
            here = "" if because or left == rule.expr else self.say(left, found.name)
            yield Clause(name, self._spot(found, rule.name), says, left, because, here)

    def _of_reading(
        self, found: ResourceDef, name: str, roles: tuple[str, ...] | None, attr: str
    ) -> Iterator[Clause]:
        if roles is not None:
            yield self._by_roles(f"ReadBy({', '.join(roles)})", found, attr, roles)
        yield from self._of_rules(found, [rule for rule in found.rules if "read" in rule.verbs and name in rule.fields])

    def _of_parts(self, found: ResourceDef, field: FieldDef, left: Expr) -> Iterator[Clause]:
        """Of a computed field: it shows where all that it is made of shows."""
        parts: list[Expr] = [Col((need,)) for need in field.needs]
        if field.computed is not None:
            parts += [part for part in leaves(field.computed) if isinstance(part, Col)]
        if parts and left != TRUE:
            names = ", ".join(dict.fromkeys(self.say(part, found.name) for part in parts))
            because = "the viewer may never see all of these" if left == FALSE else ""
            yield Clause("computed", self._spot(found, field.attr), f"made of {names}", left, because)

    def _of_writing(self, found: ResourceDef, name: str, verb: str) -> Iterator[Clause]:
        """The rules of the row allow it to those whom WriteBy names; rules about the field allow it besides."""
        field = found.fields[name]
        roles = field.write_roles
        rules = [rule for rule in found.rules if verb in rule.verbs]
        if roles is not None and not self.view.signature.roles.intersection(roles):
            yield self._by_roles(f"WriteBy({', '.join(roles)})", found, field.attr, roles)
        else:
            yield from self._of_rules(found, [rule for rule in rules if not rule.fields])
        yield from self._of_rules(found, [rule for rule in rules if name in rule.fields])

    def _by_roles(self, name: str, found: ResourceDef, attr: str, roles: tuple[str, ...]) -> Clause:
        mine = sorted(self.view.signature.roles.intersection(roles))
        because = f"the viewer is {' and '.join(mine)}" if mine else f"the viewer is not {' or '.join(roles)}"
        return Clause(name, self._spot(found, attr), "", TRUE if mine else FALSE, because)

    def _move(self, found: ResourceDef, field: FieldDef, move: Move) -> Clause:
        before = Compare("eq", Col((field.name,)), Const(move.source.value, field.scalar))
        mine = move.to is None or move.to.name in self.view.signature.roles
        says = self.say(before, found.name) + (f", to {move.to.name}" if move.to else "")
        because = "" if mine or move.to is None else f"the viewer is not {move.to.name}"
        spot = self._spot(found, field.attr)
        return Clause(f"Move to {move.target.value}", spot, says, before if mine else FALSE, because)

    def _scoped(self, found: ResourceDef, verb: str, clauses: Iterator[Clause]) -> Iterator[Clause]:
        """The same clauses; none of them, where the scopes of the token leave no room for any."""
        kind: Kind = "read" if verb == "read" else "write"
        if self.view.signature.allows(found.path, kind):
            yield from clauses
        else:
            held = ", ".join(sorted(self.view.signature.scopes or ())) or "none"
            yield Clause("scope", "", f"{kind} or {found.path}:{kind}", FALSE, f"of these the token has {held}")

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
        """What the viewer lacks that a rule asks for."""
        signature = self.view.signature
        match part:
            case ViewerId() if not signature.has_id:
                return "has no id"
            case ViewerValue(name) if name not in signature.knows:
                return f"has no {name}"
            case HasRole(role) if role not in signature.roles:
                return f"is not {role}"
        return ""

    def _spot(self, found: ResourceDef, attr: str) -> str:
        file, lines = _sources(self.model)[found.name]
        return f"{file}:{lines[attr]}" if attr in lines else ""


@lru_cache(maxsize=16)
def _sources(model: Model) -> Mapping[str, tuple[str, Mapping[str, int]]]:
    """The file of every resource, and the lines of its members; read once."""
    return {name: lines_of(found.cls) for name, found in model.resources.items()}


def _is_whole(rule: RuleDef, verb: str) -> bool:
    """Does a rule speak about the row as a whole? Where a field may be updated, so may the row, as to that field."""
    return not rule.fields or verb == "update"


def _left(seen: ResourceView | None, verb: str) -> Expr:
    if seen is None:
        return FALSE
    return {"read": seen.read, "create": seen.create, "update": seen.update, "delete": seen.delete}[verb]


def _any(clauses: Iterable[Clause]) -> Expr:
    known = [clause.left for clause in clauses]
    return or_(*known) if known else TRUE
