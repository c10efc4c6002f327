"""The command line: complete help, useful output, and errors in one sentence with exit status 2."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from graphql import build_schema

from diptych.config import SETTINGS, Config, load
from diptych.db.connect import connect
from diptych.demo.model import model as default_model
from diptych.identity.accounts import Accounts
from diptych.identity.records import Account
from diptych.identity.revocation_list import RevocationList
from tests.support.running import (
    ROOT,
    Client,
    Command,
    NewDatabase,
    Postgres,
    diptych,
    make_tables,
    running,
    served,
    token,
)

COMMANDS = (
    *("dev", "serve", "schema", "openapi", "explain", "rules", "check", "limits", "token", "login"),
    *("import", "export", "backup", "restore", "move", "triggers"),
)
GROUPS = (
    *(
        "account",
        "audit",
        "cells",
        "client",
        "contract",
        "issuer",
        "jobs",
        "key",
        "api-key",
        "documents",
        "migrate",
        "webhook",
    ),
)
NOTES = '''
from diptych import Model, Resource, grant


class Note(Resource):
    """A note."""

    text: str = ""
    access = (grant("read"),)


model = Model(Note)
'''
BROKEN = """
from diptych import Model, Resource, inverse


class Note(Resource):
    text: complex
    parts: "list[Note]" = inverse("nothing")


model = Model(Note)
"""


def failed(done: subprocess.CompletedProcess[str]) -> str:
    """What a command that failed says: one sentence."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith((".\n", "?\n")), done.stderr
    return done.stderr


# help


def test_the_help_lists_every_command(command: Command) -> None:
    done = command("--help")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert sorted((*COMMANDS, *GROUPS, "new", "inspect")) == listed


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_tells_what_each_option_is_for(name: str, command: Command) -> None:
    done = command(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.partition("Options:")[2]
    assert re.findall(r"^  (--[\w-]+)", told, re.MULTILINE)
    assert re.findall(r"^  --.*\n(?!      )", told, re.MULTILINE) == re.findall(
        r"^  --.*  \S.*\n(?!      )", told, re.MULTILINE
    )


def test_every_setting_has_a_flag_with_its_default(command: Command) -> None:
    told = {name: " ".join(command(name, "--help").stdout.split()) for name in ("serve", "dev")}
    for setting in SETTINGS:
        flag = f"--{setting.name.replace('_', '-')} "
        assert (flag in told["serve"]) == setting.has_flag
        assert (flag in told["dev"]) == (setting.has_flag and setting.name != "workers")
    assert "[default: sqlite:///diptych.db]" in told["serve"]
    assert "sample data (default model only). [default: no]" in told["serve"]
    assert "sample data (default model only). [default: yes]" in told["dev"]


def test_without_a_command_the_help_is_shown(command: Command) -> None:
    done = command()
    assert done.returncode == 2
    assert "Commands:" in done.stderr


# output


def test_schema_prints_the_sdl_of_a_role(command: Command) -> None:
    done = command("schema", "--as", "anonymous")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(build_schema(done.stdout).type_map) >= {"User", "Post", "Comment"}
    assert "type Order " in command("schema").stdout  # the role that sees most


def test_openapi_prints_the_document_of_a_role(command: Command) -> None:
    done = command("openapi", "--as", "anonymous")
    assert (done.returncode, done.stderr) == (0, "")
    assert "/orders" not in json.loads(done.stdout)["paths"]
    assert "/orders" in json.loads(command("openapi").stdout)["paths"]


def test_explain_shows_the_same_ask_for_both_styles(command: Command) -> None:
    fields = "fields=title,author(name)"
    one = command("explain", f"GET /posts/x?{fields}", "--as", "anonymous").stdout
    other = command("explain", '{ post(id: "x") { title author { name } } }', "--as", "anonymous").stdout
    assert one == other
    for word in ("Ask 0", "Price  2", "Depth  2", "sqlite", "postgres", "SELECT", "binds"):
        assert word in one


def test_explain_takes_variables(command: Command) -> None:
    query = "query ($n: Int!) { posts(first: $n) { title } }"
    done = command("explain", query, "--variables", '{"n": 7}')
    assert "Values [7]" in done.stdout


def test_check_tells_that_a_model_works(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    done = command("check", "notes:model")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Note" in done.stdout
    assert command("check").returncode == 0


def test_commands_find_a_model_in_the_current_directory(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    assert "type Note" in command("schema", "notes:model").stdout
    assert "/notes" in json.loads(command("openapi", "notes:model").stdout)["paths"]
    done = command("explain", "{ notes { text } }", "--model", "notes:model")
    assert '"notes"' in done.stdout


def test_a_token_is_good_for_the_database_that_signed_it(new_database: NewDatabase, new_sqlite: NewDatabase) -> None:
    database = new_database()
    with served(database, "--sample") as service:
        assert service.get("/orders").status == 401
        assert service.signed_in(token(database, "staff")).get("/orders").status == 200
        assert service.signed_in(token(make_tables(new_sqlite()), "staff")).get("/orders").status == 401
        narrowed = token(database, "staff", scopes=["users:read"])
        assert service.signed_in(narrowed).get("/users").status == 200
        assert service.signed_in(narrowed).get("/orders").status == 403


# errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--database", "mysql://localhost/x"], "begins with 'mysql'; use sqlite:///PATH or postgresql://"),
        (["serve", "--database", "sqlite://x.db"], "has three slashes and a path: sqlite:///PATH"),
        (["serve", "--database", "sqlite:///:memory:"], "name a file: sqlite:///PATH"),
        (["serve", "--database", "sqlite:///."], "The SQLite database . cannot be opened"),
        (["serve", "--database", "sqlite:///no/x.db"], "The SQLite database no/x.db cannot be opened"),
        (["serve", "--database", "sqlite:///notes.py"], "file is not a database"),
        (["serve", "--database", "postgresql://127.0.0.1:1/x"], "The PostgreSQL database cannot be opened"),
        (["token", "--database", "postgresql:///x?host=/no"], "The PostgreSQL database cannot be opened"),
        (["serve", "--database", "postgresql://[x"], "The PostgreSQL database cannot be opened"),
        (["token", "--role", "nobody"], "no role named nobody; its roles are"),
        (["schema", "--as", "nobody"], "no role named 'nobody'; there are anonymous, signed_in, staff, admin"),
        (["openapi", "--as", "nobody"], "no role named 'nobody'"),
        (["check", "nowhere:model"], "There is no module named 'nowhere' here"),
        (["check", "nowhere.deep:model"], "There is no module named 'nowhere.deep' here"),
        (["check", "notes"], "write MODULE:MODEL, such as blog:model"),
        (["check", "notes:other"], "notes has no Model named 'other'"),
        (["check", "unsound:model"], "The module 'unsound' cannot be imported: invalid syntax (unsound.py:1)"),
        (["check", "raising:model"], "ZeroDivisionError: division by zero (raising.py:1)"),
        (["check", "wanting:model"], "The module 'wanting' needs 'not_installed', which is not installed"),
        (["dev", "--host", "0.0.0.0"], "without --allow-remote"),
        (["dev", "--host", "::"], "without --allow-remote"),
        (["serve", "--host", "no.invalid"], "cannot listen on no.invalid, port 8000: there is no such host"),
        (["serve", "--port", "65536"], "'--port': '65536': expected a port from 0 to 65535"),
        (["serve", "--port", "http"], "'--port': 'http': expected a whole number"),
        (["serve", "--workers", "0"], "expected a number of 1 or more"),
        (["serve", "--statement-timeout", "nan"], "expected a number of seconds"),
        (["serve", "--base-url", "example.org"], "expected an address such as https://"),
        (["serve", "--no-such-flag"], "No such option '--no-such-flag'"),
        (["nothing"], "No such command 'nothing'. Try 'diptych --help' for help."),
        (["chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["export"], "Missing argument 'RESOURCE'. Try 'diptych export --help' for help."),
        (["explain", "{ users { nope } }"], "GRAPHQL_VALIDATION_FAILED"),
        (["explain", "{ users"], "GRAPHQL_PARSE_FAILED"),
        (["explain", "GET /nothing"], "There is no path /nothing"),
        (["explain", "GET /users/1/nothing"], "There is no path /users/1/nothing"),
        (["explain", "{ users { id } }", "--variables", "{"], "--variables is not a JSON object"),
        (["explain", "{ users { id } }", "--variables", "[1]"], "--variables is not a JSON object"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_an_error_is_one_clear_sentence(arguments: list[str], said: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    (tmp_path / "unsound.py").write_text("def (")
    (tmp_path / "raising.py").write_text("1 / 0")
    (tmp_path / "wanting.py").write_text("import not_installed")
    assert said in failed(command(*arguments))


def test_check_warns_of_a_resource_without_rules(command: Command, tmp_path: Path) -> None:
    source = "from diptych import Model, Resource\n\n\nclass Note(Resource):\n    text: str\n\n\nmodel = Model(Note)\n"
    (tmp_path / "notes.py").write_text(source)
    assert command("check", "notes:model").stdout.splitlines()[1:] == [
        "Warning: Note (notes.py:4) has no access and no rule, so it exists for nobody. "
        'Write access = (grant("read"),), or a rule with @allow'
    ]


def test_every_fault_of_an_explained_request_is_told(command: Command) -> None:
    done = command("explain", "GET /users?nope=1&first=x")
    assert done.returncode == 2
    assert "query.nope" in done.stderr


@pytest.mark.parametrize("command", ["check", "serve", "dev", "schema", "openapi", "token"])
def test_every_mistake_of_a_model_is_told_at_once(command: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    done = diptych(command, "broken:model", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    first, *mistakes = done.stderr.splitlines()
    assert first == "The model cannot work:"
    assert [line.partition(" ")[0] for line in mistakes] == ["Note.text", "Note.parts"]
    assert "(broken.py:6)" in mistakes[0]


def test_a_port_that_is_taken_is_told(new_sqlite: NewDatabase) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        for command in ("serve", "dev"):
            said = failed(diptych(command, "--database", new_sqlite(), "--port", port))
            assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in said


def test_a_database_that_does_not_fit_is_told(database: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    (tmp_path / "others.py").write_text(NOTES.replace('text: str = ""', "text: int"))
    with served(database, model="notes:model", cwd=tmp_path):
        """It makes the tables."""
    done = command("serve", "others:model", "--database", database)
    assert (done.returncode, done.stdout) == (2, "")
    what, fix, command_to_run = done.stderr.splitlines()
    assert what.startswith("The database does not fit the model: the column notes.text is") and what.endswith(".")
    assert fix == "- notes.text: change the table by hand (docs/reference/model.md, Changing a database by hand)."
    assert "`diptych migrate make`" in command_to_run and "`diptych migrate apply`" in command_to_run


def test_a_postgres_in_another_encoding_is_refused(postgres: Postgres) -> None:
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    said = failed(diptych("serve", "--database", postgres.url("latin")))
    assert said == "The PostgreSQL database is encoded in LATIN1, and must be in UTF8.\n"


def test_what_a_postgres_forbids_is_told(postgres: Postgres) -> None:
    database = postgres.create()
    postgres.execute("CREATE ROLE guest LOGIN")
    said = failed(diptych("serve", "--database", database.replace("postgres:@", "guest:@")))
    assert "permission denied" in said


# settings


def test_a_flag_comes_before_the_environment_before_the_file_before_the_default(tmp_path: Path) -> None:
    for setting in (each for each in SETTINGS if each.has_flag):
        low, middle, high = _SPECIAL.get(setting.name) or _values(setting.default)
        file = tmp_path / "diptych.toml"
        file.write_text(f"{setting.name} = {json.dumps(low)}\n")
        env = {f"DIPTYCH_{setting.name.upper()}": ",".join(middle) if isinstance(middle, tuple) else str(middle)}
        found = (
            load({}, tmp_path / "none.toml", {}),
            load({}, file, {}),
            load({setting.name: None}, file, env),
            load({setting.name: high}, file, env),
        )
        assert [getattr(each, setting.name) for each in found] == [setting.default, low, middle, high], setting.name


def test_the_further_addresses_of_a_database_are_not_those_of_another(tmp_path: Path) -> None:
    file = tmp_path / "diptych.toml"
    further = 'direct_database = "postgresql://b"\nreplicas = ["postgresql://c"]\nrelay = "nats://n"\n'
    file.write_text(f'database = "postgresql://a"\n{further}')
    assert load({}, file, {}).direct_database == "postgresql://b"
    other = load({"database": "postgresql://other"}, file, {})
    assert (other.direct_database, other.replicas, other.relay) == ("", (), ())
    flags = {"database": "postgresql://other", "direct_database": "postgresql://d"}
    assert load(flags, file, {}).direct_database == "postgresql://d"


_SPECIAL: dict[str, tuple[Any, Any, Any]] = {
    "direct_database": ("postgresql://a", "postgresql://b", "postgresql://c"),
    "pool_mode": ("transaction", "session", "transaction"),
    "relay": (("nats://a:4222",), ("nats://b:4222", "tls://u:p@c"), ("nats://d",)),
    "replicas": (("postgresql://a",), ("postgresql://b,c/d", "postgresql://e"), ("postgresql://f",)),
    "cors_headers": (("X-A",), ("X-B", "X-C"), ("X-D",)),
    "log_format": ("json", "text", "json"),
    "log_level": ("debug", "info", "error"),
    "registration_origins": (("https://a",), ("https://b", "http://127.0.0.1"), ("https://d",)),
    "trusted_proxies": ("10.0.0.1", "10.0.0.0/8", "::1"),
    "metrics_address": ("127.0.0.1:9464", "0.0.0.0:9464", "[::1]:9464"),
    "webhook_networks": ("10.0.0.1", "10.0.0.0/8", "*"),
}
"""Three values of each setting that takes no arbitrary text."""


def _values(default: Any) -> tuple[Any, Any, Any]:
    """Three values of a setting."""
    if isinstance(default, bool):
        return (not default, default, not default)
    if isinstance(default, float) and default < 1:
        return (0.1, 0.2, 0.3)
    if isinstance(default, tuple):
        return (("http://a",), ("http://b", "http://c"), ("http://d",))
    return (21, 22, 23) if isinstance(default, int | float) else ("http://a", "http://b", "http://c")


def test_settings_reach_the_service_from_flag_environment_and_file(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    (tmp_path / "diptych.toml").write_text("max_page = 30\nmax_depth = 3\nmax_complexity = 300\n")
    with running(
        "serve", "--max-page", "50", database=new_sqlite(), cwd=tmp_path, DIPTYCH_MAX_PAGE="40", DIPTYCH_MAX_DEPTH="2"
    ) as service:
        assert (service.get("/users?first=50").status, service.get("/users?first=51").status) == (200, 400)
        assert service.get("/users?fields=posts[first=1](id)").status == 200
        deep = service.get("/users?fields=posts[first=1](comments[first=1](id))").json()
        assert deep["detail"] == "The request is 3 levels deep; 2 are allowed."
        dear = service.get("/users?first=50&fields=posts[first=50](id)").json()
        assert dear["detail"] == (
            "The request could return 2550 objects; 300 are allowed. "
            "A `first` of at most 5 on users.posts, instead of 50, would help."
        )


@pytest.mark.parametrize(
    ("file", "env", "said"),
    [
        ("port = 'x'", {}, "The setting port in diptych.toml cannot be 'x': expected a whole number."),
        ("portt = 1", {}, "diptych.toml has no setting named portt; did you mean port?"),
        ("nothing = 1", {}, "no setting named nothing. All settings are in docs/reference/settings.md."),
        ("port =", {}, "diptych.toml cannot be read"),
        ("sample = 3", {}, "The setting sample in diptych.toml cannot be '3': expected true or false."),
        ("", {"DIPTYCH_WORKERS": "-1"}, "The environment variable DIPTYCH_WORKERS cannot be '-1'"),
    ],
)
def test_a_setting_that_is_wrong_is_told_with_its_place(
    file: str, env: Mapping[str, str], said: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "diptych.toml").write_text(file)
    assert said in failed(command("serve", **env))


def test_dev_fills_in_sample_data_unless_a_setting_says_no(new_sqlite: NewDatabase) -> None:
    for more, expected in (([], 40), (["--no-sample"], 0)):
        with running("dev", *more, database=new_sqlite()) as service:
            assert service.get("/users?count=exact").json()["page"]["total"] == expected
    with running("dev", database=new_sqlite(), DIPTYCH_SAMPLE="no") as service:
        assert service.get("/users?count=exact").json()["page"]["total"] == 0


# serving


def test_dev_prints_a_token_a_login_and_requests_that_work(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with running("dev", database=database) as service:
        printed = service.out.wait(r"token[^\n]*\n(\S+)\n\nA login[^\n]*\n(\S+)  (\S+)\n\n(curl .*)\n(curl .*)\n")
        admin = service.signed_in(printed[1])
        assert admin.get("/orders?fields=internalNote").status == 200
        issuer = json.loads(base64.urlsafe_b64decode(printed[1].split(".")[1] + "=="))["iss"]
        assert issuer == service.get("/.well-known/openid-configuration").json()["issuer"]
        assert asyncio.run(_can_sign_in(database, printed[2], printed[3]))
        assert not asyncio.run(_can_sign_in(database, printed[2], "another password"))
        by_rest = follow(service, printed[4])
        by_query = follow(service, printed[5])
        assert by_rest["data"] == by_query["data"]["users"]
        assert len(by_rest["data"]) == 2 and by_rest["data"][0]["name"]


async def _can_sign_in(database: str, email: str, password: str) -> bool:
    store = connect(Config(database=database))
    await store.open(default_model)
    try:
        found = await Accounts(store, RevocationList(store)).authenticate(email, password, "127.0.0.1")
        return isinstance(found, Account) and found.roles == ("admin",)
    finally:
        await store.close()


def follow(client: Client, line: str) -> Any:
    """Do what a line of curl does."""
    words = shlex.split(line)[1:]
    target = urlsplit(next(word for word in words if word.startswith("http")))
    path = f"{target.path}?{target.query}" if target.query else target.path
    if "-d" not in words:
        return client.get(path.replace("\\", "")).json()
    name, value = words[words.index("-H") + 1].split(": ")
    body = words[words.index("-d") + 1].encode()
    return client.request("POST", path, {name: value}, body).json()


@pytest.mark.parametrize("place", ["here", "there"])
def test_dev_reloads_when_the_model_changes_and_adds_new_columns(
    place: str, new_sqlite: NewDatabase, tmp_path: Path
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    file = tmp_path / place / "notes.py"
    file.write_text(NOTES)
    path = f"{ROOT / 'src'}:{tmp_path / place}"
    with running("dev", "notes:model", database=new_sqlite(), cwd=tmp_path / "here", PYTHONPATH=path) as service:
        assert service.get("/notes?fields=text").status == 200
        assert service.get("/notes?fields=mood").status == 400
        file.write_text(NOTES.replace('text: str = ""', 'text: str = ""\n    mood: str | None = None'))
        service.err.wait(r"(?s)Reloading.*Application startup complete")
        assert service.get("/notes?fields=mood").status == 200


def test_dev_tells_of_a_mistake_and_goes_on_when_it_is_mended(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(NOTES)
    with running("dev", "notes:model", database=new_sqlite(), cwd=tmp_path) as service:
        file.write_text(BROKEN)
        service.err.wait(r"(?s)Reloading.*The model cannot work:\nNote\.text .*\nNote\.parts ")
        file.write_text(NOTES + "\n# mended\n")
        service.err.wait(r"(?s)Reloading.*Reloading.*Application startup complete")
        assert service.get("/notes?fields=text").status == 200


def test_dev_listens_for_others_if_it_is_told_to(new_sqlite: NewDatabase) -> None:
    with running("dev", "--host", "0.0.0.0", "--allow-remote", database=new_sqlite()) as service:
        assert service.get("/users").status == 200


def test_several_workers_share_a_database(new_database: NewDatabase) -> None:
    database = new_database()
    with served(database, "--workers", "2", "--sample") as service:
        admin = service.signed_in(token(database, "admin"))
        seen: list[str] = []
        following = "/orders?first=2&fields=id"
        while following:
            answer = admin.get(following)
            assert answer.status == 200
            seen += [each["id"] for each in answer.json()["data"]]
            cursor = answer.json()["page"]["next"]
            following = f"/orders?first=2&fields=id&after={cursor}" if cursor else ""
        assert len(set(seen)) == len(seen) == 80


def test_the_printed_address_is_the_one_that_was_taken(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite()) as service:
        assert service.port != 0
        assert f"REST     {service.url}/openapi.json lists every path" in service.out.text


def test_the_public_address_is_printed_where_one_is_set(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with served(database, "--base-url", "https://api.example.org/") as service:
        assert "GraphQL  https://api.example.org/graphql\n" in service.out.text
        assert service.get("/openapi.json").json()["servers"] == [{"url": "https://api.example.org"}]
        for flags in ((), ("--base-url", "https://api.example.org")):  # it is remembered
            issued = diptych("token", "--database", database, *flags).stdout.strip()
            assert service.signed_in(issued).get("/users").status == 200
        other = diptych("token", "--database", database, "--base-url", "https://other.example.org")
        assert (other.returncode, other.stdout) == (2, "")
        assert "run `diptych issuer set https://other.example.org`" in other.stderr


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_ends_the_service_cleanly(ending: signal.Signals, workers: str, new_sqlite: NewDatabase) -> None:
    with (
        served(new_sqlite(), "--workers", workers) as service,
        socket.create_connection(("127.0.0.1", service.port)) as idle,
    ):
        idle.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(100).startswith(b"HTTP/1.1 200")
        service.process.send_signal(ending)
        service.process.wait(30)
        assert service.process.returncode in (0, -ending)
        assert service.err.text == ""
        with pytest.raises(ConnectionRefusedError):
            service.get("/health/live")
