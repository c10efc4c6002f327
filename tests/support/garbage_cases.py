"""What `test_garbage.py` runs, in a process with few objects: one that runs tests has millions, and visits them all."""

from __future__ import annotations

import gc
import sys
import time
import weakref

from diptych.cli.garbage import GarbageCollector


class Node:
    """An object that can refer to itself."""

    me: Node | None = None


def cycle() -> tuple[Node, weakref.ref[Node]]:
    node = Node()
    node.me = node
    return node, weakref.ref(node)


def old_objects_are_not_visited(collector: GarbageCollector) -> None:
    node, alive = cycle()
    kept: list[list[object]] = [[] for _ in range(20_000)]
    assert collector.tick() < 1
    frozen = gc.get_freeze_count()
    assert frozen > len(kept)
    del node
    gc.collect()
    assert alive() is not None and gc.get_freeze_count() == frozen


def new_garbage_is_collected(collector: GarbageCollector) -> None:
    node, alive = cycle()
    kept: list[list[object]] = [[] for _ in range(20_000)]
    del node
    collector.tick()
    assert kept and alive() is None


def everything_is_collected_from_time_to_time(collector: GarbageCollector) -> None:
    node, alive = cycle()
    collector._full()
    assert gc.get_freeze_count() > 1_000
    del node
    collector.tick()
    assert alive() is not None
    later = time.monotonic() + 2 * 3_600
    time.monotonic = lambda: later
    collector.tick()
    assert alive() is None


def everything_is_collected_after_cells_were_closed(collector: GarbageCollector) -> None:
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


def an_idle_process_collects_nothing(collector: GarbageCollector) -> None:
    collector.tick()
    assert collector.tick() == 1.0


CASES = {
    case.__name__: case
    for case in (
        old_objects_are_not_visited,
        new_garbage_is_collected,
        everything_is_collected_from_time_to_time,
        everything_is_collected_after_cells_were_closed,
        an_idle_process_collects_nothing,
    )
}

if __name__ == "__main__":
    CASES[sys.argv[1]](GarbageCollector())
