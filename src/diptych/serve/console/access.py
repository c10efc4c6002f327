"""Who may use which endpoint of the console.

An admin is one for the console only with a token of its own, or of the command line: an app that an admin has allowed
to act for them does not get the rules of the model or the accounts of the service.
"""

from __future__ import annotations

import time

from diptych.errors import Code, Refusal
from diptych.identity.issuer import origin_of
from diptych.identity.oauth.console_client import CONSOLE_CLIENT
from diptych.identity.tokens import COMMAND_LINE
from diptych.identity.viewer import Caller, Context
from diptych.serve.admins import is_admin
from diptych.serve.http.request import Request
from diptych.serve.public_address import issuer_of

RECENT = 300
"""Seconds for which a sign-in allows changes of accounts, clients and keys."""
_SAME = (b"same-origin", b"none")


class Access:
    """The checks of one service."""

    def __init__(self, context: Context, base_url: str, *, dev: bool) -> None:
        self._context = context
        self._base_url = base_url
        self._is_dev = dev

    def check_origin(self, request: Request) -> None:
        """Refuse what a page of another origin sends, and what came by another name (without `base_url`)."""
        own = origin_of(issuer_of(self._base_url, request)).encode()
        if request.headers.get(b"origin", own) != own or request.headers.get(b"sec-fetch-site", b"none") not in _SAME:
            raise Refusal(Code.FORBIDDEN, "The console answers its own page only.")

    def is_admin(self, caller: Caller) -> bool:
        """Is this an admin, who signed in to the console itself?"""
        claims = caller.claims
        own = claims is not None and claims.get("client_id") in (CONSOLE_CLIENT, COMMAND_LINE)
        ours = claims is not None and not self._context.issuers.knows(claims.get("iss"))
        return own and ours and is_admin(caller, self._context.model, self._context.tokens)

    def need_admin(self, caller: Caller) -> None:
        """Refuse all others."""
        if not caller.viewer.signed_in:
            raise Refusal(Code.UNAUTHENTICATED, "You need to sign in for this.")
        if not self.is_admin(caller):
            raise Refusal(Code.FORBIDDEN, "This is for admins who have signed in to the console.")

    def need_recent(self, caller: Caller) -> None:
        """Refuse an admin who signed in long ago; in development, the one who started the service is there."""
        self.need_admin(caller)
        signed_in = caller.claims.get("auth_time") if caller.claims is not None else None
        if self._is_dev or (isinstance(signed_in, int) and time.time() - signed_in <= RECENT):
            return
        cause = "Sign in again: this needs a sign-in of the last five minutes."
        raise Refusal(Code.UNAUTHENTICATED, cause, more={"reauthenticate": True})
