"""The migrations of a project: made from its model, and applied to its database, whichever store that is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct

from diptych.compile.system.object import DialectName
from diptych.compile.system.upgrade import SystemVersion
from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.nodes import Node
from diptych.db.postgres.store import PostgresStore
from diptych.db.sqlite.private_file import make_private
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.migrate import log, postgres, sqlite
from diptych.migrate.diff import Answers, ModelDiff, difference
from diptych.migrate.files import STATE, Loaded, Migration, read_folder, write_migration
from diptych.migrate.renames import with_declared
from diptych.migrate.shape import drift
from diptych.migrate.sqlite import Tell
from diptych.migrate.state import State, state_of
from diptych.migrate.table_steps import create_table
from diptych.model.model import Model

_SQLITE = "sqlite:///"


class Project(Struct, frozen=True):
    """A model, and the folder of its migrations."""

    model: Model
    folder: Path

    def chain(self, *, mend: bool = False) -> list[Loaded]:
        return read_folder(self.folder, mend=mend)

    def changes(self, answers: Answers, chain: Sequence[Loaded]) -> ModelDiff:
        """The steps from the last migration to the model."""
        before = chain[-1].state if chain else State()
        return difference(before, state_of(self.model), with_declared(answers, self.model, before))

    def make(self, name: str, difference: ModelDiff, chain: Sequence[Loaded]) -> Path:
        """Write the next migration."""
        before, state = chain[-1].state if chain else State(), state_of(self.model)
        migration = Migration(chain[-1].name if chain else "", state.hash, difference.expand, difference.contract)
        number = int(chain[-1].name[:4]) + 1 if chain else 1
        return write_migration(self.folder, f"{number:04}_{name}", migration, before, state)

    def write_state(self, chain: Sequence[Loaded]) -> None:
        """Write `state.json` anew, from the files."""
        if chain:
            (self.folder / STATE).write_text(chain[-1].state.encode(), "utf-8")

    def squash(self, chain: Sequence[Loaded]) -> Path:
        """Replace all migrations by one that makes the tables as they are now."""
        if len(chain) < 2:
            raise StartError("There is one migration: nothing to squash.")
        replaced = tuple(name for loaded in chain for name in (*loaded.migration.replaces, loaded.name))
        state, last = chain[-1].state, chain[-1].name
        steps = [create_table(name, table) for name, table in state.tables.items()]
        migration = Migration("", state.hash, steps, (), replaced)
        file = write_migration(self.folder, f"{int(last[:4]):04}_squashed", migration, State(), state)
        for loaded in chain:
            if loaded.name != file.stem:
                (self.folder / f"{loaded.name}.py").unlink()
        return file

    def complete_chain(self) -> list[Loaded]:
        """The migrations, if they lead to the model."""
        chain = self.chain()
        if not chain:
            raise StartError(f"There are no migrations in {self.folder}; `diptych migrate make` makes the first.")
        if chain[-1].state.hash != state_of(self.model).hash:
            raise StartError("The model has changes that no migration has; run `diptych migrate make` first.")
        return chain

    def apply(
        self,
        config: Config,
        tell: Tell,
        *,
        expand: bool = False,
        allow_loss: bool = False,
        ignore_nodes: bool = False,
    ) -> None:
        """Apply what is pending to a database."""
        how = {"expand": expand, "allow_loss": allow_loss, "ignore_nodes": ignore_nodes}
        chain = self.complete_chain()
        stops = [type(step).__name__ for step in chain[-1].migration.expand if step.stops]
        if expand and stops:
            raise StartError(
                f"{chain[-1].name} has {', '.join(sorted(set(stops)))}, and no service with the model before can go on "
                "after that. Stop them, and run it without --expand."
            )
        if is_sqlite(config.database):
            path = config.database.removeprefix(_SQLITE)
            make_private(path)
            sqlite.apply(path, self.model, chain, tell, **how)
            return
        store = cast(PostgresStore, connect(config))
        asyncio.run(postgres.apply(store, self.model, chain, tell, **how))

    def undo(self, config: Config, tell: Tell, *, allow_loss: bool = False, ignore_nodes: bool = False) -> None:
        """Take back the first half of the last migration."""
        if is_sqlite(config.database):
            raise StartError(
                "On SQLite, `diptych restore` brings back the copy that `diptych migrate apply` made before."
            )
        store, how = cast(PostgresStore, connect(config)), {"allow_loss": allow_loss, "ignore_nodes": ignore_nodes}
        asyncio.run(postgres.undo(store, self.model, self.chain(), tell, **how))

    def pending(self, config: Config, chain: Sequence[Loaded]) -> list[log.Half]:
        """The halves of migrations that a database does not have yet. Nothing is changed."""
        entries = self._entries(config)
        if not entries and chain:
            have = asyncio.run(connect(config).catalogue())
            there = [] if have.is_new_to(self.model) else log.baseline(chain, have, dialect_of(config.database))
            entries = [(migration.name, migration.hash, half, log.WHOLE) for migration in there for half in log.HALVES]
        return log.pending(chain, entries or [])

    def is_new(self, config: Config) -> bool:
        """Are all tables made, as the last migration leaves them, when the migrations are applied?"""
        return not self._entries(config) and asyncio.run(connect(config).catalogue()).is_new_to(self.model)

    def _entries(self, config: Config) -> list[log.Entry] | None:
        if not is_sqlite(config.database):
            return asyncio.run(postgres.read_log(cast(PostgresStore, connect(config))))
        path = Path(config.database.removeprefix(_SQLITE))
        if not path.exists():
            raise StartError(f"There is no SQLite database at {path}; `diptych migrate apply` makes one.")
        return sqlite.read_log(str(path))

    def system_version(self, config: Config) -> int | None:
        """The version of the system tables of a database; None if it has none."""
        have = asyncio.run(connect(config).catalogue())
        if not have.has_system_tables:
            return None
        return (have.system_version or SystemVersion()).version

    def nodes(self, config: Config) -> list[Node]:
        """The services that run on a database."""
        if is_sqlite(config.database):
            return sqlite.read_nodes(config.database.removeprefix(_SQLITE))
        return asyncio.run(postgres.read_nodes(cast(PostgresStore, connect(config))))

    def drift(self, config: Config, chain: Sequence[Loaded]) -> list[str]:
        """How the tables of a database differ from what the last migration leaves."""
        store: Store = connect(config)
        return list(drift(chain[-1].state, asyncio.run(store.catalogue()), dialect_of(config.database)))


def is_sqlite(url: str) -> bool:
    return url.startswith(_SQLITE)


def dialect_of(url: str) -> DialectName:
    return "sqlite" if is_sqlite(url) else "postgres"
