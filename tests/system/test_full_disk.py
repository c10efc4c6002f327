"""Commands whose output finds no room."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.running import NewDatabase, make_tables


@pytest.mark.parametrize(
    "arguments", [("export", "users"), ("token", "--role", "admin"), ("openapi",), ("rules", "--html")]
)
def test_a_command_says_that_its_output_found_no_room(arguments: tuple[str, ...], new_sqlite: NewDatabase) -> None:
    environment = {**os.environ, "DIPTYCH_DATABASE": make_tables(new_sqlite())}
    with open("/dev/full", "wb") as full:
        command = (sys.executable, "-m", "diptych", *arguments)
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "The command failed: No space left on device.\n")
