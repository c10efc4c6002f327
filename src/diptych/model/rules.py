"""Rules and computed fields of a resource: checked, traced, and held against each other.

A traced expression names fields, also computed ones, by their names on the wire; so what a computed field is
made of can be read off its expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from diptych.model.defs import SERVER_FIELDS, FieldDef, RelationDef, ResourceDef, RuleDef
from diptych.model.expr import TRUE, Choose, Col, Concat, Const, Expr, Has, May, Slice, ViewerValue, leaves
from diptych.model.members import computed_fields, rules
from diptych.model.needs import needed
from diptych.model.resource import VERBS, Allowance, Grant
from diptych.model.roles import Role
from diptych.model.scan import Untraceable
from diptych.model.trace import Step, trace_rule, trace_value

Told = Callable[[ResourceDef, str, str, str], None]
_RULES = "See docs/model.md, Rules"
_COMPUTED = "See docs/model.md, Computed fields"
Place = tuple[str, str]
"""A field: the name of its resource, and its own."""


class Tracer:
    """Traces all rules and computed fields of a model whose fields and relations are known."""

    def __init__(
        self, resources: Mapping[str, ResourceDef], viewer: Mapping[str, ViewerValue], wrong: Told
    ) -> None:
        self.resources = dict(resources)
        self.asked: list[Role] = []
        self._viewer = viewer
        self._wrong = wrong

    def run(self) -> dict[str, ResourceDef]:
        """The same resources with their rules and computed fields."""
        for name, found in self.resources.items():
            self.resources[name] = replace(found, fields=self._computed(found))
        self._check_circles()
        for name, found in self.resources.items():
            granted = [*self._grants(found), *self._rules(found)]
            fields = {key: self._settle(found, field) for key, field in found.fields.items()}
            self.resources[name] = replace(found, fields=fields, rules=tuple(granted))
        self._check_asking()
        return self.resources

    def step(self, resource: str, attribute: str) -> Step:
        """Where an attribute of a traced row leads."""
        found = self.resources[resource]
        for field in found.fields.values():
            if field.attr == attribute and field.python is not None:
                raise Untraceable(f"'{attribute}' is computed in Python, after the statement; name stored fields")
            if field.attr == attribute:
                return Step(field.name, field.scalar)
        for relation in found.relations.values():
            if relation.attr == attribute:
                return Step(relation.name, resource=relation.target, many=relation.kind != "one")
        raise Untraceable(f"{resource} has no field '{attribute}'")

    def viewer_value(self, name: str) -> ViewerValue | None:
        """What a viewer of this model knows by this name."""
        return self._viewer.get(name)

    def note(self, role: object) -> None:
        """Remember a role that the model asks about."""
        if isinstance(role, Role):
            self.asked.append(role)

    def _traced(self, found: ResourceDef, attr: str, page: str, trace: Callable[[], Expr]) -> Expr | None:
        try:
            return trace()
        except Untraceable as error:
            self._wrong(found, attr, str(error), page)
        except Exception as error:
            self._wrong(found, attr, f"it failed while it was traced: {error}", page)
        return None

    # computed fields

    def _computed(self, found: ResourceDef) -> dict[str, FieldDef]:
        members = computed_fields(found.cls)
        out = dict(found.fields)
        for name, field in found.fields.items():
            if field.python is not None:
                needs: Any = members[field.attr].needs
                out[name] = replace(field, needs=needed(found, needs, partial(self._wrong, found, field.attr)))
            elif field.attr in members and not field.stored:
                function, scalar = members[field.attr].function, field.scalar

                def trace(function: Any = function, scalar: Any = scalar) -> Expr:
                    return trace_value(self, found.name, function, scalar)

                expr = self._traced(found, field.attr, _COMPUTED, trace)
                out[name] = replace(field, computed=TRUE if expr is None else expr)
        return out

    def _settle(self, found: ResourceDef, field: FieldDef) -> FieldDef:
        """A computed field can be hidden if something that it is made of can be."""
        if field.stored:
            return field
        if field.computed is not None and self._can_be_null(found, field.computed) and not field.nullable:
            told = "it can be null and is not declared so"
            self._wrong(found, field.attr, told, "Write `| None` after its type")
        hideable = any(self._part(place).hideable for place in self._made_of((found.name, field.name)))
        return replace(field, hideable=hideable)

    def _part(self, place: Place) -> FieldDef | RelationDef:
        found = self.resources[place[0]]
        return found.fields.get(place[1]) or found.relations[place[1]]

    def _made_of(self, place: Place) -> set[Place]:
        """Every field and relation that a computed field is made of, itself included."""
        seen: set[Place] = set()
        todo = {place}
        while todo:
            resource, name = todo.pop()
            seen.add((resource, name))
            field = self.resources[resource].fields.get(name)
            if field is not None and field.computed is not None:
                todo |= set(self._places(resource, field.computed)) - seen
            if field is not None:
                todo |= {(resource, need) for need in field.needs} - seen
        return seen

    def _places(self, resource: str, expr: Expr) -> Iterator[Place]:
        for part in leaves(expr):
            here = resource
            for name in part.path if isinstance(part, Col) else ():
                yield here, name
                relation = self.resources[here].relations.get(name)
                here = relation.target if relation else here

    def _can_be_null(self, found: ResourceDef, expr: Expr) -> bool:
        match expr:
            case Col():
                return any(self._part(place).nullable for place in self._places(found.name, expr))
            case Slice(of):
                return self._can_be_null(found, of)
            case Concat(of):
                return any(self._can_be_null(found, part) for part in of)
            case Choose(_, then, other):
                return self._can_be_null(found, then) or self._can_be_null(found, other)
            case Const(value):
                return value is None
        return False

    def _check_circles(self) -> None:
        for found in self.resources.values():
            for field in found.fields.values():
                parts = () if field.computed is None else tuple(self._places(found.name, field.computed))
                if any((found.name, field.name) in self._made_of(place) for place in parts):
                    self._wrong(found, field.attr, "it is made of itself", "Break the circle")

    # rules

    def _grants(self, found: ResourceDef) -> Iterator[RuleDef]:
        grants = found.cls.access
        if not isinstance(grants, tuple) or not all(isinstance(each, Grant) for each in grants):
            self._wrong(found, "access", "access is no tuple of grants", 'Write access = (grant("read"),)')
            return
        for each in grants:
            self._check_verbs(found, "access", each)
            yield RuleDef("access", each.verbs, _role_name(each.to), (), TRUE)

    def _rules(self, found: ResourceDef) -> Iterator[RuleDef]:
        traced: dict[str, Expr | None] = {}
        for attr, function, note in rules(found.cls):
            self._check_verbs(found, attr, note)
            fields = tuple(name for field in note.fields for name in self._about(found, attr, note, field))
            if attr not in traced:

                def trace(function: Any = function) -> Expr:
                    return trace_rule(self, found.name, function)

                traced[attr] = self._traced(found, attr, _RULES, trace)
            expr = traced[attr]
            if expr is not None:
                yield RuleDef(attr, note.verbs, _role_name(note.to), fields, expr, note.actions)

    def _about(self, found: ResourceDef, rule: str, note: Allowance, attr: str) -> list[str]:
        """The names on the wire of the field that a rule is about: both names of a to-one relation."""
        for field in found.fields.values():
            if field.attr == attr and field.relation:
                self._wrong(found, rule, f"'{attr}' is the key of a relation", f'Write field="{attr[:-3]}"')
            if field.attr == attr and field.name in SERVER_FIELDS and "read" in note.verbs:
                self._wrong(found, rule, f"whoever reads a row sees its '{attr}'", "Name another field")
        names = [field.name for field in found.fields.values() if field.attr == attr]
        names += [relation.name for relation in found.relations.values() if relation.attr == attr]
        names += [field.name for field in found.fields.values() if field.relation and field.relation in names]
        if not names:
            self._wrong(found, rule, f"{found.name} has no field '{attr}'", "Name a field of this class")
        return names

    def _check_verbs(self, found: ResourceDef, member: str, note: Grant | Allowance) -> None:
        self.note(note.to)
        shown = ", ".join(map(repr, note.verbs))
        actions = note.actions if isinstance(note, Allowance) else ()
        if (not note.verbs and not actions) or any(verb not in VERBS for verb in note.verbs):
            self._wrong(found, member, f"({shown}) are no verbs", f"Use {', '.join(VERBS)}")
        for name in actions:
            self._check_action(found, member, name)
        if isinstance(note, Allowance) and note.fields and note.actions:
            self._wrong(found, member, "an action is about the row, not a field", "Leave field=… out")
        if isinstance(note, Allowance) and note.fields and "delete" in note.verbs:
            self._wrong(found, member, "a field cannot be deleted", "Use read, create, update with field=…")
        if not isinstance(note.to, Role | None):
            self._wrong(found, member, f"to={note.to!r} is no Role", "Write to=admin, with admin = Role(…)")

    def _check_action(self, found: ResourceDef, member: str, name: str) -> None:
        """Who may call an action is said in one place: where it is offered, or by rules."""
        action = next((each for each in found.actions.values() if each.attr == name), None)
        if action is None:
            self._wrong(found, member, f"{found.name} has no action '{name}'", "Name an action of this class")
        elif action.on == "class":
            self._wrong(found, member, f"'{name}' is called on no row", "Write @action(to=…) there")
        elif action.role is not None:
            told = f"who may call '{name}' is said twice, here and by @action(to=…)"
            self._wrong(found, member, told, f'Say it here: @allow(action="{name}", to=…)')

    def _check_asking(self) -> None:
        """A read rule that asks whether another row may be read must not come back to itself."""
        asks = {name: set(self._asked_by(found)) for name, found in self.resources.items()}
        for name, found in self.resources.items():
            seen: set[str] = set()
            todo = set(asks[name])
            while todo:
                asked = todo.pop()
                seen.add(asked)
                todo |= asks[asked] - seen
            if name in seen:
                told = "its read rules ask, by may_read(), whether it may be read itself"
                self._wrong(found, "", told, "Break the circle")

    def _asked_by(self, found: ResourceDef) -> Iterator[str]:
        for rule in found.rules:
            if "read" in rule.verbs and not rule.fields:
                yield from self._asked_in(found.name, rule.expr)

    def _asked_in(self, resource: str, expr: Expr) -> Iterator[str]:
        """The resources of the rows of which an expression asks whether they may be read."""
        for part in leaves(expr):
            if isinstance(part, May):
                yield self._target(resource, part.path)
            elif isinstance(part, Has):
                yield from self._asked_in(self._target(resource, (part.relation,)), part.where)

    def _target(self, resource: str, path: tuple[str, ...]) -> str:
        for name in path:
            resource = self.resources[resource].relations[name].target
        return resource


def _role_name(role: object) -> str | None:
    return role.name if isinstance(role, Role) else None
