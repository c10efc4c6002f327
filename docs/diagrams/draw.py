"""Draws every diagram of the documentation: `python -m docs.diagrams.draw` writes the .svg beside each .py.

A test draws all of them again and compares, so a picture cannot differ from its source. `make bench` measures anew what
the charts show.
"""

from __future__ import annotations

from pathlib import Path

from docs.diagrams import benchmark, deployment, growth, pipeline, subscription

FOLDER = Path(__file__).parent
PICTURES = {
    "benchmark": benchmark.draw,
    "deployment": deployment.draw,
    "growth": growth.draw,
    "pipeline": pipeline.draw,
    "subscription": subscription.draw,
}


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().render(), "utf-8")


if __name__ == "__main__":
    main()
