"""Accessibility of a page, by axe-core: `violations(page)` names the rules that it breaks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.support.running import ROOT

AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"


def inject(page: Page) -> None:
    """Load axe-core into a page whose policy is bypassed; skips the test where it is not installed."""
    if not AXE.exists():
        pytest.skip("the packages of the console are not installed: make .venv/console.stamp")
    page.evaluate(AXE.read_text())


COLOURS = "{runOnly: ['color-contrast', 'link-in-text-block']}"
"""The rules that look at colours: of a page in a second theme, nothing else is new."""


def violations(page: Page, rules: str = "{}") -> list[str]:
    """The rules that a page breaks, each with the first place."""
    options = f"{{...{rules}, resultTypes: ['violations']}}"  # of what passes, axe would describe every place
    found: list[str] = page.evaluate(
        f"axe.run({options}).then(found => found.violations.map(each => each.id + ' at ' + each.nodes[0].target))"
    )
    return found


def sideways(page: Page) -> list[str]:
    """The widths and text sizes at which a page scrolls sideways: a narrow phone, and text of twice the size."""
    wide = []
    for width, size in ((320, "100%"), (640, "200%")):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("size => document.documentElement.style.fontSize = size", size)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(f"{width} px at {size}")
    page.evaluate("document.documentElement.style.fontSize = ''")
    page.set_viewport_size({"width": 1280, "height": 900})
    return wide
