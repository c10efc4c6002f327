"""How much a test does. `make test` runs the short form of what is drawn, repeated or waited for, `make prove` the full one.

    for document in drawn(scaled(1_000)):          # 100 in `make test`, 1,000 in `make prove`
    CLIENTS = scaled(1_000, 170)                   # where a tenth would prove too little
    for case in sampled(CASES, 3):                 # each third in `make test`, all in `make prove`

The short form draws the same in every run; the full one draws anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

LONG = os.environ.get("PROVE") == "long"
"""Is this the full form?"""


def scaled(full: int, short: int | None = None) -> int:
    """How often something is done, in the form that runs; the short form does a tenth, unless it is told how often."""
    return full if LONG else max(1, full // 10) if short is None else short


def sampled(cases: Iterable[T], every: int) -> list[T]:
    """All cases of a matrix in the full form, and a covering sample in the short one: the first of each `every`."""
    return [*cases] if LONG else [*cases][::every]
