"""Runs the how-to pages: files and commands of a page, in a folder of their own."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.running import ROOT, diptych


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language on a how-to page, in their order."""
    text = (ROOT / "docs" / "how-to" / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def schema(folder: Path, role: str = "admin") -> None:
    """`diptych schema --as admin > schema.graphql`, as the pages say."""
    done = diptych("schema", "--as", role)
    assert done.returncode == 0, done.stderr
    (folder / "schema.graphql").write_text(done.stdout, "utf-8")
