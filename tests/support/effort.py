"""How much a test does. `make test` runs the short form of what is drawn, repeated or waited for, `make prove` the full one.

    for document in drawn(scaled(1_000)):          # 100 in `make test`, 1,000 in `make prove`
    CLIENTS = scaled(1_000, 170)                   # where a tenth would prove too little
    for case in sampled(CASES, 3):                 # each third in `make test`, all in `make prove`

    @pytest.mark.long                              # not in `make test` at all
    @long_where(model="default", store="postgres") # these two together are not

The short form draws the same in every run; the full one draws anew. Marked `long` is only what proves again, at more
expense, what another test of `make test` guards (the other store, the other model, another proxy), and what proves
that a costly proof fails where a fault is planted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

LONG = os.environ.get("PROVE") == "long"
"""Is this the full form?"""


def scaled(full: int, short: int | None = None) -> int:
    """How often something is done, in the form that runs; the short form does a tenth, unless it is told how often."""
    return full if LONG else max(1, full // 10) if short is None else short


def sampled(cases: Iterable[T], every: int) -> list[T]:
    """All cases of a matrix in the full form, and a covering sample in the short one: the first of each `every`."""
    return [*cases] if LONG else [*cases][::every]


def long_where(**parameters: object) -> pytest.MarkDecorator:
    """The marker `long` where all these parameters are as said; a list says one of several."""
    return pytest.mark.long_where(
        **{name: value if isinstance(value, list) else [value] for name, value in parameters.items()}
    )
