"""The garbage collector of a server process: what is new is collected, what survives is frozen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.garbage_cases import CASES
from tests.support.running import ROOT


@pytest.mark.parametrize("name", CASES)
def test_in_a_process_of_its_own(name: str) -> None:
    command = [sys.executable, "-m", "tests.support.garbage_cases", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
