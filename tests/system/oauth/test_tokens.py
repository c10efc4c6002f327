"""The published faults of tokens, each by its name. A forged token is one that only its fault makes bad."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from diptych.identity.keys import remove_key, rotate_key
from diptych.identity.tokens import Tokens, token_keys
from tests.support.cases import cases
from tests.system.oauth.forging import claims, header, part, signed, whole
from tests.system.oauth.stage import Stage, staged

CURVE = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256."""


def _public(key: ECKey) -> dict[str, Any]:
    return dict(key.as_dict(private=False))


@pytest.fixture(scope="module")
def tokens(light: Stage) -> Tokens:
    return light.service.handler.context.tokens


def test_what_is_forged_here_would_hold_without_its_fault(light: Stage, tokens: Tokens) -> None:
    assert light.holds(signed(tokens, claims(tokens), header(tokens)))


# algorithm confusion


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_algorithm_confusion(light: Stage, tokens: Tokens, algorithm: str) -> None:
    """The public key, in every form in which it is known, as the secret of an HMAC."""
    key = tokens.keys[-1]
    public = _public(key)
    forms = [
        key.as_pem(private=False),
        key.as_pem(private=False).strip(),
        key.as_der(private=False),
        json.dumps(public).encode(),
        json.dumps(public, separators=(",", ":")).encode(),
        whole(public["x"]),
        whole(public["x"]) + whole(public["y"]),
        b"\4" + whole(public["x"]) + whole(public["y"]),
        b"",
    ]
    for secret in forms:
        text = f"{part(header(tokens, alg=algorithm))}.{part(claims(tokens))}"
        digest = hmac.new(secret, text.encode(), getattr(hashlib, f"sha{algorithm[2:]}")).digest()
        assert not light.holds(f"{text}.{part(digest)}")


@cases("algorithm", ["ES384", "ES512", "ES256K", "RS256", "PS256", "EdDSA", "es256", "ES256 ", "", 0, None, ["ES256"]])
def test_another_algorithm_by_name(light: Stage, tokens: Tokens, algorithm: Any) -> None:
    """Even where the signature is right."""
    assert not light.holds(signed(tokens, claims(tokens), header(tokens, alg=algorithm)))


def test_another_algorithm_by_another_key(light: Stage, tokens: Tokens) -> None:
    text = f"{part(header(tokens, alg='RS256'))}.{part(claims(tokens))}"
    signature = JWSRegistry.algorithms["RS256"].sign(text.encode(), RSAKey.generate_key(2048))
    assert not light.holds(f"{text}.{part(signature)}")


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "", None])
def test_none(light: Stage, tokens: Tokens, name: str | None) -> None:
    real = signed(tokens, claims(tokens), header(tokens)).rpartition(".")[2]
    for signature in ("", real, "AA", part(b"\0" * 64)):
        assert not light.holds(f"{part(header(tokens, alg=name))}.{part(claims(tokens))}.{signature}")
        assert not light.holds(f"{part({'alg': name})}.{part(claims(tokens))}.{signature}")


@pytest.mark.parametrize("r", [0, 1, CURVE - 1, CURVE, CURVE + 1, 2**256 - 1])
def test_a_signature_of_nothing(light: Stage, tokens: Tokens, r: int) -> None:
    """CVE-2022-21449: r and s of zero, or at the edge of the curve."""
    text = f"{part(header(tokens))}.{part(claims(tokens))}"
    for s in (0, 1, r, CURVE):
        assert not light.holds(f"{text}.{part(r.to_bytes(32) + s.to_bytes(32))}")


def test_a_signature_in_another_form(light: Stage, tokens: Tokens) -> None:
    """As DER, doubled, or cut: JWS has one form."""
    token = signed(tokens, claims(tokens), header(tokens))
    text, _, signature = token.rpartition(".")
    r, s = whole(signature)[:32], whole(signature)[32:]
    der = b"\x30\x44\x02\x20" + r + b"\x02\x20" + s
    for raw in (der, r + s + b"\0", b"\0" + r + s, r + s + r + s, r, s + r, b""):
        assert not light.holds(f"{text}.{part(raw)}")


def test_the_twin_of_a_signature_is_the_same_token(light: Stage, tokens: Tokens) -> None:
    """ECDSA: (r, -s) verifies too. It names the same token, so it ends with it."""
    token = light.tokens()["access_token"]
    text, _, signature = token.rpartition(".")
    r, s = whole(signature)[:32], int.from_bytes(whole(signature)[32:])
    twin = f"{text}.{part(r + (CURVE - s).to_bytes(32))}"
    assert light.holds(twin)
    assert light.app.revoke(token).status == 200
    assert not light.holds(token) and not light.holds(twin)


# the header


@cases(
    "kid",
    [
        "../../../../dev/null",
        "/dev/null",
        "/etc/hostname",
        "file:///dev/null",
        "1\0",
        "1 ",
        " 1",
        "",
        "' OR '1'='1",
        "1' UNION SELECT 'secret' --",
        "1; DROP TABLE diptych_keys",
        '" OR 1=1',
        "%",
        "_",
        "*",
        "https://evil.example/keys.json",
        "http://169.254.169.254/",
        "${jndi:ldap://evil.example/}",
        "{{7*7}}",
        "|id",
        "`id`",
        "cursor",
        "Key",
        "x" * 4000,
        "１",
        1,
        1.0,
        None,
        True,
        ["1"],
        {"kid": "1"},
    ],
    ids=lambda kid: repr(kid)[:40],
)
def test_kid_injection(stage: Stage, kid: Any) -> None:
    """A name of a key is looked for among our own, and nowhere else; signed by us or with an empty secret."""
    tokens = stage.service.handler.context.tokens
    head = {**header(tokens), "kid": kid} if kid is not None else header(tokens, kid=None)
    assert not stage.holds(signed(tokens, claims(tokens), head))
    text = f"{part({**head, 'alg': 'HS256'})}.{part(claims(tokens))}"
    assert not stage.holds(f"{text}.{part(hmac.new(b'', text.encode(), hashlib.sha256).digest())}")
    assert stage.holds(signed(tokens, claims(tokens), header(tokens)))


def test_a_key_that_comes_with_the_token(light: Stage, tokens: Tokens) -> None:
    own = ECKey.generate_key("P-256", {"kid": tokens.keys[-1].kid or ""})
    for more in (
        {"jwk": _public(own)},
        {"jku": "https://evil.example/keys"},
        {"x5u": "https://evil.example/"},
        {"x5c": ["MII"]},
    ):
        for head in (header(tokens, **more), header(tokens, kid=None, **more)):
            text = f"{part(head)}.{part(claims(tokens))}"
            signature = JWSRegistry.algorithms["ES256"].sign(text.encode(), own)
            assert not light.holds(f"{text}.{part(signature)}")
        assert not light.holds(signed(tokens, claims(tokens), header(tokens, **more))), "not even if we signed it"


@cases(
    "more",
    [
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": ["b64"], "b64": False},
        {"b64": False},
        {"zip": "DEF"},
        {"enc": "A128GCM"},
        {"typ": "JWT"},
        {"typ": None},
        {"typ": "at+jwt "},
        {"typ": "dpop+jwt"},
        {"typ": ["at+jwt"]},
        {"typ": 1},
    ],
    ids=str,
)
def test_a_header_that_asks_for_something_else(light: Stage, tokens: Tokens, more: dict[str, Any]) -> None:
    assert not light.holds(signed(tokens, claims(tokens), header(tokens, **more)))


# the claims


@cases(
    "exp",
    [
        "9999999999",
        "0x7fffffff",
        "",
        "never",
        None,
        True,
        [9_999_999_999],
        {"": 1},
        1e10,
        9_999_999_999.5,
        float("inf"),
        float("nan"),
        -1,
        0,
    ],
    ids=repr,
)
def test_string_exp(light: Stage, tokens: Tokens, exp: Any) -> None:
    """The moment of expiry is a whole number, or the token is none."""
    payload = {**claims(tokens, exp=None), "exp": exp} if exp is not None else claims(tokens, exp=None)
    assert not light.holds(signed(tokens, payload, header(tokens)))


def test_an_expired_token(light: Stage, tokens: Tokens) -> None:
    now = int(time.time())
    for exp in (now - 1, now - 59, now - 61):
        assert not light.holds(signed(tokens, claims(tokens, exp=exp), header(tokens)))


@pytest.mark.parametrize("nbf", ["0", None, True, [], 9_999_999_999, float("inf"), float("nan")], ids=repr)
def test_a_token_that_does_not_hold_yet(light: Stage, tokens: Tokens, nbf: Any) -> None:
    assert not light.holds(signed(tokens, {**claims(tokens), "nbf": nbf}, header(tokens)))
    assert light.holds(signed(tokens, claims(tokens, nbf=time.time() + 30), header(tokens))), "clocks differ a little"


@cases(
    "changed",
    [
        {"aud": "other"},
        {"aud": None},
        {"aud": []},
        {"aud": ["other"]},
        {"aud": 1},
        {"iss": "other"},
        {"iss": None},
        {"iss": ["https://api.example.org"]},
        {"iss": "https://api.example.org/"},
        {"roles": "admin"},
        {"roles": [1]},
        {"sub": 1},
        {"scope": ["read"]},
    ],
    ids=str,
)
def test_a_token_for_someone_else_or_of_another_form(light: Stage, tokens: Tokens, changed: dict[str, Any]) -> None:
    assert not light.holds(signed(tokens, claims(tokens, **changed), header(tokens)))


# other services and other keys


@pytest.fixture
def elsewhere(runner: asyncio.Runner) -> Iterator[Stage]:
    """Another service, of the same address."""
    with staged("sqlite:///:memory:", runner) as found:
        yield found


def test_a_token_of_one_service_at_another(light: Stage, elsewhere: Stage) -> None:
    theirs = elsewhere.tokens()
    assert elsewhere.holds(theirs["access_token"])
    assert not light.holds(theirs["access_token"]), "keys are named alike, and are not the same"
    assert light.app.refresh(theirs["refresh_token"]).json()["error"] == "invalid_grant"
    assert light.backend.introspect(theirs["access_token"]).json() == {"active": False}


def test_key_rotation(stage: Stage) -> None:
    """Old tokens hold, new ones are signed by the new key; when the old key goes, its tokens end."""
    context, store = stage.service.handler.context, stage.service.app.store
    old, before = stage.tokens(), context.tokens.keys[-1].kid or ""
    kid = stage.run(rotate_key(store))
    stage.run(context.revoked.poll())
    new = stage.app.refresh(old["refresh_token"]).json()
    assert [json.loads(whole(token["access_token"].split(".")[0]))["kid"] for token in (old, new)] == [before, kid]
    assert stage.holds(old["access_token"]) and stage.holds(new["access_token"])
    published = stage.send("GET", "/.well-known/jwks.json", {}).json()["keys"]
    assert [key["kid"] for key in published][:2] == [kid, before]
    assert not any("d" in key for key in published), "nothing private is published"
    stage.run(remove_key(store, before, at_once=True))
    stage.run(context.revoked.poll())
    assert (stage.holds(old["access_token"]), stage.holds(new["access_token"])) == (False, True)


def test_a_key_that_another_process_made_is_looked_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tokens hold before the next look of this process; names that nobody has are looked for once a second."""
    context, store = stage.service.handler.context, stage.service.app.store
    stage.run(rotate_key(store))
    others = stage.run(_load(stage))
    monkeypatch.setattr(context, "_loaded_at", time.monotonic() - 2)
    assert stage.holds(signed(others, claims(others), header(others)))


async def _load(stage: Stage) -> Tokens:
    """The tokens of the store, as another process has them."""
    return Tokens(await token_keys(stage.service.app.store), stage.service.handler.context.tokens.issuer)
