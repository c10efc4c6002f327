"""Processes that open one new database at the same time."""

from __future__ import annotations

import subprocess
import sys

from diptych.demo.model import model
from tests.contract.feed.scene import Library
from tests.support.running import PATIENCE, ROOT, NewDatabase, environment


def test_several_nodes_open_a_new_database_at_once(new_database: NewDatabase) -> None:
    url = new_database()
    program = "import sys; from tests.support.running import make_tables; make_tables(sys.argv[1])"
    nodes = [subprocess.Popen([sys.executable, "-c", program, url], cwd=ROOT, env=environment()) for _ in range(4)]
    assert [node.wait(PATIENCE) for node in nodes] == [0] * 4
    library = Library(url, model)
    assert library.sql("SELECT count(*) FROM diptych_feed_head") == [(1,)]
