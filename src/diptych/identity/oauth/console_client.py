"""The OAuth client that the console is: built in, public, and redirected to the page of this very service.

It is there where the console is on. Nobody is asked for consent: it is no other party. So its redirect URI is compared
as it is, also on a loopback address, where the port of other clients is free.
"""

from __future__ import annotations

from diptych.identity.issuer import ascii_address
from diptych.identity.oauth.authlib_models import DEFAULT_SCOPES, OAuthClient
from diptych.identity.records import ClientRecord

CONSOLE_CLIENT = "diptych-console"
CONSOLE_PATH = "/console/"


def console_redirect(issuer: str) -> str:
    """The redirect URI of the console: its address as browsers send it."""
    return f"{ascii_address(issuer)}{CONSOLE_PATH}"


class ConsoleClient(OAuthClient):
    """The console of the service with this issuer."""

    def __init__(self, issuer: str) -> None:
        redirect = console_redirect(issuer)
        super().__init__(ClientRecord(CONSOLE_CLIENT, "the console", None, (redirect,), (), DEFAULT_SCOPES, 0))

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.record.redirects
