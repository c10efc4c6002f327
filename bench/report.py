"""What was measured, as tables: one of numbers and one of ratios for each store.

Every number is the median of the rounds. A ratio is read "how good is the one, if the other is 1": by CPU it
is the other's µs per request ÷ the one's, by rate the one's requests/s ÷ the other's. So 1.00 against the
floor is perfection, and more than 1 against the peer is a gain. CPU is the steadier on a shared machine.
What is asked of a ratio stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.load import Sample
from bench.store import Kind

# case → server → rounds
Measured = dict[str, dict[str, list[Sample]]]
Cells = list[list[str]]

PAIRS = (("service", "floor"), ("service", "peer"), ("peer", "floor"))
# (what kind of case, store) → what a ratio should be at least
ASKED: dict[tuple[str, Kind], dict[tuple[str, str], float]] = {
    ("W1", "sqlite"): {("service", "floor"): 0.75, ("service", "peer"): 12},
    ("W1", "postgres"): {("service", "floor"): 0.8, ("service", "peer"): 12},
}
COLUMNS = ("case", "server", "requests/s", "p50 ms", "p99 ms", "server µs", "postgres µs")


def middle(samples: Sequence[Sample]) -> Sample:
    """The median of each number."""
    postgres = [sample.postgres_cpu for sample in samples if sample.postgres_cpu is not None]
    return Sample(
        requests=sum(sample.requests for sample in samples),
        rate=median(sample.rate for sample in samples),
        p50=median(sample.p50 for sample in samples),
        p99=median(sample.p99 for sample in samples),
        cpu=median(sample.cpu for sample in samples),
        postgres_cpu=median(postgres) if postgres else None,
        size=median(sample.size for sample in samples),
    )


def summary(measured: Measured) -> dict[str, dict[str, Sample]]:
    """One sample per case and server."""
    return {
        case: {server: middle(samples) for server, samples in servers.items()} for case, servers in measured.items()
    }


def ratio(servers: dict[str, Sample], of: str, to: str) -> tuple[float, float] | None:
    """How good `of` is if `to` is 1: by CPU, by rate."""
    if of not in servers or to not in servers:
        return None
    mine, other = servers[of], servers[to]
    return other.cpu / mine.cpu, mine.rate / other.rate


def render(kind: Kind, measured: Measured) -> str:
    """Both tables of a store."""
    results = summary(measured)
    columns = list(COLUMNS if kind == "postgres" else COLUMNS[:-1])
    numbers = [_numbers(case, *item)[: len(columns)] for case in results for item in results[case].items()]
    ratios = [row for case in results for row in _ratios(case, kind, results[case])]
    parts = [f"## {kind}", _table([columns, *numbers])]
    if ratios:
        parts.append(_table([["case", "ratio", "by CPU", "by rate", "asked"], *ratios]))
    return "\n\n".join(parts) + "\n"


def _numbers(case: str, server: str, sample: Sample) -> list[str]:
    times = f"{sample.rate:,.0f}", f"{sample.p50:.2f}", f"{sample.p99:.2f}", f"{sample.cpu:.1f}"
    return [case, server, *times, "" if sample.postgres_cpu is None else f"{sample.postgres_cpu:.1f}"]


def _ratios(case: str, kind: Kind, servers: dict[str, Sample]) -> list[list[str]]:
    found = [(pair, ratio(servers, *pair)) for pair in PAIRS]
    asked = ASKED.get((case.partition("-")[0], kind), {})
    return [
        [case, " ÷ ".join(pair), f"{got[0]:.2f}", f"{got[1]:.2f}", f"≥ {asked[pair]:g}" if pair in asked else ""]
        for pair, got in found
        if got
    ]


def _table(rows: Cells) -> str:
    """Markdown, aligned, so that it reads well on a terminal too."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(_pad(index, cell, widths[index]) for index, cell in enumerate(row)) + " |" for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _pad(index: int, cell: str, width: int) -> str:
    return cell.ljust(width) if index < 2 else cell.rjust(width)
