"""Traces by OpenTelemetry: a span for each request, and one for each stage of it under its name in the architecture.

    GET /users            the request, with the parent of the header `traceparent`
    ├── understand        api: what the request means, from a cache or made anew
    │   ├── check         policy: limits, prices and rules
    │   └── compile       compile: the statement
    ├── run               db: the statement, with its text and no value
    └── reply             the response

Off by default: the classes here are subclasses and wrappers that exist only if the setting `traces` is on, and the
package opentelemetry (`pip install diptych[otel]`) is imported only then. Where spans go is for the variables of
OpenTelemetry to say: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from diptych.api.reply import Reply
from diptych.serve.http.request import Request

T = TypeVar("T")
_STATEMENT = 4_000
"""The most characters of a statement in a span."""
_HEADERS = (b"traceparent", b"tracestate")


class Tracing:
    """The spans of one service."""

    def __init__(self) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "diptych"}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("diptych")

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    def wrap(self, handler: Any) -> None:
        """Trace the requests of a handler, and the stages of its engine and store."""
        engine, store, rest = handler.engine, handler.engine.store, handler.rest
        handler.handle = self._request(handler.handle)
        rest._recognise = self._stage("understand", rest._recognise)
        planner = handler.graphql.planner
        planner.recognise = self._stage("understand", planner.recognise)
        engine.checks = _Checks(engine.checks, self)
        engine.plan_reads = self._stage("compile", engine.plan_reads)
        writes = handler.write_engine
        writes._plan = self._stage("compile", writes._plan)
        store.run = self._statement(store.run)
        store.write = self._awaited("run", store.write)
        store.change = self._awaited("run", store.change)

    def _request(self, handle: Callable[[Request], Awaitable[Reply]]) -> Callable[[Request], Awaitable[Reply]]:
        async def traced(request: Request) -> Reply:
            carrier = {
                name.decode(): request.headers[name].decode("latin-1") for name in _HEADERS if name in request.headers
            }
            attributes = {"http.request.method": request.method, "diptych.request_id": request.id}
            with self._tracer.start_as_current_span(
                _name(request), propagate.extract(carrier), trace.SpanKind.SERVER, attributes
            ) as span:
                reply = await handle(request)
                with self._tracer.start_as_current_span("reply"):
                    span.set_attribute("http.response.status_code", reply.status)
                    span.set_attribute("http.response.body.size", len(reply.body))
                    if reply.status >= 500:
                        span.set_status(trace.StatusCode.ERROR)
                return reply

        return traced

    def stage(self, name: str) -> Any:
        """A span of a stage, to be entered."""
        return self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False)

    def _stage(self, name: str, work: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(work)
        def traced(*arguments: Any, **named: Any) -> T:
            with self.stage(name):
                return work(*arguments, **named)

        return traced

    def _awaited(self, name: str, work: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def traced(*arguments: Any, **named: Any) -> T:
            with self.stage(name):
                return await work(*arguments, **named)

        return traced

    def _statement(self, run: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def traced(plan: Any, parameters: Any) -> T:
            with self.stage("run") as span:
                span.set_attribute("db.query.text", plan.sql[:_STATEMENT])
                return await run(plan, parameters)

        return traced


class _Checks:
    """Checks with a span around each; all else is that of the checks themselves."""

    def __init__(self, checks: Any, tracing: Tracing) -> None:
        self._checks, self._tracing = checks, tracing

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._checks, name)
        return self._tracing._stage("check", value) if name in ("shape", "price") else value

    def __call__(self, *arguments: Any) -> Any:
        with self._tracing.stage("check"):
            return self._checks(*arguments)


def _name(request: Request) -> str:
    """The name of a span: no id and no value, so that it has few forms."""
    first = request.path.split("/", 2)[1] if "/" in request.path else ""
    return f"{request.method} /{first}" if first.isidentifier() and len(first) <= 64 else request.method
