"""A model that changes over a database with rows, by migrations; and what a database is, to compare it with one made anew."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from diptych import Model
from diptych.config import Config
from diptych.db.connect import connect
from diptych.migrate import runner, sqlite
from diptych.migrate.diff import Answers, difference
from diptych.migrate.files import Loaded, Migration, read_folder, write_migration
from diptych.migrate.postgres import apply as apply_postgres
from diptych.migrate.renames import with_declared
from diptych.migrate.state import State, state_of
from tests.unit.compile.test_tables import Outside


class Project:
    """A folder of migrations, and a database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.outside = folder, Outside(url)
        self.told: list[str] = []

    def make(self, model: Model, name: str = "next", **answers: Any) -> list[Loaded]:
        """Write the migration to a model."""
        chain = read_folder(self.folder)
        before = chain[-1].state if chain else State()
        state = state_of(model)
        found = difference(before, state, with_declared(Answers(**answers), model, before))
        assert not found.questions, found.questions
        migration = Migration(chain[-1].name if chain else "", state.hash, found.expand, found.contract)
        number = int(chain[-1].name[:4]) + 1 if chain else 1
        write_migration(self.folder, f"{number:04}_{name}", migration, before, state)
        return read_folder(self.folder)

    def apply(self, model: Model, **how: bool) -> None:
        chain, url = read_folder(self.folder), self.outside.url
        if self.outside.is_sqlite:
            sqlite.apply(url.removeprefix("sqlite:///"), model, chain, self.told.append, **how)
        else:
            store: Any = connect(Config(database=url))
            asyncio.run(apply_postgres(store, model, chain, self.told.append, **how))

    def squash(self, model: Model) -> None:
        """Replace all migrations by one, which the database has already."""
        runner.Project(model, self.folder).squash(read_folder(self.folder))
        self.apply(model)

    def open(self, model: Model) -> None:
        """Serve it once."""
        opened(self.outside.url, model)


def opened(url: str, model: Model) -> None:
    async def work() -> None:
        store = connect(Config(database=url))
        await store.open(model)
        await store.close()

    asyncio.run(work())


_TRIGGERS = {
    True: "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name",
    False: "SELECT c.relname || ' ' || pg_get_triggerdef(t.oid), NULL FROM pg_trigger t JOIN pg_class c "
    "ON c.oid = t.tgrelid WHERE NOT tgisinternal ORDER BY 1",
}
_DEFAULTS = {
    True: "SELECT t.name, c.name, c.dflt_value FROM sqlite_schema t JOIN pragma_table_info(t.name) c "
    "WHERE t.type = 'table' AND t.name NOT LIKE 'diptych_%' ORDER BY 1, 2",
    False: "SELECT c.relname::text, a.attname::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d "
    "JOIN pg_class c ON c.oid = d.adrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum "
    "WHERE c.relname NOT LIKE 'diptych_%' ORDER BY 1, 2",
}


def structure(outside: Outside) -> dict[str, Any]:
    """All that a database is, but for the order of columns and the names of indexes."""
    store = connect(Config(database=outside.url))
    have = asyncio.run(store.catalogue())
    tables = {name: dict(sorted(columns.items())) for name, columns in sorted(have.tables.items())}
    owned = [index for index in have.indexes if index.table in tables]
    triggers = outside.sql(_TRIGGERS[outside.is_sqlite])
    if outside.is_sqlite:  # columns are in the order of the table there
        triggers = [(name, len(text or "")) for name, text in triggers]
    return {
        "tables": tables,
        "unique": sorted({(index.table, tuple(sorted(index.columns))) for index in owned if index.unique}),
        "indexes": sorted({(index.table, index.columns) for index in owned if not index.unique}),
        "partial": sorted(index.name for index in owned if not index.columns),
        "references": sorted((each.table, each.column, each.target, each.on_delete) for each in have.references),
        "checks": {name: sorted(each) for name, each in sorted(have.checks.items()) if name in tables},
        "searches": sorted(have.searches),
        "defaults": outside.sql(_DEFAULTS[outside.is_sqlite]),
        "triggers": triggers,
        "record": {name: dict(sorted(each.items())) for name, each in sorted(have.recorded.items())},
    }
