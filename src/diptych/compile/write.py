"""Write → SQL: one statement that makes the change if all that guards it holds, and reads the answer with it.

    mutation { updatePost(id: "…", patch: {title: "…"}) { title } }

    UPDATE "posts" AS _t0 SET "title" = ?2, "version" = _t0."version" + 1, "updated_at" = ?3
     WHERE _t0."id" = ?1 AND _t0."author_id" = ?4
    RETURNING "id", CAST('{"title":' || json_quote("posts"."title") || '}' AS BLOB)

A rule about the row as it would become is compiled over a Row whose columns are the new values. If no row comes
back, a second statement (`why`) finds which guard failed; it looks at all of them, where the change leaves out those
that follow from others (here: who may update the post may also read it). Where the answer looks at the table that
was written, a statement does not see its own change, so the answer is read by a statement of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard, cast

from msgspec import Struct

from diptych.ask.guarded import Guard, GuardedWrite
from diptych.ask.nodes import Pick
from diptych.ask.wish import Follows
from diptych.compile.dialect import Dialect
from diptych.compile.following import apart, looks_through
from diptych.compile.fragment import Fragment, identifier, join, sql
from diptych.compile.locks import Locks, locks_of, taking
from diptych.compile.own_row import own_row
from diptych.compile.plan import NowBind, Plan
from diptych.compile.read import Reads, compile_reads
from diptych.compile.returning import returning
from diptych.compile.system.counters import next_number
from diptych.compile.table_ref import BareRef, NewRow, TableRef
from diptych.model.defs import SERVER_FIELDS
from diptych.model.model import Model
from diptych.model.reach import reach
from diptych.model.rules.expr import FALSE, Col, Expr, Has, Or, leaves, rewrite
from diptych.model.scalars import DATETIME

_GUARDED_INSERT = {
    # of a SELECT, SQLite would put the row into a temporary table first, since the table has triggers
    "sqlite": "INSERT INTO {0} ({1}) VALUES (CASE WHEN {4} THEN {2} ELSE diptych_refuse() END{3})",
    "postgres": "INSERT INTO {0} ({1}) SELECT {2}{3} WHERE {4}",
}
"""A row {2}{3} of the columns {1} in the table {0}, if {4} holds."""


class WritePlan(Struct, frozen=True, eq=False):
    """The plans of a Write, to be run in one transaction.

    `change` gives a row if it was done: the id, the answer or null, and on PostgreSQL the transaction.
    `answer` reads the answer, where `change` does not: before it for a deletion, after it for all else.
    `why` gives a row of booleans, one for each guard, and then the states that could not move; it gives no row if
    there is no such row. `lookup` reads what `change` gave, once it was done, where `change` is the whole transaction.
    `after` says of each guard that can come back to the changed row whether it holds now that the row is changed;
    `before` says of the same guards whether they hold of the row as it is, where that is enough for one of them.
    `ahead` says it of the row as it would become, for one that cannot be changed since a unique value is taken.
    `hold` locks the row until the end of the transaction, where there are concurrent writers. `locks` is what
    the transaction locks before, and `opening` the statement for that where this change is all of it. `merge` reads
    the stored JSON that the values are merged into, null where it is not valid.
    """

    change: Plan
    hold: Plan | None
    before: Plan | None
    after: Plan | None
    answer: Plan | None
    why: Plan
    guards: tuple[Guard, ...]
    states: tuple[str, ...]
    lookup: Plan | None
    locks: Locks
    opening: str
    merge: Plan | None = None
    ahead: Plan | None = None

    @property
    def size(self) -> int:
        plans = (self.change, self.hold, self.before, self.after, self.answer, self.why, self.lookup, self.merge)
        return sum(plan.size for plan in (*plans, self.ahead) if plan is not None)


def compile_write(
    changed: GuardedWrite,
    model: Model,
    dialect: Dialect,
    sizes: Mapping[int, int] | None = None,
    follows: Follows | None = None,
) -> WritePlan:
    """The plans of a Write. If others of a nested write follow, rules of a new row that look through the relations that
    these write are tested by `after`, and an answer that they can change is read by `answer`, both at the end."""
    return _Writer(changed, model, dialect, sizes, follows).plans()


def new_row(changed: GuardedWrite, reads: Reads, old: TableRef | None) -> NewRow:
    """The row as a Write would make it, for a statement that only looks at it."""
    writer = _Writer(changed, reads.model, reads.dialect, None)
    return NewRow(writer.resource, {} if writer.deletes else writer._values(reads, old), old)


def _is_own_column(part: Expr) -> TypeGuard[Col]:
    return isinstance(part, Col) and len(part.path) == 1


class _Writer:
    def __init__(
        self,
        changed: GuardedWrite,
        model: Model,
        dialect: Dialect,
        sizes: Mapping[int, int] | None,
        follows: Follows | None = None,
    ) -> None:
        self.changed = changed
        self.follows = follows
        self.later = follows.relations if follows else frozenset()
        self.write = changed.write
        self.model = model
        self.dialect = dialect
        self.sizes = sizes
        self.resource = model.resources[self.write.resource]
        self.deletes = self.write.verb in ("delete", "purge") and not changed.values
        """Is the row deleted for good?"""
        guards = tuple(apart(changed.guards)) if self.later else changed.guards
        self.late = tuple(guard for guard in guards if self._is_late(guard))
        self.guards = tuple(guard for guard in guards if guard not in self.late)
        self.states = tuple(name for name, _ in changed.states)
        self.locks = locks_of(changed, model) if dialect.lock else Locks()
        self.opening = taking([self.locks])

    def _is_late(self, guard: Guard) -> bool:
        """Can a guard be tested only after the change? A statement does not see what it changes: a rule about the new
        row that leads back to its own table may find the row there as it was, or not yet."""
        if self.write.verb == "create" and self._names_counter(guard.becomes):  # the database numbers the row
            return True
        if self.later and any(looks_through(guard.becomes, path) for path in self.later):
            return True
        return guard.stored and self.resource.name in reach(guard.becomes, self.resource, self.model.resources)

    def _names_counter(self, expr: Expr) -> bool:
        """Does an expression depend on a counter of the row?"""
        if not self.resource.counters:
            return False
        named = (self.resource.fields[part.path[0]] for part in leaves(expr) if _is_own_column(part))
        return any(
            field.counts is not None or (field.computed is not None and self._names_counter(field.computed))
            for field in named
        )

    def plans(self) -> WritePlan:
        answer = None if self.follows and self._depends(self.follows) else self._inside()
        apart = [self.changed.answer] if self.changed.answer is not None and answer is None else []
        separate = compile_reads(apart, self.model, self.dialect, self.sizes) if apart else None
        is_whole = self._is_whole(separate is not None)
        return WritePlan(
            self.dialect.plan(self._statement(answer), batches=is_whole and not self.resource.counters),
            self._hold(),
            self._before(),
            self._after(),
            separate,
            self.dialect.plan(self._why()),
            self.guards,
            self.states if self.write.verb != "create" else (),
            self._lookup() if is_whole else None,
            self.locks,
            self.opening,
            self._merge(),
            self._ahead(),
        )

    def _is_whole(self, separate: bool) -> bool:
        """Is the statement all that there is to do, and can what it made be found again?"""
        whole = self.write.verb == "create" and not self.resource.returns_id
        return whole and not (separate or self.late or self.opening)

    def _reads(self) -> Reads:
        return Reads(self.model, self.dialect, self.sizes)

    # the change

    def _statement(self, answer: Fragment | None) -> Fragment:
        reads = self._reads()
        match self.write.verb:
            case "create":
                change = self._insert(reads)
            case "delete" | "purge" if self.deletes:
                old = reads.open(self.resource.name)
                change = sql("DELETE FROM {}{}", self._named(old), self._where(reads, old, {}))
            case _:
                old = reads.open(self.resource.name)
                values = self._values(reads, old)
                sets = join(", ", (sql("{} = {}", identifier(name), value) for name, value in values.items()))
                change = sql("UPDATE {} SET {}{}", self._named(old), sets, self._where(reads, old, values))
        creates = self.write.verb == "create"
        bare = creates or self.dialect.changed == "{}"
        row = BareRef(self.resource, "") if bare else TableRef(self.resource, self.dialect.changed)
        return returning(change, row.id, answer, self.dialect, new=creates, acting=bool(self.model.audited))

    @property
    def _table(self) -> Fragment:
        return identifier(self.resource.table)

    def _named(self, row: TableRef) -> Fragment:
        """The table with the alias of its row; unlike in a FROM, PostgreSQL wants the AS here."""
        return sql("{} AS " + row.alias, self._table)

    def _insert(self, reads: Reads) -> Fragment:
        values = self._values(reads, None)
        made = dict(values)
        if self.resource.returns_id and self.resource.fields["id"].stored:  # the database makes the id
            del made[self.resource.key_columns[0]]
        if self.dialect.name == "postgres":  # the trigger numbers the row
            for counter in self.resource.counters.values():
                del made[counter.column]
        columns = join(", ", map(identifier, made))
        if not (guards := self._conditions(reads, None, values, self._needed())):
            return sql("INSERT INTO {} ({}) VALUES ({})", self._table, columns, join(", ", made.values()))
        first, *others = made.values()
        rest = join("", [sql(", {}", value) for value in others])
        template = _GUARDED_INSERT[self.dialect.name]
        return sql(template, self._table, columns, first, rest, join(" AND ", guards))

    def _values(self, reads: Reads, old: TableRef | None) -> dict[str, Fragment]:
        """The new value of every column that changes, by the column's name."""
        row = old or NewRow(self.resource, {}, None)
        values: dict[str, Fragment] = {}
        for name, expr in self.changed.values:
            field = self.resource.fields[name]
            values[field.column] = self.dialect.assigned(reads.new_value(expr, row, field.scalar), field)
        if not self.resource.managed:
            return values if values or old is None else {name: old.column(name) for name in self.resource.key_columns}
        now = self.dialect.value(NowBind(DATETIME))
        if old is None:
            values |= self._numbers(values)
            return {**values, "version": Fragment("1"), "created_at": now, "updated_at": now}
        return {**values, "version": sql("{} + 1", old.column("version")), "updated_at": now}

    def _numbers(self, values: Mapping[str, Fragment]) -> Iterator[tuple[str, Fragment]]:
        """The counters of a new row, where the statement itself reads the next number."""
        for counter in self.resource.counters.values():
            if self.dialect.name == "postgres":
                yield counter.column, self.dialect.null(counter.scalar)
            else:
                scope = values[self.resource.fields[counter.counts].column] if counter.counts else None
                yield counter.column, next_number(self.resource.table, counter.column, scope)

    def _where(self, reads: Reads, old: TableRef, values: Mapping[str, Fragment]) -> Fragment:
        own = (self._own(old), *self._unmoved(reads, old))
        return sql(" WHERE {}", join(" AND ", (*own, *self._conditions(reads, old, values, self._needed()))))

    def _unmoved(self, reads: Reads, old: TableRef) -> Iterator[Fragment]:
        """The row is as the statement's snapshot has it. One that others changed meanwhile is looked at anew, but the
        rows that its rules look at are not: such a change is made by another statement, while the row is held."""
        if self.locks.watched:
            seen = reads.open(self.resource.name)
            now, then = (reads.value(Col(("version",)), row) for row in (old, seen))
            yield sql("{} = (SELECT {} FROM {} WHERE {})", now, then, reads.source(seen), self._own(seen))

    def _own(self, row: TableRef) -> Fragment:
        return own_row(row, self.write.id, self.dialect)

    def _needed(self) -> list[Guard]:
        """The guards that the change itself needs: where both `a` and `a or b` must hold, `a` is enough."""
        parts = [frozenset(self._parts(guard)) for guard in self.guards]
        return [
            guard
            for index, (guard, mine) in enumerate(zip(self.guards, parts, strict=True))
            if not any(other < mine or (other == mine and position < index) for position, other in enumerate(parts))
        ]

    def _parts(self, guard: Guard) -> Iterator[tuple[bool, Expr]]:
        """What satisfies a guard: (of the new row?, an expression). What cannot change is of the old row alone."""
        sides = [(True, guard.becomes)] if self.write.verb == "create" else [(False, guard.was), (True, guard.becomes)]
        for new, side in sides:
            for part in side.of if isinstance(side, Or) else (side,):
                yield new and self._changes(part), part

    def _changes(self, part: Expr) -> bool:
        """Can a part of a rule have another value for the new row than for the old one?"""
        fixed = {name for name, field in self.resource.fields.items() if field.stored}
        fixed -= {*dict(self.changed.values), *SERVER_FIELDS[1:]}
        fixed |= {field.relation for name, field in self.resource.fields.items() if field.relation and name in fixed}
        seen: list[str] = []

        def look(inner: Expr) -> None:
            if isinstance(inner, Col | Has):
                seen.append(inner.path[0] if isinstance(inner, Col) else inner.relation)

        rewrite(part, look)
        return not fixed.issuperset(seen)

    def _conditions(
        self, reads: Reads, old: TableRef | None, values: Mapping[str, Fragment], guards: Iterable[Guard]
    ) -> list[Fragment]:
        new = NewRow(self.resource, values, old)
        return [self._condition(reads, guard, old, new) for guard in guards]

    @staticmethod
    def _condition(reads: Reads, guard: Guard, old: TableRef | None, new: NewRow) -> Fragment:
        sides: list[tuple[Expr, TableRef]] = [(guard.becomes, new)]
        if old is not None:
            sides.insert(0, (guard.was, old))
        parts = [reads.condition(expr, row) for expr, row in sides if expr != FALSE]
        if not parts:
            return Fragment("1 = 0")
        return parts[0] if len(parts) == 1 else sql("({})", join(" OR ", parts))

    def _merge(self) -> Plan | None:
        names = [assign.name for assign in self.write.values if assign.merge]
        if not names:
            return None
        reads = self._reads()
        row = reads.open(self.resource.name)
        fields = [self.resource.fields[name] for name in names]
        tests = [f"CASE WHEN {self.dialect.test(field.scalar)} THEN CAST({{0}} AS text) END" for field in fields]
        texts = join(", ", [sql(test, row.column(field.column)) for test, field in zip(tests, fields, strict=True)])
        return self.dialect.plan(sql("SELECT {} FROM {} WHERE {}", texts, reads.source(row), self._own(row)))

    # rules that come back to the changed row

    def _hold(self) -> Plan | None:
        if self.write.verb == "create" or not self.dialect.lock:
            return None
        return self.dialect.plan(sql(self.dialect.lock, self._table, self._own(BareRef(self.resource, ""))))

    def _before(self) -> Plan | None:
        return (
            self._late([guard.was for guard in self.late]) if any(guard.was != FALSE for guard in self.late) else None
        )

    def _after(self) -> Plan | None:
        return self._late([guard.becomes for guard in self.late]) if self.late else None

    def _late(self, conditions: Iterable[Expr]) -> Plan:
        """Says of each condition whether it holds of the row as it now is."""
        reads = self._reads()
        row = reads.open(self.resource.name)
        held = join(", ", [sql(self.dialect.boolean, reads.condition(condition, row)) for condition in conditions])
        return self.dialect.plan(sql("SELECT {} FROM {} WHERE {}", held, reads.source(row), self._own(row)))

    # why it was not made

    def _ahead(self) -> Plan | None:
        """Asks the rules that come back to the row, of the row as it would become, among the others as they are."""
        asked = [guard for guard in self.late if guard.stored and not self._names_counter(guard.becomes)]
        return self.dialect.plan(self._why(asked)) if asked and not self.later else None

    def _why(self, asked: Sequence[Guard] | None = None) -> Fragment:
        reads = self._reads()
        old = None if self.write.verb == "create" else reads.open(self.resource.name)
        values = {} if self.deletes else self._values(reads, old)
        conditions = self._conditions(reads, old, values, self.guards if asked is None else asked)
        guards = [sql(self.dialect.boolean, condition) for condition in conditions]
        states = [reads.value(seen, old) for _, seen in self.changed.states] if old and asked is None else []
        picked = join(", ", [*guards, *states]) if guards or states else Fragment("NULL")
        if old is None:
            return sql("SELECT {}", picked)
        return sql("SELECT {} FROM {} WHERE {}", picked, reads.source(old), self._own(old))

    # the answer

    def _inside(self) -> Fragment | None:
        """The answer as an expression over the changed row, if it need not look at the table that was written."""
        answer = self.changed.answer
        trashes = self.write.verb == "delete" and not self.deletes  # the answer is the row before
        if answer is None or trashes or (self.deletes and not self.dialect.sees_before):
            return None
        reads = self._reads()
        reads.joins = False
        name = self._table.text if self.write.verb == "create" else self.dialect.changed.format(self._table.text)
        row = TableRef(self.resource, name)
        text = sql(self.dialect.answer, reads.object(cast("Sequence[Pick]", answer.pick), row))
        if not self.deletes and self.resource.name in reads.opened:
            return None
        return text

    def _depends(self, follows: Follows) -> bool:
        """Can what follows in a nested write change the answer, or whether the row may be read?"""
        answer = self.changed.answer
        if answer is None:
            return False
        reads = self._reads()
        reads.joins = False
        row = TableRef(self.resource, self._table.text)
        reads.object(cast("Sequence[Pick]", answer.pick), row)
        looks = bool(reads.opened) or any(reach(answer.where, self.resource, self.model.resources))
        return looks or follows.again

    def _lookup(self) -> Plan:
        """Read what the change returned, for a statement whose connection broke before it answered."""
        reads = self._reads()
        row = reads.open(self.resource.name)
        answer = self.changed.answer
        text = Fragment("NULL")
        if answer is not None:
            text = sql(self.dialect.answer, reads.object(cast("Sequence[Pick]", answer.pick), row))
        return self.dialect.plan(sql("SELECT {}, {} FROM {} WHERE {}", row.id, text, reads.joined(row), self._own(row)))
