"""What a newcomer meets in the first hour: settings that are taken from where they are written, commands that make
nothing by mistake, a model that can be filled, and a log that says what happened."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diptych import Diptych
from diptych.config import SETTINGS, Config, misspelt
from diptych.demo.model import model as default_model
from diptych.errors import StartError
from tests.support.running import ROOT, Command, NewDatabase, diptych, environment, make_tables, served

NOTES = '''
from diptych import Model, Resource, grant


class Note(Resource):
    """A note."""

    text: str = ""
    access = (grant("read"),)


model = Model(Note)
'''
READING = (
    ["token"],
    ["account", "list"],
    ["client", "list"],
    ["key", "list"],
    ["api-key", "list"],
    ["documents", "list"],
    ["explain", "{ users { name } }"],
    ["account", "add", "ann@example.org", "--password-stdin"],
    ["key", "rotate"],
)


def failed(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout.count("Traceback")) == (2, 0), done
    return done.stderr


# commands make nothing by mistake


@pytest.mark.parametrize("arguments", READING)
def test_only_dev_and_serve_make_a_database(
    arguments: list[str], command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a long password\n"), "utf-8"))
    said = failed(command(*arguments, "--database", "sqlite:///x.db"))
    assert said.endswith("There is no SQLite database at x.db; diptych serve and diptych dev make one.\n")
    assert not list(tmp_path.glob("x.db*"))


def test_a_command_makes_no_tables_of_a_model_beside_those_of_another(
    new_database: NewDatabase, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    database = make_tables(new_database())
    said = failed(command("token", "notes:model", "--database", database))
    assert "has none of the model's tables (notes); is the model another one?" in said
    assert failed(command("token", "notes:model", "--database", database)) == said, "nothing was made"


# the model is named in one way, everywhere


def test_every_command_takes_the_model_of_the_settings(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    (tmp_path / "diptych.toml").write_text('model = "notes:model"\ndatabase = "sqlite:///notes.db"\n')
    with served("sqlite:///notes.db", cwd=tmp_path) as service:
        assert service.get("/notes").status == 200
        assert service.get("/users").status == 404
    for arguments in (["schema"], ["openapi"], ["rules"], ["check"], ["explain", "{ notes { text } }"]):
        assert "Note" in command(*arguments).stdout, arguments
    for arguments in (["token"], ["account", "list"], ["key", "list"], ["documents", "list"]):
        assert command(*arguments).returncode == 0, arguments
    assert "Order" in command("schema", "--model", "diptych.demo.model:model").stdout
    assert "Order" in command("schema", DIPTYCH_MODEL="diptych.demo.model:model").stdout


@pytest.mark.parametrize("name", ["schema", "openapi", "rules", "check"])
def test_the_model_is_an_argument_or_an_option(name: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    assert command(name, "notes:model").stdout == command(name, "--model", "notes:model").stdout
    assert "The model is named twice" in failed(command(name, "notes:model", "--model", "others:model"))


# settings


def test_a_misspelt_variable_is_reported_with_the_one_that_was_meant(command: Command) -> None:
    assert misspelt({f"DIPTYCH_{each.name.upper()}": "" for each in SETTINGS}) == []
    said = command("check", DIPTYCH_DATABSE="x").stderr
    assert said == "The environment variable DIPTYCH_DATABSE is no setting; did you mean DIPTYCH_DATABASE?\n"


def test_the_library_takes_its_settings_from_the_environment_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIPTYCH_DATABASE", "sqlite:///there.db")
    monkeypatch.setenv("DIPTYCH_MAX_PGAE", "50")
    (tmp_path / "diptych.toml").write_text("max_depth = 4\n")
    app = Diptych(default_model)
    assert (app.config.database, app.config.max_depth) == ("sqlite:///there.db", 4)
    assert "did you mean DIPTYCH_MAX_PAGE?" in caplog.text
    assert Diptych(default_model, database="sqlite:///here.db").config.database == "sqlite:///here.db"
    assert Diptych(default_model, config=Config()).config == Config()
    monkeypatch.setenv("DIPTYCH_MAX_DEPTH", "deep")
    with pytest.raises(StartError, match="DIPTYCH_MAX_DEPTH cannot be 'deep'"):
        Diptych(default_model)


def test_the_help_says_of_a_share_that_it_is_a_number(command: Command) -> None:
    help_text = command("serve", "--help").stdout
    assert re.search(r"--planning-share NUMBER\s+The share of all time", help_text)
    assert "SECONDS" not in help_text


def test_the_version_loads_no_server() -> None:
    program = "import sys; from diptych.cli import main\ntry: main()\nexcept SystemExit: print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program, "--version"], env=environment(), capture_output=True, text=True, check=True
    )
    version, loaded = done.stdout.splitlines()
    assert re.fullmatch(r"diptych, version \d+\.\d+\.\d+", version)
    heavy = {"graphql", "uvicorn", "authlib", "asyncpg", "apsw", "cryptography", "argon2", "diptych.serve.app"}
    assert not heavy & set(loaded.split())


# what is refused says why


def test_a_method_that_no_rule_allows_is_refused_with_the_reason(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    with served(new_sqlite(), model="notes:model", cwd=tmp_path) as service:
        answer = service.post("/notes", {})
        assert answer.status == 405
        assert (
            answer.json()["detail"]
            == "Use GET, HEAD, OPTIONS, QUERY. No rule of the model lets anyone create a row of Note."
        )
        one = "/notes/00000000-0000-7000-8000-000000000000"
        for method, verb in (("PUT", "update"), ("PATCH", "update"), ("DELETE", "delete")):
            detail = service.request(method, one).json()["detail"]
            assert detail.endswith(f"No rule of the model lets anyone {verb} a row of Note.")
        assert service.request("DELETE", "/notes").json()["detail"] == "Use GET, HEAD, OPTIONS, QUERY."


def test_the_model_of_the_readme_can_be_filled(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    blog = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blog is not None
    (tmp_path / "blog.py").write_text(blog[1])
    database = new_sqlite()
    with served(database, model="blog:model", cwd=tmp_path) as service:
        done = diptych("token", "blog:model", "--role", "admin", "--database", database, cwd=tmp_path)
        admin = service.signed_in(done.stdout.strip())
        author = admin.post("/authors", {"name": "Ann", "email": "ann@example.org"})
        assert author.status == 201, author.body
        post = {"slug": "first", "body": "Hello.", "authorId": author.json()["id"]}
        made = admin.post("/posts", post)
        assert made.status == 201, made.body
        assert (
            admin.request(
                "PATCH", made.headers["location"], {"content-type": "application/json"}, b'{"published": true}'
            ).status
            == 200
        )
        assert service.query("{ posts { slug teaser author { name } } }") == {
            "data": {"posts": [{"slug": "first", "teaser": "Hello.", "author": {"name": "Ann"}}]}
        }


def test_the_documents_are_titled_after_the_model(command: Command, tmp_path: Path) -> None:
    (tmp_path / "help_desk.py").write_text(NOTES)
    (tmp_path / "named.py").write_text(NOTES.replace("Model(Note)", 'Model(Note, title="Our notes")'))
    for model, title in (
        ("help_desk:model", "Help desk"),
        ("named:model", "Our notes"),
        ("diptych.demo.model:model", "Diptych"),
    ):
        assert json.loads(command("openapi", model).stdout)["info"]["title"] == title


# the log


def test_the_access_log_has_a_line_for_each_request(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite(), "--sample", "--access-log", "--log-format", "json") as service:
        service.get("/users?first=1&name[eq]=secret")
        service.request("GET", "/nothing%0aforged")
        lines = [json.loads(line) for line in service.err.lines if line.startswith("{")]
        until = time.monotonic() + 10
        while len(lines) < 3 and time.monotonic() < until:
            lines = [json.loads(line) for line in service.err.lines if line.startswith("{")]
    ready, users, nothing = ({name: line[name] for name in ("level", "method", "path", "status")} for line in lines)
    assert ready == {"level": "INFO", "method": "GET", "path": "/health/ready", "status": 200}
    assert users == {"level": "INFO", "method": "GET", "path": "/users", "status": 200}
    assert nothing == {"level": "INFO", "method": "GET", "path": "/nothing%0aforged", "status": 404}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", lines[0]["time"])
    assert lines[1]["bytes"] > 10 and lines[1]["milliseconds"] >= 0 and lines[1]["address"] == "127.0.0.1"
    assert "secret" not in service.err.text, "query strings hold what people look for"


def test_no_query_string_of_a_websocket_is_logged(new_sqlite: NewDatabase) -> None:
    head = (
        b"GET /graphql?token=secret HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
    )
    with served(new_sqlite(), "--access-log", "--log-level", "info") as service:
        assert b" 101 " in service.exchange(head)
        service.err.wait(r"GET /graphql 101 ")
    assert "secret" not in service.err.text


FAILING = """
import logging
from diptych import Model, Resource, Tx, action, grant

log = logging.getLogger("notes")


class Note(Resource):
    access = (grant("read", "create"),)

    @action
    @classmethod
    async def fail(cls, tx: Tx) -> int:
        log.warning("about to\\nfail")
        raise RuntimeError("broken")


model = Model(Note)
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_failure_is_logged_with_its_time_its_level_and_its_request(
    form: str, new_sqlite: NewDatabase, tmp_path: Path
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    database = new_sqlite()
    with served(database, "--log-format", form, model="failing:model", cwd=tmp_path, noise=".") as service:
        answer = service.request("POST", "/notes/fail")
        assert answer.status == 500
        number = re.search(r"[0-9a-f]{16}", answer.json()["detail"])
        assert number is not None
        service.err.wait(number[0])
        service.err.wait("RuntimeError: broken")
    if form == "json":
        warning, error = (json.loads(line) for line in service.err.lines)
        assert (warning["level"], warning["logger"], warning["message"]) == ("WARNING", "notes", "about to\nfail")
        assert (error["level"], error["request"]) == ("ERROR", "POST /notes/fail")
        assert "RuntimeError: broken" in error["exception"]
    else:
        warning, error, *traceback = service.err.lines
        assert re.fullmatch(r"\S+Z WARNING notes POST /notes/fail [0-9a-f]{16}: about to\\nfail\n", warning)
        assert re.fullmatch(
            rf"\S+Z ERROR diptych POST /notes/fail {number[0]}: error {number[0]} in POST /notes/fail\n", error
        )
        assert traceback[-1] == "RuntimeError: broken\n"
