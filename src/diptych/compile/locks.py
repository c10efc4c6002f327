"""Locks for rules that look at other rows, where changes are made side by side.

A statement tests its rules on one snapshot, and others may change meanwhile what it looked at. Alone that does no harm:
the change counts as made before theirs. It does harm where two changes look at what the other one alters, and neither
sees the other. So of every two such changes one waits:

    watched   the tables of other rows that the rules of a change look at
    moved     the tables in which a change alters what any rule of the model looks at from another row

A transaction that moves something shares a lock of what it moves. One that also watches something takes the lock of
what it watches alone. All locks are taken before the first statement takes its snapshot, in one order.
docs/explanation/decisions/0022 has the argument why this is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from msgspec import Struct

from diptych.ask.guarded import GuardedWrite
from diptych.model.model import Model
from diptych.model.rules.looks import altered, looks

_SPACE = 1_145_656_404
"""Our advisory locks, among those of others in the same database: the first of two numbers."""


class Locks(Struct, frozen=True):
    """What a change watches and moves: names of tables."""

    watched: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()

    def __or__(self, other: Locks) -> Locks:
        return Locks(self.watched | other.watched, self.moved | other.moved)

    @property
    def alone(self) -> str:
        """The statement that takes them for a change in a transaction in which others may have gone before; or ""."""
        return _statement(self.watched, self.moved - self.watched)


def locks_of(changed: GuardedWrite, model: Model) -> Locks:
    """What a change watches and moves."""
    write, resources = changed.write, model.resources
    resource = resources[write.resource]
    exprs = [side for guard in changed.guards for side in (guard.was, guard.becomes)]
    exprs += [value for _, value in changed.values]
    watched = {name for expr in exprs for name, _ in looks(expr, resource, resources)}
    names = [name for name, _ in changed.values]
    moved = {target[0] for target in altered(write.verb, names, resource, resources) if target in model.looked_at}
    return Locks(_tables(watched, model), _tables(moved, model))


def taking(all_locks: Iterable[Locks]) -> str:
    """The statement that takes the locks of a whole transaction, before anything else; "" if it needs none."""
    watched: set[str] = set()
    moved: set[str] = set()
    for locks in all_locks:
        watched |= locks.watched
        moved |= locks.moved
    return _statement(watched, moved - watched) if moved else ""


def _tables(names: Iterable[str], model: Model) -> frozenset[str]:
    return frozenset(model.resources[name].table for name in names)


def _statement(alone: Iterable[str], shared: Iterable[str]) -> str:
    wanted = [(_number(table), "pg_advisory_xact_lock") for table in alone]
    wanted += [(_number(table), "pg_advisory_xact_lock_shared") for table in shared]
    return "SELECT " + ", ".join(f"{call}({_SPACE}, {number})" for number, call in sorted(wanted)) if wanted else ""


def _number(table: str) -> int:
    """A table's number. (Two tables of one number wait for each other, and no more.)"""
    return crc32(table.encode()) - 2**31
