"""The bench, as one command: the service, the floor and the peer under the same load, in turns.

    python -m bench.run                                   # both stores, all cases, about eight minutes
    python -m bench.run --store sqlite --cases Q1 R1      # a part
    python -m bench.run --cases W1                        # the writes alone, in both styles
    python -m bench.run --short                           # a quick look, noisy
    python -m bench.run --without service                 # only what stands here

For each store: fill it (once), start every server, **hold their answers against each other**, warm up, then
load them round by round, each time in another order, so that noise hits all alike. A wrong answer ends the
bench: the speed of wrong answers is no result. Cases that write have servers of their own, on a copy of the
data; what was answered must be there afterwards. The numbers also go to `bench/.data/last.json`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from http.client import METHOD_NOT_ALLOWED
from pathlib import Path

from bench.cases import CASES, VIEWER, Case, Request, draw, probes, request, same
from bench.copies import copied, remove_orders
from bench.data import ensure_data
from bench.guard import main as tell_guard
from bench.home import DATA, open_store
from bench.load import CONNECTIONS, Sample, ensure_wrk, load, warm, write_script
from bench.planning import main as tell_planning
from bench.report import Measured, render, summary
from bench.servers import NAMES, NO_TOKEN, BenchError, Server, service_token, started
from bench.store import Kind, Store
from bench.walk import cursors

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
CHECKED = 50
DRAWN = 2_000
WARM_SECONDS = 1


@dataclass(frozen=True)
class Plan:
    """What to measure, and for how long."""

    stores: tuple[Kind, ...]
    cases: list[Case]
    servers: list[str]
    rounds: int
    round_seconds: int


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None = None) -> Plan:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description="service, floor and peer side by side")
    parser.add_argument("--store", choices=STORES, default="both")
    parser.add_argument("--seconds", type=int, default=10, help="of load for each case and server (default 10)")
    parser.add_argument("--rounds", type=int, default=5, help="into which these are cut (default 5)")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=CHOICES,
        default=list(CASES),
        metavar="CASE",
        help=f"of {', '.join(CHOICES)} (default all)",
    )
    parser.add_argument("--without", nargs="+", choices=NAMES, default=[], metavar="SERVER")
    parser.add_argument("--short", action="store_true", help="three rounds of one second")
    given = parser.parse_args(arguments)
    seconds, rounds = (3, 3) if given.short else (given.seconds, given.rounds)
    return Plan(
        stores=STORES[given.store],
        cases=[CASES[name] for name in dict.fromkeys(name for choice in given.cases for name in CHOICES[choice])],
        servers=[name for name in NAMES if name not in given.without],
        rounds=rounds,
        round_seconds=max(1, seconds // rounds),
    )


def start_all(plan: Plan, store: Store, stack: ExitStack) -> list[Server]:
    """Every server of the plan, with the cursors that it needs."""
    token = service_token(store) if "service" in plan.servers else NO_TOKEN
    servers = [stack.enter_context(started(name, store, token)) for name in plan.servers]
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


def worded(server: Server, case: Case, value: str | None) -> Request:
    """A request in the words of a server."""
    return request(case, value, server.cursors.get(case.table, {}))


def verify(servers: list[Server], case: Case) -> None:
    """Every server must give the same answer, to the corners and to random requests."""
    known = known_cursors(servers, case)
    for value in [*probes(case, known), *draw(case, CHECKED, known)]:
        answers = [server.ask(worded(server, case, value)) for server in servers]
        for server, (status, answer) in zip(servers, answers, strict=True):
            if status != case.status or not same(case, answers[0][1], answer):
                told = f"{case.name}, {value}: {server.name} answered {status}, unlike {servers[0].name}"
                raise BenchError(f"{told}\n{servers[0].name}: {answers[0][1]!r}\n{server.name}: {answer!r}")


def measure(plan: Plan, store: Store, servers: list[Server], case: Case) -> dict[str, list[Sample]]:
    """The rounds of a case; the order of the servers turns with each round."""
    drawn = draw(case, DRAWN, known_cursors(servers, case))
    scripts: dict[str, Path] = {
        server.name: write_script(server, case, [worded(server, case, value) for value in drawn]) for server in servers
    }
    samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
    for server in servers:
        warm(server, scripts[server.name], WARM_SECONDS)
    if case.creates:
        remove_orders(store)
    for turn in range(plan.rounds):
        shift = turn % len(servers)
        for server in servers[shift:] + servers[:shift]:
            sample = load(server, scripts[server.name], plan.round_seconds, store.pid)
            if case.creates:
                hold_against_orders(server, case, sample.requests, remove_orders(store))
            samples[server.name].append(sample)
    return samples


def hold_against_orders(server: Server, case: Case, answered: int, made: int) -> None:
    """What was answered is there, and no more than what wrk did not wait for."""
    if not answered <= made <= answered + CONNECTIONS:
        raise BenchError(f"{case.name}: {server.name} answered {answered} requests and made {made} orders")


def able(servers: list[Server], case: Case) -> list[Server]:
    """The servers that have this case at all."""
    if not case.creates:
        return servers
    return [server for server in servers if server.ask(CASES["W1-rest"].build(VIEWER))[0] != METHOD_NOT_ALLOWED]


def run_cases(plan: Plan, store: Store) -> Measured:
    """All cases of a plan, on servers that are started for them."""
    measured: Measured = {}
    with ExitStack() as stack:
        servers = start_all(plan, store, stack)
        for case in plan.cases:
            here = able(servers, case)
            for server in servers:
                if server not in here:
                    say(f"{store.kind}: {case.name}: left out the {server.name}, which cannot write yet (405)")
            if here:
                verify(here, case)
                say(f"{store.kind}: {case.name}: the answers agree; measuring")
                measured[case.name] = measure(plan, store, here, case)
    return measured


def run_store(plan: Plan, store: Store) -> Measured:
    """All of one store: first what reads, then what writes, on a copy."""
    ensure_data(store)
    reads = [case for case in plan.cases if not case.creates]
    writes = [case for case in plan.cases if case.creates]
    measured: Measured = {}
    if reads:
        measured |= run_cases(replace(plan, cases=reads), store)
    if writes:
        with copied(store) as copy:
            measured |= run_cases(replace(plan, cases=writes), copy)
    return measured


def machine() -> dict[str, str | int]:
    """Where this was measured, without names."""
    return {"machine": platform.machine(), "python": platform.python_version(), "connections": CONNECTIONS}


def write_json(plan: Plan, results: dict[Kind, Measured]) -> None:
    """The numbers, for programs."""
    stores = {
        kind: {
            case: {server: asdict(sample) for server, sample in servers.items()}
            for case, servers in summary(measured).items()
        }
        for kind, measured in results.items()
    }
    told = {**machine(), "rounds": plan.rounds, "round_seconds": plan.round_seconds, "stores": stores}
    (DATA / "last.json").write_text(json.dumps(told, indent=2) + "\n")


def run(plan: Plan) -> None:
    """All stores, one after the other."""
    ensure_wrk()
    results: dict[Kind, Measured] = {}
    for kind in plan.stores:
        with open_store(kind) as store:
            results[kind] = run_store(plan, store)
        print(render(kind, results[kind]), flush=True)
        write_json(plan, results)
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
