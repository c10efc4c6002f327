"""Tokens of another issuer: which hold, which do not, and what they say of their holder."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from diptych.errors import StartError
from diptych.identity.issuers.trusted import Issuers
from diptych.identity.revocation_list import keys_of
from diptych.model.declare.roles import Claims
from diptych.setting_parsers import Issuer
from tests.contract.identity.issuer import (
    ALGORITHMS,
    AUDIENCE,
    EC_256,
    EC_384,
    EC_521,
    ED_25519,
    RSA,
    LocalIssuer,
    encoded,
    issuing,
    named,
    public,
    sign,
)
from tests.support.cases import cases

ROLES = ("admin", "staff")
RS256 = {"alg": "RS256", "typ": "at+jwt", "kid": "rsa"}


@pytest.fixture(scope="module")
def away() -> Iterator[LocalIssuer]:
    """An issuer with a key of every kind."""
    with issuing() as issuer:
        issuer.publish(RSA, EC_256, EC_384, EC_521, ED_25519)
        yield issuer


def verify(issuer: LocalIssuer, token: str, **changed: Any) -> Claims | None:
    settings = replace(issuer.settings, **changed)
    return asyncio.run(Issuers([settings], ROLES).verify(token))


# algorithms and keys


@cases("algorithm", ALGORITHMS)
def test_every_algorithm_that_is_taken_verifies(algorithm: str, away: LocalIssuer) -> None:
    found = verify(away, away.token(ALGORITHMS[algorithm], {"alg": algorithm}))
    assert found is not None
    assert (found.subject, found.roles, found.scopes) == ("ann", frozenset({"staff"}), None)


@cases("algorithm", ALGORITHMS)
def test_the_algorithm_of_a_key_is_the_only_one_that_it_verifies(algorithm: str) -> None:
    key = ALGORITHMS[algorithm]
    with issuing() as issuer:
        issuer.publish({**public(key), "alg": algorithm})
        issuers = Issuers([issuer.settings], ROLES)
        for name, other in ALGORITHMS.items():
            token = issuer.token(other, {"alg": name, "kid": key.kid})
            assert (asyncio.run(issuers.verify(token)) is not None) == (name == algorithm), name


@pytest.mark.slow
@cases("claimed", ALGORITHMS)
@cases("signed", ALGORITHMS)
def test_a_header_cannot_talk_a_key_into_another_algorithm(claimed: str, signed: str, away: LocalIssuer) -> None:
    """Signed by the one, said to be the other, with the name of either key."""
    for kid in {ALGORITHMS[claimed].kid, ALGORITHMS[signed].kid}:
        header = {"alg": claimed, "typ": "at+jwt", "kid": kid}
        token = sign(ALGORITHMS[signed], header, away.claims(), signed)
        same = claimed == signed or {claimed, signed} == {"EdDSA", "Ed25519"}
        assert (verify(away, token) is not None) == same, kid


@cases("algorithm", ["HS256", "HS384", "HS512"])
@cases("form", ["pem", "der", "jwk", "modulus"])
def test_a_public_key_is_no_secret_of_an_hmac(algorithm: str, form: str, away: LocalIssuer) -> None:
    assert isinstance(RSA, RSAKey)
    member = public(RSA)
    secrets = {
        "pem": RSA.as_pem(private=False),
        "der": RSA.as_der(private=False),
        "jwk": json.dumps(member).encode(),
        "modulus": base64.urlsafe_b64decode(member["n"] + "=="),
    }
    text = f"{encoded({**RS256, 'alg': algorithm})}.{encoded(away.claims())}"
    digest = hmac.new(secrets[form], text.encode(), getattr(hashlib, f"sha{algorithm[2:]}")).digest()
    assert verify(away, f"{text}.{encoded(digest)}") is None


def test_a_secret_among_the_keys_verifies_nothing() -> None:
    secret = OctKey.generate_key(256)
    with issuing() as issuer:
        issuer.publish({**secret.as_dict(), "kid": "secret"}, RSA)
        token = sign(secret, {"alg": "HS256", "kid": "secret"}, issuer.claims())
        assert verify(issuer, token) is None
        assert verify(issuer, issuer.token(RSA)) is not None


@cases("name", ["none", "None", "NONE", "nOnE", "", "RS1", "ES256K", "rs256", None, 1, ["RS256"]])
def test_an_algorithm_that_is_not_taken_is_refused(name: Any, away: LocalIssuer) -> None:
    good = away.token(RSA).split(".")
    for signature in ("", good[2]):
        assert verify(away, f"{encoded({**RS256, 'alg': name})}.{good[1]}.{signature}") is None


@cases(
    "member",
    [
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"key_ops": []},
        {"key_ops": None},
        {"alg": "RSA-OAEP"},
        {"alg": "HS256"},
        {"alg": None},
        {"kty": "oct"},
        {"kty": "EC"},
        {"kty": ["RSA"]},
        {"n": "AQAB"},
        {"n": 5},
        {"e": ""},
        {"kid": 5},
        {"kid": "other"},
    ],
)
def test_a_key_that_does_not_fit_verifies_nothing(member: dict[str, Any]) -> None:
    with issuing() as issuer:
        issuer.publish({**public(RSA), **member}, {}, EC_256)
        assert verify(issuer, issuer.token(RSA)) is None
        assert verify(issuer, issuer.token(EC_256)) is not None


def test_a_key_says_what_it_is_for() -> None:
    with issuing() as issuer:
        issuer.publish({**public(RSA), "use": "sig", "key_ops": ["verify"], "alg": "PS384", "x5t": "x"})
        assert verify(issuer, issuer.token(RSA, {"alg": "PS384"})) is not None


def test_keys_that_are_too_weak_or_of_other_curves_are_passed_over() -> None:
    with pytest.warns(match="Key size"):
        short = named(RSAKey.generate_key(1024), "short")
    curve = named(ECKey.generate_key("secp256k1"), "curve")
    large = named(OKPKey.generate_key("Ed448"), "large")
    with issuing() as issuer:
        issuer.publish(short, curve, large)
        assert verify(issuer, issuer.token(short)) is None
        assert verify(issuer, sign(curve, {"alg": "ES256K", "kid": "curve"}, issuer.claims())) is None
        assert verify(issuer, sign(large, {"alg": "EdDSA", "kid": "large"}, issuer.claims(), "Ed448")) is None


def test_private_members_of_a_published_key_change_nothing() -> None:
    with issuing() as issuer:
        issuer.publish(dict(RSA.as_dict(private=True)))
        assert verify(issuer, issuer.token(RSA)) is not None


def test_a_token_without_a_kid_holds_where_one_key_alone_could_have_signed_it() -> None:
    other = named(ECKey.generate_key("P-256"), "other")
    with issuing() as issuer:
        issuer.publish(RSA, EC_256, EC_384)
        for key in (RSA, EC_256, EC_384):
            assert verify(issuer, issuer.token(key, {"kid": None})) is not None
        issuer.publish(RSA, EC_256, other)
        assert verify(issuer, issuer.token(RSA, {"kid": None})) is not None
        assert verify(issuer, issuer.token(EC_256, {"kid": None})) is None
        assert verify(issuer, issuer.token(EC_256)) is not None


@cases("kid", ["", "unknown", "../../rsa", "rsa\0", "' OR '1'='1", 0, None, ["rsa"], {"rsa": 1}])
def test_a_kid_names_a_key_of_the_set_and_nothing_else(kid: Any, away: LocalIssuer) -> None:
    assert verify(away, sign(RSA, {**RS256, "kid": kid}, away.claims())) is None


@pytest.mark.slow
def test_another_key_of_the_same_name_is_refused(away: LocalIssuer) -> None:
    stranger = named(RSAKey.generate_key(2048), "rsa")
    assert verify(away, away.token(stranger)) is None


# headers


@cases(
    "member",
    [
        {"crit": []},
        {"crit": ["exp"], "exp": 1},
        {"b64": False},
        {"jku": "https://evil.example.org/keys"},
        {"x5u": "https://evil.example.org/certificate"},
        {"jwk": public(RSA)},
        {"x5c": ["AAAA"]},
        {"enc": "A256GCM"},
        {"zip": "DEF"},
        *({"typ": kind} for kind in ("logout+jwt", "dpop+jwt", "secevent+jwt", "id_token+jwt", "JOSE", "", None, 1)),
    ],
)
def test_a_header_that_asks_for_more_is_refused(member: dict[str, Any], away: LocalIssuer) -> None:
    assert verify(away, sign(RSA, {**RS256, **member}, away.claims())) is None


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", None])
def test_the_types_of_access_tokens_are_taken(kind: str | None, away: LocalIssuer) -> None:
    assert verify(away, away.token(RSA, {"typ": kind})) is not None


def test_header_members_that_mean_nothing_here_are_passed_over(away: LocalIssuer) -> None:
    assert verify(away, away.token(RSA, {"x5t": "abc", "x5t#S256": "abc", "pi.atm": "x", "cty": "x"})) is not None


# claims

NOW = int(time.time())
LATER = NOW + 3_000


@cases(
    "changed",
    [
        {"iss": ...},
        {"iss": "https://unknown.example.org"},
        {"iss": None},
        {"iss": ["x"]},
        {"aud": ...},
        {"aud": "https://other.example.org"},
        {"aud": AUDIENCE + "/"},
        {"aud": [AUDIENCE + "/", "x"]},
        {"aud": {AUDIENCE: 1}},
        {"aud": []},
        {"aud": None},
        {"exp": ...},
        {"exp": None},
        {"exp": str(LATER)},
        {"exp": True},
        {"exp": [LATER]},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"exp": 10**30},
        {"exp": NOW - 100},
        {"exp": -LATER},
        {"nbf": str(NOW)},
        {"nbf": LATER},
        {"nbf": None},
        {"iat": LATER},
        {"iat": "now"},
        {"nonce": "n"},
        {"at_hash": "h"},
        {"c_hash": "h"},
        {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}},
        {"cnf": {"jkt": "x"}},
        {"sub": 1.5},
        {"sub": True},
        {"sub": ""},
        {"sub": ["ann"]},
        {"sub": "a\0b"},
        {"sub": "\ud800"},
        {"scope": 5},
        {"scope": None},
        {"scope": ["read", 5]},
        {"scope": {"read": True}},
        {"scp": 5},
    ],
)
def test_a_claim_that_is_wrong_is_refused(changed: dict[str, Any], away: LocalIssuer) -> None:
    assert verify(away, away.token(RSA, **changed)) is None


def test_clocks_may_differ_by_a_minute(away: LocalIssuer) -> None:
    now = int(time.time())
    for changed in ({"exp": now - 30}, {"nbf": now + 30}, {"iat": now + 30}, {"iat": 0, "nbf": 0}, {"exp": now + 9.5}):
        assert verify(away, away.token(RSA, **changed)) is not None, changed


def test_the_audience_may_be_one_of_many(away: LocalIssuer) -> None:
    assert verify(away, away.token(RSA, aud=["account", AUDIENCE, 5])) is not None


def test_a_token_is_believed_until_it_expires_and_for_15_minutes_at_most(away: LocalIssuer) -> None:
    now = int(time.time())
    short, long = (verify(away, away.token(RSA, exp=now + ttl)) for ttl in (100, 90_000))
    assert short is not None and short.expires == now + 160
    assert long is not None and now + 900 <= long.expires <= time.time() + 900


@cases(
    ("changed", "scopes"),
    [
        ({}, None),
        ({"scope": "read posts:write"}, {"read", "posts:write"}),
        ({"scope": ["read", "write"]}, {"read", "write"}),
        ({"scope": ""}, set()),
        ({"scope": []}, set()),
        ({"scp": "read"}, {"read"}),
        ({"scp": ["read"]}, {"read"}),
        ({"scope": "read", "scp": "write"}, {"read"}),
    ],
)
def test_scopes_narrow_unless_there_is_none_at_all(changed: Any, scopes: set[str] | None, away: LocalIssuer) -> None:
    found = verify(away, away.token(RSA, **changed))
    assert found is not None and found.scopes == scopes


@cases(
    ("settings", "changed", "roles"),
    [
        ({"roles_claim": None}, {}, set()),
        ({"roles_claim": None}, {"": ["admin"]}, set()),
        ({}, {"roles": ["staff", "guest", "admin"]}, {"staff", "admin"}),
        ({}, {"roles": "staff"}, {"staff"}),
        ({}, {"roles": "staff admin"}, set()),
        ({}, {"roles": ["staff", 5, None, ["admin"], {"admin": 1}]}, {"staff"}),
        ({}, {"roles": {"admin": True}}, set()),
        ({}, {"roles": ...}, set()),
        ({"roles_claim": "realm_access.roles"}, {"realm_access": {"roles": ["admin"]}}, {"admin"}),
        ({"roles_claim": "realm_access.roles"}, {"realm_access": ["admin"]}, set()),
        ({"roles_claim": "a.b.c"}, {"a": {"b": {"c": ["admin"]}}}, {"admin"}),
        ({"roles_claim": "a.b.c"}, {"a": {"b.c": ["admin"]}}, {"admin"}),
        ({"roles_claim": "https://example.org/roles"}, {"https://example.org/roles": ["admin"]}, {"admin"}),
        ({"role_map": {"boss": "admin"}}, {"roles": ["boss", "staff"]}, {"admin"}),
        ({"role_map": {"boss": "admin", "clerk": "staff"}}, {"roles": ["boss", "clerk"]}, {"admin", "staff"}),
        ({"role_map": {}}, {"roles": ["admin"]}, set()),
    ],
)
def test_their_roles_become_ours(settings: Any, changed: Any, roles: set[str], away: LocalIssuer) -> None:
    found = verify(away, away.token(RSA, **changed), **settings)
    assert found is not None and found.roles == roles


@pytest.mark.parametrize(
    ("claim", "changed", "subject"),
    [
        ("sub", {}, "ann"),
        ("sub", {"sub": ...}, None),
        ("user_id", {"user_id": "5"}, "5"),
        ("user_id", {"user_id": 5}, "5"),
        ("user_id", {}, None),
        ("user.id", {"user": {"id": "x"}}, "x"),
    ],
)
def test_one_of_their_claims_becomes_the_id_of_the_viewer(
    claim: str, changed: Any, subject: str | None, away: LocalIssuer
) -> None:
    found = verify(away, away.token(RSA, **changed), subject_claim=claim)
    assert found is not None and found.subject == subject


def test_every_claim_can_be_asked_for_and_none_revokes_by_our_names(away: LocalIssuer) -> None:
    found = verify(away, away.token(RSA, tenant={"id": 5}, jti="1", grant="2", account="3"))
    assert found is not None
    assert (found.get("tenant"), found.get("sub"), found.get("iss")) == ({"id": 5}, "ann", away.issuer)
    assert [found.get(f"their_{name}") for name in ("jti", "grant", "account")] == ["1", "2", "3"]
    assert keys_of(found) == []


def test_a_role_map_leads_to_roles_of_the_model() -> None:
    settings = Issuer("https://login.example.org", AUDIENCE, "roles", {"boss": "chief"})
    with pytest.raises(StartError) as raised:
        Issuers([settings], ROLES)
    assert str(raised.value) == (
        "The role_map of the issuer https://login.example.org maps to chief, which is no role of the model; "
        "there are admin, staff."
    )


# the log


def test_the_log_tells_why_a_token_is_refused_and_nothing_of_what_it_holds(
    away: LocalIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "diptych")
    for changed, why in (({"aud": "x"}, "it is for another audience"), ({"exp": ...}, "it has no 'exp'")):
        token = away.token(RSA, **changed)
        assert verify(away, token) is None
        assert caplog.messages[-1] == f"a token of another issuer is refused: {why}"
        assert not any(part in caplog.text for part in token.split("."))


# forms


def test_a_token_is_at_most_8_kib(away: LocalIssuer) -> None:
    empty = len(away.token(RSA, filler=""))
    fits, exceeds = (away.token(RSA, filler="x" * ((8_192 - empty) * 3 // 4 + more)) for more in (-4, 4))
    assert len(fits) <= 8_192 < len(exceeds)
    assert (verify(away, fits) is not None, verify(away, exceeds) is not None) == (True, False)


def test_what_has_not_the_form_of_a_token_is_refused(away: LocalIssuer) -> None:
    head, claims, signature = away.token(RSA).split(".")
    deep = encoded(b'{"iss":' + b"[" * 2_000 + b"]" * 2_000 + b"}")
    for token in (
        "",
        ".",
        "..",
        "...",
        head,
        f"{head}.{claims}",
        f"{head}.{claims}.",
        f".{claims}.{signature}",
        f"{head}..{signature}",
        f"{head}.{claims}.{signature}.",
        f"{head}.{claims}.{signature}=",
        f"{head}.{claims}.{signature}\n",
        f" {head}.{claims}.{signature}",
        f"{head}.{claims}.{signature}.{head}.{head}",
        f"{encoded([])}.{claims}.{signature}",
        f"{head}.{encoded([])}.{signature}",
        f"{head}.{deep}.{signature}",
        f"{head}.{encoded(b'{')}.{signature}",
        f"{head}.{encoded(bytes([255]))}.{signature}",
        f"{head}.é.{signature}",
    ):
        assert verify(away, token) is None, token


@pytest.mark.parametrize("key", [RSA, EC_256, ED_25519], ids=lambda key: key.kid)
def test_no_mutation_of_a_token_holds(key: Key, away: LocalIssuer) -> None:
    """Every character is changed to others, one at a time, also where base64 has bits to spare."""
    token = away.token(key)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. "
    drawn = random.Random(5)
    mutants = {
        token[:place] + letter + token[place + 1 :]
        for place in range(len(token))
        for letter in (alphabet if place == len(token) - 1 else drawn.sample(alphabet, 3))
    }
    mutants |= {token[:place] + token[place + 1 :] for place in range(len(token))}
    issuers = Issuers([away.settings], ROLES)

    async def accepted() -> list[str]:
        return [mutant for mutant in mutants - {token} if await issuers.verify(mutant) is not None]

    assert asyncio.run(accepted()) == []
    assert asyncio.run(issuers.verify(token)) is not None
