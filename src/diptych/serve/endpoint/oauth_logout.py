"""RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0): an app sends its user to be signed out of these pages.

The user is always asked, since any site can send a browser here. Afterwards the browser goes on to
`post_logout_redirect_uri` only if that is a redirect URI of the client that the request names.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec import Struct

from diptych.api.reply import Reply
from diptych.identity.login_sessions import LoginSessions
from diptych.identity.oauth.authlib_adapter import Malformed, is_allowed_text, read_form
from diptych.identity.oauth.server import OAuth
from diptych.serve.endpoint.oauth_forms import BrowserForms, see_other, sent_form
from diptych.serve.endpoint.oauth_pages import failure, page_reply, sign_out, signed_out
from diptych.serve.http.request import Request


class _Onward(Struct, frozen=True):
    """Where the browser goes after the sign-out; "" is a page of ours."""

    address: str = ""


class LogoutPages:
    """The end session endpoint."""

    def __init__(self, oauth: OAuth, sessions: LoginSessions, forms: BrowserForms) -> None:
        self._oauth = oauth
        self._sessions = sessions
        self._forms = forms

    async def handle(self, request: Request, issuer: str) -> Reply:
        """Ask the user, or sign out."""
        try:
            if request.method != "POST":
                return await self._ask(request, request.query)
            form = dict(await sent_form(request))
            if "confirm" not in form:  # by an app, and without cookies then
                return see_other(f"end_session?{urlencode(form)}")
            return await self._sign_out(request, form, issuer)
        except Malformed as error:
            return page_reply(400, failure(str(error)))

    async def _ask(self, request: Request, query: str) -> Reply:
        onward = await self._onward(dict(read_form(query)))
        cookie = self._forms.cookie(request)
        signed_in = await self._sessions.find(cookie)
        if signed_in is None:
            return _end(onward)
        hidden = {"request": query, "token": self._forms.token(cookie)}
        return page_reply(200, sign_out(signed_in.account.email, hidden), onward.address)

    async def _sign_out(self, request: Request, form: dict[str, str], issuer: str) -> Reply:
        onward = await self._onward(dict(read_form(form.get("request", ""))))
        cookie = self._forms.cookie(request)
        if not self._forms.is_own(request, form, cookie, issuer):
            return page_reply(403, failure("This form has expired. Go back to where you came from and try again."))
        await self._sessions.sign_out(cookie)
        reply = _end(onward)
        return Reply(reply.status, (*reply.headers, self._forms.set_cookie("", 0)), reply.body)

    async def _onward(self, given: Mapping[str, str]) -> _Onward:
        """Where the client may have the browser go; Malformed if it may not."""
        address = given.get("post_logout_redirect_uri", "")
        if not address:
            return _Onward()
        hinted = self._oauth.hinted_client(given["id_token_hint"]) if given.get("id_token_hint") else None
        id = given.get("client_id") or hinted or ""
        found = await self._oauth.grant_store.client(id) if is_allowed_text(id) and len(id) <= 200 else None
        is_other = hinted is not None and hinted != id
        if found is None or is_other or address not in found[0].redirects:
            raise Malformed("The address to go on to is not one of the app that sent you.")
        state = urlencode({"state": given["state"]}) if given.get("state") else ""
        return _Onward(f"{address}{'&' if '?' in address else '?'}{state}" if state else address)


def _end(onward: _Onward) -> Reply:
    return see_other(onward.address) if onward.address else page_reply(200, signed_out())
