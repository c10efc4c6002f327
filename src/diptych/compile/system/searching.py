"""The index of a full-text search: FTS5 and triggers on SQLite, a GIN index over an expression on PostgreSQL.

SQLite has the searched texts once more in a table of their own, whose key stays what it is (VACUUM may give rows of the
model's table other rowids), and which only triggers write: so FTS5 removes exactly the texts that it has
indexed, even if triggers of the owner change the row. PostgreSQL computes the index from the row: nothing is stored
beside it. Both index what others write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256

from diptych.compile.fragment import Fragment, identifier, join, sql
from diptych.compile.system.folding import MOST_SEARCHED, words_function
from diptych.compile.system.object import DialectName, short_name
from diptych.model.defs import ResourceDef
from diptych.model.searching import MARKS

_FORM = 1
"""Raised when the words of a text are others, so that indexes are made anew."""
_LONGEST = 35


class SearchIndex:
    """The index that the search of a resource needs."""

    def __init__(self, resource: ResourceDef, dialect: DialectName) -> None:
        self._over(resource.table, [resource.fields[name].column for name in resource.search], dialect)

    @classmethod
    def over(cls, table: str, columns: Iterable[str], dialect: DialectName) -> SearchIndex:
        """The index of columns of a table, without a model."""
        index = cls.__new__(cls)
        index._over(table, [*columns], dialect)
        return index

    def _over(self, table: str, columns: list[str], dialect: DialectName) -> None:
        self.table = table
        self.columns = columns
        self.marks = MARKS[: len(self.columns)]
        self.most = MOST_SEARCHED // len(self.columns)
        self.dialect = dialect
        self._stem = f"diptych_search_{short_name(table, _LONGEST)}_"
        declared = f"{_FORM} {table} {' '.join(self.columns)}"
        self.name = self._stem + sha256(declared.encode()).hexdigest()[:8]
        """Says what is indexed: an index of another name is that of another declaration."""

    def create(self) -> tuple[str, ...]:
        """The statements that make it, with the rows that are there."""
        if self.dialect == "sqlite":
            return tuple(self._sqlite())
        words = self.words(lambda column: Fragment(identifier(column).text)).text
        index = f"CREATE INDEX {self.name} ON {identifier(self.table).text} USING gin (({words}))"
        return (*words_function().create, index)

    def outdated(self, have: Collection[str]) -> list[str]:
        """The names of search indexes that an earlier declaration of this table has left."""
        mine = re.compile(re.escape(self._stem) + "[0-9a-f]{8}")
        return sorted(name for name in have if mine.fullmatch(name) and name != self.name)

    def drop(self, name: str) -> tuple[str, ...]:
        """The statements that remove an outdated one."""
        if self.dialect == "postgres":
            return (f"DROP INDEX {name}",)
        triggers = (f"DROP TRIGGER IF EXISTS {name}_{kind}" for kind in ("created", "changed", "deleted"))
        return (*triggers, f"DROP TABLE {name}_rows", f"DROP TABLE {name}")

    def condition(self, row_id: Fragment, columns: Iterable[Fragment], text: Fragment) -> Fragment:
        """Does the row match? `columns` are those of the row; `text` is bound as `search_scalar` says."""
        if self.dialect == "sqlite":
            matches = f"SELECT rowid FROM {self.name} WHERE {self.name} MATCH {{}}"
            return sql(f"{{}} IN (SELECT id FROM {self.name}_rows WHERE n IN ({matches}))", row_id, text)
        values = dict(zip(self.columns, columns, strict=True))
        return sql("({}) @@ {}", self.words(values.__getitem__), text)

    def words(self, value: Callable[[str], Fragment]) -> Fragment:
        """The words of a row of PostgreSQL, each after the letter of its column."""
        parts = [
            sql(f"diptych_words('{mark}', left({{}}, {self.most}))", value(column))
            for mark, column in zip(self.marks, self.columns, strict=True)
        ]
        return join(" || ", parts)

    def _sqlite(self) -> Iterator[str]:
        name, rows, table = self.name, f"{self.name}_rows", identifier(self.table).text
        listed = ", ".join(self.marks)
        quoted = [identifier(column).text for column in self.columns]
        cut = ", ".join(f"CAST(substr({column}, 1, {self.most}) AS TEXT)" for column in quoted)
        fill = f"INSERT INTO {rows} (id, {listed}) SELECT id, {cut} FROM {table}"
        texts = ", ".join(f"{mark} TEXT" for mark in self.marks)
        yield f"CREATE TABLE {rows} (n INTEGER PRIMARY KEY, id NOT NULL UNIQUE, {texts})"
        yield (
            f"CREATE VIRTUAL TABLE {name} USING fts5({listed}, content='{rows}', content_rowid='n', columnsize=0, "
            "detail='column', tokenize='unicode61 remove_diacritics 2')"
        )
        yield fill
        yield f"INSERT INTO {name} ({name}) VALUES ('rebuild')"
        old, new = (", ".join(f"{side}.{mark}" for mark in self.marks) for side in ("OLD", "NEW"))
        index = f"INSERT INTO {name} (rowid, {listed}) VALUES (NEW.n, {new})"
        forget = f"INSERT INTO {name} ({name}, rowid, {listed}) VALUES ('delete', OLD.n, {old})"
        yield f"CREATE TRIGGER {name}_in AFTER INSERT ON {rows} BEGIN {index}; END"
        yield f"CREATE TRIGGER {name}_out AFTER DELETE ON {rows} BEGIN {forget}; END"
        put = f"{fill} WHERE id = NEW.id"
        changes = " OR ".join(f"OLD.{column} IS NOT NEW.{column}" for column in ("id", *quoted))
        watched = ", ".join(("id", *quoted))
        for kind, event, *body in (
            ("created", "INSERT", f"DELETE FROM {rows} WHERE id = NEW.id", put),
            ("changed", f"UPDATE OF {watched}", f"DELETE FROM {rows} WHERE id IN (OLD.id, NEW.id)", put),
            ("deleted", "DELETE", f"DELETE FROM {rows} WHERE id = OLD.id"),
        ):
            when = f" WHEN {changes}" if kind == "changed" else ""
            yield f"CREATE TRIGGER {name}_{kind} AFTER {event} ON {table}{when} BEGIN {'; '.join(body)}; END"


def search_indexes(resources: Iterable[ResourceDef], dialect: DialectName) -> list[SearchIndex]:
    """The indexes that the searches of these resources need."""
    return [SearchIndex(resource, dialect) for resource in resources if resource.search]
