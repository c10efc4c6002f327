"""Services that take tokens of another issuer: a local one whose answers are set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from diptych import Claims, Model, Resource, Viewer, allow
from diptych.demo.model import model as default
from diptych.identity import viewer as viewer_module
from diptych.identity.issuers import trusted as issuers_module
from diptych.identity.revocation_list import revocation
from tests.contract.http.data import ANN, BEN, ROWS, day
from tests.contract.identity.issuer import EC_256, RSA, LocalIssuer, issuing
from tests.support.in_process import Answer, Service, in_process
from tests.support.running import NewDatabase

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
    with in_process(default, new_database(), runner, ROWS, issuers=(issuer.settings,)) as service:
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
    with in_process(TENANTS, new_sqlite(), runner, NOTES, issuers=(issuer.settings,)) as service:
        for tenant in ("one", "two"):
            token = issuer.token(RSA, organisation={"name": tenant})
            assert service.rows("/notes?fields=text", token=token) == [{"text": f"of {tenant}"}]
            assert service.data("{ notes { text } }", token=token) == {"notes": [{"text": f"of {tenant}"}]}
        assert service.get("/notes", token=issuer.token(RSA)).status == 401


# what does not hold


def test_what_does_not_hold_is_401_in_both_styles_before_the_body_is_read(shop: Service, issuer: LocalIssuer) -> None:
    for token in (
        issuer.token(RSA, iss="https://unknown.example.org"),
        issuer.token(EC_256),
        issuer.token(RSA, aud="other"),
        issuer.token(RSA, exp=int(time.time()) - 100),
        issuer.token(RSA)[:-4],
        issuer.token(RSA, nonce="x"),
    ):
        for answer in in_both_styles(shop, token):
            assert (answer.status, answer.code, answer.body_was_read) == (401, "UNAUTHENTICATED", False)
            assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'


def test_an_issuer_that_was_never_reached_gives_401(runner: asyncio.Runner, new_database: NewDatabase) -> None:
    with issuing() as gone:
        pass
    with in_process(default, new_database(), runner, ROWS, issuers=(gone.settings,)) as service:
        for answer in in_both_styles(service, gone.token(RSA)):
            assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")
        assert service.get("/orders", token=service.token(ANN)).status == 200


def test_a_name_of_theirs_is_not_revoked_by_ours(shop: Service, issuer: LocalIssuer) -> None:
    for kind in ("token", "grant", "account"):
        shop.runner.run(shop.handler.context.revoked.revoke(revocation(kind, "x")))
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
