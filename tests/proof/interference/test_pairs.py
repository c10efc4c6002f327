"""What a viewer may not see alters nothing that the viewer gets.

Two databases differ only in what a viewer may not see: in hidden rows, in hidden fields and relations of visible
rows, and in hidden rows that only one of them has. Random requests that reach for just that get equal answers, in
both styles, from both stores: status, headers and bytes. A pair is one such request, or one such transaction, sent
to both. `test_planted_leaks` shows that each channel is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from diptych.demo.model import model as default
from diptych.model.model import Model
from tests.conftest import STORES
from tests.proof.interference import desk
from tests.proof.interference.counting import Counting
from tests.proof.interference.databases import Pairs, opened
from tests.proof.interference.desk import Coding
from tests.proof.interference.following import Following
from tests.proof.interference.reading import Reading
from tests.proof.interference.writing import Writing
from tests.support import edge_cases
from tests.support.effort import LONG, long_where, scaled
from tests.support.running import NewDatabase


class Plan(NamedTuple):
    """What is tried on each store: so many pairs, of which these shares must be of a kind."""

    kind: Callable[..., Pairs]
    model: Model
    pairs: int
    """In the full form; the short one tries some of them."""
    at_least: dict[str, float]

    @property
    def number(self) -> int:
        return scaled(self.pairs, self.pairs // 40)


PLANS = {
    "reads, default": Plan(Reading, default, 800, {"touching": 0.4}),
    "reads, edge_cases": Plan(Reading, edge_cases.model, 800, {"touching": 0.4}),
    "numbers, default": Plan(Counting, default, 600, {"touching": 0.2}),
    "numbers, edge_cases": Plan(Counting, edge_cases.model, 600, {"touching": 0.2}),
    "changes, default": Plan(Writing, default, 1000, {"touching": 0.2, "done": 0.15}),
    "changes, edge_cases": Plan(Writing, edge_cases.model, 600, {"touching": 0.35, "done": 0.1}),
    "followed, default": Plan(Following, default, 360, {"touching": 0.3}),
    "followed, edge_cases": Plan(Following, edge_cases.model, 360, {"touching": 0.3}),
    "code": Plan(Coding, desk.model, 600, {"200": 0.5, "404": 0.05}),
}
"""`touching` pairs would have different answers, or name something hidden, if there were no rules."""
MOST_EXCEPTIONS = 0.1
"""The share of transactions that may be left out, for one of the reasons of `writing`."""


def test_five_thousand_pairs_are_tried_at_least() -> None:
    tried = [plan.number for name, plan in PLANS.items() for _ in (STORES if LONG or name == "code" else [""])]
    assert sum(tried) >= scaled(5_000, 140)


@pytest.mark.timeout(scaled(1_200))
@long_where(new_database="sqlite", name=[name for name in PLANS if "default" in name])
@long_where(new_database="postgres", name=[name for name in PLANS if "edge_cases" in name])
@pytest.mark.parametrize("name", PLANS)
def test_what_a_viewer_may_not_see_alters_no_answer(name: str, new_database: NewDatabase) -> None:
    plan, urls = PLANS[name], [new_database(), new_database()]
    with opened(plan.kind, plan.model, urls) as found:
        found.prove(plan.number, seed=urls[0].split(":")[0])
    print(f"{name}: {_told(found)}")
    assert found.pairs == plan.number
    for kind, share in plan.at_least.items():
        assert found.seen[kind] >= share * found.pairs, f"too few are {kind} to prove anything: {_told(found)}"
    left_out = sum(found.seen[why] for why in ("conflicts", "reveals"))
    assert left_out <= MOST_EXCEPTIONS * found.pairs, f"too many are left out: {_told(found)}"


def _told(found: Pairs) -> dict[str, Any]:
    return {"deals": found.deals, "altered in each": found.altered // found.deals, **found.seen}
