"""Signing in by clients that others wrote, against a served process: openid-client, oauth4webapi and Auth.js from npm,
and Authlib, each with its own discovery and its own checks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.contract.http.data import ANN
from tests.support.effort import long_where
from tests.support.running import NewDatabase, Service, node, served
from tests.system.oauth.authlib_client import NONCE, sign_in_by_authlib
from tests.system.oauth.flow import PASSWORD
from tests.system.oauth.stage import HERE, staged

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""

BACK = "https://app.example/auth/callback/diptych"


@dataclass(frozen=True)
class Served:
    service: Service
    given: dict[str, Any]


@pytest.fixture(scope="module")
def stage(new_database: NewDatabase, runner: asyncio.Runner) -> Iterator[Served]:
    database = new_database()
    with staged(database, runner) as stage:
        tool, _ = stage.run(stage.clients.add("Tool", device=True))
        app, backend = stage.add_app(BACK), stage.add_app(BACK, confidential=True)
        given = {
            "app": {"id": app.id},
            "backend": {"id": backend.id, "secret": backend.secret},
            "tool": {"id": tool.id},
            "redirect": BACK,
            "email": stage.add_account(user=ANN).email,
            "password": PASSWORD,
        }
    with served(database) as service:  # which remembers its address
        yield Served(service, given)


@pytest.fixture(scope="module")
def found(stage: Served) -> dict[str, Any]:
    """What the clients from npm found."""
    return dict(json.loads(node("openid.mjs", HERE, stage.service.url, given=json.dumps(stage.given))))


def profile(stage: Served, *names: str) -> dict[str, Any]:
    told = {"sub": ANN, "name": "Ann", "email": stage.given["email"], "email_verified": False}
    return {name: value for name, value in told.items() if name in ("sub", *names)}


@pytest.mark.parametrize("kind", ["app", "backend"])
def test_openid_client(found: dict[str, Any], stage: Served, kind: str) -> None:
    told = found["openidClient"][kind]
    assert (told["sub"], told["audience"], told["silent"]) == (ANN, stage.given[kind]["id"], ANN)
    assert type(told["profile"].pop("updated_at")) is int
    assert told["profile"] == profile(stage, "name", "email", "email_verified")
    assert told["resource"] == 200
    assert told["wrongNonce"] == "OAUTH_JWT_CLAIM_COMPARISON_FAILED"
    assert told["injectedCode"] == "invalid_grant"


def test_openid_client_for_a_device(found: dict[str, Any]) -> None:
    assert found["device"] == {"sub": ANN, "scope": "openid read"}


def test_oauth4webapi(found: dict[str, Any], stage: Served) -> None:
    """From the API to its issuer, and an ID token that is none for the API."""
    told = found["oauth4webapi"]
    assert told["profile"] == profile(stage, "email", "email_verified")
    assert told["accessToken"] is None
    assert told["idToken"] is not None


def test_auth_js(found: dict[str, Any], stage: Served) -> None:
    user = {"name": "Ann", "email": stage.given["email"]}
    assert found["authJs"]["asked"] == ["code_challenge", "state", "nonce"]
    for told in (found["authJs"], found["authJsDefault"]):
        assert told["location"] == "https://app.example"
        assert {name: told["user"][name] for name in user} == user


def test_authlib(stage: Served) -> None:
    found = sign_in_by_authlib(stage.service, HERE, stage.given)
    claims = found.claims
    assert (claims["iss"], claims["nonce"], claims["aud"]) == (HERE, NONCE, stage.given["backend"]["id"])
    assert (found.info["sub"], found.info["name"]) == (ANN, "Ann")
    assert found.viewer == 200
