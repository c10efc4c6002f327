"""`diptych inspect` prints a model file that linters, formatters and type checkers take as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.existing import SCHEMAS, make_existing
from tests.support.running import ROOT, Command, NewDatabase


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
        ("mypy", "--strict", f"--cache-dir={ROOT / 'build' / 'mypy' / 'inspect'}", *files),
    ):
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
