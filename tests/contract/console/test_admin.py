"""The admin pages do what the commands do, show no secret twice, and refuse what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest import MonkeyPatch

from diptych.demo.model import model
from tests.contract.console.conftest import Console
from tests.contract.http.data import ANN
from tests.contract.migrate.scene import Project
from tests.support.cases import cases

PASSWORD = "correct horse battery"
EMAIL = "zoe@example.org"


@pytest.mark.slow
def test_accounts(dev: Console) -> None:
    made = dev.send(
        "admin/accounts", {"email": EMAIL, "password": PASSWORD, "roles": ["staff"], "user": ANN}, dev.admin
    )
    assert (made.status, made.json()["roles"], made.json()["password"]) == (200, ["staff"], True)
    assert dev.send("admin/accounts", {"email": EMAIL, "password": PASSWORD}, dev.admin).status == 409
    where = "admin/accounts/zoe%40example.org"
    for change, shown in (
        ({"roles": ["admin"]}, {"roles": ["admin"]}),
        ({"disabled": True}, {"disabled": True}),
        ({"disabled": False}, {"disabled": False}),
        ({"password": PASSWORD + "!"}, {"password": True}),
        ({"totp": False}, {"email": EMAIL}),
    ):
        answer = dev.send(where, change, dev.admin, "PATCH")
        assert answer.status == 200 and shown.items() <= answer.json().items()
    listed = dev.get("admin/accounts", dev.admin)
    assert PASSWORD.encode() not in listed.body and b"argon2" not in listed.body
    as_zoe = dev.send("as", {"user": ANN}, dev.admin).json()
    assert as_zoe["name"] == EMAIL
    assert dev.send(where, {}, dev.admin, "DELETE").status == 200
    assert dev.send(where, {}, dev.admin, "DELETE").status == 404


def test_clients_and_keys_show_their_secret_once(dev: Console) -> None:
    asked = {"name": "Shop", "redirects": ["https://shop.example/back"], "confidential": True, "roles": ["staff"]}
    secret = dev.send("admin/clients", asked, dev.admin).json()["secret"]
    text = dev.send("admin/keys", {"name": "robot", "roles": ["staff"], "ttl": 60}, dev.admin).json()["text"]
    assert dev.get("model", text).json()["roles"] == ["staff"]
    for path, name, hidden in (("clients", "Shop", secret), ("keys", "robot", text)):
        listed = dev.get(f"admin/{path}", dev.admin)
        assert name.encode() in listed.body and hidden.encode() not in listed.body and b"hash" not in listed.body
        assert dev.send(f"admin/{path}/{name}", {}, dev.admin, "DELETE").status == 200
        assert name.encode() not in dev.get(f"admin/{path}", dev.admin).body
    assert dev.get("model", text).status == 401


def test_signing_keys_and_documents(dev: Console) -> None:
    (old,) = dev.get("admin/signing-keys", dev.admin).json()
    token = dev.admin
    assert dev.send(f"admin/signing-keys/{old['kid']}", {}, token, "DELETE").status == 409, "it signs"
    new = dev.send("admin/signing-keys", {}, token).json()["kid"]
    signs = {key["kid"]: key["signs"] for key in dev.get("admin/signing-keys", token).json()}
    assert signs == {old["kid"]: False, new: True}
    assert dev.send(f"admin/signing-keys/{old['kid']}", {}, token, "DELETE").status == 409, "it is needed"
    (hash,) = dev.send("admin/documents", {"documents": ["query Mine { users { name } }"]}, token).json()["added"]
    assert [(each["hash"], each["name"]) for each in dev.get("admin/documents", token).json()] == [(hash, "Mine")]
    assert dev.send(f"admin/documents/{hash}", {}, token, "DELETE").status == 200
    assert dev.send(f"admin/documents/{hash}", {}, token, "DELETE").status in (404, 422)


@cases(
    "path, body",
    [
        ("accounts", {"email": "x"}),
        ("accounts", {"email": EMAIL, "password": "short"}),
        ("accounts", {"email": EMAIL, "roles": ["nobody"]}),
        ("accounts", {"email": EMAIL, "roles": "admin"}),
        ("accounts", {"email": EMAIL, "user": "a b"}),
        ("clients", {"name": "x", "redirects": ["http://evil.example/"]}),
        ("clients", {"name": "x", "redirects": ["https://a.example/"], "scopes": ["everything"]}),
        ("clients", {"name": "", "redirects": ["https://a.example/"]}),
        ("keys", {"name": "x", "ttl": -1}),
        ("keys", {"name": 7}),
        ("documents", {"documents": ["{ nothing }"]}),
        ("documents", {"documents": []}),
    ],
)
def test_what_is_wrong_is_refused(dev: Console, path: str, body: dict[str, object]) -> None:
    assert dev.send(f"admin/{path}", body, dev.admin).status == 422


def test_a_change_of_an_account_needs_a_name_and_something_to_change(dev: Console) -> None:
    assert dev.send("admin/accounts/nobody%40example.org", {"disabled": True}, dev.admin, "PATCH").status == 404
    assert dev.send("admin/accounts/nobody%40example.org", {"email": "x"}, dev.admin, "PATCH").status == 422
    assert dev.send("admin/accounts", {}, dev.admin, "PATCH").status == 405
    assert dev.send("admin/accounts/x", {}, dev.admin, "POST").status == 405


def test_webhooks_are_added_listed_replayed_and_removed(dev: Console) -> None:
    sent = {
        "name": "erp",
        "url": "https://erp.example/hook",
        "on": "Order",
        "query": "fields=total",
        "roles": ["staff"],
    }
    added = dev.send("admin/webhooks", sent, dev.admin).json()
    assert added["name"] == "erp" and added["secret"].startswith("whsec_")
    (listed,) = dev.get("admin/webhooks", dev.admin).json()
    assert listed == {
        "name": "erp",
        "on": "Order?fields=total",
        "url": "https://erp.example/hook",
        "state": "active",
        "pending": 0,
        "dead": 0,
        "delivered": None,
        "reason": None,
    }
    assert dev.send("admin/webhooks", sent, dev.admin).status == 409
    assert dev.send("admin/webhooks/erp", {"replay": True}, dev.admin, "PATCH").json() == {"name": "erp", "replayed": 0}
    assert dev.send("admin/webhooks/erp", {"url": "x"}, dev.admin, "PATCH").status == 422
    assert dev.send("admin/webhooks/erp", {}, dev.admin, "DELETE").json() == {"name": "erp"}
    assert dev.get("admin/webhooks", dev.admin).json() == []


@cases(
    "wrong",
    [{"url": "http://erp.example/"}, {"url": "https://127.0.0.1/"}, {"on": "Nothing"}, {"query": "fields=nothing"}],
)
def test_a_webhook_that_could_not_be_delivered_is_refused(dev: Console, wrong: dict[str, str]) -> None:
    sent = {"name": "erp", "url": "https://erp.example/", "on": "Order", "roles": ["staff"], **wrong}
    assert 400 <= dev.send("admin/webhooks", sent, dev.admin).status < 500
    assert dev.get("admin/webhooks", dev.admin).json() == []


def test_migrations_are_listed_and_cannot_be_changed(dev: Console, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert dev.get("admin/migrations", dev.admin).json() == {
        "migrations": [],
        "differences": [],
        "modelDiffers": False,
    }
    Project(tmp_path / "migrations", "sqlite:///").make(model, "first")
    found = dev.get("admin/migrations", dev.admin).json()
    assert found["migrations"] == [{"name": "0001_first", "state": "applied", "at": ""}]
    assert (found["differences"], found["modelDiffers"]) == ([], False)
    (tmp_path / "migrations" / "state.json").write_text('{"tables": {}, "migration": "0001_first"}')
    assert dev.get("admin/migrations", dev.admin).json()["modelDiffers"] is True
    for method in ("POST", "PATCH", "DELETE"):
        assert dev.send("admin/migrations", {}, dev.admin, method).status == 405
