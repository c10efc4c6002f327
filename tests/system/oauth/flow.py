"""Clients and people at the authorization server, by plain HTTP, as a browser without script does it.

    browser = Browser(send)
    browser.sign_in(app, "ann@example.org", PASSWORD)
    code = browser.decide(app)["code"]          # what the client is led back with
    tokens = app.exchange(code).json()

A parameter that is changed to None is left out; one that is changed to a list is sent as often as it has values.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode, urljoin

FORM = "application/x-www-form-urlencoded"
VERIFIER = "a-verifier-of-43-characters-at-least-0123456789"
PASSWORD, WRONG = "correct horse", "wrong horse!!"


class Heard(Protocol):
    """What came back; header names are in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...
    def json(self) -> Any: ...


class Send(Protocol):
    """Sends a request to a service."""

    def __call__(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", /) -> Heard: ...


def challenge_of(verifier: str) -> str:
    """RFC 7636, by S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def encoded(parameters: Mapping[str, Any]) -> str:
    """A form, or a query."""
    return urlencode({name: value for name, value in parameters.items() if value is not None}, doseq=True)


def basic(id: str, secret: str) -> str:
    """A header in which a client proves itself (RFC 6749, §2.3.1)."""
    return "Basic " + base64.b64encode(f"{quote(id, safe='')}:{quote(secret, safe='')}".encode()).decode()


@dataclass(frozen=True)
class App:
    """A client, and the requests that it sends by itself."""

    send: Send
    id: str
    secret: str | None
    redirect: str

    def at(self, send: Send) -> App:
        """The same client, at another process."""
        return replace(self, send=send)

    def form(self, path: str, parameters: Mapping[str, Any], **headers: str) -> Heard:
        """A form, with nothing by which the client is known but what is given."""
        body = encoded(parameters).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send("POST", path, {"content-type": FORM, **given}, body)

    def proven(self, path: str, **parameters: Any) -> Heard:
        """A form, sent as the client that it is."""
        if self.secret is None:
            return self.form(path, {"client_id": self.id, **parameters})
        return self.form(path, parameters, authorization=basic(self.id, self.secret))

    def asks(self, **changed: Any) -> str:
        """The query by which it sends someone to us."""
        return encoded(
            {
                "response_type": "code",
                "client_id": self.id,
                "redirect_uri": self.redirect,
                "state": "a state",
                "code_challenge": challenge_of(VERIFIER),
                "code_challenge_method": "S256",
                **changed,
            }
        )

    def exchange(self, code: str | None, **changed: Any) -> Heard:
        form = {"code": code, "redirect_uri": self.redirect, "code_verifier": VERIFIER, **changed}
        return self.proven("/oauth/token", grant_type="authorization_code", **form)

    def refresh(self, token: str, **changed: Any) -> Heard:
        return self.proven("/oauth/token", grant_type="refresh_token", refresh_token=token, **changed)

    def revoke(self, token: str, **changed: Any) -> Heard:
        return self.proven("/oauth/revoke", token=token, **changed)

    def introspect(self, token: str, **changed: Any) -> Heard:
        return self.proven("/oauth/introspect", token=token, **changed)


@dataclass
class Browser:
    """A browser with its cookies; `headers` go with every request."""

    send: Send
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, url: str) -> Heard:
        return self._send("GET", url, {})

    def authorize(self, app: App, **changed: Any) -> Heard:
        """Where a client sends the browser."""
        return self.get(f"/oauth/authorize?{app.asks(**changed)}")

    def submit(self, page: Heard, action: str, **fields: Any) -> Heard:
        """Send the form of a page, filled in; a field that is None is left out."""
        return self.post(f"/oauth/{action}", {**forms(page)[action], **fields})

    def post(self, path: str, fields: Mapping[str, Any], kind: str = FORM) -> Heard:
        return self._send("POST", path, {"content-type": kind}, encoded(fields).encode())

    def sign_in(self, app: App, email: str, password: str = PASSWORD, **changed: Any) -> Heard:
        """Sign in on the way to a client; gives the page, or the error, that follows."""
        answer = self.submit(self.authorize(app, **changed), "login", email=email, password=password)
        return self.get(urljoin("/oauth/login", answer.headers["location"])) if answer.status == 303 else answer

    def decide(self, app: App, decision: str = "allow", **changed: Any) -> dict[str, str]:
        """Allow what a client asks for, or do not; gives what the client is led back with."""
        answer = self.submit(self.authorize(app, **changed), "authorize", decision=decision)
        assert answer.status == 303, answer.body
        place, _, query = answer.headers["location"].partition("?")
        assert place == changed.get("redirect_uri", app.redirect)
        return dict(parse_qsl(query, strict_parsing=True))

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Heard:
        kept = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
        answer = self.send(method, url, {**kept, **headers, **self.headers}, body)
        for cookie in answer.headers.get("set-cookie", "").split("\n"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies |= {name: value} if name else {}
        return answer


class _Forms(HTMLParser):
    """The forms of a page: what each sends by itself, by its action."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, dict[str, str]] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "form":
            assert given["method"] == "post"
            self.found[given["action"] or ""] = {}
        elif tag == "input" and given.get("type") == "hidden":
            self.found[list(self.found)[-1]][given["name"] or ""] = given["value"] or ""


def forms(page: Heard) -> dict[str, dict[str, str]]:
    """The hidden fields of each form of a page."""
    parser = _Forms()
    parser.feed(page.body.decode())
    return parser.found
