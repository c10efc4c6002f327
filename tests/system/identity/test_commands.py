"""The commands about accounts, clients and keys: what they print, ask and refuse, and what a running service makes of it."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from argon2.profiles import CHEAPEST

from diptych.identity import passwords
from diptych.identity.records import Account
from tests.contract.http.data import ANN as ANN_ID
from tests.contract.identity.desk import ANN, PASSWORD, NewDesk
from tests.support.effort import long_where
from tests.support.running import PATIENCE, ROOT, Command, NewDatabase, environment, make_tables, served, token

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""

GROUPS = {
    "account": ("add", "disable", "enable", "list", "password", "remove", "reset-totp", "roles"),
    "api-key": ("add", "list", "remove"),
    "client": ("add", "list", "remove"),
    "issuer": ("set", "show"),
    "key": ("list", "remove", "rotate"),
}
EVERY = [(group, name) for group, names in GROUPS.items() for name in names]
BACK = "https://app.example.org/back"
NOTES = """
from diptych import Model, Resource, Role, grant

editor = Role("editor")


class Note(Resource):
    text: str = ""
    access = (grant("read", to=editor),)


model = Model(Note)
"""

Run = Callable[..., str]


def failed(done: subprocess.CompletedProcess[str]) -> str:
    """What a command that failed says: one sentence."""
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.endswith(".\n"), done.stderr
    return done.stderr


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """A database that was served before."""
    return make_tables(new_database())


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process hash passwords quickly; `test_accounts` looks at the real parameters."""
    monkeypatch.setattr(passwords, "RFC_9106_LOW_MEMORY", CHEAPEST)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Gives a command something on standard input."""

    def give(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), "utf-8"))

    return give


@pytest.fixture
def run(command: Command, database: str) -> Run:
    """Runs a command that must succeed; gives what it prints."""

    def go(*arguments: str) -> str:
        done = command(*arguments, "--database", database)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    return go


def table(text: str) -> list[dict[str, str]]:
    """The rows of a listing, by the places of its heads."""
    head, *lines = text.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", head)]
    ends = [*starts[1:], None]
    return [{head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)} for line in lines]


# help


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_lists_its_commands(group: str, command: Command) -> None:
    done = command(group, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == list(GROUPS[group])


@pytest.mark.parametrize(("group", "name"), EVERY, ids=[" ".join(each) for each in EVERY])
def test_the_help_of_a_command_tells_what_each_option_is_for(group: str, name: str, command: Command) -> None:
    done = command(group, name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    options = re.findall(r"^  (?:-h, )?(--[\w-]+)(?: [A-Z:]+)?(?:  +|\n +)(\S.*)$", done.stdout, re.MULTILINE)
    assert {"--database", "--model", "--help"} <= {option for option, _ in options}
    assert len(options) == len(re.findall(r"^  (?:-h, )?--", done.stdout, re.MULTILINE))


# accounts


def test_accounts_are_added_listed_changed_and_removed(
    run: Run, typed: Callable[[bytes], None], new_desk: NewDesk
) -> None:
    typed(b"correct horse\n")
    said = run(
        "account", "add", " Ann@Example.org", "--role", "staff", "--role", "admin", "--user", ANN_ID, "--password-stdin"
    )
    assert said == "ann@example.org can sign in.\n"
    typed("ein Pferd, größer\r\nanother line".encode())
    run("account", "add", "ben@example.org", "--password-stdin")
    listing = run("account", "list")
    ann, ben = table(listing)
    assert (ann["EMAIL"], ann["USER"], ann["ROLES"], ann["STATE"]) == (ANN, ANN_ID, "admin staff", "enabled")
    assert (ben["EMAIL"], ben["USER"], ben["ROLES"]) == ("ben@example.org", "-", "-")
    assert "argon2" not in listing and not any(line.endswith(" ") for line in listing.splitlines())

    assert run("account", "roles", ANN, "--role", "staff") == "ann@example.org has the roles staff.\n"
    assert run("account", "roles", "ben@example.org") == "ben@example.org has no roles.\n"
    assert run("account", "disable", ANN) == "ann@example.org is disabled.\n"
    (ann, _) = table(run("account", "list"))
    assert (ann["ROLES"], ann["STATE"]) == ("staff", "disabled")
    assert run("account", "enable", ANN) == "ann@example.org is enabled.\n"
    typed(b"another horse")
    assert run("account", "password", ANN, "--password-stdin") == "ann@example.org has a new password.\n"
    assert run("account", "remove", "ben@example.org") == "ben@example.org is removed.\n"

    one = new_desk()
    assert [each.email for each in one.run(one.accounts.all())] == [ANN]
    assert one.sign_in(ANN, "correct horse") is None
    assert isinstance(one.sign_in(ANN, "another horse"), Account)


def test_a_password_is_asked_for_twice_and_not_shown(new_desk: NewDesk, database: str) -> None:
    shown = at_terminal(
        ["account", "add", ANN, "--database", database],
        [
            ("Password: ", PASSWORD),
            ("Repeat for confirmation: ", "mistyped"),
            ("Password: ", PASSWORD),
            ("Repeat for confirmation: ", PASSWORD),
            ("can sign in.", None),
        ],
    )
    assert PASSWORD not in shown and "mistyped" not in shown and "do not match" in shown
    one = new_desk()
    assert isinstance(one.sign_in(), Account)


def at_terminal(arguments: list[str], dialogue: list[tuple[str, str | None]]) -> str:
    """Run a command at a terminal, answer what it asks, and give all that was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "diptych", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(),
        cwd=ROOT,
        start_new_session=True,
    )
    os.close(theirs)
    shown, seen = "", 0
    try:
        for asked, answer in dialogue:
            while asked not in shown[seen:]:
                shown += os.read(ours, 1_000).decode()
            seen = shown.index(asked, seen) + len(asked)
            if answer is not None:
                os.write(ours, answer.encode() + b"\n")
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return shown


# clients


def test_clients_are_added_listed_and_removed(run: Run) -> None:
    public = run("client", "add", "My App", "--redirect", BACK, "--redirect", "http://127.0.0.1/", "--scope", "read")
    (id,) = re.findall(r"\Aclient_id      (\w+)\n\Z", public)
    private = run(
        "client", "add", "Job", "--confidential", "--role", "staff", "--scope", "users:read", "--scope", "orders:read"
    )
    found = re.fullmatch(r"client_id      (\w+)\nclient_secret  (\S{43})\n", private)
    assert found
    listing = run("client", "list")
    job, app = table(listing)
    assert (job["NAME"], job["CLIENT_ID"], job["KIND"], job["REDIRECTS"]) == ("Job", found[1], "confidential", "-")
    assert (job["ROLES"], job["SCOPES"]) == ("staff", "orders:read users:read")
    assert (app["NAME"], app["CLIENT_ID"], app["KIND"]) == ("My App", id, "public")
    assert (app["REDIRECTS"], app["ROLES"], app["SCOPES"]) == (f"{BACK} http://127.0.0.1/", "-", "read")
    assert found[2] not in listing
    assert run("client", "remove", "Job") == "Job is removed.\n"
    assert [each["NAME"] for each in table(run("client", "list"))] == ["My App"]


# keys


def test_keys_are_rotated_listed_and_removed(run: Run, command: Command, database: str) -> None:
    assert table(run("key", "list")) == []
    run("token")
    (only,) = table(run("key", "list"))
    assert (only["KID"], only["STATE"]) == ("1", "signs")
    (kid,) = re.findall(r"\AThe key (\w+) signs from now on.\n\Z", run("key", "rotate"))
    new, old = table(run("key", "list"))
    assert (new["KID"], new["STATE"], old["KID"]) == (kid, "signs", "1")
    assert old["STATE"].startswith("needed until 20")
    assert "is needed until" in failed(command("key", "remove", "1", "--database", database))
    assert run("key", "remove", "1", "--at-once") == "The key 1 is removed.\n"
    assert "is the one that signs; rotate first" in failed(
        command("key", "remove", kid, "--at-once", "--database", database)
    )


# API keys


def test_api_keys_are_added_listed_and_removed(run: Run) -> None:
    text = run("api-key", "add", "Robot", "--role", "staff", "--scope", "read", "--ttl", "3600", "--user", "u1")
    assert re.fullmatch(r"dk_[0-9a-f]{16}_\S{43}\n", text)
    run("api-key", "add", "Another robot")
    listing = run("api-key", "list")
    other, robot = table(listing)
    assert (robot["NAME"], robot["USER"], robot["ROLES"], robot["SCOPES"]) == ("Robot", "u1", "staff", "read")
    assert robot["EXPIRES"].endswith("Z") and robot["LAST_USE"] == "-"
    assert (other["NAME"], other["USER"], other["ROLES"], other["EXPIRES"]) == ("Another robot", "-", "-", "-")
    assert text[20:-1] not in listing
    assert run("api-key", "remove", "Robot") == "Robot is removed.\n"
    assert [each["NAME"] for each in table(run("api-key", "list"))] == ["Another robot"]


# a service that runs


def test_a_running_service_learns_of_what_commands_do(run: Run, database: str) -> None:
    with served(database, "--sample") as service:
        text = run("api-key", "add", "Robot", "--role", "staff").strip()
        robot, staff = service.signed_in(text), service.signed_in(token(database, "staff"))
        assert (robot.get("/orders").status, staff.get("/orders").status) == (200, 200)
        (listed,) = table(run("api-key", "list"))
        assert listed["LAST_USE"].endswith("Z")

        run("key", "rotate")
        assert service.signed_in(token(database, "staff")).get("/orders").status == 200
        run("key", "remove", "1", "--at-once")
        run("api-key", "remove", "Robot")
        for client in (robot, staff):
            while (status := client.get("/orders").status) == 200:
                pass
            assert status == 401


def test_the_commands_of_the_docs_work(run: Run, typed: Callable[[bytes], None]) -> None:
    run("token")  # with which comes the first key
    page = (ROOT / "docs" / "reference" / "accounts.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.+?)```", page, re.DOTALL) for line in block.splitlines()]
    assert {tuple(shlex.split(line)[1:3]) for line in lines} == set(EVERY)
    for line in lines:
        _, *words = shlex.split(line)
        typed(b"correct horse\n")
        run(*words, *(["--password-stdin"] if words[:2] in (["account", "add"], ["account", "password"]) else []))


# errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["account", "add", "ann", "--password-stdin"], "'ann' is no e-mail address"),
        (
            ["account", "add", ANN, "--role", "nobody", "--password-stdin"],
            "The model has no role named nobody; its roles are",
        ),
        (["account", "add", ANN, "--user", "a b", "--password-stdin"], "The id of a user has"),
        (["account", "add", ANN, "--password-stdin"], "A password has 8 to 256 characters"),
        (["account", "add", ANN], "There is no terminal to ask for the password; give it with --password-stdin"),
        (["account", "add"], "Missing argument 'EMAIL'"),
        (["account", "roles", ANN, "--role", "nobody"], "The model has no role named nobody"),
        (["account", "roles", ANN], f"There is no account with the address {ANN}"),
        (["account", "password", "x", "--password-stdin"], "'x' is no e-mail address"),
        (["account", "disable", ANN], f"There is no account with the address {ANN}"),
        (["account", "enable", ANN], f"There is no account with the address {ANN}"),
        (["account", "remove", ANN], f"There is no account with the address {ANN}"),
        (["account", "nothing"], "No such command 'nothing'"),
        (["account", "list", "--database", "sqlite:///:memory:"], "name a file: sqlite:///PATH"),
        (["account", "list", "--database", "mysql://x/y"], "begins with 'mysql'"),
        (["account", "list", "--model", "nowhere:model"], "There is no module named 'nowhere' here"),
        (["client", "add", "App"], "A client without a secret needs a redirect URI"),
        (
            ["client", "add", "App", "--redirect", "http://a.example/"],
            "cannot be a redirect URI: http is for 127.0.0.1",
        ),
        (["client", "add", "App", "--redirect", BACK, "--role", "staff"], "gets no tokens of its own"),
        (
            ["client", "add", "App", "--redirect", BACK, "--scope", "user:read"],
            "The model has no scope named user:read; there are",
        ),
        (["client", "add", " App", "--redirect", BACK], "A name has 1 to 100 printable characters"),
        (["client", "remove", "App"], "There is no client named 'App'"),
        (["key", "remove", "7"], "There is no key named '7'"),
        (["api-key", "add", "Robot", "--role", "nobody"], "The model has no role named nobody"),
        (["api-key", "add", "Robot", "--scope", "x"], "The model has no scope named x"),
        (["api-key", "add", "Robot", "--ttl", "0"], "0 is not in the range"),
        (["api-key", "remove", "Robot"], "There is no API key named 'Robot'"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_an_error_is_one_clear_sentence(
    arguments: list[str], said: str, command: Command, typed: Callable[[bytes], None], tmp_path: Path
) -> None:
    make_tables(f"sqlite:///{tmp_path}/diptych.db")
    typed(b"short\n")
    assert said in failed(command(*arguments))


def test_what_is_taken_is_told(run: Run, command: Command, database: str, typed: Callable[[bytes], None]) -> None:
    typed(b"correct horse\n")
    run("account", "add", ANN, "--password-stdin")
    typed(b"correct horse\n")
    done = command("account", "add", ANN.upper(), "--password-stdin", "--database", database)
    assert failed(done) == f"There is an account with the address {ANN} already.\n"


def test_a_password_that_is_no_text_is_told(command: Command, typed: Callable[[bytes], None]) -> None:
    typed(b"\xff\xfe horse\n")
    assert (
        failed(command("account", "add", ANN, "--password-stdin")) == "The password on standard input is not UTF-8.\n"
    )


def test_roles_and_scopes_are_those_of_the_model(command: Command, new_database: NewDatabase, tmp_path: Path) -> None:
    database = new_database()
    (tmp_path / "notes.py").write_text(NOTES)
    with served(database, model="notes:model", cwd=tmp_path):
        """It makes the tables."""
    of = ("--model", "notes:model")
    added = command("api-key", "add", "Robot", "--role", "editor", "--scope", "notes:read", "--database", database, *of)
    assert added.returncode == 0, added.stderr
    done = command("api-key", "add", "Other", "--role", "staff", "--database", database, *of)
    assert failed(done) == "The model has no role named staff; its roles are editor.\n"
    done = command("api-key", "add", "Other", "--scope", "users:read", "--database", database, *of)
    assert "no scope named users:read; there are notes:read, notes:write, read, write" in failed(done)
