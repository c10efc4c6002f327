"""The result of a call as a Read: the rows that its function returned, read as the client selects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from diptych.ask.nodes import Call, Field, Page, Read
from diptych.ask.slots import SIZE
from diptych.model.call_defs import CallDef
from diptych.model.defs import ResourceDef
from diptych.model.rules.expr import Col, Compare, Slot
from diptych.nesting import decode

_rows = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def answer_read(call: Call, definition: CallDef, resources: Mapping[str, ResourceDef], slots: int) -> Read | None:
    """The Read of a call's result; its slots follow those of the arguments."""
    result = definition.result
    if not result.resource:
        return None
    key = resources[result.resource].key
    if result.kind == "one":
        return Read(result.resource, "one", call.pick, Compare("eq", Col(("id",)), Slot(slots, key)))
    where = Compare("in", Col(("id",)), Slot(slots, key, many=True))
    picks = (Field("id", id_label(call)), *call.pick)
    return Read(result.resource, "list", picks, where, page=Page(Slot(slots + 1, SIZE)))


def id_label(call: Call) -> str:
    """The label of the id column by which listed rows are sorted: one that is no alias of the client's."""
    taken, label = {pick.label for pick in call.pick}, "_id"
    while label in taken:
        label = "_" + label
    return label


def in_order(listed: bytes, ids: Sequence[Any], label: str) -> bytes:
    """The rows in the order of `ids`, without those that the viewer may not read."""
    by_id: dict[str, dict[str, msgspec.Raw]] = {}
    for row in decode(_rows, listed):
        by_id[msgspec.json.decode(row.pop(label))] = row
    return msgspec.json.encode([by_id[str(id)] for id in ids if str(id) in by_id])
