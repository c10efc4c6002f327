"""Traces by OpenTelemetry: a span for each request, and one for each stage of it under its name in the architecture.

    GET /users            the request, with the parent of the header `traceparent`
    ├── understand        api: what the request means, from a cache or made anew
    │   ├── check         policy: limits, prices and rules
    │   └── compile       compile: the statement
    ├── run               db: the statement, with its text and no value
    └── reply             the response

An observer of the stages (`stages.py`). Off by default: the package opentelemetry (`pip install diptych[otel]`) is
imported only if the setting `traces` is on. Where spans go is for the variables of OpenTelemetry to say:
`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from diptych.api.reply import Reply
from diptych.serve.http.request import Request
from diptych.serve.stages import Handle

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

    def around(self, handle: Handle) -> Handle:
        """A span for each request."""

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

    @contextmanager
    def stage(self, name: str, statement: str = "") -> Iterator[None]:
        """A span of a stage."""
        with self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
            if statement:
                span.set_attribute("db.query.text", statement[:_STATEMENT])
            yield


def _name(request: Request) -> str:
    """The name of a span: no id and no value, so that it has few forms."""
    first = request.path.split("/", 2)[1] if "/" in request.path else ""
    return f"{request.method} /{first}" if first.isidentifier() and len(first) <= 64 else request.method
