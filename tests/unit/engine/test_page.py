"""A page is put together from the columns of its statement."""

from __future__ import annotations

import json
from typing import Any

from diptych.ask.cursor import sign
from diptych.compile.plan import PageLayout, PagePiece
from diptych.engine.page import page_parts, put_together

KEY = b"k" * 32
ROW_A, ROW_B, ROW_C = b'{"n":1,"id":"a"}', b'{"n":2,"id":"b"}', b'{"n":3,"id":"c"}'
BROKEN = b'\x1d["x"]'


def layout(*, backward: bool = False, labels: str = "id", column: int = 0) -> PageLayout:
    pieces = (
        b'{"more":',
        PagePiece("more", column),
        b',"start":',
        PagePiece("startCursor"),
        b',"end":',
        PagePiece("endCursor"),
        b',"rows":[',
        PagePiece("rows"),
        b"]}",
    )
    return PageLayout(pieces, 0, backward, labels)


def page(plan: PageLayout, *columns: bytes | None, size: int = 2) -> dict[str, Any]:
    return dict(json.loads(put_together(plan, columns, size, KEY)))


def cursor(keys: str) -> str:
    return sign(KEY, keys.encode())


def test_the_row_beyond_the_page_is_cut_off_and_says_that_there_are_more() -> None:
    found = page(layout(), b"\x1e".join([ROW_A, ROW_B, ROW_C]))
    assert found["more"] is True
    assert [row["id"] for row in found["rows"]] == ["a", "b"]
    assert (found["start"], found["end"]) == (cursor('["a"]'), cursor('["b"]'))


def test_a_page_that_is_just_full_has_no_more() -> None:
    found = page(layout(), b"\x1e".join([ROW_A, ROW_B]))
    assert (found["more"], len(found["rows"])) == (False, 2)


def test_backward_the_rows_come_in_reverse() -> None:
    found = page(layout(backward=True), b"\x1e".join([ROW_C, ROW_B, ROW_A]))
    assert (found["more"], [row["id"] for row in found["rows"]]) == (True, ["b", "c"])
    assert (found["start"], found["end"]) == (cursor('["b"]'), cursor('["c"]'))


def test_a_row_with_an_invalid_value_is_left_out_and_still_leads_on() -> None:
    found = page(layout(), b"\x1e".join([ROW_A, BROKEN, ROW_C]))
    assert (found["more"], [row["id"] for row in found["rows"]]) == (True, ["a"])
    assert (found["start"], found["end"]) == (cursor('["a"]'), cursor('["x"]'))


def test_keys_that_the_rows_do_not_show_have_a_column() -> None:
    rows, keys = b"\x1e".join([b'{"n":1}', b"\x1d", b'{"n":3}']), b'["a"]\x1e["b"]\x1e["c"]'
    found = page(layout(labels=""), rows, keys)
    assert (found["more"], found["rows"]) == (True, [{"n": 1}])
    assert (found["start"], found["end"]) == (cursor('["a"]'), cursor('["b"]'))


def test_an_empty_page_has_no_cursors() -> None:
    assert page(layout(), None) == {"more": False, "start": None, "end": None, "rows": []}


def test_there_are_more_if_the_rows_or_the_column_say_so() -> None:
    assert page(layout(column=1), ROW_A, b"true")["more"] is True
    assert page(layout(column=1), ROW_A, b"false")["more"] is False
    assert page(layout(column=1), b"\x1e".join([ROW_A, ROW_B, ROW_C]), b"false")["more"] is True


def test_the_parts_of_a_list_have_the_cursors_that_lead_on() -> None:
    facts: dict[str, bytes | PagePiece] = {
        "hasNextPage": PagePiece("more"),
        "hasPreviousPage": PagePiece("column", 1),
        "totalCount": b"3",
    }
    plan = PageLayout((), 0, False, "id", facts)
    rows, following, previous, total = page_parts(plan, (b"\x1e".join([ROW_A, ROW_B, ROW_C]), b"false"), 2, KEY)
    assert (bytes(rows), following, previous, total) == (ROW_A + b"," + ROW_B, cursor('["b"]'), None, b"3")
    rows, following, previous, _ = page_parts(plan, (ROW_C, b"true"), 2, KEY)
    assert (bytes(rows), following, previous) == (ROW_C, None, cursor('["c"]'))
    assert page_parts(plan, (None, b"true"), 2, KEY) == (b"", None, None, b"3")


def test_sort_keys_are_read_as_they_stand_wherever_a_row_shows_them() -> None:
    for shown, labels, keys in (
        (b'{"id":"a","n":1}', "id", '["a"]'),  # at its beginning
        (b'{"id":7}', "id", "[7]"),
        (b'{"n":-1.5e+3,"id":"a","x":{"n":2}}', "n,id", '[-1.5e+3,"a"]'),
        (b'{"id":"a","n":1}', "n,id", '[1,"a"]'),  # in another order
        (b'{"id":"a\\",b","n":1}', "id", '["a\\",b"]'),  # with an escape
        (b'{"id":null,"n":1}', "id", "[null]"),
        (b'{"ids":"b","id":"a"}', "id", '["a"]'),  # after one whose name begins alike
    ):
        found = page(layout(labels=labels), shown)
        assert found["start"] == found["end"] == cursor(keys), shown
