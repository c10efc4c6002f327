"""Documents that are made in time slices: those of a large model take long, and others must not wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from diptych.fair.pace import Pace
from diptych.fair.planning_budget import PlanningBudget


async def encode_list(steps: Iterator[Any], budget: PlanningBudget) -> bytes:
    """The items as a JSON list. All slices are charged to the caller."""
    pace = Pace()
    parts: list[bytes] = []
    while True:
        with budget.planning(goes_on=True):
            try:
                while not pace.is_over():
                    parts.append(msgspec.json.encode(next(steps)))
            except StopIteration:
                return b"[" + b",".join(parts) + b"]"
        await pace.rest()
