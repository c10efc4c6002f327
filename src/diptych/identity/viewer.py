"""The context step: who asks? It runs on every request, before the body is read.

A token is verified once and kept until it expires; a request without one is anonymous. What is kept is a
Caller: the viewer with the signature by which plans and schemas are found.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass

from diptych.errors import Code, Refusal
from diptych.identity.tokens import Tokens
from diptych.model.model import Model
from diptych.model.roles import NOBODY, Viewer
from diptych.model.view import Signature

_KEPT = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """A viewer, ready to be served."""

    viewer: Viewer
    signature: Signature
    expires: float = float("inf")
    name: str = ""
    """Who it is, for what is kept under a caller's name: the user, or else the token. Nobody has none."""


class InvalidToken(Refusal):
    """A token was sent, and it is bad, expired or revoked."""

    def __init__(self) -> None:
        super().__init__(Code.UNAUTHENTICATED, "The token is not valid or has expired.")


class Context:
    """Tells who asks from the Authorization header."""

    def __init__(self, model: Model, tokens: Tokens) -> None:
        self.model = model
        self.tokens = tokens
        self.anonymous = Caller(NOBODY, model.signature(NOBODY))
        self._known: OrderedDict[bytes, Caller] = OrderedDict()

    def caller(self, authorization: bytes | None) -> Caller:
        """The caller of a request; InvalidToken if there is a token and it does not hold."""
        if authorization is None:
            return self.anonymous
        found = self._known.get(authorization)
        if found is None:
            return self._verify(authorization)
        if found.expires <= time.time():
            del self._known[authorization]
            raise InvalidToken
        return found

    def _verify(self, authorization: bytes) -> Caller:
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            raise InvalidToken
        try:
            claims = self.tokens.verify(token.strip().decode("ascii"))
        except (Refusal, UnicodeDecodeError):
            raise InvalidToken from None
        viewer = self.model.viewer(claims.roles, claims.subject, claims.scopes)
        name = claims.subject or "token:" + hashlib.sha256(token).hexdigest()
        caller = Caller(viewer, self.model.signature(viewer), claims.expires, name)
        self._known[authorization] = caller
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return caller
