"""From resource classes to ResourceDefs: three passes, and every mistake of all of them at once.

1. names   every class gets its names, and names that collide are refused
2. lines   every annotated line becomes a field or a relation, every relation finds its other end
3. rules   rules and computed fields are traced, now that all fields are known
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, get_origin

from diptych.errors import Mistake
from diptych.model.defs import SERVER_FIELDS, FieldDef, RelationDef, ResourceDef, RuleDef
from diptych.model.expr import TRUE, Col, Expr, May, rewrite
from diptych.model.fields import (
    MISSING,
    Line,
    key_scalar,
    read_field,
    read_list,
    read_relation,
    scalar_of,
    take_apart,
)
from diptych.model.naming import camel, lower_first, plural, snake
from diptych.model.resource import VERBS, Allowance, Auto, Computed, Grant, Resource, allowances
from diptych.model.roles import Role
from diptych.model.scalars import Scalar, enumeration
from diptych.model.source import lines_of
from diptych.model.trace import Step, Untraceable, trace_rule, trace_value

RESERVED_PATHS = frozenset({"graphql", "oauth", ".well-known", "openapi.json", "console", "health", "metrics"})
RESERVED_TYPES = frozenset({
    "Query", "Mutation", "Subscription", "PageInfo", "Direction", "ChangeKind", "String", "Int", "Float", "Boolean",
    "ID", "BigInt", "Decimal", "Date", "DateTime", "JSON",
})  # fmt: skip
_SUFFIXES = ("", "Where", "ListWhere", "Order", "Connection", "Edge", "Create", "Patch", "Replace")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)


class Builder:
    """Reads resource classes; `resources` are the definitions, `mistakes` all that is wrong with them."""

    def __init__(self, classes: tuple[type[Resource], ...]) -> None:
        self.mistakes: list[Mistake] = []
        self.resources: dict[str, ResourceDef] = {}
        self.enums: dict[type[enum.Enum], Scalar] = {}
        self.roles: dict[str, Role] = {}
        self._classes: dict[str, type[Resource]] = {}
        self._lines = {cls: lines_of(cls) for cls in classes if isinstance(cls, type)}
        self._computed: dict[tuple[str, str], Expr] = {}
        for cls in classes:
            self._name(cls)
        for cls in self._classes.values():
            self._collect(cls)
        self._check_names()
        self._link()
        for cls in self._classes.values():
            self._trace(cls)
        self._check_cycles()

    def wrong(self, cls: type, member: str, cause: str, fix: str) -> None:
        file, lines = self._lines.get(cls, ("", {}))
        where = f"{cls.__name__}.{member}" if member else cls.__name__
        self.mistakes.append(Mistake(where, cause, fix, file, lines.get(member, lines.get("", 0))))

    # 1. names

    def _name(self, cls: type[Resource]) -> None:
        if not (isinstance(cls, type) and issubclass(cls, Resource) and cls is not Resource):
            self.mistakes.append(Mistake(repr(cls), "it is no resource", "Write class Post(Resource): …"))
        elif cls.__name__ in self._classes:
            self.wrong(cls, "", "two resources have this name", "Rename one")
        elif not _NAME.fullmatch(cls.__name__) or not cls.__name__[0].isupper():
            self.wrong(cls, "", "the name cannot be a type of GraphQL", "Use CamelCase letters and digits")
        else:
            self._classes[cls.__name__] = cls

    def _check_names(self) -> None:
        types: dict[str, str] = dict.fromkeys(RESERVED_TYPES, "Diptych itself")
        roots: dict[str, str] = {}
        for enumerated in self.enums:
            types.setdefault(enumerated.__name__, f"the enum {enumerated.__name__}")
        for found in self.resources.values():
            if found.path in RESERVED_PATHS:
                self.wrong(found.cls, "", f"the path /{found.path} is reserved", 'Give another: plural="…"')
            for root in (found.one, found.many, found.connection, f"/{found.path}"):
                if root in roots:
                    self.wrong(found.cls, "", f"the name {root} is also that of {roots[root]}", 'Give plural="…"')
                roots.setdefault(root, found.name)
            for suffix in _SUFFIXES:
                if found.name + suffix in types:
                    owner = types[found.name + suffix]
                    self.wrong(found.cls, "", f"the type {found.name + suffix} is also that of {owner}", "Rename it")
                types.setdefault(found.name + suffix, found.name)

    # 2. lines

    def _collect(self, cls: type[Resource]) -> None:
        fields: dict[str, FieldDef] = {}
        relations: dict[str, RelationDef] = {}
        restricted = frozenset(name for _, note in _allowances(cls) for name in note.fields)
        for line in self._annotated(cls):
            self._understand(cls, line, restricted, fields, relations)
        for attr, function in _computed(cls):
            found = self._computed_field(cls, attr, function, restricted)
            if found is not None:
                self._add(cls, attr, found.name, found, fields, relations)
        options = cls.__diptych__
        stem = options["plural"] or plural(snake(cls.__name__))
        many = camel(stem.replace("-", "_"))
        self.resources[cls.__name__] = ResourceDef(
            name=cls.__name__, cls=cls, table=stem.replace("-", "_"), path=stem.replace("_", "-"),
            one=lower_first(cls.__name__), many=lower_first(many), description=_doc(cls), fields=fields,
            relations=relations,
        )  # fmt: skip

    def _annotated(self, cls: type[Resource]) -> Iterator[Line]:
        """Every annotated line of a class and of the plain classes that it inherits from."""
        for base in reversed(cls.__mro__):
            for attr, hint in vars(base).get("__annotations__", {}).items():
                if attr.startswith("__") or attr == "access":
                    continue
                try:
                    known = {**vars(sys.modules[base.__module__]), **self._classes}
                    hint = eval(hint, known) if isinstance(hint, str) else hint
                except Exception as error:
                    self.wrong(cls, attr, f"its type cannot be read: {error}", "Import or define what it names")
                    continue
                if get_origin(hint) is ClassVar or hint is ClassVar:
                    continue
                yield take_apart(attr, hint, vars(base).get(attr, MISSING))

    def _understand(
        self, cls: type[Resource], line: Line, restricted: frozenset[str],
        fields: dict[str, FieldDef], relations: dict[str, RelationDef],
    ) -> None:  # fmt: skip
        def wrong(cause: str, fix: str) -> None:
            self.wrong(cls, line.attr, cause, fix)

        self._note_roles(line)
        name = camel(line.attr)
        if not _NAME.fullmatch(name):
            return wrong("the name cannot stand on the wire", "Use letters, digits and single underscores")
        if get_origin(line.type) is list:
            many = read_list(line, self._classes, wrong)
            if many is not None:
                self._add(cls, line.attr, name, many, fields, relations)
        elif isinstance(line.type, type) and issubclass(line.type, Resource):
            if line.type.__name__ not in self._classes:
                return wrong(f"{line.type.__name__} is not in the model", "Add it: Model(…, " + line.type.__name__ + ")")
            field, relation = read_relation(line, line.type.__name__, restricted, wrong)
            self._add(cls, line.attr, field.name, field, fields, relations)
            self._add(cls, line.attr, name, relation, fields, relations)
        else:
            self._plain(cls, line, restricted, fields, relations)
        return None

    def _plain(
        self, cls: type[Resource], line: Line, restricted: frozenset[str],
        fields: dict[str, FieldDef], relations: dict[str, RelationDef],
    ) -> None:  # fmt: skip
        def wrong(cause: str, fix: str) -> None:
            self.wrong(cls, line.attr, cause, fix)

        self._note_enum(line.type, wrong)
        scalar = key_scalar(cls.__diptych__["ids"]) if line.attr == "id" else scalar_of(line, self.enums, wrong)
        if camel(line.attr) in SERVER_FIELDS and not isinstance(line.default, Auto):
            wrong("every resource has this field already", "Rename it")
        elif scalar is not None:
            field = read_field(line, scalar, restricted, wrong)
            self._add(cls, line.attr, field.name, field, fields, relations)

    def _add(
        self, cls: type[Resource], attr: str, name: str, found: FieldDef | RelationDef,
        fields: dict[str, FieldDef], relations: dict[str, RelationDef],
    ) -> None:  # fmt: skip
        if name in fields or name in relations or (isinstance(found, FieldDef) and name + "Connection" in relations):
            self.wrong(cls, attr, f"the name {name} is taken by another field", "Rename one")
        elif isinstance(found, FieldDef):
            fields[name] = found
        else:
            relations[name] = found

    def _note_enum(self, kind: Any, wrong: Any) -> None:
        if not (isinstance(kind, type) and issubclass(kind, enum.Enum)) or kind in self.enums:
            return
        for member in kind:
            if not (isinstance(member.value, str) and re.fullmatch(r"[A-Za-z_]\w*", member.value, re.ASCII)):
                wrong(f"the value {member.value!r} of {kind.__name__} cannot be a name", "Use letters, digits and _")
        self.enums[kind] = enumeration(kind)

    def _note_roles(self, line: Line) -> None:
        for marker in line.markers:
            for role in getattr(marker, "roles", ()):
                self._note_role(role)
            for move in getattr(marker, "moves", ()):
                self._note_role(move.to)

    def _note_role(self, role: object) -> None:
        if isinstance(role, Role):
            self.roles.setdefault(role.name, role)
            for implied in role.implies if isinstance(role.implies, tuple) else (role.implies,):
                self._note_role(implied)

    def _computed_field(
        self, cls: type[Resource], attr: str, function: Any, restricted: frozenset[str]
    ) -> FieldDef | None:
        def wrong(cause: str, fix: str) -> None:
            self.wrong(cls, attr, cause, fix)

        hint = function.__annotations__.get("return", MISSING)
        if hint is MISSING:
            wrong("a computed field does not say what it gives", f"Write def {attr}(self) -> str:")
            return None
        try:
            hint = eval(hint, {**vars(sys.modules[cls.__module__]), **self._classes}) if isinstance(hint, str) else hint
        except Exception as error:
            wrong(f"its type cannot be read: {error}", "Import or define what it names")
            return None
        line = take_apart(attr, hint, None, (function.__doc__ or "").strip())
        self._note_enum(line.type, wrong)
        scalar = scalar_of(line, self.enums, wrong)
        if scalar is None:
            return None
        return FieldDef(
            name=camel(attr), attr=attr, column="", scalar=scalar, nullable=line.optional,
            hideable=attr in restricted, computed=TRUE, description=line.description,
        )  # fmt: skip

    # 2b. the other ends of relations

    def _link(self) -> None:
        for name, found in list(self.resources.items()):
            relations = {key: self._resolve(found, relation) for key, relation in found.relations.items()}
            fields = {
                key: replace(field, scalar=self._key_of(relations[field.relation])) if field.relation else field
                for key, field in found.fields.items()
            }
            self.resources[name] = replace(found, relations=relations, fields=fields)

    def _key_of(self, relation: RelationDef) -> Scalar:
        return key_scalar(self._classes[relation.target].__diptych__["ids"])

    def _resolve(self, found: ResourceDef, relation: RelationDef) -> RelationDef:
        if relation.kind == "one":
            return replace(relation, hideable=relation.hideable or not self._open(relation.target))
        if relation.kind == "many":
            back = self._to_one(relation.target, relation.inverse, found.name)
            if back is None:
                self.wrong(found.cls, relation.attr, f"{relation.target} has no relation '{relation.inverse}' to "
                           f"{found.name}", f"Name the field of {relation.target} that is a {found.name}")  # fmt: skip
                return relation
            return replace(relation, column=back.column, inverse=back.name)
        mine = self._to_one(relation.link, relation.link_mine, found.name)
        theirs = self._to_one(relation.link, relation.link_theirs, relation.target)
        if mine is None or theirs is None:
            self.wrong(found.cls, relation.attr, f"{relation.link} does not link {found.name} by '{relation.link_mine}' "
                       f"to {relation.target} by '{relation.link_theirs}'",
                       'Write through("PostTag", "post", "tag"): the link, its field to here, its field to there')  # fmt: skip
            return relation
        return replace(relation, column=mine.column, other_column=theirs.column, link_mine=mine.name,
                       link_theirs=theirs.name)  # fmt: skip

    def _to_one(self, resource: str, attr: str, target: str) -> RelationDef | None:
        owner = self.resources.get(resource)
        found = owner.relations.get(camel(attr)) if owner else None
        return found if found and found.kind == "one" and found.target == target else None

    def _open(self, resource: str) -> bool:
        """Can anyone read every row of it?"""
        grants = self._classes[resource].access
        return isinstance(grants, tuple) and any(
            isinstance(g, Grant) and "read" in g.verbs and g.to is None for g in grants
        )

    # 3. rules and computed fields

    def step(self, resource: str, attribute: str) -> Step:
        """Where an attribute of a traced row leads."""
        found = self.resources[resource]
        for field in found.fields.values():
            if field.attr == attribute:
                expr = self._trace_computed(found, field) if field.computed is not None else Col((field.name,))
                return Step(field.name, expr, field.scalar)
        for relation in found.relations.values():
            if relation.attr == attribute and relation.kind == "one":
                return Step(relation.name, resource=relation.target)
            if relation.attr == attribute:
                raise Untraceable(f"'{attribute}' leads to many rows, and a rule can follow to-one relations only")
        raise Untraceable(f"{resource} has no field '{attribute}'")

    def _trace_computed(self, found: ResourceDef, field: FieldDef) -> Expr:
        key = (found.name, field.name)
        if key not in self._computed:
            self._computed[key] = TRUE  # a cycle of computed fields meets this and ends
            function = next(function for attr, function in _computed(found.cls) if attr == field.attr)
            self._computed[key] = trace_value(self, found.name, function, field.scalar)
        return self._computed[key]

    def _trace(self, cls: type[Resource]) -> None:
        found = self.resources[cls.__name__]
        rules = [*self._grants(cls), *self._rules(cls)]
        fields = {}
        for name, field in found.fields.items():
            if field.computed is not None:
                try:
                    field = replace(field, computed=self._trace_computed(found, field))
                except Untraceable as error:
                    self.wrong(cls, field.attr, str(error), "See docs/model.md, Computed fields")
            fields[name] = field
        self.resources[cls.__name__] = replace(found, fields=fields, rules=tuple(rules))

    def _grants(self, cls: type[Resource]) -> Iterator[RuleDef]:
        grants = cls.access
        if not isinstance(grants, tuple) or not all(isinstance(each, Grant) for each in grants):
            self.wrong(cls, "access", "access is no tuple of grants", 'Write access = (grant("read"),)')
            return
        for each in grants:
            self._check_verbs(cls, "access", each.verbs, each.to)
            yield RuleDef("access", each.verbs, _role_name(each.to), (), TRUE)

    def _rules(self, cls: type[Resource]) -> Iterator[RuleDef]:
        for function, note in _allowances(cls):
            name = function.__name__
            self._check_verbs(cls, name, note.verbs, note.to)
            fields = tuple(field for attr in note.fields for field in self._field_names(cls, name, attr))
            try:
                expr = trace_rule(self, cls.__name__, function)
            except Untraceable as error:
                self.wrong(cls, name, str(error), "See docs/model.md, Rules")
            except Exception as error:
                self.wrong(cls, name, f"the rule failed while it was traced: {error}", "See docs/model.md, Rules")
            else:
                yield RuleDef(name, note.verbs, _role_name(note.to), fields, expr)

    def _field_names(self, cls: type[Resource], rule: str, attr: str) -> list[str]:
        found = self.resources[cls.__name__]
        names = [field.name for field in found.fields.values() if field.attr == attr]
        names += [relation.name for relation in found.relations.values() if relation.attr == attr]
        names += [field.name for field in found.fields.values() if field.relation and field.relation in names]
        if not names:
            self.wrong(cls, rule, f"{cls.__name__} has no field '{attr}'", "Name a field of this class")
        return names

    def _check_verbs(self, cls: type[Resource], member: str, verbs: tuple[str, ...], to: object) -> None:
        self._note_role(to)
        if not verbs or not set(verbs) <= set(VERBS):
            self.wrong(cls, member, f"{verbs!r} are no verbs", f"Use {', '.join(VERBS)}")
        if to is not None and not isinstance(to, Role):
            self.wrong(cls, member, f"to={to!r} is no Role", "Write to=admin, with admin = Role(…)")

    def _check_cycles(self) -> None:
        """A rule that asks whether another row may be read must not come back to itself."""
        asks = {name: self._asked_by(found) for name, found in self.resources.items()}
        for name in asks:
            seen: set[str] = set()
            todo = set(asks[name])
            while todo:
                nxt = todo.pop()
                if nxt not in seen:
                    seen.add(nxt)
                    todo |= asks[nxt]
            if name in seen:
                self.wrong(self._classes[name], "", "its rules ask whether it may be read itself",
                           "Break the circle of may_read()")  # fmt: skip

    def _asked_by(self, found: ResourceDef) -> set[str]:
        targets: set[str] = set()

        def leaf(part: Expr) -> Expr | None:
            if isinstance(part, May):
                target = found.name
                for step in part.path:
                    target = self.resources[target].relations[step].target
                targets.add(target)
            return None

        for rule in found.rules:
            rewrite(rule.expr, leaf)
        return targets


def _allowances(cls: type[Resource]) -> Iterator[tuple[Any, Allowance]]:
    for base in reversed(cls.__mro__):
        for member in vars(base).values():
            for note in allowances(member):
                yield member, note


def _computed(cls: type[Resource]) -> Iterator[tuple[str, Any]]:
    for base in reversed(cls.__mro__):
        for attr, member in vars(base).items():
            if isinstance(member, Computed):
                yield attr, member.function


def _role_name(role: object) -> str | None:
    return role.name if isinstance(role, Role) else None


def _doc(cls: type) -> str:
    """The docstring of the class itself, not one that it inherits."""
    own = vars(cls).get("__doc__") or ""
    return "\n".join(line.strip() for line in own.strip().splitlines())


