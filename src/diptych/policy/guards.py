"""Write authorization: the rules of the viewer as guards of a Write, all tested by the statement that writes.

The result has the new value of every column that changes, and the guards: conditions on the current row (`was`) or on
the new one (`becomes`), of which one must hold. The first guard that fails decides the error, in this order:

    the row is readable (else "not found") → the rules of the verb, before and after → the version that the client
    sent → read-only fields of a replacement are unchanged → the row stays where a
    counter numbered it → the checks of the class hold → the state transition is
    allowed → references point to rows that the viewer may read

No API style tests any of this, so none can forget it, and there is no gap between test and write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diptych.ask.guarded import Guard, GuardedWrite, Why
from diptych.ask.nodes import Assign, Read, Write
from diptych.errors import Code, Refusal
from diptych.model.declare.markers import Move
from diptych.model.defs import DELETED_AT, SERVER_FIELDS, FieldDef, RelationDef
from diptych.model.reach import reach
from diptych.model.resource_view import ResourceView
from diptych.model.rules.expr import (
    FALSE,
    TRUE,
    Col,
    Compare,
    Const,
    Expr,
    Has,
    IsNull,
    Moment,
    Slot,
    and_,
    choose,
    leaves,
    mask,
    not_,
    or_,
)
from diptych.model.scalars import DATETIME
from diptych.model.view import View
from diptych.policy.access import assume, narrow
from diptych.policy.within import belongs


def add_guards(write: Write, view: View) -> GuardedWrite:
    """Add the rules of the view to a Write, as guards."""
    resource = view.resources.get(write.resource)
    if resource is None or not resource.may(write.verb):
        raise Refusal(Code.FORBIDDEN, "You may not do this.")
    return _WriteGuards(write, resource, view).build()


class _WriteGuards:
    def __init__(self, write: Write, resource: ResourceView, view: View) -> None:
        self.write = write
        self.resource = resource
        self.view = view
        self.assigned = {assign.name: assign for assign in write.values}
        self.fields = resource.resource.fields

    def build(self) -> GuardedWrite:
        values = dict(self._values())
        guards = [guard for guard in self._guards(values) if not guard.holds]
        answer = None
        if self.write.pick:
            where = Compare("eq", Col(("id",)), self.write.id)
            gone = self.write.verb == "purge"
            answer = narrow(Read(self.write.resource, "one", self.write.pick, where, deleted=gone), self.view)
        states = [(guard.field, self._seen(guard.field)) for guard in guards if guard.why is Why.STATE]
        return GuardedWrite(self.write, tuple(values.items()), tuple(dict.fromkeys(guards)), answer, tuple(states))

    # the new row

    def _values(self) -> Iterator[tuple[str, Expr]]:
        if self.resource.resource.trash and self.write.verb in ("delete", "restore"):
            yield DELETED_AT, Moment(DATETIME) if self.write.verb == "delete" else Const(None, DATETIME)
            return
        for name, field in self.fields.items():
            if not field.stored or (name not in self.resource.writes and self.write.verb != "create"):
                continue
            value = self._value(name, field)
            if value is not None:
                yield name, value

    def _value(self, name: str, field: FieldDef) -> Expr | None:
        """The new value of a column; None if it is not changed."""
        if name == "id":
            return self.write.id if self.write.verb == "create" else None
        if field.is_server_set or self.write.verb in ("delete", "purge"):
            return None
        assign = self.assigned.get(name)
        if self.write.verb == "replace":
            return self._replaced(name, field, assign)
        if assign is not None:
            return _expr(assign, field)
        return self.resource.fresh_value(field) if self.write.verb == "create" else None

    def _replaced(self, name: str, field: FieldDef, assign: Assign | None) -> Expr | None:
        """The new value in a replacement: an absent field is reset if the viewer may both see and write it."""
        shows, may = self._shows(name), self.resource.writes[name].update
        if assign is None:
            if field.moves or field.required or field.of_viewer or shows == FALSE or may == FALSE:
                return None
            return choose(and_(shows, may), field.fresh_value, Col((name,)))
        if may == FALSE:
            return None
        if assign.value is None and shows != TRUE:  # a viewer who may not see the value is shown null too
            return None if not field.nullable else choose(shows, _expr(assign, field), Col((name,)))
        return _expr(assign, field)

    def _shows(self, name: str) -> Expr:
        field = self.resource.fields.get(name)
        return field.rule if field else FALSE

    # the guards

    def _guards(self, values: dict[str, Expr]) -> Iterator[Guard]:
        resource, write = self.resource, self.write
        if write.verb == "create":
            rules = (resource.writes[name].create for name in self.assigned)
            yield Guard(Why.DENIED, becomes=and_(resource.create, *rules))
            yield Guard(Why.DENIED, becomes=assume(resource.read, resource.resource.present), stored=True)
            yield from self._checks(values)
            yield from self._states()
            yield from self._references()
            return
        if write.verb in ("restore", "purge"):
            yield Guard(Why.HIDDEN, was=resource.deleted)
            yield from self._versions()
            yield from self._kept_references() if write.verb == "restore" else ()
            return
        yield Guard(Why.HIDDEN, was=and_(resource.read, belongs(write.within, self.view)))
        if write.verb == "delete":
            yield Guard(Why.DENIED, was=resource.delete)
            yield from self._versions()
            return
        yield from self._permissions(values)
        yield from self._versions()
        if write.verb == "replace":
            yield from self._unchanged()
        yield from self._numbered()
        yield from self._checks(values)
        yield from self._states()
        yield from self._references()

    def _permissions(self, values: dict[str, Expr]) -> Iterator[Guard]:
        """The update rules of the row and of every written field, for the current and the new row."""
        yield Guard(Why.DENIED, was=self.resource.update)
        for name, kept in self._written(values):
            writes = self.resource.writes.get(name)
            may = writes.update if writes else FALSE
            if name in self.assigned:
                yield Guard(Why.DENIED, was=or_(kept, may))
            if self._touched(may, values):
                yield Guard(Why.DENIED, was=kept, becomes=may, stored=True)
        if self._touched(self.resource.update, values):
            yield Guard(Why.DENIED, becomes=self.resource.update, stored=True)
        if self._touched(self.resource.read, values):
            yield Guard(Why.DENIED, becomes=self.resource.read, stored=True)
        yield from self._moves_of_others()

    def _written(self, values: dict[str, Expr]) -> Iterator[tuple[str, Expr]]:
        """The written fields, each with the condition on the current row under which it keeps its value."""
        replaces = self.write.verb == "replace"
        for name, assign in self.assigned.items():
            if self.fields[name].stored and not self.fields[name].is_server_set:
                yield name, self._same(assign) if replaces else FALSE
        for name in values if replaces else ():
            if name not in self.assigned:
                resets = and_(self._shows(name), self.resource.writes[name].update)
                yield name, or_(not_(resets), _is(Col((name,)), self.fields[name].default_value))

    def _touched(self, rule: Expr, values: dict[str, Expr]) -> bool:
        """Can the new values change the result of the rule? Always, if it may query the table of this row."""
        if self.write.resource in reach(rule, self.resource.resource, self.view.model):
            return True
        for part in leaves(rule):
            name = part.path[0] if isinstance(part, Col) else part.relation if isinstance(part, Has) else ""
            field = self.fields.get(name)
            key = self.fields.get(name + "Id")
            computed = any(part is not None and not part.stored for part in (field, key))
            if computed or name in values or name + "Id" in values or name in SERVER_FIELDS[1:]:
                return True
        return False

    def _versions(self) -> Iterator[Guard]:
        slot, assign = self.write.version, self.assigned.get("version")
        if slot is not None:
            yield Guard(Why.STALE, was=Compare("in" if slot.many else "eq", Col(("version",)), slot))
        if assign is not None and assign.value is not None:
            yield Guard(Why.STALE, was=Compare("eq", Col(("version",)), assign.value))

    def _unchanged(self) -> Iterator[Guard]:
        """Guards of a replacement: read-only fields are unchanged, and no required field is missing."""
        for name, assign in self.assigned.items():
            field = self.fields[name]
            if name != "version" and (field.is_server_set or (not field.stored and field.computed is not None)):
                yield Guard(Why.DIFFERS, was=self._same(assign), field=name)
        for name, writes in self.resource.writes.items():
            sent, field, shows = self.assigned.get(name), writes.field, self._shows(name)
            if sent is None and field.required and not field.moves:
                yield Guard(Why.ABSENT, was=not_(and_(shows, writes.update)), field=name)
            if sent is not None and sent.value is None and not field.nullable:
                yield Guard(Why.ABSENT, was=not_(shows), field=name)

    def _numbered(self) -> Iterator[Guard]:
        """A row stays where it was numbered: the field within which a counter counts keeps its value."""
        for name in {field.counts for field in self.resource.resource.counters.values()}:
            if name in self.assigned:
                yield Guard(Why.NUMBERED, was=self._same(self.assigned[name]), field=name)

    def _checks(self, values: dict[str, Expr]) -> Iterator[Guard]:
        """The checks of the class that the new values can break."""
        for check in self.resource.resource.checks.values():
            if not values.keys().isdisjoint(check.fields):
                yield Guard(Why.BROKEN, becomes=check.expr, field=check.name)

    def _states(self) -> Iterator[Guard]:
        for name, assign in self.assigned.items():
            field = self.fields[name]
            if not field.moves or assign.value is None:
                continue
            if self.write.verb == "create":
                initial = Compare("eq", assign.value, Const(field.default, field.scalar))
                yield Guard(
                    Why.STATE, becomes=or_(initial, self.view.rule(self.resource.resource, "create", name)), field=name
                )
                continue
            yield Guard(Why.STATE, was=self._own_moves(field, assign.value), field=name)

    def _moves_of_others(self) -> Iterator[Guard]:
        """Guards against transitions that only other roles may make. For a hidden state they do not fail, so as not to
        reveal it."""
        for name, assign in self.assigned.items():
            field = self.fields[name]
            if field.moves and assign.value is not None:
                others = [move for move in field.moves if not self._is_own(move)]
                theirs = and_(self._shows(name), or_(*_moves(others, field, assign.value)))
                yield Guard(Why.DENIED, was=or_(self._own_moves(field, assign.value), not_(theirs)))

    def _own_moves(self, field: FieldDef, target: Slot) -> Expr:
        same = Compare("eq", Col((field.name,)), target)
        return or_(same, *_moves(filter(self._is_own, field.moves), field, target))

    def _is_own(self, move: Move) -> bool:
        return move.to is None or move.to.name in self.view.signature.roles

    def _references(self) -> Iterator[Guard]:
        for name, field in self.fields.items() if self.write.verb == "create" else ():
            if field.of_viewer is None or name in self.assigned or name in self.resource.unfilled:
                continue
            if field.relation:
                yield Guard(Why.DANGLING, becomes=Has(field.relation, TRUE), field=name)
            elif not field.nullable:  # the id of a viewer may be no id of this kind
                yield Guard(Why.DENIED, becomes=not_(IsNull(Col((name,)))))
        for name, assign in self.assigned.items():
            relation = self._relation(name)
            if relation is None or assign.value is None:
                continue
            target = self.view.resources.get(relation.target)
            same = FALSE if self.write.verb == "create" else and_(self._shows(name), _equals(Col((name,)), assign))
            there = Has(relation.name, target.read) if target else FALSE
            yield Guard(Why.DANGLING, was=same, becomes=there, field=name)

    def _kept_references(self) -> Iterator[Guard]:
        """What a restored row refers to is not deleted."""
        for name, field in self.fields.items():
            relation = self.resource.resource.relations.get(field.relation)
            if relation is None or not self.view.model[relation.target].trash:
                continue
            own = Compare("eq", Col((name,)), Col(("id",))) if relation.target == self.write.resource else FALSE
            there = Has(relation.name, self.view.model[relation.target].present)
            yield Guard(Why.DANGLING, was=or_(IsNull(Col((name,))), own, there), field=name)

    def _relation(self, name: str) -> RelationDef | None:
        return self.resource.resource.relations.get(self.fields[name].relation)

    def _same(self, assign: Assign) -> Expr:
        """Does the client send the value that the viewer sees?"""
        return FALSE if assign.name not in self.resource.fields else _equals(self._seen(assign.name), assign)

    def _seen(self, name: str) -> Expr:
        """The value as the viewer sees it."""
        return mask(self._shows(name), self.fields[name].computed or Col((name,)))


def _equals(of: Expr, assign: Assign) -> Expr:
    return IsNull(of) if assign.value is None else Compare("eq", of, assign.value)


def _is(of: Expr, value: Const) -> Expr:
    return IsNull(of) if value.value is None else Compare("eq", of, value)


def _expr(assign: Assign, field: FieldDef) -> Expr:
    return Const(None, field.scalar) if assign.value is None else assign.value


def _moves(moves: Iterable[Move], field: FieldDef, target: Slot) -> Iterator[Expr]:
    for move in moves:
        source = Compare("eq", Col((field.name,)), Const(move.source.value, field.scalar))
        yield and_(source, Compare("eq", target, Const(move.target.value, field.scalar)))
