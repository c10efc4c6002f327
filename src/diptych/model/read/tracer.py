"""Traces and checks the rules and computed fields of all resources.

A traced expression names fields, also computed ones, by their names on the wire; so the fields that a computed field
depends on are known from its expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from diptych.model.declare.resource import VERBS, Allowance, VerbGrant
from diptych.model.declare.roles import Role
from diptych.model.defs import FieldDef, RelationDef, ResourceDef, RuleDef
from diptych.model.reach import read_first
from diptych.model.read.class_constraints import read_constraints
from diptych.model.read.members import computed_fields, rules_of
from diptych.model.read.needs import needed
from diptych.model.read.relations import Report
from diptych.model.read.trash import hides_deleted
from diptych.model.read.unknown_names import no_field
from diptych.model.rules.expr import (
    TRUE,
    Choose,
    Col,
    Concat,
    Const,
    Expr,
    Part,
    Shift,
    Slice,
    Span,
    ViewerValue,
    leaves,
)
from diptych.model.rules.source_check import Untraceable
from diptych.model.rules.trace import trace_rule, trace_value
from diptych.model.rules.traced import TracedAttribute

_RULES = "See docs/reference/model.md, Rules"
_COMPUTED = "See docs/reference/model.md, Computed fields"
RuleSite = tuple[str, str]
"""A field: the name of its resource, and its own."""


class Tracer:
    """Traces all rules and computed fields of a model whose fields and relations are known."""

    def __init__(self, resources: Mapping[str, ResourceDef], viewer: Mapping[str, ViewerValue], wrong: Report) -> None:
        self.resources = dict(resources)
        self.roles: list[Role] = []
        self._viewer = viewer
        self._wrong = wrong

    def run(self) -> dict[str, ResourceDef]:
        """The resources with their rules and computed fields."""
        for name, resource in self.resources.items():
            self.resources[name] = replace(resource, fields=self._computed(resource))
        self._check_cycles()
        for name, resource in self.resources.items():
            granted = [*self._grants(resource), *self._rules(resource)]
            fields = {key: self._settle(resource, field) for key, field in resource.fields.items()}
            self.resources[name] = replace(resource, fields=fields, rules=tuple(granted))
        for name, resource in self.resources.items():
            self.resources[name] = read_constraints(resource, self, partial(self._wrong, resource))
        self._check_may_read()
        self.resources = {name: hides_deleted(resource, self.resources) for name, resource in self.resources.items()}
        return self.resources

    def step(self, resource: str, attribute: str) -> TracedAttribute:
        """What an attribute of a traced row is: a field, or a relation."""
        definition = self.resources[resource]
        for field in definition.fields.values():
            if field.attr == attribute and field.python is not None:
                raise Untraceable(f"'{attribute}' is computed in Python, after the statement; name stored fields")
            if field.attr == attribute:
                return TracedAttribute(field.name, field.scalar)
        for relation in definition.relations.values():
            if relation.attr == attribute:
                return TracedAttribute(relation.name, resource=relation.target, many=relation.kind != "one")
        raise Untraceable(no_field(definition, attribute))

    def viewer_value(self, name: str) -> ViewerValue | None:
        """A field of the model's viewer class by name."""
        return self._viewer.get(name)

    def note(self, role: object) -> None:
        """Record a role that a rule names."""
        if isinstance(role, Role):
            self.roles.append(role)

    def _traced(self, resource: ResourceDef, attr: str, page: str, trace: Callable[[], Expr]) -> Expr | None:
        try:
            return trace()
        except Untraceable as error:
            self._wrong(resource, attr, str(error), page)
        except Exception as error:
            self._wrong(resource, attr, f"it failed while it was traced: {error}", page)
        return None

    # computed fields

    def _computed(self, resource: ResourceDef) -> dict[str, FieldDef]:
        members = computed_fields(resource.cls)
        out = dict(resource.fields)
        for name, field in resource.fields.items():
            if field.python is not None:
                needs: Any = members[field.attr].needs
                out[name] = replace(field, needs=needed(resource, needs, partial(self._wrong, resource, field.attr)))
            elif field.attr in members and not field.stored:
                function, scalar = members[field.attr].function, field.scalar

                def trace(function: Any = function, scalar: Any = scalar) -> Expr:
                    return trace_value(self, resource.name, function, scalar)

                expr = self._traced(resource, field.attr, _COMPUTED, trace)
                out[name] = replace(field, computed=TRUE if expr is None else expr)
        return out

    def _settle(self, resource: ResourceDef, field: FieldDef) -> FieldDef:
        """Set whether a computed field can be hidden: if a field that it depends on can be."""
        if field.stored:
            return field
        if field.computed is not None and self._can_be_null(resource, field.computed) and not field.nullable:
            cause = "it can be null and is not declared so"
            self._wrong(resource, field.attr, cause, "Write `| None` after its type")
        hideable = any(self._part(site).hideable for site in self._dependencies((resource.name, field.name)))
        return replace(field, hideable=hideable)

    def _part(self, site: RuleSite) -> FieldDef | RelationDef:
        resource = self.resources[site[0]]
        return resource.fields.get(site[1]) or resource.relations[site[1]]

    def _dependencies(self, site: RuleSite) -> set[RuleSite]:
        """The fields and relations that a computed field depends on, transitively, with itself."""
        seen: set[RuleSite] = set()
        todo = {site}
        while todo:
            resource, name = todo.pop()
            seen.add((resource, name))
            field = self.resources[resource].fields.get(name)
            if field is not None and field.computed is not None:
                todo |= set(self._sites(resource, field.computed)) - seen
            if field is not None:
                todo |= {(resource, need) for need in field.needs} - seen
        return seen

    def _sites(self, resource: str, expr: Expr) -> Iterator[RuleSite]:
        for part in leaves(expr):
            here = resource
            for name in part.path if isinstance(part, Col) else ():
                yield here, name
                relation = self.resources[here].relations.get(name)
                here = relation.target if relation else here

    def _can_be_null(self, resource: ResourceDef, expr: Expr) -> bool:
        match expr:
            case Col():
                return any(self._part(site).nullable for site in self._sites(resource.name, expr))
            case Slice(of) | Shift(of):
                return self._can_be_null(resource, of)
            case Part(of):
                return True
            case Span(left, right):
                return self._can_be_null(resource, left) or self._can_be_null(resource, right)
            case Concat(of):
                return any(self._can_be_null(resource, part) for part in of)
            case Choose(_, then, other):
                return self._can_be_null(resource, then) or self._can_be_null(resource, other)
            case Const(value):
                return value is None
        return False

    def _check_cycles(self) -> None:
        for resource in self.resources.values():
            for field in resource.fields.values():
                parts = () if field.computed is None else tuple(self._sites(resource.name, field.computed))
                if any((resource.name, field.name) in self._dependencies(site) for site in parts):
                    self._wrong(resource, field.attr, "it is made of itself", "Break the circle")

    # rules

    def _grants(self, resource: ResourceDef) -> Iterator[RuleDef]:
        grants = resource.cls.access
        if not isinstance(grants, tuple) or not all(isinstance(grant, VerbGrant) for grant in grants):
            self._wrong(resource, "access", "access is no tuple of grants", 'Write access = (grant("read"),)')
            return
        for grant in grants:
            self._check_verbs(resource, "access", grant)
            yield RuleDef("access", grant.verbs, _role_name(grant.to), (), TRUE)

    def _rules(self, resource: ResourceDef) -> Iterator[RuleDef]:
        traced: dict[str, Expr | None] = {}
        for attr, function, note in rules_of(resource.cls):
            self._check_verbs(resource, attr, note)
            fields = tuple(name for field in note.fields for name in self._about(resource, attr, note, field))
            if attr not in traced:

                def trace(function: Any = function) -> Expr:
                    return trace_rule(self, resource.name, function)

                traced[attr] = self._traced(resource, attr, _RULES, trace)
            expr = traced[attr]
            if expr is not None:
                yield RuleDef(attr, note.verbs, _role_name(note.to), fields, expr, note.actions)

    def _about(self, resource: ResourceDef, rule: str, note: Allowance, attr: str) -> list[str]:
        """The names on the wire of the field that a rule is about; for a to-one relation, those of relation and key."""
        for field in resource.fields.values():
            if field.attr == attr and field.relation:
                self._wrong(resource, rule, f"'{attr}' is the key of a relation", f'Write field="{attr[:-3]}"')
            if field.attr == attr and field.is_server_set and "read" in note.verbs:
                self._wrong(resource, rule, f"everyone who can read a row sees its '{attr}'", "Name another field")
        names = [field.name for field in resource.fields.values() if field.attr == attr]
        names += [relation.name for relation in resource.relations.values() if relation.attr == attr]
        names += [field.name for field in resource.fields.values() if field.relation and field.relation in names]
        if not names:
            self._wrong(resource, rule, no_field(resource, attr), "Name a field of this class")
        return names

    def _check_verbs(self, resource: ResourceDef, member: str, note: VerbGrant | Allowance) -> None:
        self.note(note.to)
        actions = note.actions if isinstance(note, Allowance) else ()
        verbs = VERBS if isinstance(note, Allowance) else (*VERBS, "export")
        wrong = [repr(verb) for verb in note.verbs if verb not in verbs]
        if wrong or not (note.verbs or actions):
            cause = f"{', '.join(wrong)} is no verb" if wrong else "it names no verb"
            self._wrong(resource, member, cause, f"Use {', '.join(verbs)}")
        for name in actions:
            self._check_action(resource, member, name)
        if isinstance(note, Allowance) and note.fields and note.actions:
            self._wrong(resource, member, "an action is about the row, not a field", "Leave field=… out")
        if isinstance(note, Allowance) and note.fields and "delete" in note.verbs:
            self._wrong(resource, member, "a field cannot be deleted", "Use read, create, update with field=…")
        if not isinstance(note.to, Role | None):
            self._wrong(resource, member, f"to={note.to!r} is no Role", "Write to=admin, with admin = Role(…)")

    def _check_action(self, resource: ResourceDef, member: str, name: str) -> None:
        """Check an action that a rule names: who may call it is declared by `@action(to=…)` or by rules, not both."""
        action = next((action for action in resource.actions.values() if action.attr == name), None)
        if action is None:
            self._wrong(resource, member, f"{resource.name} has no action '{name}'", "Name an action of this class")
        elif action.on == "class":
            self._wrong(resource, member, f"'{name}' is called on no row", "Write @action(to=…) there")
        elif action.role is not None:
            cause = f"who may call '{name}' is said twice, here and by @action(to=…)"
            self._wrong(resource, member, cause, f'Say it here: @allow(action="{name}", to=…)')

    def _check_may_read(self) -> None:
        """Report cycles of read rules through may_read()."""
        tested = {name: set(self._tested_by(resource)) for name, resource in self.resources.items()}
        for name, resource in self.resources.items():
            seen: set[str] = set()
            todo = set(tested[name])
            while todo:
                target = todo.pop()
                seen.add(target)
                todo |= tested[target] - seen
            if name in seen:
                cause = "its read rules ask, by may_read(), whether it may be read itself"
                self._wrong(resource, "", cause, "Break the circle")

    def _tested_by(self, resource: ResourceDef) -> Iterator[str]:
        for rule in resource.rules:
            if "read" in rule.verbs and not rule.fields:
                yield from read_first(rule.expr, resource, self.resources)


def _role_name(role: object) -> str | None:
    return role.name if isinstance(role, Role) else None
