"""The console's endpoints: its page and files, and `/console/api/…`.

    /console/…            the page and its files, for everyone: they hold nothing of the service
    /console/api/boot     what the page needs before anyone has signed in
    /console/api/model    the model as the caller may see it
    /console/api/twin     a request in both styles, with its price; for admins also its statements and rules
    …                     for admins: the rules, the last requests, accounts and keys

Requests of pages of other origins are refused, whatever `cors_origins` allows of the API. So are those to a host that
is not this machine, if the service has no `base_url` (DNS rebinding). Answers are never stored.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from diptych.api.json import read_json
from diptych.api.reply import JSON_TYPE, NO_STORE, Reply, method_reply
from diptych.config import Config
from diptych.engine.read import Engine
from diptych.errors import Code, Refusal
from diptych.identity.oauth.console_client import CONSOLE_CLIENT, CONSOLE_PATH, console_redirect
from diptych.identity.viewer import Caller, Context
from diptych.serve.console.access import Access
from diptych.serve.console.admin import Admin
from diptych.serve.console.files import console_page, file_reply
from diptych.serve.console.model_document import ModelDocuments
from diptych.serve.console.paced import encode_list
from diptych.serve.console.people import People
from diptych.serve.console.recent import Recent
from diptych.serve.console.requests import Explainer
from diptych.serve.console.rows import RowExplainer
from diptych.serve.console.rule_matrix import rule_matrices
from diptych.serve.console.sign_in import DevSignIn
from diptych.serve.endpoint.rest import row_not_found
from diptych.serve.http.request import Request
from diptych.serve.introspection import Introspection
from diptych.serve.public_address import issuer_of

API, ADMIN = "/console/api/", "admin/"
MAX_BODY = 262_144
Answer = Callable[[Request, Caller], Awaitable[Any]]


class Route(NamedTuple):
    """An endpoint: its method, what answers, and whether it is for admins."""

    method: str
    answer: Answer
    admin: bool = False


class ConsoleEndpoint:
    """The page, its files, and its endpoints."""

    def __init__(
        self,
        engine: Engine,
        context: Context,
        config: Config,
        introspection: Introspection,
        recent: Recent | None,
        *,
        dev: bool,
    ) -> None:
        self.engine = engine
        self.model, self.store = engine.model, engine.store
        self.base_url = config.base_url
        self.introspection = introspection
        self.is_dev = dev
        self.recent = recent or Recent()
        self.access = Access(context, config.base_url, dev=dev)
        self._documents = ModelDocuments(engine)
        self._explainer = Explainer(engine)
        self._rows = RowExplainer(engine, self._explainer, dev=dev)
        self._admin = Admin(engine, context.revoked, config.webhook_networks)
        self._matrix = b""
        self._routes = {
            "boot": Route("GET", self._boot),
            "model": Route("GET", self._model),
            "twin": Route("POST", self._twin),
            "plan": Route("POST", self._plan, True),
            "rules": Route("GET", self._rules, True),
            "why": Route("POST", self._why, True),
            "recent": Route("GET", self._recent, True),
            "metrics": Route("GET", self._metrics, True),
        }
        if dev:
            self._sign_in = DevSignIn(engine.model, context, engine.store)
            self._users = People(engine)
            self._routes |= {
                "code": Route("POST", self._code),
                "as": Route("POST", self._as, True),
                "people": Route("GET", self._people, True),
                "person": Route("POST", self._person, True),
            }

    async def handle(self, request: Request, caller: Caller) -> Reply:
        """Answer a request below /console."""
        if request.path.startswith(API):
            return await self._api(request, caller)
        if (reply := method_reply(request.method, ("GET", "HEAD", "OPTIONS"))) is not None:
            return reply
        if request.path == CONSOLE_PATH[:-1]:
            return Reply(303, ((b"location", f"{request.root}{CONSOLE_PATH}".encode()), *NO_STORE))
        name = request.path.removeprefix(CONSOLE_PATH)
        if "." not in name and "//" not in request.path:
            return console_page(request.root)
        reply = file_reply(request, name)
        if reply is None:
            raise row_not_found()
        return reply

    async def _api(self, request: Request, caller: Caller) -> Reply:
        name = request.path.removeprefix(API)
        if name.startswith(ADMIN):
            body = await self._administer(request, caller, name.removeprefix(ADMIN))
        elif (route := self._routes.get(name)) is None:
            raise row_not_found()
        elif (reply := method_reply(request.method, (route.method, "OPTIONS"))) is not None:
            return reply
        else:
            self.access.check_origin(request)
            if route.admin:
                self.access.need_admin(caller)
            body = await route.answer(request, caller)
        if isinstance(body, Reply):
            return body
        return _json(msgspec.json.encode(body))

    # for everyone

    async def _boot(self, request: Request, caller: Caller) -> Any:
        issuer = issuer_of(self.base_url, request)
        known = self.is_dev or caller.viewer.signed_in
        return {
            "mode": "dev" if self.is_dev else "serve",
            "title": self.model.title,
            "version": importlib.metadata.version("diptych") if known else None,
            "prefix": request.root,
            "signIn": {
                "authorize": f"{request.root}/oauth/authorize",
                "token": f"{request.root}/oauth/token",
                "client": CONSOLE_CLIENT,
                "redirect": console_redirect(issuer),
            },
            "store": self.store.dialect.name if known else None,
        }

    async def _model(self, request: Request, caller: Caller) -> Any:
        self.introspection.check(caller.viewer)
        return await self._documents.reply(caller, admin=self.access.is_admin(caller))

    async def _twin(self, request: Request, caller: Caller) -> Any:
        sent = await _body(request)
        if "as" in sent:
            self.access.need_admin(caller)
        return self._explainer.twin(sent, caller, admin=self.access.is_admin(caller))

    async def _code(self, request: Request, caller: Caller) -> Any:
        return await self._sign_in.by_code(await _body(request))

    # for admins

    async def _as(self, request: Request, caller: Caller) -> Any:
        return await self._sign_in.view_as(await _body(request))

    async def _people(self, request: Request, caller: Caller) -> Any:
        return await self._users.list()

    async def _person(self, request: Request, caller: Caller) -> Any:
        return await self._users.create(await _body(request))

    async def _plan(self, request: Request, caller: Caller) -> Any:
        return await self._rows.plan(await _body(request), caller)

    async def _why(self, request: Request, caller: Caller) -> Any:
        return await self._rows.why(await _body(request), caller)

    async def _rules(self, request: Request, caller: Caller) -> Any:
        if not self._matrix:
            with self.engine.planning_budget.planning():
                steps = rule_matrices(self.model)
            self._matrix = await encode_list(steps, self.engine.planning_budget)
        roles = msgspec.json.encode(self.model.role_names)
        return _json(b'{"roles":%b,"resources":%b}' % (roles, self._matrix))

    async def _recent(self, request: Request, caller: Caller) -> Any:
        name, _, after = request.query.partition("=")
        if request.query and (name != "after" or not after.isdecimal() or not after.isascii() or len(after) > 15):
            raise Refusal(Code.BAD_REQUEST, "The only parameter is after, a number.")
        return self.recent.requests(int(after or 0))

    async def _metrics(self, request: Request, caller: Caller) -> Any:
        return self.recent.metrics()

    async def _administer(self, request: Request, caller: Caller, path: str) -> Any:
        kind, _, name = path.partition("/")
        acts = self._admin.acts.get(kind)
        if acts is None or "/" in name:
            raise row_not_found()
        methods = [method for method in acts if (method in ("PATCH", "DELETE")) == bool(name)]
        if (reply := method_reply(request.method, (*methods, "OPTIONS"))) is not None:
            return reply
        self.access.check_origin(request)
        self.access.need_recent(caller)
        body = {} if request.method == "GET" else await _body(request)
        return await acts[request.method](unquote(name), body)


def _json(body: bytes) -> Reply:
    return Reply(200, ((b"content-type", JSON_TYPE), *NO_STORE), body)


async def _body(request: Request) -> dict[str, Any]:
    """The object in the body. Its type is one that a form of another page cannot send."""
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != JSON_TYPE:
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "Send application/json.")
    body = read_json(await request.body(MAX_BODY))
    if not isinstance(body, dict):
        raise Refusal(Code.BAD_USER_INPUT, "The body is no object.")
    return body
