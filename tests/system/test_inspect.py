"""`diptych inspect` prints a model file that linters, formatters and type checkers take as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.existing import SCHEMAS, make_existing
from tests.support.running import ROOT, Command, NewDatabase

CACHE = ROOT / "build" / "mypy" / "typing"
"""That of test_typing.py: the source is checked once."""


def test_it_passes_ruff_and_mypy(new_database: NewDatabase, command: Command, tmp_path: Path) -> None:
    files = []
    for schema in SCHEMAS:
        file = tmp_path / f"{schema}_model.py"
        file.write_text(command("inspect", make_existing(new_database(), schema)).stdout, "utf-8")
        files.append(str(file))
    rules = "B,E,F,I,UP,SIM,RUF"
    options = ("--isolated", "--line-length", "120")
    for arguments in (
        ("ruff", "check", *options, "--select", rules, "--ignore", "RUF012", *files),
        ("ruff", "format", *options, "--check", "--diff", *files),
        ("mypy", "--strict", "--config-file=", f"--cache-dir={CACHE}", "--explicit-package-bases", *files),
    ):
        env = os.environ | {"MYPYPATH": "src"}
        done = subprocess.run(
            [sys.executable, "-m", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
