"""Builds ResourceDefs from resource classes in four passes, and collects the mistakes of all of them.

1. names      every class gets its names
2. members    every annotation becomes a field or a relation, every decorated function an action or a query; name
              clashes are reported
3. relations  every relation is linked with its inverse
4. rules      rules and computed fields are traced, now that all fields are known
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, get_origin

from diptych.errors import Mistake
from diptych.model.audit_def import AuditDef
from diptych.model.call_defs import ActionDef, CallDef, QueryDef
from diptych.model.declare.actions import offers
from diptych.model.declare.computed import Computed
from diptych.model.declare.declared import Auto, Declared, FromViewer, Now, annotated, evaluate
from diptych.model.declare.markers import Counter
from diptych.model.declare.rate import Rate
from diptych.model.declare.resource import Resource, allowances
from diptych.model.declare.roles import Role, RoleBook, Viewer
from diptych.model.declare.sign_up import SignUp
from diptych.model.declare.webhook import Webhook, webhook_faults
from diptych.model.defs import NATURAL, SERVER_FIELDS, FieldDef, ResourceDef
from diptych.model.enum_scalar import own_doc
from diptych.model.naming import attribute_fault, camel, class_fault, snake
from diptych.model.read import existing, fields
from diptych.model.read.annotations import Annotation, Wrong, unwrap
from diptych.model.read.audits import audit_faults, audit_of, named_roles
from diptych.model.read.call_signatures import Home, read_call
from diptych.model.read.deprecations import deprecation_fault, deprecation_of
from diptych.model.read.existing import place_faults, settle_columns, table_name
from diptych.model.read.field_types import FieldTypes
from diptych.model.read.jobs import job_class, job_faults, read_schedules, scheduled_roles, with_jobs
from diptych.model.read.members import calls, computed_fields, rules_of, untyped
from diptych.model.read.name_clashes import Names, call_clashes, root_clashes, table_clashes, type_clashes
from diptych.model.read.needs import form_fault, one_of_batch
from diptych.model.read.public_ages import idle_ages, public_fault, seconds_of
from diptych.model.read.rates import read_rates
from diptych.model.read.relations import link_relations, read_list, read_relation
from diptych.model.read.shapes import holds_rows, many_of, stem_of
from diptych.model.read.sign_ups import SignUpDef, read_sign_up
from diptych.model.read.source import changing_defaults, lines_of, location_of
from diptych.model.read.tracer import Tracer
from diptych.model.read.trash import deleted_at, trash_fault, trash_seconds, unkept
from diptych.model.read.viewer_defaults import settle_defaults
from diptych.model.read.viewers import read_viewer
from diptych.model.rules.expr import ViewerValue
from diptych.model.versions import with_history
from diptych.model.viewer_object import users_in

_IMPORT = "Import or define what it names"
_TWICE = "it is a field and a function", "Rename one"


class Builder:
    """Reads resource classes: `resources` are the definitions, `mistakes` all faults in them."""

    def __init__(
        self,
        classes: tuple[type[Resource], ...],
        viewer: type[Viewer] = Viewer,
        user: type[Resource] | None = None,
        sign_up: SignUp | None = None,
        webhooks: Sequence[Webhook] = (),
        rates: Sequence[Rate] = (),
    ) -> None:
        self.mistakes: list[Mistake] = []
        self.types = FieldTypes()
        self._classes: dict[str, type[Resource]] = {}
        self._named_roles: list[Role] = []
        self._lines_of = cache(lines_of)
        self._hints: dict[tuple[str | type, str], Any] = {}
        """Evaluated annotations: by module and text, or by class and attribute."""
        classes = with_jobs(classes)
        if not classes:
            self.mistakes.append(Mistake("Model()", "it has no resources", "Write Model(Author, Post)"))
        for cls in classes:
            self._name(cls)
        for cls, fault in job_faults(self._classes.values()):
            self.wrong(cls, "", *fault)
        job = job_class(self._classes.values())
        self.job = "" if job is None else job.__name__
        """The name of the resource of jobs, if there is one."""
        read = {name: self._read(cls) for name, cls in self._classes.items()}
        self._named_roles += scheduled_roles(self._classes.values())
        read_all = (read_schedules(cls, partial(self.wrong, cls)) for cls in self._classes.values())
        self.schedules = {schedule.name: schedule for schedules in read_all for schedule in schedules}
        self._check_names(read)
        self.viewer_values = self._viewer(viewer)
        linked = settle_defaults(link_relations(read, self._report), self.viewer_values, self._report)
        tracer = Tracer(linked, self.viewer_values, self._report)
        self.resources = with_history(tracer.run())
        self.user = self._user(user)
        """The name of the resource whose rows the viewers are, if there is one."""
        self.sign_up = None if sign_up is None or self.mistakes else self._sign_up(sign_up)
        roles = [*sign_up.roles] if sign_up and self.sign_up else []
        self.mistakes += [Mistake("Model()", *fault) for fault in webhook_faults(webhooks, classes)]
        if not self.mistakes:
            roles += [role for webhook in webhooks for role in webhook.roles]
        self.rates = read_rates(rates, self.resources, self._of_model)
        roles += [rate.to for rate in rates if isinstance(rate, Rate) and isinstance(rate.to, Role)]
        self.roles = self._roles([*self._named_roles, *tracer.roles, *roles])

    def wrong(self, cls: type, member: str, cause: str, fix: str) -> None:
        """Record a mistake with the line of the member, or of the class."""
        where = f"{cls.__name__}.{member}" if member else cls.__name__
        self.mistakes.append(Mistake(where, cause, fix, *location_of(cls, member, self._lines_of)))

    def _report(self, resource: ResourceDef, member: str, cause: str, fix: str) -> None:
        self.wrong(resource.cls, member, cause, fix)

    # 1. names

    def _name(self, cls: type[Resource]) -> None:
        if not (isinstance(cls, type) and issubclass(cls, Resource) and cls is not Resource):
            many = isinstance(cls, list | tuple)
            fix = "Write Model(Author, Post), without brackets" if many else "Write class Post(Resource): …"
            self.mistakes.append(Mistake(repr(cls), "it is no resource", fix))
        elif self._classes.get(cls.__name__) is cls:
            self.wrong(cls, "", "the model names it twice", "Name it once")
        elif cls.__name__ in self._classes:
            self.wrong(cls, "", "two resources have this name", "Rename one")
        elif fault := class_fault(cls.__name__, stem_of(cls)):
            self.wrong(cls, "", *fault)
        elif (ids := cls.__diptych__["ids"]) not in ("uuid", "integer", "client", *NATURAL):
            self.wrong(cls, "", f"ids={ids!r} is unknown", 'Write ids="uuid", ids="integer" or ids="client"')
        elif faults := [*place_faults(cls)]:
            for fault in faults:
                self.wrong(cls, "", *fault)
        else:
            self._classes[cls.__name__] = cls

    def _check_names(self, read: dict[str, ResourceDef]) -> None:
        for owner, clash in type_clashes(read.values(), self.types.enums, self.types.values):
            if isinstance(owner, ResourceDef):
                self._report(owner, "", *clash)
            else:
                self.wrong(*self.types.users[owner], *clash)
        for resource, clash in (*root_clashes(read.values()), *table_clashes(read.values())):
            self._report(resource, "", *clash)
        for resource, attr, clash in call_clashes(read.values()):
            self._report(resource, attr, *clash)
        for resource, relation, fault in unkept(read):
            self._report(resource, relation.attr, *fault)

    # 2. members

    def _read(self, cls: type[Resource]) -> ResourceDef:
        names = Names(partial(self.wrong, cls))
        about = [name for _, _, note in rules_of(cls) if "read" in note.verbs for name in note.fields]
        restricted = frozenset(name for name in about if isinstance(name, str))
        lines = [*self._lines(cls)]
        for line in lines:
            self._read_line(cls, line, restricted, names)
            if line.attr == "updated_at" and trash_seconds(cls.__diptych__["trash"]):
                names.add("deleted_at", deleted_at())
        for attr, computed in computed_fields(cls).items():
            field = self._computed_field(cls, attr, computed, restricted)
            if field is not None:
                names.add(attr, field)
        audit = self._audit(cls, names)
        called = self._calls(cls, {line.attr for line in lines})
        self._check_defaults(cls, {line.attr: line.default for line in lines}, {call.attr for call in called})
        for attr in untyped(cls) if lines else ():
            self.wrong(cls, attr, "it has no type, so it is no field", f"Write {attr}: … = …")
        public = self._public(cls, names)
        if fault := trash_fault(cls.__diptych__["trash"]) or deprecation_fault(cls.__diptych__["deprecated"]):
            self.wrong(cls, "", *fault)
        stem = stem_of(cls)
        return ResourceDef(
            name=cls.__name__,
            cls=cls,
            table=table_name(cls, stem),
            path=stem.replace("_", "-"),
            one=camel(snake(cls.__name__)),
            many=many_of(cls),
            description=own_doc(cls),
            fields=settle_columns(cls, names.fields, names.relations, partial(self.wrong, cls)),
            relations=names.relations,
            actions={call.name: call for call in called if isinstance(call, ActionDef)},
            queries={call.name: call for call in called if isinstance(call, QueryDef)},
            public=public,
            trash=trash_seconds(cls.__diptych__["trash"]),
            **existing.table_options(cls),
            deprecated=deprecation_of(cls.__diptych__["deprecated"]),
            audit=audit,
        )

    def _audit(self, cls: type[Resource], names: Names) -> AuditDef | None:
        """What is recorded of its changes."""
        faults = [*audit_faults(cls, names.fields, names.relations, managed=existing.is_managed(cls))]
        for fault in faults:
            self.wrong(cls, "", *fault)
        if faults:
            return None
        self._named_roles += named_roles(cls)
        return audit_of(cls, names.fields)

    def _check_defaults(self, cls: type[Resource], lines: Mapping[str, Any], called: set[str]) -> None:
        """Report defaults that look like one value for each row, but are computed once, when the file is read."""
        changing = changing_defaults(cls)
        for attr, default in lines.items():
            if attr not in changing and fields.is_the_clock(default):
                self.wrong(cls, attr, "the default is the moment at which the file was read", fields.each_row(default))
        for name, text in changing.items():
            attr, _, argument = name.partition(".")
            cause = f"{text} is computed once, when the file is read"
            if argument and attr in called:
                fix = f"Write {argument}: … | None = None, and compute it in the function"
                self.wrong(cls, attr, f"its argument '{argument}': {cause}", fix)
            elif attr in lines and not argument and not isinstance(lines[attr], Now | FromViewer):
                self.wrong(cls, attr, f"{cause}: all rows would have that value", fields.each_row(lines[attr]))

    def _public(self, cls: type[Resource], names: Names) -> int:
        """The max-age of a resource in seconds; reports fields whose max-age is larger."""
        declared = cls.__diptych__["public"]
        if fault := public_fault(declared):
            self.wrong(cls, "", *fault)
            return 0
        public = seconds_of(declared) or 0
        for attr, fault in idle_ages(public, cls.__name__, names.fields.values()):
            self.wrong(cls, attr, *fault)
        return public

    def _lines(self, cls: type[Resource]) -> Iterator[Annotation]:
        """The parsed annotations of all fields and relations."""
        try:
            declared = annotated(cls)
        except NameError as error:  # from Python 3.14 on, annotations are evaluated lazily
            self.wrong(cls, "", f"a type cannot be read: {error}", _IMPORT)
            return
        for line in declared:
            if offers(line.default):  # a function of the same name replaced the default
                self.wrong(cls, line.attr, *_TWICE)
                continue
            try:
                hint = self._hint(line)
            except Exception as error:
                self.wrong(cls, line.attr, f"its type cannot be read: {error}", _IMPORT)
                continue
            if get_origin(hint) is not ClassVar and hint is not ClassVar and self._is_own(cls, line, hint):
                yield unwrap(line.attr, hint, line.default)

    def _hint(self, line: Declared) -> Any:
        """The evaluated annotation, once: a text means the same everywhere in a module, and what a base declares is the
        same for all its subclasses."""
        is_text = isinstance(line.hint, str)
        key = (line.base.__module__, line.hint) if is_text else (line.base, line.attr)
        if key not in self._hints:
            self._hints[key] = evaluate(line.hint, line.base, self._classes)
        return self._hints[key]

    def _is_own(self, cls: type[Resource], line: Declared, hint: Any) -> bool:
        """Is it a field of the model, or a server field that is declared as in Resource?"""
        automatic = isinstance(line.default, Auto)
        if camel(line.attr) in SERVER_FIELDS and not (automatic and hint == _server_type(line.attr)):
            self.wrong(cls, line.attr, "every resource has this field already", "Rename it")
            return False
        if automatic and camel(line.attr) not in SERVER_FIELDS and not unwrap("", hint, None).marker(Counter):
            cause = "auto() is for the fields that every resource has, and for counters"
            self.wrong(cls, line.attr, cause, "Give a default")
            return False
        return True

    def _read_line(self, cls: type[Resource], line: Annotation, restricted: frozenset[str], names: Names) -> None:
        wrong = partial(self.wrong, cls, line.attr)
        self._named_roles += line.named_roles
        to_one = isinstance(line.type, type) and issubclass(line.type, Resource)
        fault = attribute_fault(line.attr, line.attr + "_id" * to_one)
        if fault:
            wrong(*fault)
        elif get_origin(line.type) is list and holds_rows(line):
            many = read_list(line, self._classes, wrong)
            if many is not None:
                names.add(line.attr, many)
        elif to_one:
            self._to_one(line, restricted, names, wrong)
        else:
            self._plain(cls, line, restricted, names, wrong)

    def _to_one(self, line: Annotation, restricted: frozenset[str], names: Names, wrong: Wrong) -> None:
        target = line.type.__name__
        if self._classes.get(target) is not line.type:
            wrong(f"{target} is not in the model", f"Add it: Model(…, {target})")
            return
        for definition in read_relation(line, target, restricted, wrong):
            names.add(line.attr, definition)

    def _plain(
        self, cls: type[Resource], line: Annotation, restricted: frozenset[str], names: Names, wrong: Wrong
    ) -> None:
        ids = cls.__diptych__["ids"]
        scalar = fields.key_scalar(ids) if line.attr == "id" else self.types.scalar(cls, line, wrong)
        if scalar is not None:
            names.add(line.attr, fields.read_field(line, scalar, restricted, wrong))

    def _computed_field(
        self, cls: type[Resource], attr: str, computed: Computed[Any], restricted: frozenset[str]
    ) -> FieldDef | None:
        wrong = partial(self.wrong, cls, attr)
        hint = computed.function.__annotations__.get("return")
        fault = attribute_fault(attr, attr) or form_fault(attr, computed)
        if allowances(computed.function) or allowances(computed):
            fault = "@allow on a computed field", f'Write a rule with @allow("read", field="{attr}")'
        elif hint is None:
            fault = "a computed field does not say what it gives", f"Write def {attr}(self) -> str:"
        if fault:
            return wrong(*fault)
        try:
            hint = evaluate(hint, cls, {**self._classes, **getattr(computed.function, "__globals__", {})})
        except Exception as error:
            return wrong(f"its type cannot be read: {error}", _IMPORT)
        line: Annotation | None = unwrap(attr, hint, None, (computed.__doc__ or "").strip())
        if line is not None and computed.batch:
            line = one_of_batch(line, wrong)
        if line is None:
            return None
        self._named_roles += line.named_roles
        scalar = self.types.scalar(cls, line, wrong)
        return None if scalar is None else fields.read_computed(line, scalar, computed, restricted, wrong)

    def _calls(self, cls: type[Resource], lines: set[str]) -> list[CallDef]:
        """All actions and queries of a class."""
        home = Home(cls, many_of(cls), self._classes, self.job, partial(self.types.scalar, cls, types=fields.VALUES))
        definitions: list[CallDef] = []
        for attr, member, noted in calls(cls):
            wrong = partial(self.wrong, cls, attr)
            self._named_roles += [offer.to for offer in noted if isinstance(offer.to, Role)]
            if attr in lines:
                wrong(*_TWICE)
            call = read_call(attr, member, noted, home, wrong)
            if call is None:
                continue
            for twin in definitions:
                if type(twin) is type(call) and twin.name == call.name:
                    wrong(f"the name {call.name} is also that of '{twin.attr}'", "Rename one")
                    break
            definitions.append(call)
        return definitions

    # viewers and roles

    def _viewer(self, cls: type[Viewer]) -> dict[str, ViewerValue]:
        """The fields of the model's own viewer class."""
        if not (isinstance(cls, type) and issubclass(cls, Viewer)):
            cause = f"viewer={cls!r} is no class of viewers"
            self.mistakes.append(Mistake("Model()", cause, "Write class Member(Viewer): …, and viewer=Member"))
            return {}
        served = dict(self.types.enums)
        try:
            return read_viewer(cls, partial(self.types.scalar, cls, types=fields.VALUES), partial(self.wrong, cls))
        except Exception as error:
            self.wrong(cls, "", f"a type cannot be read: {error}", _IMPORT)
            return {}
        finally:
            self.types.enums = served  # enums of the viewer class alone are not part of the API

    def _user(self, cls: type[Resource] | None) -> str:
        if cls is None:
            compared = [] if self.mistakes else sorted(users_in(self.resources))
            return compared[0] if len(compared) == 1 else ""
        name = getattr(cls, "__name__", "")
        if self._classes.get(name) is not cls:
            self.mistakes.append(Mistake("Model()", f"user={cls!r} is not in the model", "Name one of its resources"))
            return ""
        return name

    def _sign_up(self, declared: SignUp) -> SignUpDef | None:
        user = self.resources[self.user] if self.user else None
        return read_sign_up(declared, user, self._of_model)

    def _of_model(self, cause: str, fix: str) -> None:
        """Record a mistake of the model as a whole."""
        self.mistakes.append(Mistake("Model()", cause, fix))

    def _roles(self, named: list[Role]) -> dict[str, Role]:
        """All roles of the model: those that its rules name, and those that its files define."""
        book = RoleBook()
        for home in dict.fromkeys(cls.__module__ for cls in self._classes.values()):
            module = sys.modules.get(home)
            defined = [value for value in vars(module).values() if isinstance(value, Role)] if module else []
            for role in defined:
                book.note(role)
        for role in named:
            book.note(role)
        for name, fault in book.faults.items():
            self.mistakes.append(Mistake(f"Role({name!r})", *fault))
        return book.roles


@cache
def _server_type(attr: str) -> Any:
    """The type of a server field, as declared in Resource."""
    return evaluate(Resource.__annotations__[attr], Resource, {})
