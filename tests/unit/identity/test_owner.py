"""Whose rules apply to a job or a webhook, by the token that made it."""

from __future__ import annotations

import json
from typing import Any

from diptych.demo.model import model
from diptych.identity.owner import owner_of
from diptych.model.declare.roles import Claims


def owner(claims: dict[str, Any], subject: str | None = None) -> dict[str, Any]:
    viewer = model.viewer_of(Claims(subject, frozenset({"editor"}), None, 0, claims))
    assert viewer is not None
    named: dict[str, Any] = json.loads(owner_of(viewer))
    return {name: value for name, value in named.items() if name not in ("scopes", "claims")}


def test_a_token_of_a_client_of_ours_has_the_roles_of_the_client_then() -> None:
    assert owner({"jti": "pX3", "client_id": "c1"}) == {"client": "c1"}


def test_the_client_of_another_issuer_is_no_client_of_ours() -> None:
    """Its name is chosen there, and may be that of a client with other roles here; the `jti` is `their_jti`."""
    claims = {"iss": "https://login.example.com", "their_jti": "1", "client_id": "c1"}
    assert owner(claims) == {"roles": ["editor"], "user": None}


def test_accounts_and_api_keys_go_first() -> None:
    assert owner({"jti": "pX3", "client_id": "c1", "account": "a1"}) == {"account": "a1"}
    assert owner({"jti": "api-key:9f2c"}) == {"key": "9f2c"}
    assert owner({"jti": "pX3", "client_id": "c1"}, "u1") == {"roles": ["editor"], "user": "u1"}
