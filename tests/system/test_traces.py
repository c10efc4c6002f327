"""Traces: the SDK sends them by OTLP, and a receiver decodes what it got."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.running import NewDatabase, environment, running

TRACE, PARENT, SECRET = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "s3cr3t-planted"


@contextmanager
def receiver() -> Iterator[tuple[str, list[Any]]]:
    """A collector: its address, and the spans that it got."""
    spans: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = ExportTraceServiceRequest()
            sent.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
            for resource in sent.resource_spans:
                for scope in resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", spans
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_stage_of_a_request_has_a_span_in_the_trace_of_its_client(new_database: NewDatabase) -> None:
    with receiver() as (address, spans):
        with running(
            "serve",
            "--sample",
            "--traces",
            database=new_database(),
            OTEL_EXPORTER_OTLP_ENDPOINT=address,
            OTEL_BSP_SCHEDULE_DELAY="50",
        ) as service:
            header = {"traceparent": f"00-{TRACE}-{PARENT}-01", "content-type": "application/json"}
            assert service.request("GET", f"/users?name={SECRET}", header).status == 200
            document = {
                "query": "query($n: String) { users(where: {name: {eq: $n}}) { name } }",
                "variables": {"n": SECRET},
            }
            assert service.request("POST", "/graphql", header, json.dumps(document).encode()).status == 200
        end = time.monotonic() + 20
        while sum(span.name == "reply" for span in spans) < 2 and time.monotonic() < end:
            time.sleep(0.05)
    ours = [span for span in spans if span.trace_id.hex() == TRACE]
    for name in ("GET /users", "POST /graphql"):
        (root,) = (span for span in ours if span.name == name)
        assert root.parent_span_id.hex() == PARENT
        below, found = {root.span_id}, set()
        for _ in range(4):
            for span in ours:
                if span.parent_span_id in below:
                    below.add(span.span_id)
                    found.add(span.name)
        assert found == {"understand", "check", "compile", "run", "reply"}, name
    assert SECRET not in str(spans)
    assert any("SELECT" in str(span.attributes) for span in ours if span.name == "run")


def test_nothing_of_it_is_imported_where_it_is_off() -> None:
    code = "import sys, diptych.cli.serve, diptych.serve.app; print([n for n in sys.modules if 'opentelemetry' in n])"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
