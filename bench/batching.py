"""Group commit on SQLite: what a write costs by each writer of the floor, and how many share a commit.

    python -m bench.batching                    # 32 connections, POST /orders, in turns

On a machine that does nothing else: what runs beside it turns the result around.
"""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from statistics import median

from bench.cases import CASES, Request, draw
from bench.copies import copied, remove_orders
from bench.data import ensure_data
from bench.home import open_store
from bench.load import Sample, ensure_wrk, load, warm, write_script
from bench.run import DRAWN, WARM_SECONDS
from bench.servers import NO_TOKEN, Server, started
from bench.store import Store
from bench.writer import WRITERS

CASE = CASES["W1-rest"]


def batches(server: Server) -> dict[int, int]:
    """How many transactions held how many writes, so far."""
    _, answer = server.ask(Request("GET", "/batches"))
    return {int(size): count for size, count in json.loads(answer).items()}


def sizes(before: dict[int, int], after: dict[int, int]) -> str:
    """The mean, some percentiles and the greatest of the batches that came between."""
    each = sorted(size for size, count in after.items() for _ in range(count - before.get(size, 0)))
    tenth, half, most = (each[int(share * (len(each) - 1))] for share in (0.1, 0.5, 0.9))
    return f"mean {sum(each) / len(each):.1f}, p10 {tenth}, p50 {half}, p90 {most}, greatest {each[-1]}"


def compare(store: Store, rounds: int, seconds: int) -> None:
    """Loads a floor with each writer, in turns, and prints a line for each."""
    with ExitStack() as stack:
        floors = {name: stack.enter_context(started("floor", store, NO_TOKEN, ["--writer", name])) for name in WRITERS}
        samples: dict[str, list[Sample]] = {name: [] for name in floors}
        script = write_script(next(iter(floors.values())), CASE, [CASE.build(value) for value in draw(CASE, DRAWN)])
        for floor in floors.values():
            warm(floor, script, WARM_SECONDS)
        remove_orders(store)
        before = {name: batches(floor) for name, floor in floors.items()}
        for turn in range(rounds):
            order = list(floors)[:: 1 if turn % 2 else -1]
            for name in order:
                samples[name].append(load(floors[name], script, seconds, None))
                remove_orders(store)
        for name, floor in floors.items():
            cpu, rate, p99 = (median(getattr(one, of) for one in samples[name]) for of in ("cpu", "rate", "p99"))
            print(f"{name:<9} {cpu:6.1f} µs of CPU, {rate:6,.0f} requests/s, p99 {p99:5.1f} ms")
            print(f"{'':<9} writes per commit: {sizes(before[name], batches(floor))}")


def main() -> None:
    """Prints what each writer costs."""
    parser = argparse.ArgumentParser(prog="python -m bench.batching", description="the writers of the floor")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=2, help="of each round (default 2)")
    given = parser.parse_args()
    ensure_wrk()
    with open_store("sqlite") as store:
        ensure_data(store)
        with copied(store) as copy:
            compare(copy, given.rounds, given.seconds)


if __name__ == "__main__":
    main()
