"""The lines of docs/reference/oauth run as they stand, and print what the pages say.

A page is one session of bash, against a running service. A block of `text` or `json` after a block of `sh` is what that
printed: `…` is anything, and in JSON `"…": "…"` is whatever else there is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diptych.cli.records import run_on_store
from diptych.db.store import Store
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from tests.support.running import PATIENCE, ROOT, NewDatabase, Service, environment, served
from tests.system.oauth.flow import PASSWORD, App, Browser

FOLDER = ROOT / "docs" / "reference" / "oauth"
PAGES = sorted(path.name for path in FOLDER.glob("*.md"))
FLOWS = (
    "authorization-code",
    "refresh",
    "openid",
    "device",
    "registration",
    "client-credentials",
    "revocation",
    "introspection",
    "api-keys",
    "key-rotation",
)
BACK = "http://127.0.0.1:8765/done"
MARK = "\x1e"
"""Stands between what two blocks print."""


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    with served(new_sqlite(), "--sample") as service:
        yield service


def blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of a page that are run, each with what it prints, if the page tells."""
    found = re.findall(r"```(sh|text|json)\n(.*?)```", (FOLDER / page).read_text(), re.DOTALL)
    assert found and found[0][0] == "sh", page
    pairs: list[tuple[str, str]] = []
    for kind, text in found:
        if kind == "sh":
            pairs.append((text, ""))
        else:
            assert not pairs[-1][1], f"{page} shows twice what one block prints"
            pairs[-1] = (pairs[-1][0], text)
    return pairs


def played(page: str, folder: Path, service: Service, **given: str) -> list[str]:
    """What the blocks of a page print, run one after another in one shell."""
    script = "set -eu -o pipefail\n" + f"\nprintf '{MARK}'\n".join(block for block, _ in blocks(page))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = environment(BASE=service.url, DIPTYCH_DATABASE=service.database, PATH=path, **given)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(MARK)


def agrees(shown: Any, found: Any) -> bool:
    """Is what was found as a page shows it?"""
    if isinstance(shown, dict) and isinstance(found, dict):
        known = shown.keys() - {"…"}
        whole = known == found.keys() or ("…" in shown and known <= found.keys())
        return whole and all(agrees(shown[key], found[key]) for key in known)
    if isinstance(shown, list) and isinstance(found, list):
        return len(shown) == len(found) and all(map(agrees, shown, found))
    if shown == "…":
        return True
    if isinstance(shown, str) and isinstance(found, str):
        return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), found) is not None
    return bool(shown == found)


async def add_parties(store: Store, revoked: RevocationList) -> str:
    """An account, and a client of which it allows something; gives the id of the client."""
    await Accounts(store, revoked).add("reader@example.org", PASSWORD, ("staff",))
    client, _ = await Clients(store, revoked).add("Reader", [BACK])
    return client.id


def begun(service: Service) -> dict[str, str]:
    """What the page about refreshing begins with."""
    client = run_on_store({"database": service.database, "model": None}, add_parties)
    app, browser = App(service.request, client, None, BACK), Browser(service.request)
    browser.sign_in(app, "reader@example.org")
    return {"CLIENT": client, "REFRESH": app.exchange(browser.decide(app)["code"]).json()["refresh_token"]}


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_print_what_it_says(page: str, service: Service, tmp_path: Path) -> None:
    given = begun(service) if page == "refresh.md" else {}
    for (block, shown), printed in zip(blocks(page), played(page, tmp_path, service, **given), strict=True):
        told = f"{block}\n{printed}"
        if shown.startswith("{"):
            assert agrees(json.loads(shown), json.loads(printed)), told
        else:
            assert agrees(shown.strip(), printed.strip()), told


def test_every_flow_has_its_page_and_the_first_page_leads_to_all() -> None:
    assert {f"{name}.md" for name in (*FLOWS, "index")} == set(PAGES)
    first = (FOLDER / "index.md").read_text()
    assert all(f"]({name}.md)" in first for name in FLOWS)
