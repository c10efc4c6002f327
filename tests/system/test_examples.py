"""The examples work, and pass their own tests where nothing of this repository is near."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import ROOT

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/README.md"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_passes_its_own_tests(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
