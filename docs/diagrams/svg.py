"""SVG by hand: boxes, arrows and text on a light panel, readable on light and dark pages and without any other file."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

INK, MUTED, LINE, PANEL = "#1f2933", "#52606d", "#7b8794", "#ffffff"
FILLS = {
    "plain": "#f5f7fa",
    "wire": "#e0e8f9",
    "stage": "#dcf2e7",
    "store": "#fdf0d5",
    "rule": "#fbe3e4",
    "floor": "#cbd2d9",
    "service": "#2f6fde",
    "peer": "#e0a458",
    "bare": "#9aa5b1",
    "constant": "#e4e7eb",
    "mercurius": "#3e9c6b",
    "postgraphile": "#8a63c9",
    "pocketbase": "#3bb3b3",
    "strawberry": "#e0a458",
    "ariadne": "#d9708f",
    "fastapi": "#a8763e",
}
FONT = "font-family=\"ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\""


@dataclass
class Drawing:
    """A picture of a fixed size, to which shapes are added from back to front."""

    width: int
    height: int
    title: str
    shapes: list[str] = field(default_factory=list)

    def box(
        self, x: float, y: float, w: float, h: float, *lines: str, fill: str = "plain", dashed: bool = False
    ) -> None:
        """A rounded box with centred lines of text; the first one is bold."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" '
            f'fill="{FILLS[fill]}" stroke="{LINE}"{dash}/>'
        )
        top = y + h / 2 - (len(lines) - 1) * 8 + 4.5
        for number, line in enumerate(lines):
            weight = ' font-weight="600"' if number == 0 else ""
            size, colour = (14, INK) if number == 0 else (11.5, MUTED)
            self.text(x + w / 2, top + number * 16, line, size=size, colour=colour, extra=weight)

    def text(
        self,
        x: float,
        y: float,
        line: str,
        *,
        size: float = 12,
        colour: str = MUTED,
        anchor: str = "middle",
        extra: str = "",
    ) -> None:
        """One line of text."""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"{extra}>'
            f"{escape(line)}</text>"
        )

    def bar(self, x: float, y: float, w: float, h: float, fill: str) -> None:
        """A bar of a chart."""
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{w:.1f}" height="{h:g}" rx="2" fill="{FILLS[fill]}"/>')

    def line(self, points: list[tuple[float, float]], fill: str) -> None:
        """A curve of a chart, with a dot at each point."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{FILLS[fill]}" stroke-width="2"/>')
        self.shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{FILLS[fill]}"/>' for x, y in points]

    def rule(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A thin line."""
        self.shapes.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#d9dee4"/>')

    def arrow(self, *points: tuple[float, float], label: str = "", dashed: bool = False, both: bool = False) -> None:
        """A line through points with a head at its end; the label is above the middle of its first part."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        start = ' marker-start="url(#tip)"' if both else ""
        self.shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{MUTED}" stroke-width="1.4"{dash}{start} '
            'marker-end="url(#tip)"/>'
        )
        if label:
            (x1, y1), (x2, y2) = points[0], points[1]
            across = abs(x1 - x2) >= abs(y1 - y2)
            x, y = (x1 + x2) / 2, (y1 + y2) / 2
            self.text(
                x if across else x + 7,
                y - 6 if across else y + 4,
                label,
                size=11,
                anchor="middle" if across else "start",
            )

    def render(self) -> str:
        """The file."""
        body = "\n".join(f"  {shape}" for shape in self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" {FONT}>\n'
            f"  <title>{escape(self.title)}</title>\n"
            '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="{MUTED}"/></marker></defs>\n'
            f'  <rect width="{self.width}" height="{self.height}" rx="10" fill="{PANEL}"/>\n'
            f"{body}\n</svg>\n"
        )
