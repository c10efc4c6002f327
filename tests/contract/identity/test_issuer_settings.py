"""The setting `issuers`: read from the file and the environment alike, and refused at the start if it is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from diptych.config import Config, as_environment, load
from diptych.errors import StartError
from diptych.setting_parsers import Issuer
from tests.support.running import ROOT, Command

LOGIN = "https://login.example.org"
FILE = """
base_url = "https://api.example.org"

[[issuers]]
issuer = "https://login.example.org/realms/one"
audience = "https://api.example.org"
roles_claim = "realm_access.roles"
role_map = { "shop-admin" = "admin", clerk = "staff" }
subject_claim = "user_id"

[[issuers]]
issuer = "https://tenant.example.com/"
audience = "shop"
"""
FOUND = (
    Issuer(
        f"{LOGIN}/realms/one",
        "https://api.example.org",
        "realm_access.roles",
        {"shop-admin": "admin", "clerk": "staff"},
        "user_id",
    ),
    Issuer("https://tenant.example.com/", "shop"),
)


def test_issuers_are_tables_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "diptych.toml"
    file.write_text(FILE)
    assert load({}, file, {}).issuers == FOUND


def test_the_example_of_the_page_is_what_it_seems(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.+?)```", (ROOT / "docs" / "reference" / "issuers.md").read_text(), re.DOTALL)
    file = tmp_path / "diptych.toml"
    file.write_text(example)
    roles = {"shop-admin": "admin", "shop-clerk": "staff"}
    shop = Issuer(
        "https://login.example.org/realms/shop", "https://api.example.org", "realm_access.roles", roles, "user_id"
    )
    assert load({}, file, {}).issuers == (shop,)


def test_issuers_are_json_in_the_environment_which_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "diptych.toml"
    file.write_text(FILE)
    given = [{"issuer": LOGIN, "audience": "a", "role_map": None, "roles_claim": None}]
    assert load({}, file, {"DIPTYCH_ISSUERS": json.dumps(given)}).issuers == (Issuer(LOGIN, "a"),)
    assert load({}, file, {"DIPTYCH_ISSUERS": "[]"}).issuers == ()


def test_all_settings_come_back_from_the_environment_of_a_server_process(tmp_path: Path) -> None:
    config = Config(database="sqlite:///x.db", sample=True, introspection=False, request_timeout=2.5, issuers=FOUND)
    assert load({}, tmp_path / "none.toml", as_environment(config)) == config


def with_one(**changed: Any) -> str:
    """The setting with one issuer, changed; `...` takes something away."""
    table = {"issuer": LOGIN, "audience": "a", **changed}
    return json.dumps([{name: value for name, value in table.items() if value is not ...}])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected a JSON list of issuers"),
        ("[" * 100_000, "expected a JSON list of issuers"),
        ("{}", "expected a list of issuers"),
        ('["https://login.example.org"]', "expected a list of issuers"),
        (with_one(issuer=...), "issuer 1 needs a text as its issuer"),
        (with_one(audience=...), "issuer 1 needs a text as its audience"),
        (with_one(audience=""), "issuer 1 needs a text as its audience"),
        (with_one(audience=["a"]), "issuer 1 needs a text as its audience"),
        (with_one(roles_claim=5), "issuer 1 needs a text as its roles_claim"),
        (with_one(subject_claim=""), "issuer 1 needs a text as its subject_claim"),
        (
            with_one(role="admin"),
            "issuer 1 has no role; there are issuer, audience, roles_claim, role_map, subject_claim, required",
        ),
        (with_one(role_map={"boss": "admin"}), "issuer 1 has a role_map, but no roles_claim that it could map"),
        (
            with_one(role_map=["admin"], roles_claim="roles"),
            "the role_map of issuer 1 must give a role to each of their names",
        ),
        (
            with_one(role_map={"boss": 5}, roles_claim="roles"),
            "the role_map of issuer 1 must give a role to each of their names",
        ),
        (json.dumps([*json.loads(with_one()), {"issuer": "https://b.org"}]), "issuer 2 needs a text as its audience"),
        (json.dumps(json.loads(with_one()) * 2), "an issuer is listed twice"),
        *(
            (with_one(issuer=issuer), "issuer 1 must be an https address, or an http address of this machine")
            for issuer in (
                "login.example.org",
                "http://login.example.org",
                "https://",
                "ftp://login.example.org",
                "diptych",
                "https://login.example.org?x=1",
                "https://login.example.org#x",
                "https://a:b@login.example.org",
                "https://login.example.org/a b",
                "https://[::1",
                "http://127.0.0.1.example.org",
                "https://é.org",
            )
        ),
    ],
    ids=lambda text: text[:50],
)
def test_a_wrong_issuer_is_told_in_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(StartError) as raised:
        load({}, tmp_path / "none.toml", {"DIPTYCH_ISSUERS": text})
    told = str(raised.value)
    assert told.startswith("The environment variable DIPTYCH_ISSUERS cannot be '")
    assert told.endswith(f": {said}.") and len(told) < 300


@pytest.mark.parametrize(
    "issuer", ["http://localhost:3000", "http://127.0.0.1:3000/x", "http://[::1]:3000", "https://a.org/"]
)
def test_the_address_of_an_issuer_is_kept_as_it_is(issuer: str, tmp_path: Path) -> None:
    (found,) = load({}, tmp_path / "none.toml", {"DIPTYCH_ISSUERS": with_one(issuer=issuer)}).issuers
    assert found.issuer == issuer


def test_a_wrong_table_of_the_file_ends_the_start(command: Command, tmp_path: Path) -> None:
    (tmp_path / "diptych.toml").write_text(f'[[issuers]]\nissuer = "{LOGIN}"\nsince = 2026-01-01\n')
    done = command("serve")
    assert (done.returncode, done.stdout) == (2, "")
    assert "The setting issuers in diptych.toml cannot be '" in done.stderr
    assert done.stderr.endswith(
        "issuer 1 has no since; there are issuer, audience, roles_claim, role_map, subject_claim, required.\n"
    )


def test_a_role_that_the_model_has_not_ends_the_start(command: Command, tmp_path: Path) -> None:
    (tmp_path / "diptych.toml").write_text(
        f'[[issuers]]\nissuer = "{LOGIN}"\naudience = "a"\nroles_claim = "roles"\nrole_map = {{ boss = "chief" }}\n'
    )
    done = command("serve", "--database", f"sqlite:///{tmp_path}/x.db")
    assert done.returncode == 2
    assert "maps to chief, which is no role of the model; there are admin, signed_in, staff.\n" in done.stderr


def test_the_service_itself_is_no_other_issuer(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="is this service itself"):
        load({"base_url": LOGIN}, tmp_path / "none.toml", {"DIPTYCH_ISSUERS": with_one()})
