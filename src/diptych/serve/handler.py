"""The one handler, whatever protocol brought the request: token → path → endpoint → Reply.

The order of checks is the contract's: a bad token is refused before anything else is looked at, then the path,
the method, the media types, the size, the syntax, the role, and last the row.
"""

from __future__ import annotations

import logging
import secrets

import msgspec

from diptych.api.graphql.http import LEGACY, OFFERS, error_reply
from diptych.api.media import negotiate
from diptych.api.reply import JSON, NO_STORE, PRIVATE, Header, Reply, problem, tag
from diptych.api.rest.openapi import openapi
from diptych.asking import ASKER, UNKNOWN, host_name, peer_name
from diptych.engine import Engine
from diptych.errors import Code, Refusal
from diptych.identity.accounts import Accounts
from diptych.identity.oauth.ledger import Ledger
from diptych.identity.oauth.server import OAuth
from diptych.identity.viewer import Caller, Context, InvalidToken
from diptych.live.live import Live, LiveSettings
from diptych.lru import LRUCache
from diptych.serve.graphql import GraphqlEndpoint
from diptych.serve.http import Request, not_modified
from diptych.serve.oauth import PATHS as OAUTH_PATHS
from diptych.serve.oauth import OauthEndpoint
from diptych.serve.persisted import Persisted
from diptych.serve.rest import RestEndpoint, not_found
from diptych.transact import Transactor
from diptych.watch import Watcher

log = logging.getLogger("diptych")
_INVALID: Header = (b"www-authenticate", b'Bearer error="invalid_token"')
_DOCUMENTS, _DOCUMENT_BYTES = 64, 16 << 20
_ALLOW: Header = (b"allow", b"GET, HEAD, OPTIONS")


class Handler:
    """Answers every request of one service."""

    def __init__(
        self, engine: Engine, context: Context, *, max_body: int, introspection: bool, base_url: str,
        live: Live | None = None, persisted: Persisted | None = None,
    ) -> None:  # fmt: skip
        self.engine = engine
        self.context = context
        self.introspection = introspection
        self.base_url = base_url
        transactor = Transactor(engine)
        self.live = live or Live(Watcher(engine), context, LiveSettings())
        self.graphql = GraphqlEndpoint(engine, transactor, self.live, max_body=max_body, introspection=introspection,
                                       persisted=persisted)  # fmt: skip
        self.rest = RestEndpoint(engine, transactor, self.live, max_body=max_body)
        ledger = Ledger(engine.store, context.revoked)
        oauth = OAuth(ledger, context.tokens, engine.model)
        self.oauth = OauthEndpoint(oauth, Accounts(engine.store, context.revoked), base_url, engine.secret)
        self._documents: LRUCache[bytes] = LRUCache("OpenAPI documents", _DOCUMENTS, _DOCUMENT_BYTES, largest=1)

    async def handle(self, request: Request) -> Reply:
        """The answer to a request; never an exception."""
        try:
            if request.path in OAUTH_PATHS:  # where Authorization is the client's, and no bearer token
                ASKER.set(peer_name(request.peer))
                return await self.oauth.handle(request)
            sent = request.headers.get(b"authorization")
            caller = self.context.caller(sent)
            if caller is None:
                ASKER.set(peer_name(request.peer))  # until it is known who it is
                caller = await self.context.find(sent or b"")
            peer = request.peer
            ASKER.set(caller.asker or (host_name(peer[0]) if peer else UNKNOWN))
            if request.path == "/graphql":
                return await self.graphql.handle(request, caller)
            target = self.rest.target(request.path)
            if target is not None:
                return await self.rest.handle(request, caller, target)
            return await self._fixed(request, caller)
        except Refusal as refusal:
            return refused(request, refusal)
        except Exception:
            return refused(request, internal(f"{request.method} {request.path}"))

    async def _fixed(self, request: Request, caller: Caller) -> Reply:
        """The routes that no model has a part in."""
        if request.path == "*" and request.method == "OPTIONS":  # of the service as a whole (RFC 9110, §9.3.7)
            return Reply(204, NO_STORE)
        if request.path not in ("/openapi.json", "/health/live", "/health/ready"):
            raise not_found()
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            return problem(Refusal(Code.METHOD_NOT_ALLOWED, "Use GET, HEAD or OPTIONS."), (_ALLOW,))
        if request.method == "OPTIONS":
            return Reply(204, (_ALLOW, *NO_STORE))
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            raise Refusal(Code.NOT_ACCEPTABLE, "This answers application/json.")
        if request.query:
            raise Refusal(Code.BAD_REQUEST, "This takes no parameters.")
        if request.path == "/openapi.json":
            return self._openapi(request, caller)
        if request.path == "/health/ready":
            await self.engine.store.ping()
        return Reply(200, ((b"content-type", JSON), *NO_STORE), b'{"status":"ok"}')

    def _openapi(self, request: Request, caller: Caller) -> Reply:
        if not self.introspection:
            raise not_found()
        key = (caller.signature, self.base_url or request.root, self._issuer(request))
        body = self._documents.get(key)
        if body is None:
            with self.engine.meter.planning():
                view = self.engine.model.view(caller.signature)
                title, most = self.engine.model.title, self.engine.limits.page
                document = openapi(view, title=title, server=key[1], issuer=key[2], max_page=most)
                body = msgspec.json.encode(document)
            self._documents.put(key, body, len(body))
        mark = tag(body)
        if not_modified(request.headers.get(b"if-none-match"), mark):
            return Reply(304, (*PRIVATE, (b"etag", mark)))
        return Reply(200, ((b"content-type", JSON), *PRIVATE, (b"etag", mark)), body)

    def _issuer(self, request: Request) -> str:
        try:
            return self.oauth.issuer(request)
        except Refusal:
            return ""


def internal(where: str) -> Refusal:
    """The exception that is being handled, in the log; its number there is all that is said of it."""
    number = secrets.token_hex(8)
    log.exception("error %s in %s", number, where)
    return Refusal(Code.INTERNAL, f"Something went wrong. Its number is {number}.")


def refused(request: Request, refusal: Refusal) -> Reply:
    """A Refusal in the style of the path that was asked."""
    invalid = isinstance(refusal, InvalidToken)
    if request.path == "/graphql":
        reply = error_reply(refusal, negotiate(request.headers.get(b"accept", b""), OFFERS) or LEGACY)
        if invalid:  # a status of its own in every media type, since it tells of no GraphQL at all
            reply = Reply(401, reply.headers, reply.body)
    else:
        reply = problem(refusal)
    if invalid:
        others = tuple(pair for pair in reply.headers if pair[0] != b"www-authenticate")
        return Reply(reply.status, (*others, _INVALID), reply.body)
    return reply
