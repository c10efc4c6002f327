"""Page → SQL: a list with its cursors, `pageInfo` and total, as one text. (`page_columns.py`: as columns.)

The rows are read once, and gathered into the texts of the page's parts (_a0, _a1, …), the keys of its first and
last row (_lo, _hi) and whether there are more. Where the sort is by id alone, the keys are the least and the
greatest id, and a query beyond them shows whether there are more:

    SELECT '{"nodes":[' || _p._a0 || '],"pageInfo":{"hasNextPage":' || CASE WHEN EXISTS (… id > _p._hi) … || '}}'
    FROM (SELECT group_concat(_j0, ',') AS _a0, min(_k) AS _lo, max(_k) AS _hi FROM (… LIMIT size) _n) _p

Else rows are numbered as they come, and one more than the page is read:

    FROM (SELECT group_concat(CASE WHEN _i <= size THEN _j0 END, ',') AS _a0, max(CASE WHEN _i = 1 THEN _k END) AS _lo …
          FROM (SELECT _r.*, row_number() OVER () AS _i, count(*) OVER () AS _c FROM (… LIMIT size + 1) _r) _n) _p
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct, field

from diptych.ask.nodes import ConnectionPart, EdgePart, Edges, InfoKind, Nodes, Page, PageInfo, Read, Total, TypeName
from diptych.compile.fragment import Fallible, Fragment, join, label, sql
from diptych.compile.groups import GroupedRows
from diptych.compile.keyset import SortColumn
from diptych.compile.plan import SealBind, SlotBind
from diptych.compile.rows import Piece
from diptych.compile.table_ref import TableRef
from diptych.model.rules.expr import Slot


class Sheet(Struct):
    """One page while it is written: the texts taken from each row, and those gathered from all rows."""

    read: Read
    page: Page
    row: TableRef
    tied: tuple[Fragment, ...]
    keys: tuple[SortColumn, ...]
    size: Fragment
    texts: list[Fragment] = field(default_factory=list)
    gathered: list[Fragment] = field(default_factory=list)

    @property
    def by_id(self) -> bool:
        """Is the list sorted by id alone?"""
        return len(self.keys) == 1 and self.read.groups is None

    def add(self, text: Fragment) -> Fragment:
        """A text of each row; the answer is its name there."""
        self.texts.append(text)
        return Fragment(f"_j{len(self.texts) - 1}")

    def gather(self, text: Fragment) -> Fragment:
        """A text gathered from all rows; the answer is its name."""
        self.gathered.append(text)
        return Fragment(f"_p._a{len(self.gathered) - 1}")


class Pages(GroupedRows):
    def page(self, read: Read, row: TableRef, tied: tuple[Fragment, ...]) -> Fragment:
        """A SELECT of the JSON text of a page."""
        page = cast(Page, read.page)
        size = self.dialect.value(SlotBind(page.size.index, page.size.scalar))
        sheet = Sheet(read, page, row, tied, self.keys(read, row), size)
        pieces: list[Piece] = ["{"]
        for index, part in enumerate(read.pick):
            pieces.append("," * (index > 0) + label(part.label))
            pieces.extend(self._part(cast(ConnectionPart, part), sheet))
        gathered = [sql(f"{{}} AS _a{index}", text) for index, text in enumerate(sheet.gathered)]
        rows = self._by_id(sheet) if sheet.by_id else self._numbered(sheet)
        inner = sql("SELECT {} FROM ({}) _n", join(", ", [*gathered, *self._ends(sheet)]), rows)
        return sql("SELECT {} FROM ({}) _p", self.dialect.concat([*pieces, "}"]), inner)

    def _by_id(self, sheet: Sheet) -> Fragment:
        """The rows of the page, each with its id."""
        return self.rows_of_page(sheet, self.dialect.id_out(sheet.keys[0].scalar, sheet.row.id), more=0)

    def _numbered(self, sheet: Sheet) -> Fragment:
        """The rows of the page and one more, each with its number and its keys."""
        rows = self.rows_of_page(sheet, self._payload(sheet), more=1)
        return sql("SELECT _r.*, row_number() OVER () AS _i, count(*) OVER () AS _c FROM ({}) _r", rows)

    def rows_of_page(self, sheet: Sheet, key: Fragment | None, more: int) -> Fragment:
        """The rows of the page and `more` beyond it: the texts taken from each, and its key."""
        columns = [sql(f"{{}} AS _j{index}", text) for index, text in enumerate(sheet.texts)]
        if key is not None:
            columns.append(sql("{} AS _k", key))
        return sql(
            "SELECT {} FROM {}{}{}",
            join(", ", columns),
            self.joined(sheet.row),
            *self.slice(sheet.read, sheet.row, sheet.tied, more=more),
        )

    def _ends(self, sheet: Sheet) -> list[Fragment]:
        """The keys of the first and of the last row, and whether there are more rows than the page holds."""
        if sheet.by_id:
            low, high = Fragment("min(_k)"), Fragment("max(_k)")
            if sheet.keys[0].descending:
                low, high = high, low
            return [sql("{} AS _lo", low), sql("{} AS _hi", high)]
        last = sql(self.dialect.least, Fragment("_c"), sheet.size)
        numbers = (last, Fragment("1")) if sheet.page.backward else (Fragment("1"), last)
        low, high = (sql("max(CASE WHEN _i = {} THEN _k END)", number) for number in numbers)
        return [sql("{} AS _lo", low), sql("{} AS _hi", high), sql("count(*) > {} AS _more", sheet.size)]

    def _payload(self, sheet: Sheet) -> Fragment:
        """The sort keys of a row as the text that its cursor holds."""
        pieces: list[Piece] = ["["]
        for index, key in enumerate(sheet.keys):
            pieces.extend(["," * (index > 0), *self._key_json(key, sheet.row)])
        return self.dialect.concat([*pieces, "]"])

    def _key_json(self, key: SortColumn, row: TableRef) -> list[Piece]:
        """A sort key; one that its type does not allow as it is stored, so that a cursor leads on from any row."""
        test = self.test(key.value, key.scalar, row)
        known = self.dialect.concat(self.key_json(key))
        if test is None:
            return [known]
        stored = sql(self.dialect.stored_key, key.value)
        if key.nullable:
            test = sql("{} IS NULL OR {}", key.value, test)
        return [sql("CASE WHEN {} THEN {} ELSE {} END", test, known, stored)]

    def _part(self, part: ConnectionPart, sheet: Sheet) -> list[Piece]:
        match part:
            case Nodes(pick=pick):
                return self._gathered(sheet.add(self.object(pick, sheet.row)), sheet)
            case Edges(parts=parts):
                return self._gathered(self._edge(parts, sheet), sheet)
            case PageInfo(parts=parts):
                return self._info(parts, sheet)
            case Total():
                where = self.all(sheet.row, *sheet.tied, sheet.read.where)
                return [sql("(SELECT {} FROM {}{})", Fragment(self.dialect.count), self.source(sheet.row), where)]
            case TypeName():
                return [f'"{part.type}"']

    def _gathered(self, text: Fragment, sheet: Sheet) -> list[Piece]:
        """The texts of all rows, in the order of the list: backward, the rows came in reverse."""
        if not sheet.by_id:
            text = sql("CASE WHEN _i <= {} THEN {} END", sheet.size, text)
        if not sheet.page.backward:
            return ["[", sheet.gather(sql(self.dialect.gather, text)), "]"]
        order = "_i DESC"
        if sheet.by_id:
            order = "_k DESC" if sheet.keys[0].descending else "_k"
        return ["[", sheet.gather(sql(self.dialect.gather_by, text, Fragment(order))), "]"]

    def _edge(self, parts: tuple[EdgePart, ...], sheet: Sheet) -> Fragment:
        pieces: list[Piece] = ["{"]
        for index, part in enumerate(parts):
            pieces.append("," * (index > 0) + label(part.label))
            if part.kind == "node":
                pieces.append(Fallible(sheet.add(self.object(part.pick, sheet.row)).text))
            elif part.kind == "cursor":
                pieces.extend(['"', self._sealed("_k", sheet), '"'])
            else:
                pieces.append(f'"{sheet.read.resource}Edge"')
        return self.dialect.concat([*pieces, "}"])

    def _sealed(self, key: str, sheet: Sheet) -> Fragment:
        """The cursor of a row; of none it is null."""
        payload = self.dialect.id_key(sheet.keys[0].scalar, Fragment(key)) if sheet.by_id else Fragment(key)
        return sql(self.dialect.seal, self.dialect.value(SealBind(sheet.page.size.index)), payload)

    # what leads on

    def _info(self, parts: tuple[tuple[InfoKind, str], ...], sheet: Sheet) -> list[Piece]:
        pieces: list[Piece] = ["{"]
        for index, (kind, name) in enumerate(parts):
            pieces.append("," * (index > 0) + label(name))
            if kind == "__typename":
                pieces.append('"PageInfo"')
            elif kind in ("startCursor", "endCursor"):
                cursor = self._sealed("_p._lo" if kind == "startCursor" else "_p._hi", sheet)
                pieces.append(sql("coalesce('\"' || {} || '\"', 'null')", cursor))
            else:
                pieces.append(self._leads(kind == "hasNextPage", sheet))
        return [*pieces, "}"]

    def _leads(self, forward: bool, sheet: Sheet) -> Fragment:
        """Is there a row of the list beyond the page, on the one side or on the other?"""
        reasons = [self._more(sheet)] if forward != sheet.page.backward else []
        return self.flag([*reasons, *self.beyond(forward, sheet)])

    @staticmethod
    def flag(reasons: list[Fragment]) -> Fragment:
        """Does one of the conditions hold, as JSON?"""
        if not reasons:
            return Fragment("'false'")
        return sql("CASE WHEN {} THEN 'true' ELSE 'false' END", join(" OR ", reasons))

    def beyond(self, forward: bool, sheet: Sheet) -> list[Fragment]:
        """Conditions of which one holds if there is a row behind the cursor or the offset that the page begins at."""
        page = sheet.page
        reasons = []
        bound = page.before if forward else page.after
        if bound is not None:
            beyond = self._beside(sheet, bound, after=forward, inclusive=True)
            reasons.append(self._exists(sheet, beyond, backward=not forward))
        if not forward and page.offset is not None:
            offset = self.dialect.value(SlotBind(page.offset.index, page.offset.scalar))
            sides = ((page.after, True), (page.before, False))
            within = [self._beside(sheet, slot, after=side) for slot, side in sides if slot]
            reasons.append(sql("({} > 0 AND {})", offset, self._exists(sheet, *within)))
        return reasons

    def _more(self, sheet: Sheet) -> Fragment:
        """Are there more rows than the page holds, in the direction in which it is read?"""
        if not sheet.by_id:
            return Fragment("_p._more")
        page, key = sheet.page, sheet.keys[0]
        sign = ">" if page.backward == key.descending else "<"
        edge = self.dialect.id_in(key.scalar, "_p._lo" if page.backward else "_p._hi")
        limits = [sql(f"{{}} {sign} {{}}", key.value, edge)]
        bound = page.after if page.backward else page.before
        if bound is not None:
            limits.append(self._beside(sheet, bound, after=page.backward))
        return self._exists(sheet, *limits, backward=page.backward)

    def _beside(self, sheet: Sheet, bound: Slot, *, after: bool, inclusive: bool = False) -> Fragment:
        return self.beside(sheet.read, sheet.keys, bound, after=after, inclusive=inclusive)

    def _exists(self, sheet: Sheet, *limits: Fragment, backward: bool = False) -> Fragment:
        """Is there such a row? Asked for as the first of them: for EXISTS, PostgreSQL would read the whole table."""
        where = self.all(sheet.row, *sheet.tied, sheet.read.where, *limits)
        order = self.order(sheet.keys, backward)
        return sql("(SELECT 1 FROM {}{} ORDER BY {} LIMIT 1) IS NOT NULL", self.source(sheet.row), where, order)
