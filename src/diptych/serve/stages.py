"""The stages of a request, for what observes them: traces (`tracing.py`) and `Server-Timing` (`server_timing.py`).

    understand        api: what the request means, from a cache or made anew
    ├── check         policy: limits, prices and rules
    └── compile       compile: the statement
    run               db: the statement
    reply             the response

This is the one place that knows where a stage begins and ends: `Stages` puts observers around the methods of the parts
of a service. It does so only if a setting asks for it; otherwise nothing is wrapped, and a request pays nothing.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from diptych.api.reply import Reply
from diptych.config import Config
from diptych.errors import StartError
from diptych.serve.http.request import Request
from diptych.serve.on_demand import SERVER_TIMING, SLOW_LOG, TRACING

if TYPE_CHECKING:
    from diptych.engine.call import CallEngine
    from diptych.serve.endpoint.graphql import GraphqlEndpoint

STAGES = ("understand", "check", "compile", "run", "reply")
Handle = Callable[[Request], Awaitable[Reply]]
T = TypeVar("T")


class Observer(Protocol):
    """What observes requests and their stages."""

    def around(self, handle: Handle) -> Handle:
        """The function that answers requests, observed."""

    def stage(self, name: str, statement: str = "") -> AbstractContextManager[object]:
        """A stage of the current request, to be entered; `statement` is the SQL that it runs."""

    def close(self) -> None:
        """End it."""


class Unobserved:
    """The stages of a service that nothing observes."""

    def of_graphql(self, endpoint: GraphqlEndpoint) -> None:
        """There is nothing to observe."""

    def close(self) -> None:
        """There is nothing to end."""


class Stages(Unobserved):
    """The stages of one service, observed: methods of the parts of its handler are replaced."""

    def __init__(self, parts: Any, observers: Sequence[Observer]) -> None:
        self._observers = observers
        for observer in observers:
            parts.handle = observer.around(parts.handle)
        engine, store, rest = parts.engine, parts.engine.store, parts.rest
        rest.recognise = self._stage("understand", rest.recognise)
        rest.feed.recognise = self._stage("understand", rest.feed.recognise)
        rest.writes.planner.plan = self._stage("understand", rest.writes.planner.plan)
        engine.checks = _Checks(engine.checks, self.stage)
        engine.plan_reads = self._stage("compile", engine.plan_reads)
        parts.write_engine.plan = self._stage("compile", parts.write_engine.plan)
        store.run = self._statement(store.run)
        store.write = self._awaited("run", store.write)
        store.change = self._awaited("run", store.change)
        self._store = store
        self._of_calls(rest.calls.calls)

    def of_graphql(self, endpoint: GraphqlEndpoint) -> None:
        """Observe the endpoint of GraphQL, which is made on first use."""
        planner: Any = endpoint.planner
        planner.recognise = self._stage("understand", planner.recognise)
        self._of_calls(planner.calls)

    def close(self) -> None:
        """End the observers; the store, which is the only part that a next start uses again, is as it was."""
        for observer in self._observers:
            observer.close()
        for name in ("run", "write", "change"):
            vars(self._store).pop(name, None)

    def stage(self, name: str, statement: str = "") -> AbstractContextManager[object]:
        """A stage for all observers, to be entered."""
        if len(self._observers) == 1:
            return self._observers[0].stage(name, statement)
        stack = ExitStack()
        for observer in self._observers:
            stack.enter_context(observer.stage(name, statement))
        return stack

    def _of_calls(self, calls: CallEngine) -> None:
        """Actions and queries of the model: their code and its statements are one stage."""
        parts: Any = calls
        parts.read, parts.write = self._awaited("run", calls.read), self._awaited("run", calls.write)

    def _stage(self, name: str, work: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(work)
        def observed(*arguments: Any, **named: Any) -> T:
            with self.stage(name):
                return work(*arguments, **named)

        return observed

    def _awaited(self, name: str, work: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def observed(*arguments: Any, **named: Any) -> T:
            with self.stage(name):
                return await work(*arguments, **named)

        return observed

    def _statement(self, run: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def observed(plan: Any, parameters: Any) -> T:
            with self.stage("run", plan.sql):
                return await run(plan, parameters)

        return observed


class _Checks:
    """Checks that are a stage; all else is that of the checks themselves."""

    def __init__(self, checks: Any, stage: Callable[[str], AbstractContextManager[object]]) -> None:
        self._checks, self._stage = checks, stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checks, name)

    def __call__(self, *arguments: Any) -> Any:
        with self._stage("check"):
            return self._checks(*arguments)

    def shape(self, *arguments: Any) -> None:
        with self._stage("check"):
            self._checks.shape(*arguments)

    def price(self, *arguments: Any) -> None:
        with self._stage("check"):
            self._checks.price(*arguments)


def stages_of(handler: Any, config: Config) -> Unobserved:
    """The stages of a service, observed as its settings say."""
    if config.slow_query:
        importlib.import_module(SLOW_LOG).note_writes(handler.write_engine)
    observers: list[Observer] = []
    if config.server_timing:
        observers.append(importlib.import_module(SERVER_TIMING).ServerTiming())
    if config.traces:
        try:
            observers.append(importlib.import_module(TRACING).Tracing())
        except ImportError:
            raise StartError("Traces need OpenTelemetry: pip install 'diptych[otel]'.") from None
    return Stages(handler, observers) if observers else Unobserved()
