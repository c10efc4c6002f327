"""How fast pages are by Chromium's own measures, on a processor that it slows down four times."""

from __future__ import annotations

import time
from typing import Any

from playwright.sync_api import Browser, Page

from tests.support.machine import Machine
from tests.support.running import Client
from tests.system.console.opening import console

SLOWDOWN, FIRST_PAINT, BLOCKED = 4, 2.5, 2.0
"""Seconds on an idle machine: until something is painted, and of long tasks beyond 50 ms each."""
OBSERVE = """
window.long = []
new PerformanceObserver(list => window.long.push(...list.getEntries().map(each => each.duration)))
    .observe({type: 'longtask', buffered: true})
"""
MEASURE = """() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
    blocked: window.long.reduce((sum, each) => sum + Math.max(0, each - 50), 0),
})"""


def measure(page: Page, url: str, shown: str) -> dict[str, Any]:
    """Open a page until what it is for is there and nothing has run for a while; milliseconds."""
    page.goto(url)
    page.locator(shown).first.wait_for()
    page.wait_for_timeout(1_000)
    found: dict[str, Any] = page.evaluate(MEASURE)
    return found


def test_pages_paint_soon_and_block_little_on_a_slow_processor(admin: Client, browser: Browser) -> None:
    pages = {"request": ".cm-content .cm-line", "data/orders": "tbody tr"}
    with console(browser, admin) as page:
        page.tab.add_init_script(OBSERVE)
        page.tab.context.new_cdp_session(page.tab).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
        for path, shown in pages.items():
            machine, found = Machine(), measure(page.tab, f"{page.url}/console/{path}", shown)
            print(
                f"{time.strftime('%H:%M')} {path}: {found['paint']:.0f} ms to the first paint, {found['blocked']:.0f} ms blocked"
            )
            assert found["paint"] / 1_000 < machine.limit(FIRST_PAINT), (path, found)
            assert found["blocked"] / 1_000 < machine.limit(BLOCKED), (path, found)
