"""The tutorial and the how-to guides run: every command, file and configuration on their pages is executed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diptych.config import SETTINGS
from docs.diagrams.draw import FOLDER, PICTURES
from tests.support.running import PATIENCE, ROOT, Client, NewDatabase, Postgres, diptych, environment, free_port, served
from tests.system.caching.nginx import nginx
from tests.system.oauth.test_docs_flows import agrees

PAGES = ROOT / "docs"
TUTORIAL = PAGES / "tutorial" / "first-model.md"
HELP_DESK = PAGES / "tutorial" / "help-desk.md"


def code(page: Path, language: str) -> list[str]:
    """The blocks of a language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


# the tutorial


@contextmanager
def developing(folder: Path, port: int, page: Path = TUTORIAL) -> Iterator[Client]:
    """`diptych dev` as the tutorial starts it, on another port."""
    (line,) = re.findall(r"^diptych dev .*", "".join(code(page, "console")), re.MULTILINE)
    command = [sys.executable, "-m", *line.split(), "--port", str(port)]
    with (
        open(folder / "dev.log", "w", encoding="utf-8") as log,
        subprocess.Popen(command, cwd=folder, env=environment(), stdout=log, stderr=log, text=True) as server,
    ):
        try:
            client = Client(f"http://127.0.0.1:{port}")
            wait_for_another_model(client, "", server)
            yield client
        finally:
            server.send_signal(signal.SIGINT)


def document(client: Client) -> str:
    """The OpenAPI document, or nothing while the server (re)starts."""
    try:
        answer = client.get("/openapi.json")
    except OSError:
        return ""
    return answer.body.decode() if answer.status == 200 else ""


def wait_for_another_model(client: Client, old: str, server: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while document(client) in ("", old):
        assert time.monotonic() < deadline, "the server did not load the model"
        assert server is None or server.poll() is None, "the server has ended"
        time.sleep(0.1)


def run(script: str, folder: Path, port: int, given: dict[str, str]) -> tuple[str, dict[str, str]]:
    """What a block prints in bash, and the variables that it leaves behind."""
    names = " ".join(re.findall(r"^([A-Z]+)=", script, re.MULTILINE))
    tail = f"\nprintf '\\x1e'\nfor name in {names}; do printf '%s=%s\\n' $name \"${{!name}}\"; done" if names else ""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "set -eu -o pipefail\n" + script.replace("127.0.0.1:8000", f"127.0.0.1:{port}") + tail],
        cwd=folder,
        env=environment(PATH=path, **given),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, script + done.stdout + done.stderr
    printed, _, left = done.stdout.partition("\x1e")
    return printed, dict(line.split("=", 1) for line in left.splitlines())


class Reader:
    """Runs the blocks of a page one after the other, and compares what they print with what the page shows."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.given: dict[str, str] = {}
        self.printed = ""
        self.compared = 0

    def read(self, kind: str, text: str) -> None:
        if kind == "sh":
            self.printed, left = run(text, self.folder, self.port, self.given)
            self.given |= left
            return
        shown: Any = json.loads(text) if kind == "json" else text.strip()
        found: Any = json.loads(self.printed) if kind == "json" else self.printed.strip()
        assert agrees(shown, found), f"{text}\n{self.printed}"
        self.compared += 1


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(python|sh|text|json)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    first, *rest = blocks(TUTORIAL)
    reader = Reader(tmp_path, free_port())
    (tmp_path / "tasks.py").write_text(first[1], "utf-8")
    with developing(tmp_path, reader.port) as client:
        for kind, text in rest:
            if kind == "python":
                old = document(client)
                (tmp_path / "tasks.py").write_text(text, "utf-8")
                wait_for_another_model(client, old)
            else:
                reader.read(kind, text)
        assert "Added the column tasks.private." in (tmp_path / "dev.log").read_text("utf-8")
    assert reader.compared >= 12


def test_the_help_desk_of_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    model = (ROOT / "examples" / "helpdesk" / "helpdesk.py").read_text("utf-8")
    reader = Reader(tmp_path, free_port())
    (tmp_path / "helpdesk.py").write_text(model, "utf-8")
    with developing(tmp_path, reader.port, HELP_DESK):
        for kind, text in blocks(HELP_DESK):
            if kind == "python":
                assert text in model
            else:
                reader.read(kind, text)
    assert reader.compared >= 10


def test_the_stream_of_the_tutorial_prints_a_change(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(code(TUTORIAL, "python")[0], "utf-8")
    (line,) = [block for block in code(TUTORIAL, "console") if block.startswith("curl -sN")]
    port = free_port()
    with developing(tmp_path, port) as client:
        command = line.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace("curl", f"curl --max-time {PATIENCE}", 1)
        with subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=subprocess.PIPE, text=True) as stream:
            assert stream.stdout is not None
            assert next(stream.stdout) == "retry: 1000\n"
            project = client.post("/projects", {"name": "Garden"}).json()["id"]
            client.post("/tasks", {"title": "Dig", "projectId": project})
            event = next(line for line in stream.stdout if line.startswith("data: "))
            stream.terminate()
    assert '"kind":"CREATED"' in event and '"task":{"title":"Dig","done":false}' in event


# the guides


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with the last model of the tutorial."""
    (tmp_path / "tasks.py").write_text(code(TUTORIAL, "python")[-1], "utf-8")
    return tmp_path


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    env = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # those of this checkout: a reader has none of them
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_tests_of_the_guide_pass_and_see_a_wrong_rule(model: Path) -> None:
    (tests,) = code(PAGES / "how-to" / "test-rules.md", "python")
    (model / "test_rules.py").write_text(tests, "utf-8")
    (settings,) = code(PAGES / "how-to" / "test-rules.md", "toml")
    (model / "pyproject.toml").write_text(settings, "utf-8")
    plugins = ("-p", "no:cacheprovider", "-p", "diptych.pytest_plugin")
    options = ("-m", "pytest", "-q", *plugins, "--rootdir", ".", "test_rules.py")
    done = python(model, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    right = (model / "tasks.py").read_text("utf-8")
    wrong = right.replace("not_(self.private) | viewer.has(member)", "not_(self.private) | not_(viewer.has(lead))")
    assert wrong != right
    (model / "tasks.py").write_text(wrong, "utf-8")
    done = python(model, *options)
    assert "test_a_private_task_is_hidden_from_strangers" in done.stdout and done.returncode == 1


def test_the_application_of_the_guide_serves_both(model: Path) -> None:
    (source,) = code(PAGES / "how-to" / "fastapi.md", "python")
    (model / "main.py").write_text(source, "utf-8")
    (model / "try.py").write_text(
        "from starlette.testclient import TestClient\nfrom main import app\n"
        "with TestClient(app) as client:\n"
        "    print(client.get('/hello').json(), client.get('/api/projects').json()['data'], sep='|')\n"
        "    print(client.post('/api/graphql', json={'query': '{ tasks { title } }'}).text)\n",
        "utf-8",
    )
    done = python(model, "try.py")
    assert done.stdout == 'hello|[]\n{"data":{"tasks":[]}}\n', done.stderr


ALL_TYPES = """
from __future__ import annotations
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated
from diptych import BigInt, Digits, Json, Model, Resource, grant, now

class Size(StrEnum):
    small = "small"
    large = "large"

class Shelf(Resource, ids="integer", plural="shelves"):
    name: str
    access = (grant("read", "create", "update", "delete"),)

class Thing(Resource):
    text: str | None = None
    count: int = 0
    large: BigInt = 0
    flag: bool = False
    ratio: float = 0.5
    total: Annotated[Decimal, Digits(8, 2)]
    day: date
    moment: datetime = now()
    size: Size = Size.small
    extra: Json | None = None
    shelf: Shelf | None = None
    above: Thing | None = None
    access = (grant("read", "create", "update", "delete"),)

model = Model(Thing, Shelf)
"""


def test_the_command_of_the_guide_moves_every_type(tmp_path: Path, new_sqlite: NewDatabase, postgres: Postgres) -> None:
    (tmp_path / "tasks.py").write_text(ALL_TYPES, "utf-8")
    commands = code(PAGES / "how-to" / "postgresql.md", "console")[0]
    (command,) = [line for line in commands.splitlines() if line.startswith("$ diptych move")]
    old, new = new_sqlite(), postgres.create()
    things: list[dict[str, Any]] = [
        {"text": "a ☂", "count": -7, "large": "9007199254740993", "flag": True, "ratio": 2.25, "total": "12.50"}
        | {"day": "2026-01-31", "moment": "2026-01-31T12:00:00.000001Z", "size": "large", "extra": {"a": [1, None]}},
        {"total": "-0.05", "day": "1999-12-31"},
    ]
    options = ("tasks:model",)
    with served(old, *options, cwd=tmp_path) as service:
        shelf = service.post("/shelves", {"name": "top"}).json()["id"]
        first = service.post("/things", things[0] | {"shelfId": shelf}).json()["id"]
        assert service.post("/things", things[1] | {"aboveId": first}).status == 201
        before = [service.get(f"/{name}?sort=id").json()["data"] for name in ("things", "shelves")]
    token = diptych("token", "--model", "tasks:model", "--database", old, cwd=tmp_path).stdout.strip()
    _, _, *words = (
        command.replace("sqlite:///tasks.db", old).replace("postgresql://app:secret@127.0.0.1/tasks", new).split()
    )
    done = diptych(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Moved 3 rows and 3 changes of the feed, and verified them.\n")
    with served(new, *options, cwd=tmp_path) as service:
        after = [service.get(f"/{name}?sort=id").json()["data"] for name in ("things", "shelves")]
        assert after == before
        assert service.signed_in(token).get("/things").status == 200
        assert service.post("/shelves", {"name": "next"}).json()["id"] == str(int(shelf) + 1)
        changes = service.get("/shelves/changes?fields=name").json()["data"]
        assert [change["shelf"] for change in changes] == [{"name": "top"}, {"name": "next"}]


def test_nginx_of_the_guide_passes_requests_on(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    (shown,) = code(PAGES / "how-to" / "nginx.md", "nginx")
    plain = re.sub(r"    (?:http2|server_name|ssl_certificate\S*) .*;\n", "", shown).replace("443 ssl", "LISTEN")
    with served(new_sqlite(), "--sample", "--trusted-proxies", "127.0.0.1") as service:
        config = plain.replace("http://127.0.0.1:8000", service.url)
        assert config != plain
        with nginx(config, tmp_path) as front:
            assert front.get("/users?first=1&fields=name").json()["page"]["size"] == 1


def names(text: str) -> set[str]:
    return set(re.findall(r"\bDIPTYCH_([A-Z_]+)=", text))


@pytest.mark.parametrize(("page", "language"), [("systemd.md", "ini"), ("container.md", "dockerfile")])
def test_the_settings_of_a_guide_exist(page: str, language: str) -> None:
    (text,) = code(PAGES / "how-to" / page, language)
    assert names(text)
    assert names(text) <= {setting.name.upper() for setting in SETTINGS}


def test_systemd_accepts_the_unit_of_the_guide(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze")
    (text,) = code(PAGES / "how-to" / "systemd.md", "ini")
    unit = tmp_path / "tasks.service"
    unit.write_text(
        text.replace("/opt/tasks/.venv/bin/diptych", "/bin/true").replace("User=tasks", "User=root"), "utf-8"
    )
    done = subprocess.run([program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert "tasks.service" not in done.stderr, done.stderr


# the pictures


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_source_draws(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == PICTURES[name]().render()


def test_every_picture_has_a_source() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)
