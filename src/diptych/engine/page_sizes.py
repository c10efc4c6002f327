"""The page sizes of a request that are literals: a plan is made for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diptych.ask.nodes import Read
from diptych.ask.walk import reads
from diptych.policy.values import Binder


def known_sizes(asks: Sequence[Read], binder: Binder) -> dict[int, int]:
    """The page sizes that are literals of the request, by their slots."""
    return fixed_sizes(page_slots(asks), binder)


def fixed_sizes(slots: Iterable[int], binder: Binder) -> dict[int, int]:
    """The page sizes in these slots that are literals of the request."""
    return {slot: binder.fixed[slot] for slot in slots if binder.is_fixed(slot)}


def page_slots(asks: Sequence[Read]) -> list[int]:
    """The slots of all page sizes."""
    return [read.page.size.index for read in reads(asks) if read.page is not None]
