"""What there is in a service to be asked for: ids, tokens, cursors, tags, a client. Requests are made of these.

    ground = survey(service)
    ground.posts[0], ground.tokens["admin"]

Secrets are other ones in each service; `ground.told` puts their names in their place, so that a request can be kept in a file
and sent to another service later (`ground.filled`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from diptych.config import Config
from diptych.db.connect import connect
from diptych.demo.model import model
from diptych.identity.clients import Clients
from diptych.identity.revocation_list import RevocationList
from diptych.identity.tokens import load_tokens
from tests.support.running import Client, Service

PERSISTED = "query Kept($n: Int = 2) { users(first: $n) { name posts(first: 1) { title } } }"
REDIRECT = "http://127.0.0.1:9/back"
_DAY = 86_400
_NAMED = re.compile(rb"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True)
class Ground:
    """What requests can name."""

    port: int
    users: Sequence[str]
    posts: Sequence[str]
    comments: Sequence[str]
    orders: Sequence[str]
    secrets: Mapping[str, str]
    """What differs between services: tokens, cursors, a client with its secret."""

    def told(self, raw: bytes) -> bytes:
        """A request with names in the place of secrets."""
        for name, value in self.secrets.items():
            raw = raw.replace(value.encode(), b"{{%b}}" % name.encode())
        return raw

    def filled(self, told: bytes) -> bytes:
        """A request that was told."""
        return _NAMED.sub(lambda found: self.secrets[found[1].decode()].encode(), told)


def survey(service: Service) -> Ground:
    """Look around in a service with sample data."""
    users = _ids(service, "/users")
    secrets = asyncio.run(_secrets(service.database, users[0], users[2]))
    admin = service.signed_in(secrets["admin"])
    page = admin.get("/posts?sort=-title&first=3&fields=id").json()["page"]
    log = admin.get("/posts/changes?first=1").json()["page"]
    one = admin.get(f"/users/{users[1]}")
    found = {"cursor": page["next"], "bookmark": log["last"] or log["next"], "tag": one.headers["etag"]}
    # the hash is no secret, but so it reads better
    found["hash"] = hashlib.sha256(PERSISTED.encode()).hexdigest()
    keep = {"version": 1, "sha256Hash": found["hash"]}
    admin.get(f"/graphql?query={quote(PERSISTED)}&extensions={quote(json.dumps({'persistedQuery': keep}))}")
    posts, comments, orders = (_ids(admin, path) for path in ("/posts", "/comments", "/orders"))
    return Ground(service.port, users, posts, comments, orders, {**secrets, **found})


def _ids(client: Client, path: str) -> list[str]:
    """Some of the rows; the last ones are left alone, so that there is something that stays as it is."""
    rows = client.get(f"{path}?first=30&fields=id").json()["data"]
    return [row["id"] for row in rows]


async def _secrets(database: str, user: str, admin: str) -> dict[str, str]:
    store = connect(Config(database=database))
    await store.open(model)
    try:
        tokens = await load_tokens(store, "")
        clients = Clients(store, RevocationList(store))
        client, secret = await clients.add("fuzz", [REDIRECT], confidential=True, roles=["staff"])
        assert secret is not None
        return {
            "admin": tokens.make(admin, ["admin"], None, _DAY),
            "staff": tokens.make(None, ["staff"], None, _DAY),
            "user": tokens.make(user, [], None, _DAY),
            "reader": tokens.make(user, ["admin"], ["read"], _DAY),
            "late": tokens.make(user, ["admin"], None, -1),
            "client_id": client.id,
            "client_secret": secret,
        }
    finally:
        await store.close()
