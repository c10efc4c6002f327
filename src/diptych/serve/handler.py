"""The request handler, independent of the protocol: token → path → endpoint → Reply.

The order of checks is part of the API: token, path, method, media types, size, syntax, role, and last the row.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib
import logging
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from diptych.api.graphql.http import Parameters
from diptych.api.media import negotiate
from diptych.api.reply import (
    JSON_TYPE,
    NO_STORE,
    PRIVATE,
    STATUS,
    Reply,
    method_reply,
    not_acceptable,
    tag,
)
from diptych.config import Config
from diptych.engine.rate_limiter import SPENDER
from diptych.engine.read import Engine
from diptych.engine.watch import WatchEngine
from diptych.engine.write import WriteEngine
from diptych.errors import Code, Refusal
from diptych.fair.admission import Admission
from diptych.fair.caller import CALLER, UNKNOWN, host_name, peer_name
from diptych.fair.pace import Pace
from diptych.identity.viewer import Caller, Context, InvalidToken
from diptych.live.service import LiveService
from diptych.lru import LRUCache
from diptych.serve.acts import acts_of
from diptych.serve.endpoint.oauth_paths import PATHS as OAUTH_PATHS
from diptych.serve.endpoint.rest import RestEndpoint, row_not_found
from diptych.serve.http.coding import accepted_coding, coded
from diptych.serve.http.request import Request, is_of_console, not_modified, variant
from diptych.serve.introspection import Introspection, is_one_of, known_roles
from diptych.serve.node_record import NodeRecord
from diptych.serve.on_demand import CONSOLE, CONSOLE_FILES, CONSOLE_GRAPHQL, GRAPHQL, HOME, OAUTH, OPENAPI, WEBHOOKS
from diptych.serve.public_address import known_issuer
from diptych.serve.rate_headers import ADMITTED_PATHS, enter, settle_rates, with_rate_headers
from diptych.serve.read_tokens import routed
from diptych.serve.readiness import Readiness
from diptych.serve.refusals import internal, refusal_reply
from diptych.serve.service_metrics import ServiceMetrics, Started
from diptych.serve.stages import stages_of

if TYPE_CHECKING:
    from diptych.jobs.service import JobService
    from diptych.serve.console.endpoint import ConsoleEndpoint
    from diptych.serve.console.recent import Recent
    from diptych.serve.endpoint.graphql import GraphqlEndpoint, Outcome
    from diptych.serve.endpoint.oauth import OauthEndpoint
    from diptych.webhooks.service import WebhookService

log = logging.getLogger("diptych")
_DOCUMENTS, _DOCUMENT_BYTES = 64, 16 << 20


class Handler:
    """Answers every request of one service."""

    compresses = True
    """Are replies compressed here, as clients accept it?"""
    explains = False
    """May an error say `why`?"""
    recent: Recent | None = None
    """The last requests, where the console is on."""
    metrics: ServiceMetrics | None = None
    """What is counted, for roles that may read it."""

    jobs: JobService | None = None

    def __init__(self, engine: Engine, context: Context, config: Config) -> None:
        self.engine = engine
        self.context = context
        self.config = config
        self.introspection = Introspection.of(config, engine.model.roles)
        self._metrics_roles = known_roles("metrics_roles", config.metrics_roles, engine.model.roles)
        self.readiness = Readiness(engine.store, engine.model, config)
        self.node = NodeRecord(engine.store, engine.model)
        self.admission = Admission()
        self.write_engine = WriteEngine(engine)
        self.live = LiveService(WatchEngine(engine), context, config)
        self.rest = RestEndpoint(
            engine, self.write_engine, self.live, context, max_body=config.max_body, max_export=config.max_export
        )
        self.padding_key = hashlib.blake2b(b"padding", key=engine.secret[:64]).digest()
        self._documents: LRUCache[tuple[bytes, bytes]] = LRUCache(
            "OpenAPI documents", _DOCUMENTS, _DOCUMENT_BYTES, keeps_one=True
        )
        self._building: WeakValueDictionary[tuple[object, ...], asyncio.Lock] = WeakValueDictionary()
        self._routed = routed(self._route, engine.store, self.live, refusal_reply)
        self._stages = stages_of(self, config)
        self._acts = acts_of(engine.model)

    @functools.cached_property
    def graphql(self) -> GraphqlEndpoint:
        """The endpoint of GraphQL, made on first use."""
        parts = self.engine, self.write_engine, self.live, self.config
        endpoint: GraphqlEndpoint
        if self.recent is not None:
            endpoint = importlib.import_module(CONSOLE_GRAPHQL).RecordingGraphql(*parts, self.recent)
        else:
            endpoint = importlib.import_module(GRAPHQL).GraphqlEndpoint(*parts)
        self._stages.of_graphql(endpoint)
        return endpoint

    @functools.cached_property
    def oauth(self) -> OauthEndpoint:
        """The endpoints of the authorization server, made on first use."""
        endpoint: OauthEndpoint = importlib.import_module(OAUTH).make_endpoint(
            self.write_engine, self.context, self.config, self.rest.read
        )
        return endpoint

    @functools.cached_property
    def console(self) -> ConsoleEndpoint:
        """The console, made on first use."""
        endpoint: ConsoleEndpoint = importlib.import_module(CONSOLE).ConsoleEndpoint(
            self.engine, self.context, self.config, self.introspection, self.recent, dev=self.explains
        )
        return endpoint

    @functools.cached_property
    def webhooks(self) -> WebhookService:
        """What delivers webhooks, made at the start if changes are logged."""
        service: WebhookService = importlib.import_module(WEBHOOKS).WebhookService(self.live, self.config)
        return service

    def measured(self) -> Started:
        """The parts of it that metrics read."""
        webhooks = self.webhooks if "webhooks" in vars(self) else None
        return Started(self.live, self.admission, self.readiness, self.engine.rates, webhooks)

    @property
    def has_mails(self) -> bool:
        """Do mails wait to be sent?"""
        outbox = self.oauth.account.outbox if "oauth" in vars(self) else None
        return outbox is not None and outbox.waiting > 0

    async def start(self) -> None:
        """Begin what runs in the background."""
        await self.live.start()
        self.node.start()

    async def stop(self) -> None:
        """End all that runs in the background."""
        self.admission.stop()
        self._stages.close()
        await self.node.stop()
        await self.readiness.stop()
        for service in (vars(self).get("webhooks"), self.jobs, vars(self).get("oauth")):
            if service is not None:
                await service.stop()
        if self.engine.rates is not None:
            await self.engine.rates.sharing.stop()
        if self.engine.usage is not None:
            await self.engine.usage.stop()
        await self.live.stop()
        await self.context.revoked.stop()

    async def handle(self, request: Request) -> Reply:
        """Answer a request; never raises."""
        try:
            if request.path in OAUTH_PATHS:  # Authorization is that of the OAuth client here, not a bearer token
                CALLER.set(name := peer_name(request.peer))
                work = self._authorize(request)
            else:
                sent = request.headers.get(b"authorization")
                caller = self.context.caller(sent)
                if caller is None:
                    CALLER.set(peer_name(request.peer))  # until it is authenticated
                    caller = await self.context.find(sent or b"")
                name = caller.fairness_key or (host_name(request.peer[0]) if request.peer else UNKNOWN)
                if CALLER.get() != name:  # requests of one connection have one context, and mostly one caller
                    CALLER.set(name)
                rates = self.engine.rates
                if rates is not None:
                    if rates.urgent:
                        await settle_rates(rates, request, caller)
                    enter(rates, request, caller)
                work = self._routed(request, caller)
                if (accepts := request.headers.get(b"accept-encoding")) is not None and self.config.compression:
                    request.coding = accepted_coding(accepts)
                    if request.coding and self.compresses:
                        work = coded(request, work, self.padding_key)
            if request.path not in ADMITTED_PATHS and self.admission.is_needed(name, request.lag):
                reply = await self.admission.run(name, work)
            else:
                reply = await work
        except InvalidToken as refusal:
            reply = refusal_reply(request, await self._counted(request, refusal))
        except Refusal as refusal:
            reply = refusal_reply(request, refusal)
        except Exception:
            reply = refusal_reply(request, internal(f"{request.method} {request.path}", request))
        return reply if request.spending is None else with_rate_headers(request, reply, request.spending)

    async def spend(self, request: Request, caller: Caller) -> None:
        """Count a request of a caller, who pays for it from here on; a Refusal if that is over a rate."""
        rates = self.engine.rates
        if rates is not None:
            await settle_rates(rates, request, caller)
            enter(rates, request, caller)

    async def _counted(self, request: Request, refusal: Refusal) -> Refusal:
        """Count a request whose token is not valid, for its address: it is refused for that, or over a rate."""
        try:
            await self.spend(request, self.context.anonymous)
        except Refusal as over:
            return over
        return refusal

    async def run_operation(self, parameters: Parameters, caller: Caller) -> Outcome:
        """Execute an operation of a WebSocket."""
        begun = time.perf_counter()
        outcome = await self.graphql.run(parameters, caller)
        if self.metrics is not None:
            status = 200 if outcome.refused is None else STATUS[outcome.refused.code]
            self.metrics.requests.note_operation(begun, status, len(outcome.body))
        return outcome

    def _route(self, request: Request, caller: Caller) -> Coroutine[Any, Any, Reply]:
        """Call the endpoint of a path."""
        if self._acts is not None:
            self._acts.note(request, caller)
        if request.path == "/graphql":
            if request.method != "POST" and not request.query and self._shows_page(request):
                return self._page(request, caller)
            return self.graphql.handle(request, caller)
        target = self.rest.target(request.path)
        if target is not None:
            return self.rest.handle(request, caller, target)
        return self._fixed(request, caller)

    def _authorize(self, request: Request) -> Coroutine[Any, Any, Reply]:
        """Call the authorization server, in nobody's name."""
        request.is_service = True
        SPENDER.set(None)
        if self._acts is not None:
            self._acts.note(request, self.context.anonymous)
        return self.oauth.handle(request)

    async def _fixed(self, request: Request, caller: Caller) -> Reply:
        """The routes that do not depend on the model's resources."""
        if request.path == "*" and request.method == "OPTIONS":  # of the service as a whole (RFC 9110, §9.3.7)
            return Reply(204, NO_STORE)
        if request.path == "/batch":
            return await self.rest.batch.handle(request, caller)
        if request.path == "/metrics" and self._metrics_roles:
            request.is_service = True
            return self._metrics(request, caller)
        request.is_service = True
        if request.path not in ("/openapi.json", "/health/live", "/health/ready"):
            if self.config.console and is_of_console(request.path):
                return await self.console.handle(request, caller)
            if request.path == "/" or (request.root and request.path == request.root):
                return await self._root(request, caller)
            request.is_service = False
            raise self._not_found(request)
        if (reply := method_reply(request.method, ("GET", "HEAD", "OPTIONS"))) is not None:
            return reply
        if negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            raise not_acceptable("application/json")
        if request.query:
            raise Refusal(Code.BAD_REQUEST, "This takes no parameters.")
        if request.path == "/openapi.json":
            return await self._openapi(request, caller)
        if request.path == "/health/ready":
            await self.readiness.check()
        return Reply(200, ((b"content-type", JSON_TYPE), *NO_STORE), b'{"status":"ok"}')

    def _metrics(self, request: Request, caller: Caller) -> Reply:
        """The metrics, for the roles of the setting; for all others there is nothing here."""
        if self.metrics is None or not is_one_of(caller.viewer, self._metrics_roles):
            raise row_not_found()
        if (reply := method_reply(request.method, ("GET", "HEAD", "OPTIONS"))) is not None:
            return reply
        return self.metrics.reply(request.headers.get(b"accept", b""))

    def _shows_page(self, request: Request) -> bool:
        """Does a browser ask for a page? The page is imported for those only."""
        accepts = b"html" in request.headers.get(b"accept", b"")
        return accepts and bool(importlib.import_module(HOME).wants_page(request))

    async def _root(self, request: Request, caller: Caller) -> Reply:
        """The root: a page for people, and for others where the documents are."""
        if self._shows_page(request):
            return await self._page(request, caller)
        if (reply := method_reply(request.method, ("GET", "HEAD", "OPTIONS"))) is not None:
            return reply
        if request.query or negotiate(request.headers.get(b"accept", b""), ("application/json",)) is None:
            raise row_not_found()
        described = self.introspection.is_for(caller.viewer)
        root: Reply = importlib.import_module(HOME).root_reply(
            request, self.engine.model.title, described=described, console=self.config.console
        )
        return root

    async def _page(self, request: Request, caller: Caller) -> Reply:
        """The page for people: the console where it is on."""
        if self.config.console and importlib.import_module(CONSOLE_FILES).is_built():
            return Reply(303, ((b"location", f"{request.root}/console/".encode()), *NO_STORE))
        model, described = self.engine.model, self.introspection.is_for(caller.viewer)
        with self.engine.planning_budget.planning():
            view = model.view(caller.signature)
        reply: Reply = importlib.import_module(HOME).home_reply(
            request, model.title, view, self.config.base_url, described=described
        )
        return reply

    def _not_found(self, request: Request) -> Refusal:
        """The refusal for a path that names nothing; of one with a trailing slash it says where to go."""
        path = request.path[:-1]
        if request.path[-1:] == "/" and (path == "/graphql" or self.rest.target(path) is not None):
            return Refusal(Code.NOT_FOUND, f"There is nothing here: it is {request.root}{path}, without the slash.")
        return row_not_found()

    async def _openapi(self, request: Request, caller: Caller) -> Reply:
        if not self.introspection.is_on:
            raise row_not_found()
        self.introspection.check(caller.viewer)
        issuer = known_issuer(self.config.base_url, request)
        server = self.config.base_url or issuer or request.root
        key = (caller.signature, server, issuer)
        document = self._documents.get(key)
        if document is None:
            lock = self._building.setdefault(key, asyncio.Lock())
            async with lock:  # one build for all who ask at the same time
                document = self._documents.get(key) or await self._build_openapi(caller, server, issuer)
                self._documents.put(key, document, len(document[0]))
        body, mark = document
        mark = variant(request, mark, len(body))
        if not_modified(request.headers.get(b"if-none-match"), mark):
            return Reply(304, (*PRIVATE, (b"etag", mark)))
        return Reply(200, ((b"content-type", JSON_TYPE), *PRIVATE, (b"etag", mark)), body)

    async def _build_openapi(self, caller: Caller, server: str, issuer: str) -> tuple[bytes, bytes]:
        """The document and its ETag, in time slices, all charged to the caller: that of a large model takes long."""
        budget, pace, model = self.engine.planning_budget, Pace(), self.engine.model
        with budget.planning():
            view = model.view(caller.signature)
            steps = importlib.import_module(OPENAPI).encode_steps(
                view,
                title=model.title,
                about=model.about,
                server=server,
                issuer=issuer,
                max_page=self.engine.limits.page,
                max_bulk=self.engine.limits.bulk,
                explained=self.explains,
                rated=self.engine.rates is not None,
            )
        while True:
            with budget.planning(goes_on=True):
                try:
                    while not pace.is_over():
                        next(steps)
                except StopIteration as done:
                    body: bytes = done.value
                    return body, tag(body)
            await pace.rest()
