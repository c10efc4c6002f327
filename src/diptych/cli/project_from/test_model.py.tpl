"""The model fits its database, and nobody but admins may read it until you say so: `python -m pytest`.

A SQLite database is copied for the tests. For PostgreSQL, name a copy of it: `TEST_DATABASE=postgresql://… python -m pytest`.
"""

from __future__ import annotations

import os
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from diptych.testing import Api, serve
from model import model

SETTINGS = tomllib.loads(Path(__file__).with_name("diptych.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The service, with a database of its own."""
    database = os.environ.get("TEST_DATABASE", "")
    if not database and SETTINGS["database"].startswith("sqlite:///"):
        copy = tmp_path_factory.mktemp("database") / "copy.db"
        with closing(sqlite3.connect(SETTINGS["database"].removeprefix("sqlite:///"))) as source:
            with closing(sqlite3.connect(copy)) as target:
                source.backup(target)
        database = f"sqlite:///{copy}"
    if not database:
        pytest.skip("set TEST_DATABASE to the address of a copy of the database")
    with serve(model, database=database) as served:
        yield served


def test_both_styles_read_the_same_rows(api: Api) -> None:
    admin = api.as_("admin")
    for resource in model.resources.values():
        rows = admin.get(f"/{resource.path}?first=20").expect(200).data
        asked = admin.graphql(f"{{ {resource.many}(first: 20) {{ id }} }}").expect(200).data
        assert asked[resource.many] == [{"id": row["id"]} for row in rows]


def test_nobody_else_reads_anything(api: Api) -> None:
    """Change this when you give a class its rules."""
    for resource in model.resources.values():
        for client in (api.anonymous, api.as_("signed_in")):
            assert client.get(f"/{resource.path}").status in (401, 403, 404), resource.name
