"""The endpoints of the OAuth authorization server: tokens for clients, sign-in and consent pages for users.

Users are signed in by a cookie that is limited to these paths; the API does not accept it. Every form carries a CSRF
token that is bound to the cookie. Signing in changes the cookie, against session fixation. There is no redirect to a
client before the client and its redirect URI are verified.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from urllib.parse import urlencode

import msgspec
from authlib.oauth2.rfc6749 import OAuth2Error

from diptych.api.reply import JSON_TYPE, Header, Reply, method_reply
from diptych.config import Config
from diptych.engine.write import WriteEngine
from diptych.identity.accounts import Accounts
from diptych.identity.login_sessions import SignedIn
from diptych.identity.oauth.authlib_adapter import Malformed, OAuthResponse, read_form
from diptych.identity.oauth.grant_store import GrantStore
from diptych.identity.oauth.openid import subject_of
from diptych.identity.oauth.prompts import ConsentRequired, LoginRequired, after_sign_in
from diptych.identity.oauth.registration import Registration
from diptych.identity.oauth.server import AuthorizationRequest, OAuth, Pairs, malformed
from diptych.identity.throttle import Throttled
from diptych.identity.viewer import Context
from diptych.serve.endpoint.account import AccountEndpoint, make_account_endpoint
from diptych.serve.endpoint.account_paths import ACCOUNT_PATHS
from diptych.serve.endpoint.oauth_device import DEVICE, DevicePages
from diptych.serve.endpoint.oauth_forms import BrowserForms, see_other, sent_form
from diptych.serve.endpoint.oauth_logout import LogoutPages
from diptych.serve.endpoint.oauth_pages import consent, failure, page_reply, sign_in
from diptych.serve.endpoint.oauth_paths import PATHS, REGISTER, USERINFO
from diptych.serve.endpoint.openid import OpenidEndpoint
from diptych.serve.endpoint.rest import row_not_found
from diptych.serve.endpoint.signing_in import SigningIn, address_of
from diptych.serve.endpoint.user_claims import ReadRow, UserClaims
from diptych.serve.http.request import Request
from diptych.serve.public_address import issuer_of

_MOST = 65_536
_ANSWER: tuple[Header, ...] = (
    (b"content-type", JSON_TYPE),
    (b"cache-control", b"no-store"),
    (b"pragma", b"no-cache"),
)


def make_endpoint(write_engine: WriteEngine, context: Context, config: Config, read_row: ReadRow) -> OauthEndpoint:
    """The endpoints of a service."""
    engine = write_engine.engine
    user_claims = UserClaims(context, read_row)
    grant_store = GrantStore(engine.store, context.revoked)
    oauth = OAuth(grant_store, context.tokens, engine.model, user_claims.of, context.find_key, console=config.console)
    registration = Registration(engine.store, config.registration_origins, engine.model.scopes)
    openid = OpenidEndpoint(context, oauth.grant_store, user_claims, registers=bool(registration.origins))
    accounts = Accounts(engine.store, context.revoked)
    endpoint = OauthEndpoint(oauth, openid, registration, accounts, config.base_url, engine.secret)
    endpoint.account = make_account_endpoint(
        write_engine, context.revoked, config, endpoint.forms, endpoint.signing_in, endpoint.hash
    )
    return endpoint


class OauthEndpoint:
    """The endpoints below /oauth and /.well-known."""

    def __init__(
        self,
        oauth: OAuth,
        openid: OpenidEndpoint,
        registration: Registration,
        accounts: Accounts,
        base_url: str,
        secret: bytes,
    ) -> None:
        self.oauth = oauth
        self.openid = openid
        self.registration = registration
        self.accounts = accounts
        self.base_url = base_url
        self.forms = BrowserForms(base_url, secret)
        self.devices = DevicePages(oauth.grant_store, self.forms, secret)
        self.signing_in = SigningIn(oauth.grant_store.store, self.forms, secret, lambda: self.accounts)
        self._sessions = self.signing_in.sessions
        self.logout = LogoutPages(oauth, self._sessions, self.forms)
        self.account: AccountEndpoint

    async def hash(self, password: str) -> str:
        """Hash a new password."""
        return await self.accounts.hash(password)

    async def stop(self) -> None:
        """End all that runs in the background."""
        self.oauth.stop()
        await self.account.stop()

    async def handle(self, request: Request) -> Reply:
        """Answer a request; raises a Refusal only for errors outside of OAuth."""
        if (reply := method_reply(request.method, (*PATHS[request.path], "OPTIONS"))) is not None:
            return reply
        issuer = issuer_of(self.base_url, request)
        if request.path in ACCOUNT_PATHS:
            return await self.account.handle(request, issuer)
        match request.path:
            case path if path.startswith("/.well-known/"):
                return await self.openid.document(path, issuer)
            case path if path == USERINFO:
                return await self.openid.userinfo(request)
            case path if path == REGISTER:
                return await self._register(request)
            case "/oauth/authorize" if request.method != "POST":
                return await self._authorize(request, issuer)
            case "/oauth/end_session":
                return await self.logout.handle(request, issuer)
            case "/oauth/device" if request.method != "POST":
                return await self._device(request)
            case "/oauth/authorize" | "/oauth/device" | "/oauth/login" | "/oauth/logout":
                return await self._sent_form(request, issuer)
        return await self._for_client(request, issuer)

    # clients

    async def _for_client(self, request: Request, issuer: str) -> Reply:
        endpoints: dict[str, Callable[..., Awaitable[OAuthResponse]]] = {
            "/oauth/token": self.oauth.token,
            "/oauth/revoke": self.oauth.revoke,
            "/oauth/introspect": self.oauth.introspect,
            "/oauth/device_authorization": partial(self.oauth.start_device, address=address_of(request)),
        }
        try:
            answer = await endpoints[request.path](_headers(request), await sent_form(request), issuer)
        except Malformed as error:
            answer = malformed(str(error))
        challenge: tuple[Header, ...] = ()
        if answer.status == 401:
            challenge = ((b"www-authenticate", b'Basic realm="oauth"'),)
        return Reply(answer.status, (*_ANSWER, *challenge), answer.encoded())

    async def _register(self, request: Request) -> Reply:
        """Register a client (RFC 7591); where that is off, there is no such path."""
        if not self.registration.origins:
            raise row_not_found()
        kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        try:
            body = msgspec.json.decode(await request.body(_MOST)) if kind == b"application/json" else None
        except (msgspec.DecodeError, RecursionError):
            body = None
        answer = await self.registration.register(body, address_of(request))
        wait = tuple((b"retry-after", value.encode()) for value in answer.headers.values())
        return Reply(answer.status, (*_ANSWER, *wait), answer.encoded())

    # users

    async def _authorize(self, request: Request, issuer: str) -> Reply:
        """Show the consent page for an authorization request, or the sign-in page."""
        try:
            query = read_form(request.query)
        except Malformed as error:
            return page_reply(400, failure(str(error)))
        wanted = await self.oauth.validate(query, issuer)
        if isinstance(wanted, OAuthResponse):
            return _redirect(wanted)
        cookie = self.forms.cookie(request)
        signed_in = await self._signed_in(wanted, cookie)
        if wanted.prompt.is_silent:
            return _redirect(await self.oauth.decide(query, await self._silent(wanted, signed_in), issuer))
        if signed_in is None:
            return self._sign_in(wanted, request.query, wanted.prompt.login_hint, "", 200, cookie)
        if wanted.is_own:
            return _redirect(await self.oauth.decide(query, signed_in, issuer))
        hidden = {"request": request.query, "token": self.forms.token(cookie)}
        page = consent(
            wanted.client.name,
            wanted.redirect,
            wanted.scope,
            signed_in.account.email,
            hidden,
            registered=wanted.is_registered,
        )
        return page_reply(200, page, wanted.redirect)

    async def _signed_in(self, wanted: AuthorizationRequest | None, cookie: str) -> SignedIn | None:
        """The user of a browser, unless the request wants the user to sign in again."""
        signed_in = await self._sessions.find(cookie)
        is_old = signed_in is not None and wanted is not None and not wanted.prompt.accepts(signed_in.since)
        return None if is_old else signed_in

    async def _silent(self, wanted: AuthorizationRequest, signed_in: SignedIn | None) -> SignedIn | OAuth2Error:
        """The decision without a page: what the user allowed before, to a client that nobody can pretend to be."""
        hint = wanted.prompt.id_token_hint
        if signed_in is None or (hint and self.oauth.hinted(hint) != subject_of(signed_in.account)):
            return LoginRequired()
        if wanted.is_own:
            return signed_in
        is_certain = wanted.client.secret is not None or wanted.redirect.startswith("https:")
        has_consent = await self.oauth.grant_store.has_consent(signed_in.account, wanted.client, wanted.scope)
        return signed_in if is_certain and has_consent else ConsentRequired()

    async def _device(self, request: Request) -> Reply:
        """Show the page for the code of a device, or the sign-in page."""
        cookie = self.forms.cookie(request)
        signed_in = await self._sessions.find(cookie)
        if signed_in is None:
            return self._sign_in(None, DEVICE, "", "", 200, cookie)
        return self.devices.ask(signed_in, cookie)

    async def _sent_form(self, request: Request, issuer: str) -> Reply:
        try:
            form = dict(await sent_form(request))
            if request.path == "/oauth/authorize" and "client_id" in form:  # by an app, and without cookies then
                return see_other(f"authorize?{urlencode(form)}")
            is_device = form.get("request") == DEVICE
            query = [] if is_device else read_form(form.get("request", ""))
        except Malformed as error:
            return page_reply(400, failure(str(error)))
        cookie = self.forms.cookie(request)
        if not self.forms.is_own(request, form, cookie, issuer):
            return page_reply(403, failure("This form has expired. Go back to where you came from and try again."))
        wanted = None if is_device else await self.oauth.validate(query, issuer)
        if isinstance(wanted, OAuthResponse):
            return _redirect(wanted)
        if request.path == "/oauth/login":
            return await self._log_in(request, form, wanted, cookie)
        if request.path == "/oauth/logout":
            await self._sessions.sign_out(cookie)
            return see_other(_onward(wanted, query), self.forms.set_cookie("", 0))
        if is_device != (request.path == "/oauth/device"):
            return page_reply(400, failure("This form belongs to another page."))
        signed_in = await self._signed_in(wanted, cookie)
        if signed_in is None:
            return self._sign_in(wanted, form["request"], "", "You were signed out. Sign in again.", 200, cookie)
        if is_device:
            return await self.devices.sent(request, form, signed_in, cookie)
        allowed = form.get("decision") == "allow"
        return _redirect(await self.oauth.decide(query, signed_in if allowed else None, issuer))

    async def _log_in(
        self, request: Request, form: dict[str, str], wanted: AuthorizationRequest | None, cookie: str
    ) -> Reply:
        email = form.get("email", "")[:254]
        account = await self.signing_in.check(request, email, form.get("password", ""))
        if isinstance(account, Throttled):
            wrong = "Too many attempts. Wait a little before you try again."
            wait = (b"retry-after", str(account.seconds).encode())
            return self._sign_in(wanted, form["request"], email, wrong, 429, cookie, (wait,))
        if account is None:
            wrong = "The e-mail or the password is not right."
            return self._sign_in(wanted, form["request"], email, wrong, 400, cookie)
        onward = _onward(wanted, [] if wanted is None else after_sign_in(read_form(form["request"])))
        return await self.signing_in.go_on(request, account, onward)

    def _sign_in(
        self,
        wanted: AuthorizationRequest | None,
        query: str,
        email: str,
        wrong: str,
        status: int,
        cookie: str,
        more: Sequence[Header] = (),
    ) -> Reply:
        fresh = () if cookie else (self.forms.set_cookie(cookie := secrets.token_urlsafe(32), 3600),)
        hidden = {"request": query, "token": self.forms.token(cookie)}
        name, redirect = (wanted.client.name, wanted.redirect) if wanted else ("the device that you connect", "")
        links = self.account.links(query if wanted else "")
        return page_reply(status, sign_in(name, email, hidden, wrong, links), redirect, (*fresh, *more))


def _onward(wanted: AuthorizationRequest | None, query: Pairs) -> str:
    """The page after a sign-in or a sign-out."""
    return DEVICE if wanted is None else f"authorize?{urlencode(query)}"


def _redirect(answer: OAuthResponse) -> Reply:
    """Redirect to the client, or, if the client is not verified, show the user an error page."""
    if answer.location is not None:
        return see_other(answer.location)
    body = answer.body if isinstance(answer.body, dict) else {}
    return page_reply(400, failure(body.get("error_description") or "The request of the client is not valid."))


def _headers(request: Request) -> dict[str, str]:
    sent = request.headers.get(b"authorization")
    return {} if sent is None else {"Authorization": sent.decode("latin-1")}
