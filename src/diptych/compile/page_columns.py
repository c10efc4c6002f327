"""Page → SQL, where it is all that a request asks for: the database returns its parts, and Python joins them.

The rows of the page and one more are gathered into the first column. Python cuts the last one off, which says that
there are more, and signs only the cursors that are shown (`engine/page.py`). A cursor is made of values of a row: where
the row shows all of them, they are read from its text; else they are gathered into the second column. What the rows do
not show (rows before the page, the total) has columns of its own.

    SELECT CAST(group_concat(_j0, char(30)) AS BLOB), CAST(CASE WHEN … IS NOT NULL THEN 'true' ELSE 'false' END AS BLOB)
    FROM (SELECT coalesce('{"id":' || … || '}', char(29) || '[' || … || ']') AS _j0 FROM … LIMIT +?1 + 1) _n
"""

from __future__ import annotations

from typing import cast

from diptych.ask.cursor import sort_keys
from diptych.ask.nodes import ConnectionPart, Edges, Field, InfoKind, Nodes, Page, PageInfo, Read, Total, TypeName
from diptych.compile.fragment import Fragment, join, label, sql
from diptych.compile.page import Pages, Sheet
from diptych.compile.plan import PageLayout, PagePiece, SlotBind
from diptych.compile.table_ref import TableRef
from diptych.model.rules.expr import TRUE, Col
from diptych.model.scalars import STRING

LayoutPiece = bytes | PagePiece


def has_columns(read: Read) -> bool:
    """Does a Read ask for a page of rows, each of them once and without its cursor?"""
    return (read.take == "page" or (read.groups is not None and read.groups.paged)) and [
        type(part) for part in read.pick if isinstance(part, Nodes | Edges)
    ] == [Nodes]


class PageColumns(Pages):
    def page_columns(self, read: Read, row: TableRef) -> tuple[Fragment, int, PageLayout]:
        """The whole statement of a page, the number of its columns, and how they are put together."""
        read, row = self.as_rows(read, row)
        page = cast(Page, read.page)
        size = self.dialect.value(SlotBind(page.size.index, page.size.scalar))
        sheet = Sheet(read, page, row, (), self.keys(read, row), size)
        (nodes,) = (part for part in read.pick if isinstance(part, Nodes))
        labels = self._labels(nodes, sheet)
        payload = self._payload(sheet)
        kept = payload if labels else Fragment("''")
        sheet.add(sql(self.dialect.unreadable, self.object(nodes.pick, row), kept))
        columns = [sql(self.dialect.bounded, sql(self.dialect.gather_page, Fragment("_j0")))]
        if not labels:
            columns.append(sql(self.dialect.bounded, sql(self.dialect.gather_page, Fragment("_k"))))
        pieces: list[LayoutPiece] = [b"{"]
        facts: dict[str, LayoutPiece] = {}
        for index, part in enumerate(read.pick):
            pieces += [b"," * (index > 0), label(part.label).encode()]
            pieces += self._pieces(cast(ConnectionPart, part), sheet, columns, facts)
        rows = self.rows_of_page(sheet, None if labels else payload, more=1)
        statement = sql("SELECT {} FROM ({}) _n", join(", ", columns), rows)
        layout = PageLayout(_merged([*pieces, b"}"]), page.size.index, page.backward, labels, facts)
        return statement, len(columns), layout

    def _labels(self, nodes: Nodes, sheet: Sheet) -> str:
        """The labels under which a row shows its sort keys just as a cursor holds them; none if it does not."""
        shown = {pick.name: pick.label for pick in nodes.pick if isinstance(pick, Field) and pick.rule == TRUE}
        labels = []
        for order, key in zip(sort_keys(sheet.read), sheet.keys, strict=True):
            name = order.by.path[0] if isinstance(order.by, Col) and len(order.by.path) == 1 else ""
            is_cut = key.scalar is STRING
            is_hidden_if_invalid = key.nullable and self.dialect.test(key.scalar)
            is_shown = name in shown and shown[name] not in labels  # a field may be sorted by twice
            if not is_shown or sheet.row.resource.fields[name].computed or is_cut or is_hidden_if_invalid:
                return ""
            labels.append(shown[name])
        return ",".join(labels)

    def _pieces(
        self, part: ConnectionPart, sheet: Sheet, columns: list[Fragment], facts: dict[str, LayoutPiece]
    ) -> list[LayoutPiece]:
        """A part of the page; what only the database knows becomes a column, and what it says of itself a fact."""
        match part:
            case Nodes():
                return [b"[", PagePiece("rows"), b"]"]
            case PageInfo(parts=parts):
                pieces: list[LayoutPiece] = [b"{"]
                for index, (kind, name) in enumerate(parts):
                    facts[kind] = self._info_piece(kind, sheet, columns)
                    pieces += [b"," * (index > 0), label(name).encode(), facts[kind]]
                return [*pieces, b"}"]
            case TypeName():
                return [f'"{part.type}"'.encode()]
        (text,) = self._part(part, sheet)
        piece = self._add_column(cast(Fragment, text), columns)
        if isinstance(part, Total):
            facts["totalCount"] = piece
        return [piece]

    def _info_piece(self, kind: InfoKind, sheet: Sheet, columns: list[Fragment]) -> LayoutPiece:
        match kind:
            case "__typename":
                return b'"PageInfo"'
            case "startCursor" | "endCursor":
                return PagePiece(kind)
        forward = kind == "hasNextPage"
        reasons = self.beyond(forward, sheet)
        column = self._add_column(self.flag(reasons), columns) if reasons else None
        if forward != sheet.page.backward:
            return PagePiece("more", column.column if column else 0)
        return column or b"false"

    def _add_column(self, text: Fragment, columns: list[Fragment]) -> PagePiece:
        columns.append(sql(self.dialect.answer, text))
        return PagePiece("column", len(columns) - 1)


def _merged(pieces: list[LayoutPiece]) -> tuple[LayoutPiece, ...]:
    """Join neighbouring constants of a layout."""
    merged: list[LayoutPiece] = []
    for piece in pieces:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)
