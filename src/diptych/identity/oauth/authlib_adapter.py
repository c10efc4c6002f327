"""Adapts requests and responses to the framework-neutral core of Authlib.

The core is synchronous and runs in a thread; what it needs of the store runs in the event loop meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from authlib.oauth2.rfc6749 import OAuth2Payload, OAuth2Request
from msgspec import Struct, field

T = TypeVar("T")
_HERE = "https://authorization.server"
"""The core refuses plain http. Whether TLS ends here or at a proxy does not concern it."""
_WAIT = 30
_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_NAMED = frozenset(
    (
        "client_id",
        "client_secret",
        "code",
        "code_challenge",
        "code_challenge_method",
        "code_verifier",
        "device_code",
        "grant_type",
        "id_token_hint",
        "max_age",
        "nonce",
        "prompt",
        "redirect_uri",
        "refresh_token",
        "response_mode",
        "response_type",
        "scope",
        "token",
        "token_type_hint",
    )
)
"""Parameters that are plain ASCII (RFC 6749, Appendix A). `state` is returned to the client as it came, and `resource`
is compared only."""


class Malformed(ValueError):
    """A form or query string that cannot be parsed."""


def read_form(text: str) -> list[tuple[str, str]]:
    """Parse the parameters of a form or query string; none may occur twice."""
    try:
        pairs = parse_qsl(text, keep_blank_values=False, strict_parsing=bool(text), max_num_fields=50, errors="strict")
    except ValueError:
        raise Malformed("The parameters cannot be read.") from None
    if len(dict(pairs)) < len(pairs):
        raise Malformed("A parameter occurs twice.")
    return pairs


def is_allowed_text(text: str) -> bool:
    """Has it only characters that the specification allows in parameters and in error descriptions?"""
    return _PLAIN.fullmatch(text) is not None


class Payload(OAuth2Payload):
    """The parameters of a request."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._data = dict(pairs)

    @property
    def data(self) -> dict[str, str]:
        return self._data

    @property
    def datalist(self) -> dict[str, list[str]]:
        return {name: [value] for name, value in self._data.items()}


class OAuthRequest(OAuth2Request):
    """A request to the authorization server, with parsed parameters."""

    auth_time: int | None = None
    """When the user signed in who consents."""
    methods: tuple[str, ...] = ()
    """How that user proved who it is."""

    def __init__(self, method: str, headers: Mapping[str, str], pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__(method, _HERE, headers=dict(headers))
        self.payload = Payload(pairs)
        for name, value in pairs:
            if name in _NAMED and not is_allowed_text(value):
                raise Malformed(f"The parameter '{name}' has characters that are not allowed.")

    @property
    def args(self) -> dict[str, str]:
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        return self.payload.data


class OAuthResponse(Struct):
    """A response of the core."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def location(self) -> str | None:
        return self.headers.get("Location")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["Location"] = value

    def encoded(self) -> bytes:
        return json.dumps(self.body).encode() if isinstance(self.body, dict) else str(self.body or "").encode()


class Bridge:
    """Runs coroutines in the event loop for code in a thread, which waits for them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_WAIT)
