"""Draws every diagram of the documentation: `python -m docs.diagrams.draw` writes the .svg beside each .py.

With `--measured FILE`, the figures of a benchmark run become benchmark.csv first. A test draws all of them again and
compares, so a picture cannot differ from its source.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from docs.diagrams import benchmark, deployment, pipeline, subscription

FOLDER = Path(__file__).parent
PICTURES = {
    "benchmark": benchmark.draw,
    "deployment": deployment.draw,
    "pipeline": pipeline.draw,
    "subscription": subscription.draw,
}


def take_over(measured: Path) -> None:
    """The medians of a run of `make bench`, as a table."""
    results = json.loads(measured.read_text("utf-8"))["stores"]
    with benchmark.FIGURES.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["store", "case", "server", "requests_per_s", "p50_ms", "p99_ms", "cpu_us"])
        for store, cases in results.items():
            for case, servers in cases.items():
                for server, sample in servers.items():
                    numbers = (sample["rate"], sample["p50"], sample["p99"], sample["cpu"])
                    table.writerow([store, case, server, *(f"{number:.1f}" for number in numbers)])


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--measured"]:
        take_over(Path(arguments[1]))
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().render(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
