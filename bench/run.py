"""The bench, as one command: the service, the floors and the peers under the same load, in turns.

    python -m bench.run                                   # both stores, all cases, about a quarter of an hour
    python -m bench.run --store sqlite --cases Q1 R1      # a part
    python -m bench.run --only service floor mercurius    # against one peer
    python -m bench.run --short                           # a quick look, noisy
    python -m bench.run --check                           # only hold the answers against each other
    python -m bench.run --growth                          # and the growth curves (`growth.py`)

For each store: fill it (once), start every server, **hold their answers against each other**, warm up, then
load them round by round, each time in another order, so that noise hits all alike. A wrong answer ends the
bench: the speed of wrong answers is no result. Cases that write have servers of their own, on a copy of the
data; what was answered must be there afterwards. A peer that cannot be installed is told of and left out.

The numbers go to `bench/.data/last.json`; those of a whole run also to `docs/benchmarks.md` and its charts (`page.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from bench.cases import CASES, Case, draw, probes, same
from bench.contenders import CONTENDERS, NOT_TO_BE_HAD
from bench.copies import copied, remove_orders
from bench.data import ensure_data
from bench.growth import measure_growth
from bench.guard import main as tell_guard
from bench.home import DATA, open_store
from bench.load import CONNECTIONS, Sample, ensure_wrk, load, warm, write_script
from bench.page import FIGURES, write_page
from bench.planning import main as tell_planning
from bench.pocketbase import ensure_pocketbase, remove_made
from bench.report import Measured, ratios, render, summary
from bench.servers import NO_TOKEN, BenchError, Server, service_token, started
from bench.store import Kind, Store
from bench.walk import cursors
from bench.wording import common, status, worded

STORES: dict[str, tuple[Kind, ...]] = {
    "sqlite": ("sqlite",),
    "postgres": ("postgres",),
    "both": ("sqlite", "postgres"),
}
# A case, or all cases of a name: W1 is W1-graphql and W1-rest.
CHOICES: dict[str, list[str]] = {
    choice: [name for name in CASES if choice in (name, name.partition("-")[0])]
    for name in CASES
    for choice in (name.partition("-")[0], name)
}
# How busy the machine was with other work.
LOAD = round(os.getloadavg()[0], 1)


def processor_time() -> tuple[int, int]:
    """Ticks that the host gave to other machines, and all ticks."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(part) for part in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


BEFORE = processor_time()
CHECKED, CHECKED_SHORT = 50, 5
DRAWN = 2_000
WARM_SECONDS = 1
# V8 compiles while it runs: more time before it counts.
WARM_NODE_SECONDS = 3
# A round of a server that is slow lasts until it has answered about so many.
LEAST_REQUESTS, MOST_SECONDS = 100, 5


@dataclass(frozen=True)
class Plan:
    """What to measure, and for how long."""

    stores: tuple[Kind, ...]
    cases: list[Case]
    servers: list[str]
    rounds: int
    round_seconds: int
    growth: bool = False
    checks_only: bool = False
    checked: int = CHECKED

    @property
    def whole(self) -> bool:
        """Whether all is measured that there is."""
        return len(self.stores) == 2 and len(self.cases) == len(CASES) and not set(CONTENDERS) - set(self.servers)


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None = None) -> Plan:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description="service, floors and peers side by side")
    parser.add_argument("--store", choices=STORES, default="both")
    parser.add_argument("--seconds", type=int, default=1, help="of load in each round (default 1)")
    parser.add_argument("--rounds", type=int, default=4, help="for each case and server (default 4)")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=CHOICES,
        default=list(CASES),
        metavar="CASE",
        help=f"of {', '.join(CHOICES)} (default all)",
    )
    parser.add_argument("--without", nargs="+", choices=CONTENDERS, default=[], metavar="SERVER")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="SERVER")
    parser.add_argument("--short", action="store_true", help="two rounds of one second")
    parser.add_argument("--check", action="store_true", help="only hold the answers against each other")
    parser.add_argument("--growth", action="store_true", help="measure the growth curves too")
    given = parser.parse_args(arguments)
    return Plan(
        stores=STORES[given.store],
        cases=[CASES[name] for name in dict.fromkeys(name for choice in given.cases for name in CHOICES[choice])],
        servers=[name for name in CONTENDERS if name not in given.without and name in given.only],
        rounds=2 if given.short else given.rounds,
        round_seconds=1 if given.short else given.seconds,
        growth=given.growth,
        checks_only=given.check,
        checked=CHECKED_SHORT if given.short else CHECKED,
    )


def missing(plan: Plan) -> dict[str, str]:
    """The servers that cannot run here, and why."""
    found = {name: CONTENDERS[name].missing() for name in plan.servers}
    return NOT_TO_BE_HAD | {name: reason for name, reason in found.items() if reason is not None}


def start_all(plan: Plan, store: Store, stack: ExitStack) -> list[Server]:
    """Every server of the plan that has one of its cases, with the cursors that it needs."""
    token = service_token(store) if "service" in plan.servers else NO_TOKEN
    names = [name for name in plan.servers if any(CONTENDERS[name].has(store.kind, case.name) for case in plan.cases)]
    servers = [stack.enter_context(started(name, store, token)) for name in names]
    for server in servers:
        if server.name == "service":
            for case in plan.cases:
                if case.paged:
                    say(f"{store.kind}: noting the cursors of {case.table}")
                    server.cursors[case.table] = cursors(server, case.table)
    return servers


def known_cursors(servers: list[Server], case: Case) -> dict[str, str] | None:
    """The ids from which a page can start on every server; None if any id will do."""
    for server in servers:
        if case.table in server.cursors:
            return dict(server.cursors[case.table])
    return None


def verify(servers: list[Server], case: Case, checked: int) -> None:
    """Every server must give the same answer, to the corners and to random requests."""
    known = known_cursors(servers, case)
    verified = [server for server in servers if CONTENDERS[server.name].verified]
    for value in [*probes(case, known), *draw(case, checked, known)]:
        first: bytes | None = None
        for server in verified:
            code, told = server.ask(worded(server.name, case, value, server.cursors.get(case.table, {})))
            if code != status(server.name, case):
                raise BenchError(f"{case.name}, {value}: {server.name} answered {code}: {told[:500]!r}")
            answer = common(server.name, case, value, told)
            first = answer if first is None else first
            if not same(case, first, answer):
                unlike = f"{case.name}, {value}: {server.name} answered unlike {verified[0].name}"
                raise BenchError(f"{unlike}\n{verified[0].name}: {first!r}\n{server.name}: {answer!r}")


def measure(plan: Plan, store: Store, servers: list[Server], case: Case) -> dict[str, list[Sample]]:
    """The rounds of a case; the order of the servers turns with each round."""
    drawn = draw(case, DRAWN, known_cursors(servers, case))
    scripts: dict[str, Path] = {}
    for server in servers:
        known = server.cursors.get(case.table, {})
        requests = [worded(server.name, case, value, known) for value in drawn]
        scripts[server.name] = write_script(server, case, requests)
    samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
    seconds: dict[str, int] = {}
    for server in servers:
        node = CONTENDERS[server.name].by == "node"
        rate = warm(server, scripts[server.name], WARM_NODE_SECONDS if node else WARM_SECONDS)
        seconds[server.name] = max(plan.round_seconds, min(MOST_SECONDS, ceil(LEAST_REQUESTS / max(rate, 1))))
    if case.creates:
        for server in servers:
            remove_new_orders(server, store)
    for turn in range(plan.rounds):
        shift = turn % len(servers)
        for server in servers[shift:] + servers[:shift]:
            sample = load(server, scripts[server.name], seconds[server.name], store.pid)
            if case.creates:
                hold_against_orders(server, case, sample.requests, remove_new_orders(server, store))
            samples[server.name].append(sample)
    return samples


def remove_new_orders(server: Server, store: Store) -> int:
    """PocketBase keeps its own."""
    return remove_made() if server.name == "pocketbase" else remove_orders(store)


def hold_against_orders(server: Server, case: Case, answered: int, made: int) -> None:
    """What was answered is there, and no more than what wrk did not wait for."""
    if not answered <= made <= answered + CONNECTIONS:
        raise BenchError(f"{case.name}: {server.name} answered {answered} requests and made {made} orders")


def run_cases(plan: Plan, store: Store) -> Measured:
    """The cases of a plan on one store, by servers that end with them."""
    measured: Measured = {}
    with ExitStack() as stack:
        servers = start_all(plan, store, stack)
        for case in plan.cases:
            its = [server for server in servers if CONTENDERS[server.name].has(store.kind, case.name)]
            if not its:
                continue
            say(f"{store.kind}: {case.name} of {', '.join(server.name for server in its)}")
            verify(its, case, plan.checked)
            if not plan.checks_only:
                measured[case.name] = measure(plan, store, its, case)
    return measured


def run_store(plan: Plan, store: Store) -> Measured:
    """Reads first; then the writes, on a copy."""
    ensure_data(store)
    if store.kind == "sqlite" and "pocketbase" in plan.servers:
        ensure_pocketbase()
    reads = [case for case in plan.cases if not case.creates]
    writes = [case for case in plan.cases if case.creates]
    measured = run_cases(replace(plan, cases=reads), store) if reads else {}
    if writes:
        with copied(store) as copy:
            measured |= run_cases(replace(plan, cases=writes), copy)
    return measured


def machine() -> dict[str, str | int | float]:
    """Where this was measured, without names."""
    stolen, all_of_it = (after - before for before, after in zip(BEFORE, processor_time(), strict=True))
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count() or 0,
        "python": platform.python_version(),
        "connections": CONNECTIONS,
        "date": time.strftime("%Y-%m-%d"),
        "load_before": LOAD,
        "stolen": round(stolen / max(1, all_of_it), 2),
    }


def figures(plan: Plan, results: dict[Kind, Measured], left_out: dict[str, str]) -> dict[str, Any]:
    """The numbers, for programs and for the page."""
    stores = {
        kind: {
            case: {server: asdict(sample) for server, sample in servers.items()}
            for case, servers in summary(measured).items()
        }
        for kind, measured in results.items()
    }
    compared = {kind: [asdict(one) for one in ratios(kind, measured)] for kind, measured in results.items()}
    told = {**machine(), "rounds": plan.rounds, "round_seconds": plan.round_seconds}
    return {**told, "missing": left_out, "stores": stores, "ratios": compared}


def run(plan: Plan) -> None:
    """All stores, one after the other."""
    ensure_wrk()
    left_out = missing(plan)
    for name, reason in left_out.items():
        say(f"left out: {name}: {reason}")
    able = replace(plan, servers=[name for name in plan.servers if name not in left_out])
    results: dict[Kind, Measured] = {}
    for kind in plan.stores:
        with open_store(kind) as store:
            results[kind] = run_store(able, store)
        if plan.checks_only:
            continue
        print(render(kind, results[kind]), flush=True)
        told = figures(plan, results, left_out)
        (DATA / "last.json").write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    if plan.checks_only:
        say("all answers are the same")
        return
    if plan.growth:
        measure_growth()
    if plan.whole:
        FIGURES.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    if plan.whole or plan.growth:
        write_page()
        say("written: docs/benchmarks.md and its charts")
    if "service" in plan.servers:
        tell_planning()
        tell_guard()


def main() -> None:
    """One clear sentence and status 2 if something is wrong."""
    try:
        run(parse())
    except BenchError as error:
        say(f"bench: {error}")
        sys.exit(2)


if __name__ == "__main__":
    main()
