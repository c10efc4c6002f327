"""The page."""

from pathlib import Path

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "diagrams" / "benchmark.json"


def write_page() -> None:
    """All."""
