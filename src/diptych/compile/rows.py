"""The rows of a list → SQL: which of them, in which order, from where; and the JSON text of a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal, cast

from diptych.ask.cursor import CUT, sort_keys
from diptych.ask.nodes import OrderBy, Page, Pick, Read
from diptych.compile.fragment import Fragment, Guarded, join, number, sql
from diptych.compile.keyset import KeysetBound, SortColumn, keyset
from diptych.compile.plan import KeyBind, SlotBind
from diptych.compile.table_ref import TableRef
from diptych.compile.where import Expressions
from diptych.model.rules.expr import Slot
from diptych.model.scalars import STRING, Scalar

Piece = str | Fragment
"""A piece of JSON text: constant, or computed by the database."""


class Rows(Expressions, ABC):
    """Writes what lists and pages have in common."""

    @abstractmethod
    def object(self, picks: Sequence[Pick], row: TableRef) -> Fragment:
        """The JSON text of a row."""

    def slice(self, read: Read, row: TableRef, tied: Iterable[Fragment], more: int = 0) -> tuple[Fragment, Fragment]:
        """WHERE, and ORDER BY with LIMIT: the rows of a page, and `more` beyond them."""
        page = cast(Page, read.page)
        keys = self.keys(read, row)
        bounds = [
            self.beside(read, keys, slot, after=after)
            for slot, after in ((page.after, True), (page.before, False))
            if slot
        ]
        tail = sql(" ORDER BY {} LIMIT {}", self.order(keys, page.backward), self._number(page.size))
        tail = sql("{} + " + str(more), tail) if more else tail
        if page.offset is not None:
            tail = sql("{} OFFSET {}", tail, self._number(page.offset))
        return self.all(row, *tied, read.where, *bounds), tail

    def beside(
        self, read: Read, keys: Sequence[SortColumn], slot: Slot, *, after: bool, inclusive: bool = False
    ) -> Fragment:
        """The rows of a list on one side of the cursor in a slot."""
        bounds = [self._bound(read, keys, index, slot, after) for index in range(len(keys))]
        return keyset(self.dialect, keys, bounds, after=after, inclusive=inclusive)

    def _bound(self, read: Read, keys: Sequence[SortColumn], index: int, slot: Slot, after: bool) -> KeysetBound:
        """A key of a cursor. Of a long text the cursor has the beginning and a digest: it is the text of the cursor's
        row, if that is still in the list and has that digest, and else a bound of all that begin alike."""
        key, last = keys[index], len(keys) - 1
        if not key.scalar.is_text:
            bound_value = sql(self.dialect.unseen, self.dialect.value(KeyBind(slot.index, index, key.scalar)))
            return KeysetBound(bound_value, bound_value)
        side: Literal["floor", "ceiling"] = "floor" if after != key.descending else "ceiling"
        bound = self.dialect.value(KeyBind(slot.index, index, STRING, side))
        digest = self.dialect.value(KeyBind(slot.index, index, STRING, "digest"))
        same_group = self.stored_key(read, key, digest)
        if same_group is not None:
            value = sql(
                "(SELECT CASE WHEN {0} IS NULL THEN {1} ELSE coalesce({2}, {1}) END)", digest, bound, same_group
            )
            return KeysetBound(value, bound)
        row = self.open(read.resource)
        whole = self.value(sort_keys(read)[index].by, row)
        own = sql("{} = {}", row.id, self.dialect.value(KeyBind(slot.index, last, keys[last].scalar)))
        same = sql("{} = {}", sql(self.dialect.digest, whole), digest)
        stored = sql("(SELECT {} FROM {}{})", whole, self.source(row), self.all(row, own, same, read.where))
        # a SELECT of its own, and so evaluated once
        value = sql("(SELECT CASE WHEN {0} IS NULL THEN {1} ELSE coalesce({2}, {1}) END)", digest, bound, stored)
        return KeysetBound(value, bound)

    def stored_key(self, read: Read, key: SortColumn, digest: Fragment) -> Fragment | None:
        """The whole text of a key of groups that has this digest; None for rows, which are found by their ids."""
        return None

    def _number(self, slot: Slot) -> Fragment:
        if self.dialect.sees_limits and slot.index in self.sizes:
            return number(self.sizes[slot.index])
        return sql(self.dialect.unseen, self.dialect.value(SlotBind(slot.index, slot.scalar)))

    def keys(self, read: Read, row: TableRef) -> tuple[SortColumn, ...]:
        """The sort of a list, with the id at its end."""
        return tuple(self._key(order, row) for order in sort_keys(read))

    def _key(self, order: OrderBy, row: TableRef) -> SortColumn:
        scalar = self.scalar(order.by, row.resource)
        assert scalar is not None
        return SortColumn(self.value(order.by, row), scalar, order.descending, self.nullable(order.by, row.resource))

    @staticmethod
    def order(keys: Iterable[SortColumn], backward: bool) -> Fragment:
        """ORDER BY, with nulls last; backward, everything the other way round."""
        parts = []
        for key in keys:
            direction = " DESC" if key.descending != backward else ""
            nulls = (" NULLS FIRST" if backward else " NULLS LAST") if key.nullable else ""
            parts.append(sql("{}" + direction + nulls, key.value))
        return join(", ", parts)

    def key_json(self, key: SortColumn) -> list[Piece]:
        """A sort key as a cursor holds it: of a long text, its beginning and its digest."""
        whole = self.json(key.value, key.scalar, key.nullable)
        if not key.scalar.is_text:
            return whole
        beginning = sql(f"substr({{}}, 1, {CUT})", key.value)
        digest = sql(self.dialect.digest, key.value)
        cut = self.dialect.concat(["[", *self.json(beginning, STRING, False), ',"', digest, '"]'])
        long = f"CASE WHEN length({{}}) > {CUT} THEN {{}} ELSE {{}} END"
        return [sql(long, key.value, cut, self.dialect.concat(whole))]

    def test(self, value: Fragment, scalar: Scalar, row: TableRef) -> Fragment | None:
        """The test that a value of a row is one of its type, where a column can hold others."""
        template = self.dialect.test(scalar)
        return sql(template, value) if template else None

    def json(
        self,
        value: Fragment,
        scalar: Scalar,
        nullable: bool,
        test: Fragment | None = None,
        shows: Fragment | None = None,
    ) -> list[Piece]:
        """A value as JSON text: null where it fails the test, or where it does not show.

        The text of a non-null value is Guarded: if it fails the test, the object that holds it becomes null.
        """
        out = sql(self.dialect.out(scalar).replace("{}", "{0}"), value)
        quotes = self.dialect.quotes(scalar)
        if not nullable:
            text = out if test is None else Guarded(out, test)
            return ['"', text, '"'] if quotes else [text]
        if quotes:
            out = sql("'\"' || {} || '\"'", out)
        conditions = [condition for condition in (shows, test) if condition is not None]
        if not conditions:
            return [sql("coalesce({}, 'null')", out)]
        if test is None:
            out = sql("coalesce({}, 'null')", out)
        return [sql("CASE WHEN {} THEN {} ELSE 'null' END", join(" AND ", conditions), out)]
