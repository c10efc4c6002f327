"""Whoever follows changes is told what a slow and obvious evaluator says, on both stores.

A random sequence of changes is made, by viewers of all kinds and in both styles, while others follow. Every stream
tells what the oracle says of each change when it was made; every log what it says in the end: in pages of any size,
after every single cursor, as a stream that resumes, and as REST tells it. What the feed has stored leads, change by
change, from the first rows to the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from diptych.compile import watch as compiling
from diptych.compile.fragment import Fragment
from diptych.compile.read import Reads
from diptych.demo.model import model as default
from diptych.engine import watch as watching
from diptych.live.topics import Topics
from diptych.model.rules.expr import TRUE
from diptych.policy import access
from diptych.policy.access import Watched, narrow_watch
from tests.proof.live.proving import FeedProof
from tests.support import edge_cases
from tests.support.effort import LONG, long_where, scaled
from tests.support.running import NewDatabase

MEMORY = "sqlite:///:memory:"
MODELS = {"default": default, "edge_cases": edge_cases.model}
SEQUENCES = scaled(120, 4)


@pytest.fixture(scope="module", params=MODELS)
def proof(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[FeedProof]:
    with asyncio.Runner() as runner:
        found = FeedProof(MODELS[request.param], new_database(), runner)
        yield found
        found.close()


@pytest.mark.timeout(scaled(1_200))
@long_where(proof="default", new_database="sqlite")
@long_where(proof="edge_cases", new_database="postgres")
def test_streams_and_logs_and_the_oracle_agree_about_changes(proof: FeedProof) -> None:
    proof.prove(range(SEQUENCES))
    print(dict(proof.seen))
    assert proof.seen["compared"] > 20 * SEQUENCES, "too little was told to prove anything"
    assert all(proof.seen[kind] for kind in ("CREATED", "UPDATED", "DELETED", "LEFT"))


# what must fail


def _narrowed(change: Callable[[Watched], Watched]) -> Any:
    return lambda watch, view: change(narrow_watch(watch, view))


def _only_now(self: Any, rule: Any, row: Any) -> Any:
    return self.condition(rule, getattr(row, "now", None) or row)


def _only_after(self: Any, seen: Any, gone: Any, row: Any, side: str) -> Any:
    return _SEES(self, seen, gone, row if side == "new" else self._row(row.resource, "new"), side)


def _again(self: Topics, group: Any) -> None:
    """The last change is told again with the next."""
    _WAKE(self, group)
    group.at -= 1


_SEES, _WAKE = compiling.WatchStatements._sees, Topics.wake
BROKEN: Mapping[str, tuple[Any, str, Any]] = {
    "rows that cannot be read now are told": (
        watching,
        "narrow_watch",
        _narrowed(lambda found: replace(found, readable=TRUE)),
    ),
    "rows that could not be seen are told of": (
        watching,
        "narrow_watch",
        _narrowed(lambda found: replace(found, seen=found.watch.where, deleted=found.watch.where)),
    ),
    "rows are told of that nobody can judge any more": (
        access,
        "certain",
        lambda rule, resource, resources, *, there: rule,
    ),
    "fields show that are hidden now": (compiling.WatchStatements, "shows", Reads.condition),
    "fields show that were hidden": (compiling.WatchStatements, "shows", _only_now),
    "the row before is not looked at": (compiling.WatchStatements, "_sees", _only_after),
    "a row that leaves is deleted": (compiling, "_KIND", compiling._KIND.replace("LEFT", "DELETED")),
    "kinds are not looked at": (compiling.WatchStatements, "_kinds", lambda self, watch: Fragment("")),
    "a stream tells changes again": (Topics, "wake", _again),
}
KEPT = {
    "rows that cannot be read now are told": 9,
    "fields show that were hidden": 10,
    "the row before is not looked at": 0,
}
"""Those that are tried every time, each from a sequence on that shows it; the others only where more is proved than usual."""


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", BROKEN if LONG else KEPT)
def test_it_fails_where(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[how])
    with asyncio.Runner() as runner:
        found = FeedProof(edge_cases.model, MEMORY, runner)
        with pytest.raises((AssertionError, ValueError)):
            found.prove(range(0 if LONG else KEPT[how], 200))
        found.close()
