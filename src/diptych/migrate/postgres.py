"""Applies migrations to a PostgreSQL database beside services that run: each step in a transaction of its own.

Waits for locks are short and repeated (`db/postgres/ddl.py`). What takes long runs under weak locks: indexes are made
CONCURRENTLY, constraints are validated after they hold, rows are filled in batches. A run that was interrupted goes on
where it stopped. One process at a time applies: others wait for its advisory lock, without a snapshot, which an index
that is made CONCURRENTLY would wait for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

import asyncpg

from diptych.compile.system.trash import REFERS
from diptych.db.catalogue import postgres_catalogue
from diptych.db.nodes import Node, nodes_of, recent_nodes
from diptych.db.postgres.ddl import PATIENCE, patiently
from diptych.db.postgres.store import LOCK, PARTS, PostgresStore
from diptych.errors import StartError
from diptych.migrate import log
from diptych.migrate.ddl import our_triggers, quote
from diptych.migrate.feed import in_audit_log, not_in_audit_log
from diptych.migrate.files import Loaded
from diptych.migrate.key_steps import run
from diptych.migrate.nodes import refuse_needed, refuse_steps
from diptych.migrate.numbering import LIMIT
from diptych.migrate.sqlite import Tell, dropped, refuse
from diptych.migrate.state import State
from diptych.migrate.step import Action, Alone, Backfill, MigrationStep, Number, Stored, Validate
from diptych.migrate.undo import BEGIN, END, UNDO, inverses, undone
from diptych.model.model import Model

_BATCH = 1_000
_OURS = LOCK + 1
_HAS = "SELECT to_regclass(quote_ident(current_schema()) || '.' || $1) IS NOT NULL"
_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"


@asynccontextmanager
async def _connected(store: PostgresStore, after: str = "") -> AsyncIterator[asyncpg.Connection]:
    """A connection of its own; `after` says what is so when a statement has failed."""
    connection = await store.connection("diptych migrates")
    try:
        yield connection
    except asyncpg.LockNotAvailableError:
        raise StartError(f"A table was locked for a minute{after}.") from None
    except asyncpg.InsufficientPrivilegeError as error:
        role = await connection.fetchval("SELECT current_user")
        text = f"The role {role} may not do that ({error}). Migrate as the owner of the tables{after}."
        raise StartError(text) from None
    except asyncpg.PostgresError as error:
        raise StartError(f"The migration failed ({error}){after}.") from None
    except (asyncpg.InterfaceError, OSError) as error:
        if not connection.is_closed():  # a file of a `run` step, or the output
            raise
        raise StartError(f"The connection to the database was lost ({error}){after}.") from None
    finally:
        await connection.close()


async def read_log(store: PostgresStore) -> list[log.Entry] | None:
    """The log of a database; None if it has none."""
    async with _connected(store) as connection:
        return await _entries(connection)


async def _entries(connection: asyncpg.Connection) -> list[log.Entry] | None:
    if not await connection.fetchval(_HAS, "diptych_migrations"):
        return None
    return [(name, digest, half, step) for name, digest, half, step in await connection.fetch(log.READ)]


async def read_nodes(store: PostgresStore) -> list[Node]:
    """The services that run."""
    async with _connected(store) as connection:
        return await _nodes(connection)


async def _nodes(connection: asyncpg.Connection) -> list[Node]:
    if not await connection.fetchval(_HAS, "diptych_nodes"):
        return []
    return nodes_of(await connection.fetch(recent_nodes("postgres")))


async def apply(
    store: PostgresStore,
    model: Model,
    chain: Sequence[Loaded],
    tell: Tell,
    *,
    expand: bool = False,
    allow_loss: bool = False,
    ignore_nodes: bool = False,
) -> None:
    """Apply what is pending. What was done when it fails is logged, and not done again."""
    async with _connected(store, "; what was done before is logged: run it again") as connection:
        await connection.execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
        await _lock(connection)
        await _Run(connection, model, chain, tell, allow_loss).apply(expand, ignore_nodes)
        fitted = await store.open(model)  # makes the triggers that are wanted now, and refuses what does not fit
        for sentence in fitted.done:
            tell(sentence)
        await store.close()


async def undo(
    store: PostgresStore,
    model: Model,
    chain: Sequence[Loaded],
    tell: Tell,
    *,
    allow_loss: bool = False,
    ignore_nodes: bool = False,
) -> None:
    """Take back the first half of the last migration."""
    async with _connected(store, "; run it again to finish it") as connection:
        await connection.execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
        await _lock(connection)
        await _Run(connection, model, chain, tell, allow_loss).undo(ignore_nodes)


async def _lock(connection: asyncpg.Connection) -> None:
    end = time.monotonic() + 10 * PATIENCE
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1::bigint)", _OURS):
        if time.monotonic() > end:
            raise StartError("Another process has been migrating this database for ten minutes.")
        await asyncio.sleep(0.5)


class _Run:
    def __init__(
        self, connection: asyncpg.Connection, model: Model, chain: Sequence[Loaded], tell: Tell, allow_loss: bool
    ) -> None:
        self.connection, self.model, self.chain, self.tell = connection, model, chain, tell
        self.allow_loss = allow_loss

    async def apply(self, expand: bool, ignore_nodes: bool) -> None:
        connection = self.connection
        entries, have = await _entries(connection), await postgres_catalogue(connection)
        await self._transaction(log.prepare(have, "postgres"))
        if not entries and self.chain:
            there = self.chain if have.is_new_to(self.model) else log.baseline(self.chain, have, "postgres")
            if have.is_new_to(self.model):
                self.tell(log.MADE)

            async def note() -> None:
                for migration in there:
                    for half in log.HALVES:
                        await self._log(migration, half, log.WHOLE)

            await patiently(connection, note)  # all or none: what is left to do is what the log lacks
            entries = [(loaded.name, loaded.hash, half, log.WHOLE) for loaded in there for half in log.HALVES]
        left = log.pending(self.chain, entries or [], expand=expand)
        if not ignore_nodes:
            refuse_needed(left, await _nodes(connection))
        await self._check_log(step for half in left for step in half.steps)
        for part in left:
            await self._half(part)

    async def undo(self, ignore_nodes: bool) -> None:
        entries = await _entries(self.connection) or []
        log.pending(self.chain, entries)  # refuses a log that is not of these files
        migration = undone(self.chain, entries)
        steps = inverses(migration)
        if not ignore_nodes:
            refuse_steps([step for step, _ in steps], await _nodes(self.connection))
        await self._check_log(step for step, _ in steps)
        have = await postgres_catalogue(self.connection)
        for step, before in steps:
            if not step.is_done(have, before, "postgres"):
                await self._check(step, before)

        async def begin() -> None:
            await self.connection.execute(BEGIN, migration.name)
            await self._log(migration, UNDO, 0)

        async def end() -> None:
            for sql, values in log.record(migration.between, migration.before):
                places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
                await self.connection.execute(sql.format(places), *values)
            await self.connection.execute(END, migration.name)

        await patiently(self.connection, begin)
        for step in migration.migration.expand:
            for statement in step.leftovers():
                await self._transaction([statement])
        for step, before in steps:
            await self._inverse(step, before)
        await self._make_triggers(migration.before)  # services of before go on
        await patiently(self.connection, end)
        self.tell(f"{migration.name}: undone.")

    async def _inverse(self, step: MigrationStep, before: State) -> None:
        have = await postgres_catalogue(self.connection)
        if step.is_done(have, before, "postgres"):
            return
        for kind, group in groupby([*step.actions(before, have, "postgres")], type):
            if kind is str:
                await self._transaction([str(action) for action in group])
            else:
                for action in group:
                    await self._do(action)

    async def _half(self, half: log.Half) -> None:
        if half.half == "contract":
            for step in half.migration.migration.expand:
                for statement in step.leftovers():
                    await self._transaction([statement])
        for number, (step, before) in enumerate(half.migration.steps(half.half)):
            if number not in half.done:
                await self._step(half, number, step, before)
        migration = half.migration
        start, end = (
            (migration.before, migration.between) if half.half == "expand" else (migration.between, migration.state)
        )

        async def record() -> None:
            if await self.connection.fetchval(_HAS, "diptych_schema"):
                for sql, values in log.record(start, end):
                    places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
                    await self.connection.execute(sql.format(places), *values)
            await self._log(migration, half.half, log.WHOLE)
            await self.connection.execute(END, migration.name)

        await patiently(self.connection, record)
        self.tell(f"{migration.name}: {half.half}ed.")

    async def _step(self, half: log.Half, number: int, step: MigrationStep, before: State) -> None:
        have = await postgres_catalogue(self.connection)
        actions: list[Action] = []
        if isinstance(step, run):
            await self._make_triggers(before)

            async def work() -> None:
                await step.function(Handle(self.connection))
                await self._log(half.migration, half.half, number)

            await patiently(self.connection, work)
            return
        if not step.is_done(have, before, "postgres"):
            await self._check(step, before)
            actions = [*step.actions(before, have, "postgres")]
        groups = [(kind, [*each]) for kind, each in groupby(actions, type)]
        for kind, group in groups[:-1] if groups and groups[-1][0] is str else groups:
            if kind is str:
                await self._transaction([str(action) for action in group])
            else:
                for action in group:
                    await self._do(action)
        last = groups[-1][1] if groups and groups[-1][0] is str else []

        async def finish() -> None:
            for action in last:
                await self._execute(str(action))
            await self._log(half.migration, half.half, number)

        await patiently(self.connection, finish, gently=bool(last))

    async def _make_triggers(self, state: State) -> None:
        """Create the triggers of ours that earlier steps dropped, so that they fire for the next changes of rows."""
        there = {name: text for name, text in await self.connection.fetch(PARTS)}
        # the name of one that looks at references depends on the order of the columns, which a model may have otherwise
        looking = {_table_of(name) for name in there if name.startswith(REFERS)} - {""}
        for part in our_triggers(state, "postgres"):
            is_other = part.name.startswith(REFERS) and _table_of(part.name) in looking
            if not (part.is_in(there) or is_other):
                await self._transaction(part.create)

    async def _check(self, step: MigrationStep, before: State) -> None:
        for look, word in ((step.obstacle(before, "postgres"), ""), (step.loss(before, "postgres"), "--allow-loss")):
            if look is not None and not (word and self.allow_loss):
                refuse(step, look[0], await self.connection.fetchval(look[1]), word)

    async def _check_log(self, steps: Iterable[MigrationStep]) -> None:
        """Refuse to drop a table before all its changes are in the audit log."""
        if await self.connection.fetchval(_HAS, "diptych_audit"):
            for step in dropped(steps, await postgres_catalogue(self.connection)):
                sentence, query = not_in_audit_log(step.name)
                refuse(step, sentence, await self.connection.fetchval(query), "")

    async def _transaction(self, statements: Sequence[str]) -> None:
        async def work() -> None:
            for statement in statements:
                await self._execute(statement)

        await patiently(self.connection, work, gently=True)

    async def _execute(self, statement: str) -> None:
        """Run a statement; one that changes stored changes is also run on the audit log."""
        await self.connection.execute(statement)
        in_log = in_audit_log(statement, "postgres")
        if in_log and await self.connection.fetchval(_HAS, "diptych_audit"):
            for logged in in_log:
                await self.connection.execute(logged)

    async def _log(self, migration: Loaded, half: str, step: int) -> None:
        await self.connection.execute(log.INSERT.format("$1, $2, $3, $4, $5, $6"), *log.entry(migration, half, step))

    async def _do(self, action: Action) -> None:
        match action:
            case Validate(sql):
                await self._transaction([sql])
            case Backfill(table, name, expression):
                await self._backfill(table, name, expression)
            case Stored(sql):
                await self._change_stored(sql)
            case Number(sql):
                await self._number(sql)
            case Alone(sql, index):
                await patiently(self.connection, self._concurrently(sql, index), alone=True)

    def _concurrently(self, sql: str, index: str) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            valid = await self.connection.fetchval(_VALID, quote(index))
            if valid is False:  # a run before was interrupted
                await self.connection.execute(f"DROP INDEX CONCURRENTLY {quote(index)}")
            if not valid:
                await self.connection.execute(sql)

        return work

    async def _backfill(self, table: str, name: str, expression: str) -> None:
        """Fill by id, each batch in its own transaction, as a change that followers see."""
        quoted, column = quote(table), quote(name)
        after: Any = None
        count = 0
        while True:
            later = "AND id > $1" if after is not None else ""
            given = () if after is None else (after,)
            query = f"SELECT id FROM {quoted} WHERE {column} IS NULL {later} ORDER BY id LIMIT {_BATCH}"
            ids = [row[0] for row in await self.connection.fetch(query, *given)]
            if not ids:
                return
            update = f"UPDATE {quoted} SET {column} = {expression} WHERE {column} IS NULL AND id = ANY ($1)"

            async def work(update: str = update, ids: list[Any] = ids) -> None:
                await self.connection.execute(update, ids)

            await patiently(self.connection, work)
            after, count = ids[-1], count + len(ids)
            if count % (100 * _BATCH) == 0:
                self.tell(f"{table}.{name}: {count} rows filled.")
            await asyncio.sleep(0)

    async def _number(self, sql: str) -> None:
        """Number rows, each batch in its own transaction, until there are few left."""
        batch, count, numbered = sql.replace(LIMIT, f" LIMIT {_BATCH}"), 0, _BATCH

        async def work() -> int:
            return int((await self.connection.execute(batch)).split()[-1])

        while numbered == _BATCH:
            numbered = await patiently(self.connection, work)
            count += numbered
            if count % (100 * _BATCH) == 0 and count:
                self.tell(f"{count} rows numbered.")
            await asyncio.sleep(0)

    async def _change_stored(self, sql: str) -> None:
        """Change stored changes, in batches by position. Those that have none yet get theirs first: numbering them
        meanwhile would change their order."""
        while (numbered := await self.connection.fetchval("SELECT diptych_number($1)", _BATCH)) not in range(_BATCH):
            await asyncio.sleep(0.02 if numbered < 0 else 0)  # another node is numbering them
        last = await self.connection.fetchval("SELECT coalesce(max(position), 0) FROM diptych_feed")
        done = await self.connection.fetchval("SELECT oldest - 1 FROM diptych_feed_head")
        while done < last:
            low, done = done, min(done + _BATCH, last)

            async def work(low: int = low, high: int = done) -> None:
                await self.connection.execute(f"{sql} AND position > $1 AND position <= $2", low, high)

            await patiently(self.connection, work)
        if await self.connection.fetchval(_HAS, "diptych_audit"):
            await self._transaction(in_audit_log(sql, "postgres"))


def _table_of(part: str) -> str:
    """The table of a trigger, by its name among our parts; "" of a function."""
    return part.partition(" on ")[2]


class Handle:
    """The database, as the function of a data step sees it: `$1` for values, in a transaction of its own."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        return [tuple(row) for row in await self._connection.fetch(sql, *values)]

    async def execute(self, sql: str, *values: Any) -> None:
        """Run a statement."""
        await self._connection.execute(sql, *values)
