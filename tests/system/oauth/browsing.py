"""A browser for tests, and a site to which it is led back.

    with Site() as site, chromium() as browser:
        page = browser.new_page(java_script_enabled=False)
        page.goto(f"{service.url}/oauth/authorize?…&redirect_uri={site.url}/done")
        …
        assert site.next_query()["state"] == "s"

The browser is the machine's own Chromium, driven by Playwright: its headless shell, where that is installed, whose pages
take a quarter of the processor time. Where there is neither, a test that needs it is skipped, unless `CHROMIUM=required`
says that there must be one, as CI does.
"""

from __future__ import annotations

import base64
import hashlib
import os
import queue
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.running import PATIENCE

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs, the cheapest first."""
VERIFIER = "a-verifier-that-only-the-client-knows-until-it-asks"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium, from its start to its end. Meanwhile, nothing else in this thread can run an event loop."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        assert os.environ.get("CHROMIUM") != "required", "there must be a Chromium, and there is none"
        pytest.skip("there is no Chromium on this machine")
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, timeout=PATIENCE * 1000)
        yield browser
        browser.close()


class Site:
    """A client's site on a free port of this machine: serves the pages that it is given, and tells what was asked.

    A page that begins with `http` is an address, to which the site leads on.
    """

    def __init__(self, pages: Mapping[str, str] | None = None, host: str = "127.0.0.1") -> None:
        self.pages = dict(pages or {})
        self._asked: queue.Queue[str] = queue.Queue()
        self._server = _Server((host, 0), self._handler())
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_query(self, path: str = "/done") -> dict[str, str]:
        """The query of the next request for a path."""
        while True:
            asked = urlsplit(self._asked.get(timeout=PATIENCE))
            if asked.path == path:
                return dict(parse_qsl(asked.query, strict_parsing=True))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path == "/favicon.ico":
                    self.send_error(404)
                    return
                site._asked.put(self.path)
                page = site.pages.get(path, "<title>Back</title>You are back.")
                if page.startswith("http"):
                    self.send_response(302)
                    self.send_header("location", page)
                    page = ""
                else:
                    self.send_response(200)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(page.encode())))
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *arguments: object) -> None:
                """Nobody reads it."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)


def authorize_url(service: str, client: str, redirect: str, scope: str = "posts:read posts:write") -> str:
    """Where a client sends a browser, to be allowed something."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": redirect,
        "scope": scope,
        "state": "s&t=é",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{service}/oauth/authorize?{urlencode(asked)}"
