"""Whatever is sent, the answer is one that the specifications know: 500 forms, drawn by chance, at each endpoint."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.support.effort import long_where, scaled
from tests.system.oauth.flow import FORM, PASSWORD, VERIFIER, Browser, Heard, basic, encoded, forms
from tests.system.oauth.stage import BACK, HERE, Stage

pytestmark = long_where(new_database="postgres")
"""What differs between the databases is tested in process: tests/contract/identity."""

FORMS = scaled(5_000, 300)
_JUNK = [
    "",
    "x",
    "0",
    "é",
    "😀",
    "\0",
    "a\0b",
    "\n",
    "\r\nset-cookie: a=b",
    '"',
    "\\",
    "'",
    "' OR 1=1 --",
    "<b>",
    "%",
    "%zz",
    "&",
    "=",
    "+",
    " ",
    "a b",
    "\ufeff",
    "\u202e",
    "x" * 300,
    "null",
    "true",
    "[]",
    "{}",
    "../..",
    "https://evil.example/",
    "-1",
]
_RAW = [
    b"",
    b"&",
    b"=",
    b"a",
    b"%",
    b"%00",
    b"a=%ff",
    b"a=%zz",
    b"\xff",
    b"\0",
    b"a=1&",
    b"&&",
    b"a=1&a=2",
    b"{}",
    b"a=" + b"x" * 70_000,
    b"&".join(b"a%d=1" % number for number in range(60)),
    b"=1",
    b"a=1;b=2",
    b"\xef\xbb\xbfa=1",
    b"a=\xe9",
]
_NAMES = (
    "grant_type",
    "client_id",
    "client_secret",
    "code",
    "redirect_uri",
    "code_verifier",
    "refresh_token",
    "scope",
    "token",
    "token_type_hint",
    "response_type",
    "code_challenge",
    "code_challenge_method",
    "state",
    "request",
    "email",
    "password",
    "decision",
    "prompt",
    "nonce",
    "resource",
    "iss",
    "é",
    "",
    "a\0b",
)


class Draw:
    """Forms that are nearly right, and some that are nothing."""

    def __init__(self, stage: Stage, seed: str) -> None:
        self.chance = random.Random(seed)
        self.stage = stage
        used = stage.browser.decide(stage.app)["code"]
        found, app, backend = stage.app.exchange(used).json(), stage.app, stage.backend
        self.tokens = [found["access_token"], found["refresh_token"], used, stage.browser.decide(backend)["code"]]
        self.right: dict[str, list[Any]] = {
            "grant_type": ["authorization_code", "refresh_token", "client_credentials", "password"],
            "client_id": [app.id, backend.id, "nobody"],
            "client_secret": [backend.secret, "wrong"],
            "code": self.tokens,
            "refresh_token": self.tokens,
            "token": self.tokens,
            "redirect_uri": [BACK],
            "code_verifier": [VERIFIER],
            "scope": ["read", "read write", "users:read", "nothing"],
            "response_type": ["code", "token"],
            "code_challenge_method": ["S256", "plain"],
            "token_type_hint": ["access_token"],
            "request": [app.asks(), app.asks(scope="x"), backend.asks(state="é")],
            "decision": ["allow", "deny"],
            "email": ["nobody@example.org"],
            "password": [PASSWORD],
            "resource": [HERE],
            "nonce": ["n-1"],
            "prompt": ["login", "consent"],
            "code_challenge": [dict(parse_qsl(app.asks()))["code_challenge"]],
        }

    def parameters(self, least: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters; each of the least is there more often than not."""
        found = {name: value for name, value in least.items() if self.chance.random() < 0.9}
        for name in self.chance.sample(_NAMES, self.chance.randint(0, 8)):
            values = self.right.get(name, _JUNK) if self.chance.random() < 0.7 else _JUNK
            found[name] = self.chance.choice(values)
        if found and self.chance.random() < 0.1:
            found[self.chance.choice(list(found))] = ["once", "twice"]
        return found

    def body(self, least: Mapping[str, Any]) -> bytes:
        return self.chance.choice(_RAW) if self.chance.random() < 0.1 else encoded(self.parameters(least)).encode()

    def headers(self) -> dict[str, str]:
        backend = self.stage.backend
        right = basic(backend.id, backend.secret or "")
        sent = self.chance.choice(
            [None, None, right, right, right, right + "x", "Basic", "Basic é", "Bearer x", basic("\0", "x")]
        )
        kind = self.chance.choice([FORM] * 12 + ["", "text/plain", FORM + "; charset=latin-1"])
        return {"content-type": kind} if sent is None else {"content-type": kind, "authorization": sent}


ERRORS = {
    400: {
        "invalid_request",
        "invalid_grant",
        "invalid_scope",
        "invalid_target",  # RFC 8707
        "unsupported_grant_type",
        "unauthorized_client",
    },
    401: {"invalid_client"},
}


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/introspect"])
def test_every_form_of_a_client_is_answered_by_the_rfc(
    stage: Stage, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    draw, seen = Draw(stage, path), set()
    for _ in range(FORMS):
        headers, body = draw.headers(), draw.body({"grant_type": "refresh_token", "token": draw.tokens[0]})
        answer = stage.send("POST", path, headers, body)
        seen.add(answer.status)
        assert answer.headers["content-type"] == "application/json", (headers, body, answer)
        assert answer.headers["cache-control"] == "no-store"
        if answer.status != 200:
            assert set(answer.json()) == {"error", "error_description"}, (headers, body, answer)
            assert answer.json()["error"] in ERRORS[answer.status]
            assert all(" " <= each <= "~" and each not in '"\\' for each in answer.json()["error_description"])
            assert ("www-authenticate" in answer.headers) == (answer.status == 401)
    assert seen == {200, 400, 401}
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


EXPECTED = {
    "GET /oauth/authorize": {200, 303, 400},
    "POST /oauth/authorize": {303, 400, 403},
    "POST /oauth/login": {303, 400, 403, 429},
    "POST /oauth/logout": {303, 400, 403},
}


@pytest.mark.parametrize("way", EXPECTED)
def test_every_form_of_a_person_is_answered_by_a_page_or_leads_to_the_client(
    stage: Stage, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    draw, seen = Draw(stage, way), set()
    method, path = way.split()
    browser = stage.browser if path == "/oauth/authorize" else Browser(stage.send)
    token = next(iter(forms(browser.authorize(stage.app)).values()))["token"]
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    least = {
        "token": token,
        "request": stage.app.asks(),
        "decision": "allow",
        "email": "x@example.org",
        "password": PASSWORD,
    }
    for _ in range(FORMS):
        if method == "GET":
            query = draw.body(dict(parse_qsl(stage.app.asks()))).decode("latin-1")
            answer = stage.send("GET", f"{path}?{query}", {"cookie": cookie})
        else:
            answer = stage.send("POST", path, {"cookie": cookie, **draw.headers()}, draw.body(least))
        seen.add(answer.status)
        _is_sound(answer)
    assert seen == EXPECTED[way]
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def _is_sound(answer: Heard) -> None:
    """A page, or a way to where the client really is."""
    assert answer.status in (200, 303, 400, 403, 429), answer
    assert answer.headers["cache-control"] == "no-store"
    assert not any(letter in value for value in answer.headers.values() for letter in "\r\n\0")
    if answer.status == 303:
        location = answer.headers["location"]
        assert location.startswith((f"{BACK}?", "authorize?")), location
        assert location.startswith("authorize?") or dict(parse_qsl(urlsplit(location).query))["iss"] == HERE
    else:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
