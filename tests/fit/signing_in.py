"""Signs a user in by clients of OpenID from npm, which `tests/js/openid.mjs` drives, at a service with an account."""

from __future__ import annotations

import json
from typing import Any

from diptych.cli.records import run_on_store
from diptych.db.store import Store
from diptych.demo.data import FIRST_USER_ID
from diptych.identity.accounts import Accounts
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from tests.support.running import JS, NewDatabase, node, served
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


def sign_in(new_sqlite: NewDatabase) -> dict[str, Any]:
    """What the clients found."""
    assert (JS / "node_modules").is_dir(), "make test installs the clients of tests/js"
    database = new_sqlite()
    with served(database, "--sample", "--base-url", HERE) as service:
        given = run_on_store({"database": database, "model": None}, _add)
        given |= {"redirect": BACK, "email": EMAIL, "password": PASSWORD}
        return dict(json.loads(node("openid.mjs", HERE, service.url, given=json.dumps(given))))
