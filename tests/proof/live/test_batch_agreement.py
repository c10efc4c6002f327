"""Many viewers whose changes are evaluated by one statement are shown what each of them alone is shown, on both stores.

The oracle is the statement of one group. Watches are drawn at random, each for many viewers and values of one plan: other
ids, ids of no one, values of all types and none. All changes of a random sequence are compared, with their bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, cast

import pytest

from diptych.compile import watch_batch as compiling
from diptych.compile.fragment import Fragment
from diptych.compile.watch import feed_range
from diptych.demo.model import model as default
from diptych.engine.watch import BoundWatch, Change
from diptych.engine.watch_batch import changes_together
from diptych.errors import Refusal
from diptych.model.declare.roles import Viewer
from diptych.model.scalars import Scalar
from tests.proof.live.proving import FeedProof
from tests.support import edge_cases
from tests.support.asks import DrawnWatch
from tests.support.edge_cases import pool
from tests.support.effort import LONG, long_where, scaled
from tests.support.following import ready_for, settle
from tests.support.oracle import wire
from tests.support.random_writes import Wishes
from tests.support.running import NewDatabase

MODELS = {"default": default, "edge_cases": edge_cases.model}
SEQUENCES = scaled(60, 3)
CHANGES, WATCHES, PEERS = 24, 12, 9
NOBODY = ("00000000-0000-4000-8000-000000000000", "1", "-1", "9" * 30, "x'; --a", "{0", "a\0b", "\u00e9\\0")


class BatchProof(FeedProof):
    """Compares batches with groups alone."""

    async def compare(self, random: Random) -> None:
        await self.run.reset()
        await settle(self.live)
        begin = end = self.live.tail.head.position
        state = {name: [dict(row) for row in table] for name, table in self.first.items()}
        hot = random.choice([name for name, table in state.items() if table])
        wishes = Wishes(self.model, random)
        for _ in range(CHANGES):
            state, _, end = await self._step(wishes, random, state, end, hot)
        for _ in range(WATCHES):
            for watches in (await self._batches(random, state, hot)).values():
                if len(watches) > 1:
                    await self._same(watches, begin, end, random.choice((1, 3, 200)))

    async def _batches(self, random: Random, state: Any, hot: str) -> dict[Any, list[BoundWatch]]:
        """Watches of one document by their batch, for several viewers and values."""
        drawn, viewer, _ = self._drawn(random, state, hot)
        found: dict[Any, list[BoundWatch]] = {}
        ids = [row["id"] for table in state.values() for row in table[:3]]
        for number in range(PEERS):
            other = viewer if number == 0 else self._peer(random, viewer, ids)
            try:
                watch = await self._bound(drawn if number < 2 else _varied(random, drawn), other)
            except Refusal:
                continue
            self.seen["alone" if watch.batch_key is None else "together"] += 1
            if watch.batch_key is not None:
                found.setdefault(watch.batch_key, []).append(watch)
        return found

    def _peer(self, random: Random, viewer: Viewer, ids: Sequence[Any]) -> Viewer:
        if not viewer.signed_in or random.random() < 0.2:
            return viewer
        who = str(random.choice(ids)) if random.random() < 0.8 else random.choice(NOBODY)
        return self.model.viewer(viewer.roles - {"signed_in"}, who, viewer.scopes)

    async def _bound(self, drawn: DrawnWatch, viewer: Viewer) -> BoundWatch:
        caller = await self._caller(viewer)
        ready, inputs = await ready_for(self.handler, caller, *self._printed(drawn, viewer))
        return self.live.watch_engine.follow(ready, inputs, caller.viewer)

    async def _same(self, watches: Sequence[BoundWatch], begin: int, end: int, most: int) -> None:
        at = begin
        while at < end:
            together = await changes_together(watches, at, end, most)
            assert len({batch.upto for batch in together}) == 1 and together[0].upto > at
            upto = together[0].upto
            for watch, batch in zip(watches, together, strict=True):
                alone = await watch.changes(at, upto, 10_000)
                assert batch.oldest == alone.oldest
                assert list(map(_told, batch.changes)) == list(map(_told, alone.changes)), (
                    watch.prepared.planned.plan.sql
                )
                self.seen["compared"] += len(alone.changes)
                self.seen.update(f"{change.kind.decode()}" for change in alone.changes)
            if len({tuple(map(_told, batch.changes)) for batch in together}) > 1:
                self.seen["differ"] += 1
            at = upto


def _told(change: Change) -> Any:
    return change.feed_position, change.pieces, change.kind, change.row_id, change.at


def _varied(random: Random, drawn: DrawnWatch) -> DrawnWatch:
    """The same with other values."""
    values = list(drawn.values)
    for index, slot in enumerate(drawn.slots):
        several = _several(slot.scalar)
        if several and random.random() < 0.5:
            values[index] = random.choices(several, k=random.randrange(4)) if slot.many else random.choice(several)
    return DrawnWatch(drawn.label, drawn.watch, drawn.slots, tuple(values), drawn.rest)


def _several(scalar: Scalar) -> list[Any]:
    """Values of a type as JSON has them; none of cursors and sizes."""
    try:
        return [wire(scalar, value) for value in pool(scalar)]
    except KeyError:
        return []


@pytest.fixture(scope="module", params=MODELS)
def proof(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[BatchProof]:
    with asyncio.Runner() as runner:
        found = BatchProof(MODELS[request.param], new_database(), runner)
        yield found
        found.close()


def prove(proof: BatchProof, seeds: range) -> None:
    for seed in seeds:
        try:
            proof.runner.run(proof.compare(Random(seed)))
        except AssertionError as error:
            raise AssertionError(f"in the sequence {seed}: {error}") from error


@pytest.mark.timeout(scaled(1_200))
@long_where(proof="default", new_database="sqlite")
@long_where(proof="edge_cases", new_database="postgres")
def test_a_batch_shows_to_each_group_what_it_alone_is_shown(proof: BatchProof) -> None:
    prove(proof, range(SEQUENCES))
    print(dict(proof.seen))
    assert proof.seen["compared"] > 100 * SEQUENCES, "too little was compared to prove anything"
    assert proof.seen["differ"] > SEQUENCES, "too few batches have viewers who see different things"
    kinds = ("CREATED", "UPDATED", "DELETED", "LEFT") if LONG or proof.model is default else ("CREATED", "UPDATED")
    assert all(proof.seen[f'"{kind}"'] for kind in kinds)


# what must fail


def _all_as_the_first(of: Sequence[int], groups: Sequence[Sequence[Any]]) -> Any:
    return compiling._rows(of, [groups[0] for _ in groups])


def _each_as_its_neighbour(of: Sequence[int], groups: Sequence[Sequence[Any]]) -> Any:
    return compiling._rows(of, [*groups[1:], groups[0]])


BROKEN: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "all groups have the values of the first": lambda patch: patch.setitem(
        cast("dict[str, Any]", compiling._FORMS), "rows", _all_as_the_first
    ),
    "each group has the values of another": lambda patch: patch.setitem(
        cast("dict[str, Any]", compiling._FORMS), "rows", _each_as_its_neighbour
    ),
    "values that differ are taken for shared": lambda patch: patch.setattr(
        compiling, "substitute", lambda fragment, by: fragment
    ),
    "changes are read from the beginning": lambda patch: patch.setattr(
        compiling, "feed_range", lambda resource, after, upto: feed_range(resource, Fragment("0"), upto)
    ),
}


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", BROKEN)
def test_it_fails_where(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[how](monkeypatch)
    with asyncio.Runner() as runner:
        found = BatchProof(default, "sqlite:///:memory:", runner)
        with pytest.raises((AssertionError, KeyError)):
            prove(found, range(20))
        found.close()
