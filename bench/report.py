"""What was measured, as tables: one of numbers and one of ratios for each store.

Every number is the median of the rounds. A ratio is read "how good is the service, if the other is 1": by CPU it is the
other's µs per request ÷ the service's, by rate the service's requests/s ÷ the other's. So 1.00 against the floor is
perfection, and more than 1 against a peer is a gain. CPU is the steadier on a shared machine. The spread is the least
and the most of the rounds, each against the same round of the other; what is asked of a ratio stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.load import Sample
from bench.store import Kind
from bench.targets import met, target

# case → server → rounds
Measured = dict[str, dict[str, list[Sample]]]
Cells = list[list[str]]

COLUMNS = ("case", "server", "requests/s", "p50 ms", "p99 ms", "server µs", "database µs", "RSS MB")


@dataclass(frozen=True)
class Ratio:
    """The service ÷ another, each with its spread; `asked` is the target, if there is one."""

    case: str
    other: str
    by_cpu: tuple[float, float, float]
    by_rate: tuple[float, float, float]
    asked: float | None
    met: bool | None


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
        megabytes=median(sample.megabytes for sample in samples),
    )


def summary(measured: Measured) -> dict[str, dict[str, Sample]]:
    """One sample per case and server."""
    return {
        case: {server: middle(samples) for server, samples in servers.items()} for case, servers in measured.items()
    }


def ratios(kind: Kind, measured: Measured) -> list[Ratio]:
    """The service ÷ every other, in each case."""
    return [
        _ratio(kind, case, other, servers["service"], samples)
        for case, servers in measured.items()
        if "service" in servers
        for other, samples in servers.items()
        if other != "service"
    ]


def _ratio(kind: Kind, case: str, other: str, mine: list[Sample], theirs: list[Sample]) -> Ratio:
    by_cpu = [them.cpu / me.cpu for me, them in zip(mine, theirs, strict=True)]
    by_rate = [me.rate / them.rate for me, them in zip(mine, theirs, strict=True)]
    me, them = middle(mine), middle(theirs)
    cpu, rate = them.cpu / me.cpu, me.rate / them.rate
    asked = target(kind, case, other)
    return Ratio(
        case,
        other,
        (cpu, min(by_cpu), max(by_cpu)),
        (rate, min(by_rate), max(by_rate)),
        asked,
        None if asked is None else met(other, asked, cpu, rate),
    )


def render(kind: Kind, measured: Measured) -> str:
    """Both tables of a store."""
    results, found = summary(measured), ratios(kind, measured)
    numbers = [numbers_of(case, *item) for case in results for item in results[case].items()]
    parts = [f"## {kind}", table([list(COLUMNS), *numbers])]
    if found:
        head = ["case", "service ÷", "by CPU", "spread", "by rate", "spread", "asked", "met"]
        parts.append(table([head, *(ratio_cells(one) for one in found)]))
        missed = [f"{one.case} ÷ {one.other}" for one in found if one.met is False]
        asked = sum(one.asked is not None for one in found)
        parts.append(f"{asked - len(missed)} of {asked} targets are met; not: {', '.join(missed) or 'none'}.")
    return "\n\n".join(parts) + "\n"


def numbers_of(case: str, server: str, sample: Sample) -> list[str]:
    """A row of numbers."""
    times = f"{sample.rate:,.0f}", f"{sample.p50:.2f}", f"{sample.p99:.2f}", f"{sample.cpu:.1f}"
    database = "" if sample.postgres_cpu is None else f"{sample.postgres_cpu:.1f}"
    return [case, server, *times, database, f"{sample.megabytes:.0f}"]


def ratio_cells(one: Ratio) -> list[str]:
    """A row of ratios."""
    asked = "" if one.asked is None else f"≥ {one.asked:g}"
    told = "" if one.met is None else "yes" if one.met else "no"
    return [one.case, one.other, *_spread(one.by_cpu), *_spread(one.by_rate), asked, told]


def _spread(value: tuple[float, float, float]) -> tuple[str, str]:
    return f"{value[0]:.2f}", f"{value[1]:.2f}–{value[2]:.2f}"


def table(rows: Cells) -> str:
    """Markdown, aligned, so that it reads well on a terminal too."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(_pad(index, cell, widths[index]) for index, cell in enumerate(row)) + " |" for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 1) + ("-" if index < 2 else ":") for index, width in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _pad(index: int, cell: str, width: int) -> str:
    return cell.ljust(width) if index < 2 else cell.rjust(width)
