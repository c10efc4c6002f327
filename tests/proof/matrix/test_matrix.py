"""Who may see and do what: every role × resource × field × channel, in both styles, beside an oracle.

`pytest tests/proof/matrix -s` prints how many cells each channel has.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest

from tests.proof.matrix.matrix import ACTION, CHANNELS, MODELS, ROLES, cells
from tests.proof.matrix.planted import marks
from tests.proof.matrix.stage import Stage
from tests.support.effort import LONG
from tests.support.running import NewDatabase, Postgres

LEAST = 1_500
ALL = (*CHANNELS, ACTION)
SLICE = ("select", "filter", "sort", "cursor", "count", "patch", "reference", "log", "stream", "history", ACTION)
"""The channels that are tried on PostgreSQL too, where other tests prove that both stores answer alike."""
STEPS = {"default": 5, "edge_cases": 17, "house": 6}
"""Of how many cells the short form tries one, in each model: planted leaks, and tests of each channel, are elsewhere too."""


@pytest.fixture(scope="module")
def stages(new_sqlite: NewDatabase) -> Iterator[dict[str, Stage]]:
    """Every model, on SQLite."""
    with asyncio.Runner() as runner:
        found = {name: Stage(address, new_sqlite(), runner) for name, address in MODELS.items()}
        yield found
        for stage in found.values():
            stage.close()


@pytest.mark.parametrize("channel", ALL)
@pytest.mark.parametrize(("model", "role"), [(model, role) for model, roles in ROLES.items() for role in roles])
def test_a_role_sees_and_does_what_the_rules_say_and_no_more(
    stages: dict[str, Stage], model: str, role: str, channel: str
) -> None:
    # the first, sixth … or the second, seventh …: each member is tried by some roles in some channels
    step = 1 if LONG else STEPS[model]
    check(stages[model], role, channel, first=(ROLES[model].index(role) + ALL.index(channel)) % step, step=step)


def check(stage: Stage, role: str, channel: str, *, first: int = 0, step: int = 1) -> None:
    """Every cell of a role in one channel, or some of them; the first that fails is named."""
    for cell in islice(cells(stage, role, channel), first, None, step):
        try:
            cell.check()
        except AssertionError as error:
            raise AssertionError(f"{role}, {channel}, {cell.name}: {error}") from error


def test_the_matrix_has_all_roles_and_enough_cells(stages: dict[str, Stage]) -> None:
    assert {model: tuple(stage.eyes) for model, stage in stages.items()} == ROLES
    found = Counter(
        {
            (model, channel): sum(1 for role in ROLES[model] for _ in cells(stage, role, channel))
            for model, stage in stages.items()
            for channel in ALL
        }
    )
    print(f"\n{'':26}", *(f"{model:>8}" for model in MODELS), "     all")
    for channel in ALL:
        counts = [found[model, channel] for model in MODELS]
        print(f"{channel:26}", *(f"{count:8}" for count in (*counts, sum(counts))))
        assert sum(counts) > 0
    print(f"{'all':26}", f"{found.total():35}")
    assert found.total() >= LEAST


@pytest.mark.parametrize("model", MODELS)
def test_there_is_something_to_hide_and_something_to_show(stages: dict[str, Stage], model: str) -> None:
    stage = stages[model]
    eyes = stage.eyes.values()
    assert {eye.exists(member) for eye in eyes for member in stage.members} == {True, False, None}
    assert all(eye.secrets and eye.unspoken for eye in (stage.eyes["anonymous"], stage.eyes["signed_in"]))
    assert len(marks(json.dumps(stage.data, default=str))) > 50


@pytest.mark.parametrize("role", ["anonymous", "signed_in"])
def test_a_slice_of_it_holds_on_postgresql(postgres: Postgres, role: str) -> None:
    with asyncio.Runner() as runner:
        stage = Stage(MODELS["house"], postgres.create(), runner)
        for channel in SLICE:
            check(stage, role, channel)
        stage.close()
