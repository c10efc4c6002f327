"""What a request costs the service as something grows: a chart of growth.json (`python -m bench.growth`)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from docs.diagrams.svg import INK, Drawing

FIGURES = Path(__file__).with_suffix(".json")
ACROSS, WIDTH, HEIGHT = 3, 230.0, 150.0
LEFT, TOP = 60.0, 80.0
COLOURS = ("service", "peer")
LEAST, MOST = 10.0, 10_000.0


def place(value: float, least: float, most: float, room: float) -> float:
    """The position of a value on a logarithmic scale."""
    return room * math.log(value / least) / math.log(most / least)


def draw() -> Drawing:
    curves: list[dict[str, Any]] = list(json.loads(FIGURES.read_text("utf-8"))["curves"].values())
    lines = math.ceil(len(curves) / ACROSS)
    picture = Drawing(980, round(TOP + lines * (HEIGHT + 80)), "CPU time of the service over what grows")
    title = "CPU time of the service for each request, in µs, over what grows (both logarithmic)"
    picture.text(20, 28, title, size=13, anchor="start")
    for number, curve in enumerate(curves):
        across, down = number % ACROSS, number // ACROSS
        _panel(picture, LEFT + across * (WIDTH + 75), TOP + down * (HEIGHT + 80), curve)
    return picture


def _panel(picture: Drawing, left: float, top: float, curve: dict[str, Any]) -> None:
    bottom = top + HEIGHT
    picture.text(left, top - 12, curve["title"], size=13, colour=INK, anchor="start", extra=' font-weight="600"')
    for mark in (10, 100, 1_000, 10_000):
        y = bottom - place(mark, LEAST, MOST, HEIGHT)
        picture.rule(left, y, left + WIDTH, y)
        picture.text(left - 12, y + 4, f"{mark:,}", size=10, anchor="end")
    xs = curve["xs"]
    for x in xs:
        picture.text(left + place(x, xs[0], xs[-1], WIDTH), bottom + 16, _short(x), size=10)
    for number, (name, costs) in enumerate(curve["series"].items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [
            (left + place(x, xs[0], xs[-1], WIDTH), bottom - place(max(cost, LEAST), LEAST, MOST, HEIGHT))
            for x, cost in zip(xs, costs, strict=True)
        ]
        picture.line(points, colour)
        for (x, y), cost in zip(points, costs, strict=True):
            picture.text(x, y - 7, f"{cost:,.0f}", size=9)
        below = max(y for x, y in points if x > points[-1][0] - 8 * len(name))
        picture.text(points[-1][0], below + 15, name, size=10, colour=INK, anchor="end")


def _short(value: int) -> str:
    if value >= 1_000_000:
        return f"{value // 1_000_000}M"
    return f"{value // 1_000}k" if value >= 1_000 else str(value)
