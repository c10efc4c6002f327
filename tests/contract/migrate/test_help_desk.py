"""The migrations of the help desk: five versions, applied one after the other to a database with rows."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from diptych import Model
from diptych.migrate.files import STATE, read_folder
from diptych.migrate.state import state_of
from tests.contract.migrate.scene import Project, opened, structure
from tests.support.model_files import model_of
from tests.support.running import NewDatabase
from tests.unit.compile.test_tables import Outside

FOLDER = Path(__file__).parents[3] / "examples" / "helpdesk"
BASE = """
class Level(StrEnum):
    customer = "customer"
    agent = "agent"
    owner = "owner"

class State(StrEnum):
    open = "open"
    waiting = "waiting"
    solved = "solved"
    closed = "closed"

class User(Resource):
    name: str
    email: Annotated[str, Unique(), MaxLen(254)]

class Organisation(Resource):
    name: str
"""
PROJECT = """
class Project(Resource):
    organisation: Annotated[Organisation, OnDelete("cascade")]
    name: str
"""
TICKET = """
class Ticket(Resource):
    project: Annotated[Project, OnDelete("cascade")]
    reporter: User
"""
COMMENT = """
class Comment(Resource):
    ticket: Annotated[Ticket, OnDelete("cascade")]
    author: User
    body: str
    internal: bool = False
"""
MEMBERSHIP = """
class Membership(Resource):
    organisation: Annotated[Organisation, OnDelete("cascade")]
    user: Annotated[User, OnDelete("cascade")]
    level: Level = Level.customer
    keys = (unique("organisation", "user"),)
"""
STATE_FIELDS = """    title: str
    body: str = ""
    state: State = State.open
    assignee: Annotated[User | None, OnDelete("set null")] = None
"""
VERSIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("first", BASE + PROJECT + TICKET + "    subject: str\n    done: bool = False\n", {}),
    (
        "comments",
        BASE + PROJECT + TICKET + '    title: str\n    body: str = ""\n    done: bool = False\n' + COMMENT,
        {"renames": {"tickets.subject": "title"}},
    ),
    (
        "states",
        BASE + PROJECT + TICKET + STATE_FIELDS + COMMENT + MEMBERSHIP,
        {"fills": {"tickets.state": "= CASE WHEN done THEN 'solved' ELSE 'open' END"}},
    ),
    (
        "numbers",
        BASE
        + (PROJECT + '    keys = (unique("organisation", "name"),)\n')
        + (TICKET + STATE_FIELDS + '    number: Annotated[int, Counter("project")] = auto()\n')
        + '    keys = (index("project", "state"),)\n    search = Search("title", "body")\n'
        + COMMENT
        + MEMBERSHIP,
        {},
    ),
]
"""The tables of each version before the last, and the answers for its migration."""
ROWS = [
    "INSERT INTO users (id, name, email) VALUES ('{0}1', 'Ann', 'ann@example.org')",
    "INSERT INTO organisations (id, name) VALUES ('{0}2', 'Acme')",
    "INSERT INTO projects (id, organisation_id, name) VALUES ('{0}3', '{0}2', 'Website')",
    "INSERT INTO tickets (id, project_id, reporter_id, subject, done) VALUES ('{0}4', '{0}3', '{0}1', 'Empty', {1})",
    "INSERT INTO tickets (id, project_id, reporter_id, subject) VALUES ('{0}5', '{0}3', '{0}1', 'Slow')",
]
PREFIX = "00000000-0000-7000-8000-00000000000"


def models() -> list[Model]:
    spec = importlib.util.spec_from_file_location("example_helpdesk", FOLDER / "helpdesk.py")
    assert spec and spec.loader
    module = sys.modules["example_helpdesk"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [*(model_of(text) for _, text, _ in VERSIONS), module.model]


def make(folder: Path) -> None:
    """Write the migrations as `diptych migrate make` does."""
    project = Project(folder, "sqlite:///")
    names = [*((name, answers) for name, _, answers in VERSIONS), ("urgency", {})]
    for model, (name, answers) in zip(models(), names, strict=True):
        project.make(model, name, **answers)


def test_the_files_are_those_that_make_writes(tmp_path: Path) -> None:
    make(tmp_path)
    committed = FOLDER / "migrations"
    for file in sorted(tmp_path.iterdir()):
        assert file.read_text() == (committed / file.name).read_text(), file.name
    assert read_folder(committed)[-1].state.hash == state_of(models()[-1]).hash
    assert len(read_folder(committed)) == 5


@pytest.mark.slow
def test_five_versions_over_rows(tmp_path: Path, new_database: NewDatabase) -> None:
    committed, folder = FOLDER / "migrations", tmp_path / "migrations"
    folder.mkdir()
    project = Project(folder, new_database())
    outside = project.outside
    for number, (model, loaded) in enumerate(zip(models(), read_folder(committed), strict=True)):
        shutil.copy(committed / f"{loaded.name}.py", folder)
        (folder / STATE).write_text(loaded.state.encode())
        project.apply(model, allow_loss=True)
        if number == 0:
            for statement in ROWS:
                outside.sql(statement.format(PREFIX, "1" if outside.is_sqlite else "true"))
        if number == 1:
            values = f"'{PREFIX}6', '{PREFIX}4', '{PREFIX}1', 'Here too'"
            outside.sql(f"INSERT INTO comments (id, ticket_id, author_id, body) VALUES ({values})")
    columns = "title, body, state, number, priority, due"
    found = outside.sql(f"SELECT {columns} FROM tickets ORDER BY id")
    assert found == [("Empty", "", "solved", 1, "normal", None), ("Slow", "", "open", 2, "normal", None)]
    assert outside.sql("SELECT body, internal FROM comments") == [("Here too", False)]
    anew = Outside(new_database())
    opened(anew.url, models()[-1])
    assert structure(outside) == structure(anew)
