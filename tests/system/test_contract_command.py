"""`diptych contract lock` and `diptych contract check`, as a project uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.running import diptych

NOTES = """
from diptych import Model, Resource, grant


class Note(Resource):
    text: str = ""
    rank: int = 0
    access = (grant("read", "create"),)


model = Model(Note)
"""
BREAKS = "Breaking: GraphQL: Field Note.rank was removed (anonymous, signed_in)\n"


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = diptych("contract", *arguments, "notes:model", cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_a_change_that_breaks_clients_is_declared_or_refused(tmp_path: Path) -> None:
    model = tmp_path / "notes.py"
    model.write_text(NOTES)
    missing = "contract cannot be read: No such file or directory; diptych contract lock makes it.\n"
    assert run(tmp_path, "check") == (2, "", missing)
    assert run(tmp_path, "lock") == (0, "Wrote 4 documents to contract.\n", "")
    assert run(tmp_path, "check") == (0, "The model keeps its contract.\n", "")
    model.write_text(NOTES.replace("    rank: int = 0\n", "    rank: int = 0\n    more: int = 0\n"))
    assert run(tmp_path, "check")[1] == "The model keeps its contract. It has grown: run diptych contract lock.\n"
    model.write_text(NOTES.replace("    rank: int = 0\n", ""))
    status, out, error = run(tmp_path, "check")
    assert (status, BREAKS in out) == (2, True), out
    assert error.endswith(" changes would break clients; diptych contract lock --breaking REASON allows it.\n")
    before = {path.name: path.read_bytes() for path in (tmp_path / "contract").iterdir()}
    status, out, error = run(tmp_path, "lock")
    assert (status, BREAKS in out) == (2, True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "contract").iterdir()} == before
    assert run(tmp_path, "lock", "--breaking", "Nobody ranks notes.")[0] == 0
    assert run(tmp_path, "check") == (0, "The model keeps its contract.\n", "")
    words = (tmp_path / "contract" / "BREAKING.md").read_text()
    assert "## Nobody ranks notes.\n\n" in words
    assert "- Note in responses: `rank` is gone (anonymous, signed_in)\n" in words


def test_who_still_uses_what_is_deprecated_is_listed(tmp_path: Path) -> None:
    old = 'rank: Annotated[int, deprecated("Count.", since="2026-01-01")] = 0'
    more = 'size: Annotated[int, deprecated("Measure.", since="2026-01-01")] = 0'
    text = NOTES.replace("import Model", "import Model, deprecated").replace("rank: int = 0", f"{old}\n    {more}")
    (tmp_path / "notes.py").write_text("from typing import Annotated\n" + text)
    url = f"sqlite:///{tmp_path / 'notes.db'}"
    served = (
        "from diptych.testing import serve; from notes import model\n"
        f"with serve(model, database={url!r}) as api:\n"
        "    api.anonymous.get('/notes?fields=rank').expect(200)\n"
    )
    subprocess.run([sys.executable, "-c", served], cwd=tmp_path, check=True)
    done = diptych("contract", "usage", "--model", "notes:model", "--database", url, cwd=tmp_path)
    head, row, unused = done.stdout.splitlines()
    assert head.split() == ["DEPRECATED", "ROLE", "CLIENT", "REQUESTS", "LAST"]
    assert row.split()[:4] == ["Note.rank", "anonymous", "-", "1"]
    assert unused == "Not used by anyone: Note.size."
