"""A service with an account and clients, and clients of OpenID from npm, which `tests/js/openid.mjs` drives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from diptych.cli.records import run_on_store
from diptych.db.store import Store
from diptych.demo.data import FIRST_USER_ID
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from tests.support.running import JS, NewDatabase, Service, node, served
from tests.system.oauth.flow import PASSWORD

HERE, BACK, EMAIL = "https://api.example.org", "https://app.example/auth/callback/diptych", "ann@example.org"


async def _add(store: Store, revoked: RevocationList) -> dict[str, Any]:
    """An account, and clients: without a secret, with one, and for devices."""
    await Accounts(store, revoked).add(EMAIL, PASSWORD, (), FIRST_USER_ID)
    clients = Clients(store, revoked)
    app, _ = await clients.add("App", [BACK])
    backend, secret = await clients.add("Backend", [BACK], confidential=True)
    tool, _ = await clients.add("Tool", device=True)
    backend_given = {"id": backend.id, "secret": secret}
    return {"app": {"id": app.id}, "backend": backend_given, "tool": {"id": tool.id}}


@contextmanager
def with_account(new_sqlite: NewDatabase) -> Iterator[tuple[Service, dict[str, Any]]]:
    """A service whose issuer is HERE, and what a client needs: the clients, and who signs in."""
    database = new_sqlite()
    with served(database, "--sample", "--base-url", HERE) as service:
        given = run_on_store({"database": database, "model": None}, _add)
        yield service, given | {"redirect": BACK, "email": EMAIL, "password": PASSWORD}


def sign_in(new_sqlite: NewDatabase) -> dict[str, Any]:
    """What the clients found."""
    assert (JS / "node_modules").is_dir(), "make test installs the clients of tests/js"
    with with_account(new_sqlite) as (service, given):
        return dict(json.loads(node("openid.mjs", HERE, service.url, given=json.dumps(given))))
