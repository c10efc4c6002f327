"""The garbage collector of a server process: what is new is collected, what survives is frozen."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from diptych.cli.garbage import GarbageCollector


class Node:
    """An object that can refer to itself."""

    me: Node | None = None


def cycle() -> tuple[Node, weakref.ref[Node]]:
    node = Node()
    node.me = node
    return node, weakref.ref(node)


@pytest.fixture
def collector() -> Iterator[GarbageCollector]:
    thresholds = gc.get_threshold()
    try:
        yield GarbageCollector()
    finally:
        gc.freeze()  # as after the collection of tests: later ones do not visit all of it again and again
        gc.set_threshold(*thresholds)


@pytest.mark.slow
def test_old_objects_are_not_visited(collector: GarbageCollector) -> None:
    node, alive = cycle()
    kept: list[list[object]] = [[] for _ in range(20_000)]
    assert collector.tick() < 1
    frozen = gc.get_freeze_count()
    assert frozen > len(kept)
    del node
    gc.collect()
    assert alive() is not None and gc.get_freeze_count() == frozen


@pytest.mark.slow
def test_new_garbage_is_collected(collector: GarbageCollector) -> None:
    node, alive = cycle()
    kept: list[list[object]] = [[] for _ in range(20_000)]
    del node
    collector.tick()
    assert kept and alive() is None


@pytest.mark.slow
def test_everything_is_collected_from_time_to_time(
    collector: GarbageCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, alive = cycle()
    collector._full()
    del node
    collector.tick()
    assert alive() is not None
    later = time.monotonic() + 2 * 3_600
    monkeypatch.setattr(time, "monotonic", lambda: later)
    collector.tick()
    assert alive() is None


@pytest.mark.slow
def test_everything_is_collected_after_cells_were_closed(collector: GarbageCollector) -> None:
    node, alive = cycle()
    collector._full()
    del node
    collector.tick(31)
    assert alive() is not None
    collector.tick(32)
    assert alive() is None
    frozen, alive = cycle()
    collector._full()
    del frozen
    collector.tick(63)
    assert alive() is not None


@pytest.mark.slow
def test_an_idle_process_collects_nothing(collector: GarbageCollector) -> None:
    collector.tick()
    assert collector.tick() == 1.0
