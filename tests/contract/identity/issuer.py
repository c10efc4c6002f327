"""Another issuer, on a real HTTP server of this machine whose every answer a test can set.

with issuing() as issuer:
    issuer.publish(RSA)
    token = issuer.token(RSA)
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from diptych.setting_parsers import Issuer

AUDIENCE = "https://api.example.org"
OPENID = "/.well-known/openid-configuration"
RFC_8414 = "/.well-known/oauth-authorization-server"
KEYS = "/keys"


def named(key: Key, kid: str | None, **more: Any) -> Key:
    """A key with members of its own; those that are None are left out."""
    given = {name: value for name, value in {"kid": kid, **more}.items() if value is not None}
    return JWKRegistry.import_key({**key.as_dict(private=True), **given})


RSA = named(RSAKey.generate_key(2048), "rsa")
EC_256 = named(ECKey.generate_key("P-256"), "ec-256")
EC_384 = named(ECKey.generate_key("P-384"), "ec-384")
EC_521 = named(ECKey.generate_key("P-521"), "ec-521")
ED_25519 = named(OKPKey.generate_key("Ed25519"), "ed-25519")
ALGORITHMS: dict[str, Key] = {
    **{name: RSA for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")},
    "ES256": EC_256,
    "ES384": EC_384,
    "ES512": EC_521,
    "EdDSA": ED_25519,
    "Ed25519": ED_25519,
}
USUAL = {"RSA": "RS256", "P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}


def public(key: Key) -> dict[str, Any]:
    return dict(key.as_dict(private=False))


def encoded(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def sign(key: Key, header: Mapping[str, Any], claims: Any, algorithm: str = "") -> str:
    """A token with whatever header and claims, signed by an algorithm, which need not be what the header says."""
    method = JWSRegistry.algorithms[(algorithm or header["alg"]).replace("EdDSA", "Ed25519")]
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{encoded(method.sign(text.encode(), key))}"


@dataclass
class Sent:
    """An answer of the server, with its length unless it is told otherwise. With a gate it waits until that is opened."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    has_length: bool = True
    gate: threading.Event | None = None


class LocalIssuer:
    """An issuer whose documents are answers by path, and which notes what it was asked for."""

    def __init__(self, address: str, path: str = "") -> None:
        self.address = address
        self.issuer = address + path
        self.answers: dict[str, Sent] = {}
        self.asked: list[str] = []
        self.settings = Issuer(self.issuer, AUDIENCE, roles_claim="roles")

    def tell(self, path: str, document: Any, **more: Any) -> None:
        """Answer a path with a document; bytes go as they are."""
        self.answers[path] = Sent(document if isinstance(document, bytes) else json.dumps(document).encode(), **more)

    def discover(self, path: str = OPENID, **changed: Any) -> None:
        """Tell of itself."""
        self.tell(path, {"issuer": self.issuer, "jwks_uri": self.address + KEYS, **changed})

    def publish(self, *keys: Key | Mapping[str, Any]) -> None:
        """Tell of these keys from now on."""
        self.tell(KEYS, {"keys": [public(key) if isinstance(key, Key) else key for key in keys]})

    def reads(self) -> int:
        """How often its keys were asked for."""
        return self.asked.count(KEYS)

    def claims(self, **changed: Any) -> dict[str, Any]:
        """The claims of a good token, with changes; `...` takes one away."""
        now = int(time.time())
        good = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 300, "roles": ["staff"]}
        return {name: value for name, value in (good | changed).items() if value is not ...}

    def token(self, key: Key, header: Mapping[str, Any] | None = None, /, **changed: Any) -> str:
        """A good token by a key, with changes."""
        told = {"alg": USUAL[str(key.get("crv", key.key_type))], "typ": "at+jwt", "kid": key.kid, **(header or {})}
        kept = {name: value for name, value in told.items() if value is not None}
        return sign(key, kept, self.claims(**changed))


@contextmanager
def issuing(path: str = "", wrap: Callable[[ThreadingHTTPServer], str] | None = None) -> Iterator[LocalIssuer]:
    """An issuer that tells of itself. `wrap` may change the server's socket, and gives the scheme of its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    scheme = wrap(server) if wrap else "http"
    found = LocalIssuer(f"{scheme}://127.0.0.1:{server.server_port}", path)
    server.found = found  # type: ignore[attr-defined]  # an attribute of our own
    found.discover(OPENID if not path else path + OPENID)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        for answer in found.answers.values():
            if answer.gate:
                answer.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        issuer: LocalIssuer = self.server.found  # type: ignore[attr-defined]  # an attribute of our own
        issuer.asked.append(self.path)
        answer = issuer.answers.get(self.path, Sent(b"", 404))
        if answer.gate:
            answer.gate.wait()
        try:
            self.send_response(answer.status)
            length = {"content-length": str(len(answer.body))} if answer.has_length else {}
            for name, value in {**length, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass
