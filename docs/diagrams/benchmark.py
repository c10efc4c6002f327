"""CPU time of the server for each request, beside floors and peers: a chart of benchmark.json (`make bench`)."""

from __future__ import annotations

import json
import math
from pathlib import Path

from docs.diagrams.svg import INK, Drawing

FIGURES = Path(__file__).with_suffix(".json")
SERVERS = (
    *("service", "floor", "bare", "constant", "mercurius"),
    *("postgraphile", "pocketbase", "strawberry", "ariadne", "fastapi"),
)
LEAST, MOST = 10.0, 50_000.0
LEFT, WIDTH, TOP = 100.0, 320.0, 92.0
BAR = 11.0

Figures = dict[str, dict[str, dict[str, float]]]


def figures() -> Figures:
    """Store → case → server → µs of CPU for each request."""
    stores = json.loads(FIGURES.read_text("utf-8"))["stores"]
    return {
        store: {
            case: {name: servers[name]["cpu"] for name in SERVERS if name in servers} for case, servers in cases.items()
        }
        for store, cases in stores.items()
    }


def place(value: float) -> float:
    return WIDTH * max(0.0, math.log(value / LEAST)) / math.log(MOST / LEAST)


def height(cases: dict[str, dict[str, float]]) -> float:
    return sum(len(servers) * BAR + 14 for servers in cases.values())


def draw() -> Drawing:
    stores = figures()
    most = max(height(cases) for cases in stores.values())
    picture = Drawing(980, round(TOP + most + 40), "CPU time of the server for each request, on a logarithmic scale")
    title = "CPU time of the server process for each request, in µs (logarithmic; less is better)"
    picture.text(20, 28, title, size=13, anchor="start")
    for number, server in enumerate(SERVERS):
        picture.bar(20 + number * 95, 42, 11, 11, server)
        picture.text(35 + number * 95, 52, server, size=11, anchor="start")
    for column, (store, cases) in enumerate(stores.items()):
        _panel(picture, LEFT + column * 480, store, cases, most)
    return picture


def _panel(picture: Drawing, left: float, store: str, cases: dict[str, dict[str, float]], most: float) -> None:
    picture.text(left, TOP - 12, store, size=14, colour=INK, anchor="start", extra=' font-weight="600"')
    for mark in (10, 100, 1_000, 10_000):
        x = left + place(mark)
        picture.rule(x, TOP, x, TOP + most)
        picture.text(x, TOP + most + 18, f"{mark:,}", size=11)
    y = TOP
    for case, servers in cases.items():
        picture.text(left - 8, y + len(servers) * BAR / 2 + 4, case, size=12, colour=INK, anchor="end")
        for server, cost in servers.items():
            picture.bar(left, y, place(cost), BAR - 2, server)
            picture.text(left + place(cost) + 5, y + BAR - 3, f"{cost:,.0f}", size=9, anchor="start")
            y += BAR
        y += 14
