"""Who asks: tokens that hold, tokens that do not, roles, scopes, expiry."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey

from diptych.identity import tokens as tokens_module
from diptych.identity import viewer as viewer_module
from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN, BEN, ORDER, POST
from tests.support.cases import cases
from tests.support.in_process import RESPONSE, Answer, Service

BASIC = "Basic YW5uOnNlY3JldA=="


def part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def claims(service: Service, **changed: Any) -> dict[str, Any]:
    """The claims of a good token, with changes; None takes one away."""
    now = int(time.time())
    issuer = service.handler.context.tokens.issuer
    good = {"iss": issuer, "aud": "diptych", "iat": now, "exp": now + 60, "sub": ANN, "roles": ["admin"], "jti": "x"}
    return {name: value for name, value in (good | changed).items() if value is not None}


def signed(service: Service, payload: Any, **header: Any) -> str:
    """A token with the service's own key and whatever header and payload."""
    key = service.handler.context.tokens.keys[-1]
    head = {
        name: value
        for name, value in ({"alg": "ES256", "typ": "at+jwt", "kid": key.kid} | header).items()
        if value is not None
    }
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return jws.serialize_compact(head, raw, key, algorithms=["ES256"])


def by_another_key(service: Service) -> str:
    key = ECKey.generate_key("P-256")
    head = {"alg": "ES256", "typ": "at+jwt", "kid": service.handler.context.tokens.keys[-1].kid}
    return jws.serialize_compact(head, json.dumps(claims(service)).encode(), key)


def with_key_inside(service: Service) -> str:
    key = ECKey.generate_key("P-256")
    head = {"alg": "ES256", "typ": "at+jwt", "jwk": key.as_dict(private=False)}
    return jws.serialize_compact(head, json.dumps(claims(service)).encode(), key)


def hmac_by_public_key(service: Service, form: str) -> str:
    """The old trick: the public key as the secret of HS256."""
    key = service.handler.context.tokens.keys[-1]
    secret = key.as_pem(private=False) if form == "pem" else json.dumps(key.as_dict(private=False)).encode()
    text = f"{part({'alg': 'HS256', 'typ': 'at+jwt', 'kid': key.kid})}.{part(claims(service))}"
    return f"{text}.{part(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def unsigned(service: Service, head: Any) -> str:
    return f"{part(head)}.{part(claims(service))}."


def tampered(service: Service) -> str:
    head, _, signature = signed(service, claims(service)).split(".")
    return f"{head}.{part(claims(service, sub=BEN))}.{signature}"


def with_header(head: Any) -> Callable[[Service], str]:
    """A token whose header is read before its signature can be."""
    return lambda service: f"Bearer {part(head)}.{part(claims(service))}.{part(b'x' * 64)}"


def token(make: Callable[[Service], str]) -> Callable[[Service], str]:
    return lambda service: f"Bearer {make(service)}"


def said(**changed: Any) -> Callable[[Service], str]:
    """A token signed by the right key that says something wrong."""
    return lambda service: f"Bearer {signed(service, claims(service, **changed))}"


ODD_HEADERS: tuple[Any, ...] = (
    [],
    5,
    "x",
    None,
    True,
    {},
    {"alg": 5},
    {"alg": []},
    {"alg": {}},
    {"alg": "ES256", "kid": 5},
    {"alg": "ES256", "kid": []},
    {"alg": "ES256", "kid": {}},
    {"alg": "ES256", "kid": None},
    {"alg": "ES256", "crit": 5},
    {"alg": "ES256", "crit": ["x"]},
    {"alg": "ES256", "b64": False, "crit": ["b64"]},
    {"alg": "ES256", "typ": 5},
    {"alg": "ES384"},
    {"alg": "RS256"},
    {"alg": "EdDSA"},
    {"alg": "ES256", "jwk": 5},
    b"\xff",
    b"{",
    b"",
    b"[" * 5_000,
    b'{"alg":"ES256","x":' + b"9" * 5_000 + b"}",
    b'{"alg":"\\ud800"}',
)
BAD: dict[str, Callable[[Service], str]] = {
    "empty": lambda service: "",
    "a blank": lambda service: " ",
    "no token": lambda service: "Bearer",
    "an empty token": lambda service: "Bearer ",
    "garbage": lambda service: "Bearer garbage",
    "dots": lambda service: "Bearer ..",
    "four parts": lambda service: f"Bearer {service.token(ANN)}.x",
    "five parts": lambda service: "Bearer a.b.c.d.e",
    "a JWE": lambda service: f"Bearer {part({'alg': 'dir', 'enc': 'A128GCM'})}..{part(b'x')}.{part(b'y')}.{part(b'z')}",
    "beyond ASCII": lambda service: "Bearer \xe9",
    "NUL": lambda service: "Bearer \x00",
    "another scheme": lambda service: BASIC,
    "another scheme with a good token": lambda service: f"Token {service.token(ANN)}",
    "no scheme": lambda service: service.token(ANN),
    "a good token twice": lambda service: f"Bearer {service.token(ANN)}, Bearer {service.token(ANN)}",
    "a good token and more": lambda service: f"Bearer {service.token(ANN)} x",
    "a tab": lambda service: f"Bearer\t{service.token(ANN)}",
    "huge": lambda service: "Bearer " + "a" * 100_000,
    "huge with dots": lambda service: "Bearer " + "a." * 50_000,
    "huge and signed": lambda service: f"Bearer {signed(service, claims(service, x='y' * 10_000))}",
    "without kid": token(lambda service: signed(service, claims(service), kid=None)),
    "another key": token(by_another_key),
    "a key inside": token(with_key_inside),
    "tampered": token(tampered),
    "no signature": token(lambda service: signed(service, claims(service)).rpartition(".")[0] + "."),
    "half a signature": token(lambda service: signed(service, claims(service))[:-10]),
    "alg none": token(lambda service: unsigned(service, {"alg": "none", "typ": "at+jwt"})),
    "alg None": token(lambda service: unsigned(service, {"alg": "None", "typ": "at+jwt"})),
    "alg null": token(lambda service: unsigned(service, {"alg": None, "typ": "at+jwt"})),
    "no alg": token(lambda service: unsigned(service, {"typ": "at+jwt"})),
    "HS256 by the public key (PEM)": token(lambda service: hmac_by_public_key(service, "pem")),
    "HS256 by the public key (JWK)": token(lambda service: hmac_by_public_key(service, "jwk")),
    "an unknown kid": with_header({"alg": "ES256", "kid": "nope"}),
    **{f"the header {head!r:.30}": with_header(head) for head in ODD_HEADERS},
    "no typ": token(lambda service: signed(service, claims(service), typ=None)),
    "another typ": token(lambda service: signed(service, claims(service), typ="JWT")),
    "the typ of an id token": token(lambda service: signed(service, claims(service), typ="id+jwt")),
    "an unknown critical header": token(
        lambda service: f"{part({'alg': 'ES256', 'crit': ['x'], 'x': 1})}.{part(claims(service))}.x"
    ),
    "claims that are a list": token(lambda service: signed(service, [])),
    "claims that are text": token(lambda service: signed(service, "x")),
    "claims that are no JSON": token(lambda service: signed(service, b"{")),
    "claims that are no UTF-8": token(lambda service: signed(service, b'{"iss":"\xff"}')),
    "expired": said(exp=int(time.time()) - 1),
    "expiring now": said(exp=0),
    "no exp": said(exp=None),
    "a string exp": said(exp=str(int(time.time()) + 60)),
    "a float exp": said(exp=time.time() + 60),
    "a true exp": said(exp=True),
    "a list exp": said(exp=[9_999_999_999]),
    "a negative exp": said(exp=-1),
    "not yet": said(nbf=int(time.time()) + 86_400),
    "a string nbf": said(nbf="0"),
    "another issuer": said(iss="https://evil.example"),
    "no issuer": said(iss=None),
    "a list of issuers": said(iss=["diptych"]),
    "another audience": said(aud="other"),
    "no audience": said(aud=None),
    "other audiences": said(aud=["a", "b"]),
    "an audience that is a number": said(aud=5),
    "a subject that is a number": said(sub=5),
    "a subject that is a list": said(sub=[ANN]),
    "roles that are text": said(roles="admin"),
    "roles that are numbers": said(roles=[1]),
    "roles that are an object": said(roles={"admin": True}),
    "a scope that is a list": said(scope=["read"]),
    "a scope that is a number": said(scope=5),
}

REQUESTS: dict[str, Callable[[Service, str], Answer]] = {
    "GET /users": lambda service, header: service.get("/users", headers={"authorization": header}),
    "HEAD /users": lambda service, header: service.send("HEAD", "/users", headers={"authorization": header}),
    "OPTIONS /users": lambda service, header: service.send("OPTIONS", "/users", headers={"authorization": header}),
    "GET /nope": lambda service, header: service.get("/nope", headers={"authorization": header}),
    "POST /users": lambda service, header: service.send("POST", "/users", body=b"{", headers={"authorization": header}),
    "GET /openapi.json": lambda service, header: service.get("/openapi.json", headers={"authorization": header}),
    "GET /health/live": lambda service, header: service.get("/health/live", headers={"authorization": header}),
    "POST /graphql": lambda service, header: service.post(
        {"query": "{ users { id } }"}, headers={"authorization": header}
    ),
    "POST /graphql, no JSON": lambda service, header: service.post(b"{", kind="x", headers={"authorization": header}),
    "GET /graphql": lambda service, header: service.get_query(
        {"query": "{ users { id } }"}, headers={"authorization": header}
    ),
}


@cases("name", BAD)
def test_a_bad_token_is_refused_before_anything_is_read(shop: Service, name: str) -> None:
    header = BAD[name](shop)
    before = shop.runs
    for request, send in REQUESTS.items():
        answer = send(shop, header)
        assert (answer.status, answer.code) == (401, "UNAUTHENTICATED"), (request, answer.body)
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert answer.headers["cache-control"] == "no-store"
        assert not answer.body_was_read
        expected = ("application/json", RESPONSE) if "graphql" in request else ("application/problem+json",)
        assert answer.kind in expected
    assert shop.runs == before


def test_a_bad_token_is_told_alike_whatever_is_wrong_with_it(shop: Service) -> None:
    answers = {REQUESTS["GET /users"](shop, make(shop)).body for make in BAD.values()}
    assert len(answers) == 1


GOOD: dict[str, Callable[[Service], str]] = {
    "as made": lambda service: f"Bearer {service.token(ANN, 'admin')}",
    "another case": lambda service: f"bearer {service.token(ANN, 'admin')}",
    "capitals": lambda service: f"BEARER {service.token(ANN, 'admin')}",
    "more blanks": lambda service: f"Bearer   {service.token(ANN, 'admin')} ",
    "the long typ": token(lambda service: signed(service, claims(service), typ="application/at+jwt")),
    "several audiences": said(aud=["x", "diptych"]),
    "valid since just now": said(nbf=int(time.time())),
    "claims of others": said(azp="x", custom={"a": [1]}, name="Ann"),
    "a far future": said(exp=10**15),
}


@cases("name", GOOD)
def test_a_good_token_holds_however_it_is_written(shop: Service, name: str) -> None:
    header = GOOD[name](shop)
    for _ in range(2):
        answer = shop.get(f"/orders/{ORDER[2]}", headers={"authorization": header})
        assert (answer.status, answer.json()["internalNote"]) == (200, "checked")


# who is who


def can(service: Service, token: str | None) -> dict[str, int]:
    """The statuses of some requests."""
    urls = {
        "users": "/users",
        "post": f"/posts/{POST[3]}",
        "orders": "/orders",
        "order": f"/orders/{ORDER[4]}",
        "comments": f"/posts/{POST[3]}/comments",
        "emails": "/users?fields=email",
        "notes": "/orders?fields=internalNote",
    }
    return {name: service.get(url, token=token).status for name, url in urls.items()}


WHO: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, int]]] = [
    (
        "someone",
        (ANN,),
        {},
        {"users": 200, "post": 200, "orders": 200, "order": 404, "comments": 200, "emails": 200, "notes": 400},
    ),
    (
        "someone else",
        (BEN,),
        {},
        {"users": 200, "post": 404, "orders": 200, "order": 200, "comments": 404, "emails": 200, "notes": 400},
    ),
    (
        "staff",
        (ANN, "staff"),
        {},
        {"users": 200, "post": 200, "orders": 200, "order": 200, "comments": 200, "emails": 200, "notes": 200},
    ),
    (
        "admin, who is staff",
        (BEN, "admin"),
        {},
        {"users": 200, "post": 200, "orders": 200, "order": 200, "comments": 200, "emails": 200, "notes": 200},
    ),
    (
        "a role that no rule asks about",
        (ANN, "wizard"),
        {},
        {"users": 200, "post": 200, "orders": 200, "order": 404, "comments": 200, "emails": 200, "notes": 400},
    ),
    (
        "no one in particular",
        (None,),
        {},
        {"users": 200, "post": 404, "orders": 403, "order": 403, "comments": 404, "emails": 400, "notes": 403},
    ),
    (
        "a service that is admin",
        (None, "admin"),
        {},
        {"users": 200, "post": 200, "orders": 200, "order": 200, "comments": 200, "emails": 200, "notes": 200},
    ),
    (
        "someone whose id is none",
        ("nobody\x00",),
        {},
        {"users": 200, "post": 404, "orders": 200, "order": 404, "comments": 404, "emails": 200, "notes": 400},
    ),
    (
        "scope read",
        (ANN, "admin"),
        {"scopes": ["read"]},
        {"users": 200, "post": 200, "orders": 200, "order": 200, "comments": 200, "emails": 200, "notes": 200},
    ),
    (
        "scope users:read",
        (ANN, "admin"),
        {"scopes": ["users:read"]},
        {"users": 200, "post": 403, "orders": 403, "order": 403, "comments": 403, "emails": 200, "notes": 403},
    ),
    (
        "scopes of two",
        (ANN,),
        {"scopes": ["posts:read", "comments:read"]},
        {"users": 403, "post": 200, "orders": 403, "order": 403, "comments": 200, "emails": 403, "notes": 403},
    ),
    (
        "an unknown scope",
        (ANN, "admin"),
        {"scopes": ["openid"]},
        dict.fromkeys(("users", "post", "orders", "order", "comments", "emails", "notes"), 403),
    ),
    (
        "scope write",
        (ANN, "admin"),
        {"scopes": ["write"]},
        dict.fromkeys(("users", "post", "orders", "order", "comments", "emails", "notes"), 403),
    ),
    (
        "no scope at all",
        (ANN, "admin"),
        {"scopes": []},
        dict.fromkeys(("users", "post", "orders", "order", "comments", "emails", "notes"), 403),
    ),
    (
        "a scope in other letters",
        (ANN, "admin"),
        {"scopes": ["READ", "Users:read"]},
        dict.fromkeys(("users", "post", "orders", "order", "comments", "emails", "notes"), 403),
    ),
    (
        "the scope of a type name",
        (ANN, "admin"),
        {"scopes": ["user:read"]},
        dict.fromkeys(("users", "post", "orders", "order", "comments", "emails", "notes"), 403),
    ),
]


@cases(("who", "made", "more", "wanted"), WHO, ids=[case[0] for case in WHO])
def test_roles_allow_and_scopes_narrow(
    shop: Service, who: str, made: tuple[Any, ...], more: dict[str, Any], wanted: dict[str, int]
) -> None:
    assert can(shop, shop.token(*made, **more)) == wanted


def test_without_a_token_the_viewer_is_anonymous_and_its_id_equals_nothing(shop: Service) -> None:
    wanted = {"users": 200, "post": 404, "orders": 401, "order": 401, "comments": 404, "emails": 400, "notes": 401}
    assert can(shop, None) == wanted


def test_a_relation_beyond_the_scopes_is_not_there(shop: Service) -> None:
    token = shop.token(ANN, "admin", scopes=["users:read"])
    assert shop.query("{ users { posts { id } } }", token=token).code == "GRAPHQL_VALIDATION_FAILED"
    assert shop.get("/users?fields=posts(id)", token=token).status == 400
    assert shop.get(f"/users/{ANN}/posts", token=token).status == 403
    fields = shop.data('{ __type(name: "User") { fields { name } } }', token=token)["__type"]["fields"]
    assert [field["name"] for field in fields] == ["id", "version", "createdAt", "updatedAt", "name", "email"]


def test_a_token_that_may_read_nothing_still_has_a_schema(shop: Service) -> None:
    token = shop.token(ANN, "admin", scopes=[])
    assert shop.data("{ __typename __schema { queryType { name } } }", token=token)["__typename"] == "Query"
    assert shop.query("{ users { id } }", token=token).code == "FORBIDDEN"
    assert shop.get("/openapi.json", token=token).status == 200


# expiry


def test_a_token_holds_until_it_expires_and_no_longer(shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    token = shop.token(ANN, "admin", ttl=100)
    now = time.time()
    for passed, status in ((0, 200), (50, 200), (98, 200), (101, 401), (50, 200), (1_000, 401), (1_000, 401)):
        clock = _Clock(now + passed)
        for module in (tokens_module, viewer_module):
            monkeypatch.setattr(module, "time", clock)
        assert shop.get("/orders", token=token).status == status, passed
        assert shop.query("{ orders { id } }", token=token).status == status


class _Clock:
    """Stands still."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now


def test_a_token_of_another_service_is_refused(fresh: Fresh) -> None:
    one, other = fresh(), fresh()
    assert other.get("/users", token=one.token(ANN)).status == 401


def test_very_many_tokens_are_not_kept_without_end(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_module, "_KEPT", 3)
    service = fresh()
    tokens = [service.token(ANN, scopes=[f"x{number}"]) for number in range(6)]
    for _ in range(2):
        for each in tokens:
            assert service.get("/health/live", token=each).status == 200
    assert len(service.handler.context._cache) <= 3
