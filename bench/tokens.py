"""What a token costs that was verified before: the same requests in turns, with it, without it, and with the same bytes
in a header that means nothing, which any server must read too.

    python -m bench.tokens                     # from SQLite, eight rounds of two seconds

All ask for the name of a user, which anyone may see, so that the statement is the same.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import median

from bench.cases import Case, Request, draw
from bench.data import ensure_data
from bench.home import open_store
from bench.load import ensure_wrk, load, warm, write_script
from bench.servers import BenchError, service_token, started

ROUNDS = 8
ROUND_SECONDS = 2
DRAWN = 2_000


def _name(value: str | None) -> Request:
    return Request("GET", f"/users/{value}?fields=name")


CASE = Case("name", "users", False, _name)


def main() -> None:
    """Measure, and tell."""
    ensure_wrk()
    with open_store("sqlite") as store:
        ensure_data(store)
        with started("service", store, service_token(store)) as server:
            ways = {
                "token": replace(server, name="token"),
                "bytes": replace(server, name="bytes", header="X-Nothing"),
                "nothing": replace(server, name="nothing", token=""),
            }
            requests = [_name(value) for value in draw(CASE, DRAWN, None)]
            scripts = {name: write_script(way, CASE, requests) for name, way in ways.items()}
            for name, way in ways.items():
                warm(way, scripts[name], 1)
            costs: dict[str, list[float]] = {name: [] for name in ways}
            for turn in range(ROUNDS):
                for name in sorted(ways, reverse=bool(turn % 2)):
                    costs[name].append(load(ways[name], scripts[name], ROUND_SECONDS, None).cpu)
    print("  ".join(f"with {name} {median(each):.1f} µs" for name, each in costs.items()))
    for one, other in (("token", "nothing"), ("token", "bytes")):
        found = [more - less for more, less in zip(costs[one], costs[other], strict=True)]
        print(f"{one} - {other}: {median(found):+.1f} µs (of {ROUNDS} rounds {min(found):+.1f} to {max(found):+.1f})")


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(str(error))
