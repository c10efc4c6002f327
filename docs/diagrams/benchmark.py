"""CPU time of the server for each request, beside a floor and a peer: a chart of benchmark.csv.

`make bench` measures; `python -m docs.diagrams.draw --measured bench/.data/last.json` takes its figures over.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

from docs.diagrams.svg import INK, Drawing

FIGURES = Path(__file__).with_suffix(".csv")
SERVERS = ("floor", "service", "peer")
LEAST, MOST = 100.0, 30_000.0
LEFT, WIDTH = 120.0, 300.0


def figures() -> dict[str, dict[str, dict[str, float]]]:
    """Store → case → server → µs of CPU for each request."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with FIGURES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["store"], {}).setdefault(row["case"], {})[row["server"]] = float(row["cpu_us"])
    return found


def place(value: float) -> float:
    return WIDTH * math.log(value / LEAST) / math.log(MOST / LEAST)


def draw() -> Drawing:
    stores = figures()
    cases = max(len(found) for found in stores.values())
    picture = Drawing(980, 110 + cases * 62, "CPU time of the server for each request, on a logarithmic scale")
    picture.text(
        20,
        28,
        "CPU time of the server process for each request, in µs (logarithmic; less is better)",
        size=13,
        anchor="start",
    )
    for number, server in enumerate(SERVERS):
        picture.bar(660 + number * 100, 18, 12, 12, server)
        picture.text(678 + number * 100, 28, server, anchor="start")
    for column, (store, found) in enumerate(stores.items()):
        left = LEFT + column * 480
        picture.text(left, 58, store, size=14, colour=INK, anchor="start", extra=' font-weight="600"')
        for mark in (100, 1_000, 10_000):
            x = left + place(mark)
            picture.rule(x, 68, x, 78 + cases * 62)
            picture.text(x, 96 + cases * 62, f"{mark:,}", size=11)
        for row, (case, servers) in enumerate(found.items()):
            top = 72 + row * 62
            picture.text(left - 12, top + 31, case, size=13, colour=INK, anchor="end")
            for line, server in enumerate(SERVERS):
                picture.bar(left, top + line * 17, place(servers[server]), 13, server)
                picture.text(
                    left + place(servers[server]) + 6,
                    top + line * 17 + 11,
                    f"{servers[server]:,.0f}",
                    size=11,
                    anchor="start",
                )
    return picture
