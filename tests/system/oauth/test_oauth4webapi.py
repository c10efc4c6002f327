"""Every flow, by a client that others wrote: npm oauth4webapi, against a served process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.contract.http.data import ANN
from tests.support.running import NewDatabase, node, served
from tests.system.oauth.flow import PASSWORD
from tests.system.oauth.stage import BACK, HERE, staged


@pytest.fixture(scope="module")
def found(new_database: NewDatabase, runner: asyncio.Runner) -> dict[str, Any]:
    """What the client found."""
    database = new_database()
    with staged(database, runner) as stage:
        account = stage.add_account(user=ANN)
        given = {
            "app": {"id": stage.app.id},
            "backend": {"id": stage.backend.id, "secret": stage.backend.secret},
            "redirect": BACK,
            "email": account.email,
            "password": PASSWORD,
        }
    with served(database, "--base-url", HERE) as service:
        return dict(json.loads(node("oauth.mjs", HERE, service.url, given=json.dumps(given))))


def test_it_finds_the_service_by_its_metadata(found: dict[str, Any]) -> None:
    assert found["issuer"] == HERE


def test_it_gets_tokens_by_code_and_pkce_that_work_in_both_styles(found: dict[str, Any]) -> None:
    """And that are what RFC 9068 says, signed by a published key."""
    assert (found["subject"], found["scope"]) == (ANN, "read write")
    assert (found["used"], found["introspected"]) == ([200, 200], True)
    assert found["denied"] == "access_denied"


def test_a_refresh_token_that_comes_again_ends_all_on_the_next_request(found: dict[str, Any]) -> None:
    assert (found["reuse"], found["family"]) == ("invalid_grant", "invalid_grant")
    assert found["after_reuse"] == ["invalid_token"] * 4
    assert found["introspected_after_reuse"] is False


def test_a_code_that_comes_again_ends_all_on_the_next_request(found: dict[str, Any]) -> None:
    assert (found["code_reuse"], found["after_code_reuse"]) == ("invalid_grant", ["invalid_token"] * 2)


@pytest.mark.parametrize("method", ["basic", "post"])
def test_a_client_has_tokens_of_its_own_until_it_revokes_them(found: dict[str, Any], method: str) -> None:
    assert found[method] == {"before": [200, 200], "after": ["invalid_token"] * 2, "active": False}


def test_a_wrong_secret_is_told(found: dict[str, Any]) -> None:
    """By a challenge, as RFC 6749, §5.2 demands where the header was wrong."""
    assert found["wrong_secret"] == "OAUTH_WWW_AUTHENTICATE_CHALLENGE"
