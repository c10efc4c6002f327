"""`docs/benchmarks.md`, written from what was measured: `docs/diagrams/benchmark.json` and `growth.json`.

python -m bench.page            # the page and its charts anew, without measuring
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS
from bench.load import Sample
from bench.report import COLUMNS, numbers_of, table
from bench.targets import BY_RATE, TAIL, TWO_WORKERS
from docs.diagrams import draw

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES = DOCS / "diagrams" / "benchmark.json"
GROWTH = DOCS / "diagrams" / "growth.json"
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}

HEAD = """\
# Benchmarks

`make bench` writes this page: the service, two floors and the peers on the same data, under the same load, in one
run. Their answers are compared before anything is measured, and a wrong one ends the run.
[Performance](explanation/performance.md) says why the service is fast; this page says how fast.

| server | what it is |
|---|---|
{servers}

| case | request |
|---|---|
| Q1 | GraphQL: one user |
| Q2 | GraphQL: a user, 10 posts, 5 comments of each, and their authors |
| Q3 | GraphQL: a page of 50 posts with their authors |
| R1 | REST: one user |
| R2 | REST: a page of 50 orders with all fields |
| W1 | an order is created and read back with its customer's name, in either style |

![CPU time of the server for each request, on a logarithmic scale](diagrams/benchmark.svg)
"""

RATIOS = """
## {title}

How good the service is, if the other is 1; in brackets the least and the most of the rounds. More is better:
against a floor 1 is as good as a handler without rules, limits or a parser, against a peer 2 means half of its
cost.

**By CPU time of the server:**

{cpu}

**By requests per second:**

{rate}

{verdict}
"""

GROWN = """
## Growth

What a request costs the service as something grows, on SQLite. The claim is that there is no cliff: no step after
which a request costs more than half as much again, or, where the work itself grows, each unit of it more than twice
as much as before.

![CPU time of the service for each request, over what grows](diagrams/growth.svg)

{curves}
"""

METHOD = """
## How it is measured

- {rounds} rounds of {round_seconds} s for each case and server, after a warm-up, in turns that begin with another
  server each round; every figure is a median. {connections} connections of [wrk](https://github.com/wg/wrk) on the
  same machine ({machine}, {cores} cores, CPython {python}, {date}) ask for random rows of 10,000 users, 100,000
  posts, 500,000 comments and 50,000 orders.
- CPU time is that of the server's process from `/proc`, the database's is that of PostgreSQL's processes; SQLite
  runs inside the server. On a shared machine CPU time is steadier than throughput; this one had a load average of
  {load_before} before the run (0 is a machine of our own), and its host gave {stolen:.0%} of its processors to other
  machines meanwhile, which pollutes caches: larger programs lose more by that than the floors do. Expect other
  figures on yours.
- Every server is one process (the service has one worker), as its own documentation says it is fastest; floors and
  peers have pools of eight connections to PostgreSQL. Only the service checks a token, rules at run time and
  limits; the viewer of the others is a constant.
- Writes wait for the disk, except on PocketBase, which sets `synchronous=NORMAL`. The service and the floors share
  commits on SQLite.
- PostGraphile serves views that hold the rules, and its documents rename what they ask for, so that answers are
  equal. PocketBase has its own copy of the rows and its own paths, hides no field, and is sent no token.
- The constant is the HTTP stack alone: a protocol that writes one kept answer.

## What is missing

{missing}

## All figures
"""


def write_page() -> None:
    """The page and its charts, from what is kept."""
    figures = json.loads(FIGURES.read_text("utf-8"))
    servers = [
        f"| {name} | {CONTENDERS[name].what} |"
        for name in CONTENDERS
        if any(name in found for cases in figures["stores"].values() for found in cases.values())
    ]
    parts = [HEAD.format(servers="\n".join(servers))]
    if "note" in figures:
        parts.append(f"\n**{figures['note']}**\n")
    parts += [_store(figures, kind) for kind in figures["stores"]]
    if GROWTH.exists():
        parts.append(GROWN.format(curves=_growth(json.loads(GROWTH.read_text("utf-8")))))
    missing = "\n".join(f"- **{name}**: {reason}." for name, reason in figures["missing"].items())
    parts.append(METHOD.format(**{**figures, "missing": missing or "Nothing."}))
    parts += [_figures(kind, cases) for kind, cases in figures["stores"].items()]
    (DOCS / "benchmarks.md").write_text("".join(parts), "utf-8")
    draw.main()


def _store(figures: dict[str, Any], kind: str) -> str:
    found = figures["ratios"][kind]
    return RATIOS.format(
        title=STORES[kind],
        cpu=_wide(found, "by_cpu"),
        rate=_wide(found, "by_rate"),
        verdict=_verdict(found),
    )


def _wide(found: list[dict[str, Any]], by: str) -> str:
    """Others down, cases across."""
    cases = list(dict.fromkeys(one["case"] for one in found))
    others = [name for name in CONTENDERS if any(one["other"] == name for one in found)]
    cells = {(one["other"], one["case"]): _cell(one[by]) for one in found}
    lines = [f"| service ÷ | {' | '.join(cases)} |", "|---|" + "---:|" * len(cases)]
    lines += [f"| {other} | {' | '.join(cells.get((other, case), '–') for case in cases)} |" for other in others]
    return "\n".join(lines)


def _cell(value: list[float]) -> str:
    return "{} ({}–{})".format(*(f"{number:.2f}" if number < 10 else f"{number:.0f}" for number in value))


def _verdict(found: list[dict[str, Any]]) -> str:
    asked = [one for one in found if one["asked"] is not None]
    short = [one for one in asked if not one["met"]]
    if not asked:
        return ""
    count = f"{len(asked) - len(short)} of {len(asked)} targets are met."
    if not short:
        return count
    lines = [
        f"- {one['case']} ÷ {one['other']}: {one['by_cpu'][0]:.2f} by CPU"
        + (f", {one['by_rate'][0]:.2f} by rate" if one["other"] in BY_RATE else "")
        + f", {one['asked']:g} is asked"
        for one in short
    ]
    return "\n".join([f"{count} What falls short:", "", *lines])


def _growth(figures: dict[str, Any]) -> str:
    lines = []
    for curve in figures["curves"].values():
        lines.append(f"- {curve['title']}: {_cliffs(curve['cliffs'])}")
    for case, (one, two) in figures.get("workers", {}).items():
        lines.append(
            f"- two workers serve {two / one:.2f} × as many {case} as one ({one:,.0f} → {two:,.0f} requests/s); "
            f"at least {TWO_WORKERS} is asked, with wrk on the same two cores"
        )
    for case, (middle, slowest) in figures.get("half", {}).items():
        lines.append(
            f"- {case} at half load: p50 {middle:.2f} ms, p99 {slowest:.2f} ms, "
            f"{slowest / middle:.1f} × as long; at most {TAIL:g} is asked"
        )
    return "\n".join(lines)


def _cliffs(found: Iterable[str]) -> str:
    return "; ".join(f"**cliff** {one}" for one in found) or "no cliff"


def _figures(kind: str, cases: dict[str, dict[str, dict[str, Any]]]) -> str:
    rows = [numbers_of(case, name, Sample(**sample)) for case, found in cases.items() for name, sample in found.items()]
    return f"\n### {STORES[kind]}: figures\n\n{table([list(COLUMNS), *rows])}\n"


if __name__ == "__main__":
    write_page()
