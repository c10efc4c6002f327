"""No case of the bench has become slower, by the CPU time of the service in parts of the floor's (`bench/slip.py`)."""

from __future__ import annotations

from bench.slip import GUARDED, measured, slipped

ATTEMPTS = 6


def test_no_case_has_slipped() -> None:
    """A case that seems to have slipped is measured again: a busy machine can only make it seem slower."""
    cases, found = list(GUARDED), dict[str, float]()
    for _ in range(ATTEMPTS):
        found |= {name: min(ratio, found.get(name, ratio)) for name, ratio in measured(cases).items()}
        cases = slipped(found)
        if not cases:
            return
    raise AssertionError(f"slower than recorded in bench/slip.json: { {name: found[name] for name in cases} }")


def test_a_slow_line_is_seen() -> None:
    """A quarter of what the request costs, for each request."""
    plain = measured(["Q1"])["Q1"]
    slow = measured(["Q1"], slow=lambda: sum(range(3_000)))["Q1"]
    assert slow > 1.1 * plain
