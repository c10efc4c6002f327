"""No case of the bench has become slower, by its instructions and by its CPU time (`bench/slip.py`)."""

from __future__ import annotations

import pytest

from bench.slip import GUARDED, grown, instructions, measured, run, slipped
from tests.support.effort import sampled

ATTEMPTS = 6


def test_no_case_takes_more_instructions() -> None:
    """What runs in the background (a look at the feed) can only add to a case, which is counted again."""
    cases, found = list(GUARDED), dict[str, int]()
    for _ in range(ATTEMPTS):
        found |= {name: min(count, found.get(name, count)) for name, count in run(instructions(cases)).items()}
        cases = grown(found)
        if not cases:
            return
    raise AssertionError(f"more than recorded in bench/slip.json: { {name: found[name] for name in cases} }")


def test_no_case_takes_more_processor_time() -> None:
    """A case that seems to have slipped is measured again: a busy machine can only make it seem slower.

    The short form measures each third case: what it sees beyond the instructions, libraries and SQLite do for all."""
    cases, found = sampled(GUARDED, 3), dict[str, float]()
    for _ in range(ATTEMPTS):
        found |= {name: min(ratio, found.get(name, ratio)) for name, ratio in measured(cases).items()}
        cases = slipped(found)
        if not cases:
            return
    raise AssertionError(f"slower than recorded in bench/slip.json: { {name: found[name] for name in cases} }")


def _loop() -> None:
    """A seventh of the instructions of the smallest case."""
    for _ in range(60):
        pass


def test_a_slow_line_is_seen() -> None:
    assert grown(run(instructions(["Q1"], slow=_loop)))


@pytest.mark.long
def test_slow_work_of_a_library_is_seen() -> None:
    """Half of what the request costs, for each request: no instruction of the interpreter, but processor time."""
    plain = measured(["Q1"])["Q1"]
    slow = measured(["Q1"], slow=lambda: sum(range(6_000)))["Q1"]
    assert slow > 1.3 * plain
