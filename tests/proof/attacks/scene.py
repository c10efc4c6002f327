"""A service under attack: what it answered, how far the request came, and what that cost.

How far a request came is seen from outside of our own code, by what it calls of graphql-core, of the part that draws Asks,
and of the store; so it stays true however the look at a request is written.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphql.language.parser import Parser
from graphql.validation.validation_context import ValidationContext

from diptych.api.ask_builder import AskBuilder
from diptych.api.reply import Reply
from diptych.errors import Code, Refusal
from diptych.fair.caller import CALLER
from diptych.lru import LRUCache
from diptych.serve.http.request import Request
from tests.contract.http.data import ANN
from tests.proof.attacks.case import Case, Where
from tests.support.in_process import Service

_STAGES: tuple[tuple[type[Any], str, Where], ...] = (
    (Parser, "parse_document", "prepass"),
    (AskBuilder, "__init__", "other"),
    (ValidationContext, "__init__", "other"),
)
"""What is called once a request has come past a stage, and where it is then refused at the earliest."""
_ORDER: tuple[Where, ...] = ("text", "prepass", "other")
_STORE = ("run", "write", "change", "session")


@dataclass(frozen=True)
class Outcome:
    """What became of an attack."""

    status: int
    code: str
    came: Where
    """Where it was refused, at the earliest."""
    ran: int
    """How often the store was asked."""
    reply: Reply


class Scene:
    """A service, and those who attack it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.tokens = {"nobody": None, "ann": service.token(ANN), "admin": service.token(ANN, "admin")}
        self.came: Where = "text"
        self.ran = 0
        self._count_store()
        for token in self.tokens.values():  # their schemas are made, and they are known
            service.data("{ users(first: 1) { id } }", token=token)
        found = (each for each in gc.get_objects() if isinstance(each, LRUCache))
        self._memories = [each for each in found if each._seen is not None]  # of what was seen before, not of roles
        self._caches = _caches()

    def _count_store(self) -> None:
        for name in _STORE:
            setattr(self.service.app.store, name, self._counted(getattr(self.service.app.store, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def counted(*given: Any, **more: Any) -> Any:
            self.ran += CALLER.get() not in ("", "webhooks")  # what the service does by itself
            return call(*given, **more)

        return counted

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note how far requests come."""
        before = [(kind, name, getattr(kind, name)) for kind, name, _ in _STAGES]
        for kind, name, stage in _STAGES:
            setattr(kind, name, self._noted(getattr(kind, name), stage))
        try:
            yield
        finally:
            for kind, name, call in before:
                setattr(kind, name, call)

    def _noted(self, call: Callable[..., Any], stage: Where) -> Callable[..., Any]:
        @functools.wraps(call)
        def noted(*given: Any, **more: Any) -> Any:
            self.came = max(self.came, stage, key=_ORDER.index)
            return call(*given, **more)

        return noted

    # attacks

    def send(self, case: Case) -> Outcome:
        """Send an attack, and see how far it comes."""
        self.came, self.ran = "text", 0
        reply: Reply = self.service.runner.run(self.handle(case))
        return Outcome(reply.status, _code(reply), self.came, self.ran, reply)

    def handle(self, case: Case) -> Coroutine[Any, Any, Reply]:
        """The answer of the handler itself."""
        path, _, query = case.url.partition("?")
        headers = {name.lower().encode(): value.encode("latin-1") for name, value in case.headers.items()}
        token = self.tokens[case.who]
        if token is not None:
            headers[b"authorization"] = b"Bearer " + token.encode()

        async def read(most: int) -> bytes:
            if len(case.body) > most:
                raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The body may have {most} bytes.")
            return case.body

        return self.service.handler.handle(Request(case.method, path, query, headers, read))

    def forget(self) -> None:
        """Nothing was seen before: no plan, no document, no header is remembered."""
        for memory in self._memories:
            memory.clear()
        for cache in self._caches:
            cache.cache_clear()

    async def timed(self, case: Case) -> float:
        """Seconds of the processor that the handler takes for an attack that it never saw."""
        self.forget()
        waiting = self.handle(case)
        begun = time.thread_time()
        await waiting
        return time.thread_time() - begun


def _caches() -> list[Any]:
    """Whatever our modules remember of calls, but for what is made once for a model."""
    modules = [module for name, module in sys.modules.items() if name.startswith("diptych.api.")]
    return [
        each
        for module in modules
        for each in vars(module).values()
        if hasattr(each, "cache_clear") and each.__module__ == module.__name__
    ]


def _code(reply: Reply) -> str:
    """The code of an answer in any style; nothing, if it is no error."""
    body = reply.body
    if body.startswith(b"event: "):
        body = body.partition(b"data: ")[2].partition(b"\n")[0]
    found = json.loads(body) if body else {}
    if not isinstance(found, dict):
        return ""
    if "errors" in found and "code" not in found:
        codes = {str(error["extensions"]["code"]) for error in found["errors"]}
        assert len(codes) == 1, codes
        return codes.pop()
    return str(found.get("code", "")) if reply.status >= 400 else ""
