"""Growth curves: what a request costs the service as something grows, to see that there is no cliff.

    python -m bench.growth                  # all curves, about four minutes, and `docs/benchmarks.md` anew
    python -m bench.growth --rows 7         # rows up to 10^7 (default 10^6)
    python -m bench.growth --curves rows depth

| curve       | what grows                                            | request                                     |
|-------------|-------------------------------------------------------|---------------------------------------------|
| rows        | the database, from 10^3 rows                          | R1, and Q2: a user, 10 posts, 5 comments    |
| depth       | levels of relations, one row each, up to the limit    | user → post → author → post → …             |
| page        | the page, up to the limit                             | GET /posts                                  |
| connections | open connections that all ask                         | Q1                                          |
| documents   | documents in use, none like the other                 | Q1 with another alias                       |

Besides: what two workers serve if one serves 1, and how long the slowest of a hundred waits at half load, if half of
them wait 1. All on SQLite; CPU time is the median of rounds that are interleaved over a curve. A cliff is a step after
which a request costs more than half as much again, or, where the work itself grows, each further unit of it more than
twice as much as any before.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from bench.cases import CASES, Request
from bench.growth_data import draw_users, ensure_grown
from bench.load import CONNECTIONS, WAIT, Sample, ensure_wrk, load, warm, write_requests
from bench.page import GROWTH, write_page
from bench.servers import BenchError, Server, service_token, started
from bench.store import Store
from bench.targets import TAIL, TWO_WORKERS

SIZE = 100_000
DRAWN = 1_000
ROUNDS = 3
SMALLEST, LARGEST = 3, 6
STEP, SLOPE = 1.5, 2.0
DEPTHS = (1, 2, 3, 4, 6, 8, 10)
PAGES = (1, 2, 5, 10, 20, 50, 100)
CLIENTS = (1, 4, 16, 64, 256, 1_000)
DOCUMENTS = (1, 10, 100, 1_000, 10_000)
# A server that has to be asked much of for a request, so that wrk takes little of the two cores.
BY_WORKERS = ("Q2",)
AT_HALF_LOAD = ("Q1", "Q2", "R1")


@dataclass(frozen=True)
class Point:
    """One load of a curve: how much of what grows, on which server, and how many connections ask."""

    x: int
    server: Server
    script: Path
    connections: int = CONNECTIONS


@dataclass
class Curve:
    """What was measured: µs of CPU of the server for each x, by series. `work` says that the work grows with x."""

    name: str
    title: str
    xs: list[int]
    work: bool = False
    series: dict[str, list[float]] = field(default_factory=dict)
    cliffs: list[str] = field(default_factory=list)


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def service(store: Store, workers: int = 1, *settings: str) -> Iterator[Server]:
    """The service on a store."""
    with started("service", store, service_token(store), ["--workers", str(workers), *settings]) as server:
        yield server


def script_of(server: Server, name: str, requests: Sequence[Request], more: str = "") -> Path:
    """The script of some requests, of which the first must be answered well."""
    code, told = server.ask(requests[0])
    if code != 200 or b'"errors"' in told:
        raise BenchError(f"{name}: {code}: {told[:300]!r}")
    return write_requests(server, f"growth-{name}", requests, more)


def along(points: Sequence[Point]) -> list[float]:
    """CPU of each point, the median of interleaved rounds."""
    for point in points:
        warm(point.server, point.script, 1, point.connections)
    samples: list[list[Sample]] = [[] for _ in points]
    for turn in range(ROUNDS):
        numbered = list(enumerate(points))
        for index, point in numbered[:: 1 if turn % 2 else -1]:
            samples[index].append(load(point.server, point.script, 1, None, point.connections))
    return [median(sample.cpu for sample in each) for each in samples]


def cliffs(curve: Curve) -> list[str]:
    """Where a series steps up more than it may."""
    found = []
    for name, costs in curve.series.items():
        slopes = [
            (after - before) / (right - left)
            for before, after, left, right in zip(costs, costs[1:], curve.xs, curve.xs[1:], strict=False)
        ]
        for index in range(1, len(costs)):
            step = costs[index] > STEP * costs[index - 1]
            if curve.work:
                earlier = [slope for slope in slopes[: index - 1] if slope > 0]
                step = bool(earlier) and step and slopes[index - 1] > SLOPE * max(earlier)
            if step:
                grown = f"{costs[index - 1]:.0f} → {costs[index]:.0f} µs"
                found.append(f"{name}, {curve.xs[index - 1]:,} → {curve.xs[index]:,}: {grown}")
    return found


def rows_curve(largest: int) -> Curve:
    """Over the size of the database."""
    sizes = [10**power for power in range(SMALLEST, largest + 1)]
    curve = Curve("rows", "rows in the database", sizes)
    with ExitStack() as stack:
        servers = {}
        for size in sizes:
            say(f"rows: filling {size:,}")
            servers[size] = stack.enter_context(service(ensure_grown(size)))
        for name in ("R1", "Q2"):
            points = []
            for size, server in servers.items():
                requests = [CASES[name].build(user) for user in draw_users(size, DRAWN)]
                points.append(Point(size, server, script_of(server, f"rows-{name}-{size}", requests)))
            curve.series[name] = along(points)
    return curve


def chain(depth: int) -> str:
    """user → posts → author → posts …, so many levels, one row each."""
    inner = "name" if depth % 2 else "title"
    for level in range(depth, 1, -1):
        link = "author" if level % 2 else "posts(first: 1)"
        inner = f"{'title' if level % 2 else 'name'} {link} {{ {inner} }}"
    return f"query($id: ID!){{ user(id: $id) {{ {inner} }} }}"


def graphql(document: str, user: str) -> Request:
    """A request with the id of a user."""
    return Request("POST", "/graphql", json.dumps({"query": document, "variables": {"id": user}}))


def depth_curve() -> Curve:
    """Over nesting."""
    curve = Curve("depth", "levels of relations", list(DEPTHS), work=True)
    with service(ensure_grown(SIZE)) as server:
        users = draw_users(SIZE, DRAWN)
        scripts = {
            depth: script_of(server, f"depth-{depth}", [graphql(chain(depth), user) for user in users])
            for depth in DEPTHS
        }
        curve.series["chain"] = along([Point(depth, server, script) for depth, script in scripts.items()])
    return curve


def page_curve() -> Curve:
    """Over the size of a page."""
    curve = Curve("page", "rows on a page", list(PAGES), work=True)
    with service(ensure_grown(SIZE)) as server:
        scripts = {size: script_of(server, f"page-{size}", [Request("GET", f"/posts?first={size}")]) for size in PAGES}
        curve.series["GET /posts"] = along([Point(size, server, script) for size, script in scripts.items()])
    return curve


def connections_curve() -> Curve:
    """Over open connections."""
    curve = Curve("connections", "connections", list(CLIENTS))
    with service(ensure_grown(SIZE)) as server:
        script = script_of(server, "connections", [CASES["Q1"].build(user) for user in draw_users(SIZE, DRAWN)])
        curve.series["Q1"] = along([Point(clients, server, script, clients) for clients in CLIENTS])
    return curve


def documents_curve() -> Curve:
    """Over documents in use at the same time, each seen before; a server for each point, since each fills a cache.

    More than the cache holds are new all the time, which one caller may not send for long: here it may.
    """
    curve = Curve("documents", "documents in use", list(DOCUMENTS))
    store = ensure_grown(SIZE)
    (user,) = draw_users(SIZE, 1)
    with ExitStack() as stack:
        points = []
        for count in DOCUMENTS:
            server = stack.enter_context(service(store, 1, "--planning-share", "0"))
            documents = (f"query($id: ID!){{ user(id: $id) {{ id of{turn}: name }} }}" for turn in range(count))
            requests = [graphql(document, user) for document in documents]
            for _ in range(2):
                ask_all(server, requests)
            points.append(Point(count, server, script_of(server, f"documents-{count}", requests)))
        curve.series["Q1"] = along(points)
    return curve


def ask_all(server: Server, requests: Sequence[Request]) -> None:
    """Every request once, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    for request in requests:
        connection.request(request.method, request.path, request.body, server.headers(request))
        connection.getresponse().read()
    connection.close()


def two_workers() -> dict[str, tuple[float, float]]:
    """Requests/s of one worker and of two."""
    store = ensure_grown(SIZE)
    found = {}
    for name in BY_WORKERS:
        requests = [CASES[name].build(user) for user in draw_users(SIZE, DRAWN)]
        rates: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for workers, samples in rates.items():
                with service(store, workers) as server:
                    script = script_of(server, f"workers-{name}", requests)
                    warm(server, script, 1)
                    samples.append(load(server, script, 2, None).rate)
        found[name] = median(rates[1]), median(rates[2])
    return found


def half_load() -> dict[str, tuple[float, float]]:
    """p50 and p99 in milliseconds at half of the rate that the service can serve."""
    found = {}
    with service(ensure_grown(SIZE)) as server:
        for name in AT_HALF_LOAD:
            requests = [CASES[name].build(user) for user in draw_users(SIZE, DRAWN)]
            script = script_of(server, f"full-{name}", requests)
            warm(server, script, 1)
            most = median(load(server, script, 1, None).rate for _ in range(ROUNDS))
            wait = CONNECTIONS / (most / 2) * 1e3
            slow = script_of(server, f"half-{name}", requests, WAIT % wait)
            samples = [load(server, slow, 2, None) for _ in range(ROUNDS)]
            found[name] = median(sample.p50 for sample in samples), median(sample.p99 for sample in samples)
    return found


CURVES: dict[str, Callable[[int], Curve]] = {
    "rows": rows_curve,
    "depth": lambda _: depth_curve(),
    "page": lambda _: page_curve(),
    "connections": lambda _: connections_curve(),
    "documents": lambda _: documents_curve(),
}


def measure_growth(names: Sequence[str] = (*CURVES, "workers", "half"), largest: int = LARGEST) -> None:
    """Measures, prints, and keeps what was measured beside the charts; what was not asked for stays as it was."""
    told = json.loads(GROWTH.read_text("utf-8")) if GROWTH.exists() else {"curves": {}}
    for name in names:
        say(f"growth: {name}")
        if name in CURVES:
            curve = CURVES[name](largest)
            curve.cliffs = cliffs(curve)
            told["curves"][name] = asdict(curve)
            for series, costs in curve.series.items():
                cells = "  ".join(f"{x:,}: {cost:.0f}" for x, cost in zip(curve.xs, costs, strict=True))
                print(f"{curve.title}, {series}, µs of CPU: {cells}", flush=True)
            print(f"cliffs: {'; '.join(curve.cliffs) or 'none'}", flush=True)
        elif name == "workers":
            told["workers"] = two_workers()
            for case, (one, two) in told["workers"].items():
                verdict = "met" if two / one >= TWO_WORKERS else "not met"
                print(f"{case}: two workers serve {two / one:.2f} × one; ≥ {TWO_WORKERS} is {verdict}", flush=True)
        else:
            told["half"] = half_load()
            for case, (middle, slowest) in told["half"].items():
                verdict = "met" if slowest <= TAIL * middle else "not met"
                ratio = f"{slowest / middle:.1f} × p50 ({middle:.2f} ms)"
                print(f"{case}: p99 at half load is {ratio}; ≤ {TAIL:g} is {verdict}", flush=True)
        GROWTH.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def main() -> None:
    """One clear sentence and status 2 if something is wrong."""
    every = [*CURVES, "workers", "half"]
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description="growth curves of the service")
    parser.add_argument("--curves", nargs="+", choices=every, default=every, metavar="CURVE", help=", ".join(every))
    parser.add_argument("--rows", type=int, default=LARGEST, help="largest database, as a power of ten (default 6)")
    given = parser.parse_args()
    try:
        ensure_wrk()
        measure_growth(given.curves, given.rows)
        write_page()
    except BenchError as error:
        say(f"bench: {error}")
        sys.exit(2)


if __name__ == "__main__":
    main()
