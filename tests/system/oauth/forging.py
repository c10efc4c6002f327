"""Tokens as nobody should take them."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from joserfc import jws

from diptych.identity.tokens import AUDIENCE, Tokens
from tests.contract.http.data import ANN


def part(value: Any) -> str:
    """A part of a token; bytes go as they are, anything else as JSON."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def whole(text: str) -> bytes:
    """What a part stands for."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims(tokens: Tokens, **changed: Any) -> dict[str, Any]:
    """The claims of a good token, with changes; None takes one away."""
    now = int(time.time())
    good = {
        "iss": tokens.issuer,
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + 600,
        "sub": ANN,
        "roles": ["admin"],
        "jti": "a-forged-one",
        "client_id": "somebody",
    }
    return {name: value for name, value in (good | changed).items() if value is not None}


def header(tokens: Tokens, **changed: Any) -> dict[str, Any]:
    """The header of a good token, with changes; None takes a member away."""
    good = {"alg": "ES256", "typ": "at+jwt", "kid": tokens.keys[-1].kid}
    return {name: value for name, value in (good | changed).items() if value is not None}


def signed(tokens: Tokens, payload: Any, head: Any) -> str:
    """A token by our own key, whatever it says: what only we could have made."""
    text = f"{part(head)}.{part(payload)}"
    algorithm = jws.JWSRegistry.algorithms["ES256"]
    return f"{text}.{part(algorithm.sign(text.encode(), tokens.keys[-1]))}"
