"""A leak in any one channel is noticed by the pairs, as two answers that differ and not as a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from diptych.demo.model import model as default
from diptych.model.model import Model
from tests.proof.interference import desk, leaks
from tests.proof.interference.counting import Counting
from tests.proof.interference.databases import Leak, Pairs, opened
from tests.proof.interference.desk import Coding
from tests.proof.interference.following import Following
from tests.proof.interference.reading import Reading
from tests.proof.interference.writing import Writing
from tests.support import edge_cases
from tests.support.effort import LONG

MEMORY = "sqlite:///:memory:"
MOST = 300
"""Pairs within which a leak must be noticed."""


class Channel(NamedTuple):
    """A way for what is hidden to get out: how it is opened, and which pairs must notice."""

    plant: Callable[[pytest.MonkeyPatch], None]
    kind: Callable[..., Pairs] = Reading
    model: Model = edge_cases.model


CHANNELS: Mapping[str, Channel] = {
    "a field that is picked": Channel(leaks.picked_field),
    "a field that is filtered by": Channel(leaks.compared_field),
    "a field that is sorted by": Channel(leaks.sorted_field),
    "a field computed of hidden ones": Channel(leaks.computed_field),
    "a row by its id alone": Channel(leaks.any_type, model=default),
    "a filter through a relation": Channel(leaks.filter_through_relation),
    "the rows of a relation": Channel(leaks.nested_rows, model=default),
    "a relation that is hidden on the row": Channel(leaks.hidden_way),
    "the way back of a relation": Channel(leaks.way_back),
    "the rows that link": Channel(leaks.linking_rows),
    "a total": Channel(leaks.total, model=default),
    "where a page ends": Channel(leaks.page_boundary, model=default),
    "a cursor": Channel(leaks.cursor),
    "an entity tag": Channel(leaks.entity_tag, model=default),
    "a field that is measured or grouped by": Channel(leaks.measured_field, Counting),
    "the rows of a summary or of groups": Channel(leaks.counted_rows, Counting, default),
    "a condition on groups": Channel(leaks.having, Counting),
    "a sort by a related row": Channel(leaks.sorted_by_relation, Counting),
    "a number of related rows": Channel(leaks.number_of_relation, Counting, default),
    "a hidden row that is changed": Channel(leaks.hidden_row, Writing, default),
    "a reference to a hidden row": Channel(leaks.reference, Writing),
    "a replacement that gives a hidden value": Channel(leaks.replacement, Writing),
    "a patch that tests a hidden value": Channel(leaks.patched_row, Writing),
    "the answer to a change": Channel(leaks.answer_to_change, Writing),
    "the requests of a batch": Channel(leaks.batch, Writing),
    "a change of a hidden row": Channel(leaks.event_of_hidden, Following),
    "a field by which changes are filtered": Channel(leaks.filter_of_changes, Following),
    "where a page of changes ends": Channel(leaks.page_of_segments, Following),
    "an entity tag of changes": Channel(leaks.tag_of_position, Following),
    "the cursor of a change": Channel(leaks.same_cursors, Following),
    "what Python computes of hidden fields": Channel(leaks.needs_of_python, Coding, desk.model),
    "what code of the model reads": Channel(leaks.rows_of_code, Coding, desk.model),
    "what code of the model gives": Channel(leaks.answer_of_code, Coding, desk.model),
}


KEPT = (
    "a field that is filtered by",
    "a row by its id alone",
    "the rows of a relation",
    "a total",
    "a field that is measured or grouped by",
    "a number of related rows",
    "a cursor",
    "a hidden row that is changed",
    "a reference to a hidden row",
    "the requests of a batch",
    "a change of a hidden row",
    "what Python computes of hidden fields",
)
"""Those that the short form plants: some for each kind of pairs."""


@pytest.mark.parametrize("name", CHANNELS if LONG else KEPT)
def test_a_leak_is_noticed_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, kind, model = CHANNELS[name]
    plant(monkeypatch)
    with opened(kind, model, [MEMORY, MEMORY]) as found:
        with pytest.raises(Leak):
            found.prove(MOST)
        print(f"{name}: after {found.pairs} pairs")
