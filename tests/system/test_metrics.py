"""Metrics of real processes: on a port of its own, for a role, over several processes, and never for anyone else."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from tests.support.running import Answer, Client, NewDatabase, Service, running, served

ROOT = Path(__file__).parents[2]


def operators(service: Service) -> Client:
    """A client of the operators' port."""
    return Client(service.out.wait(r"Metrics  (\S+)/metrics\n")[1])


def samples(answer: Answer) -> dict[tuple[str, ...], float]:
    """Every sample, by its name and the values of its labels in the order of their names."""
    assert answer.status == 200, answer
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def test_a_port_of_its_own_has_metrics_and_health_and_nothing_else(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite(), "--sample", "--metrics-address", "0") as service:
        admin, port = service.token_of("admin"), operators(service)
        assert service.get("/users").status == 200
        assert service.query("{ users { nothing } }")["errors"]
        assert admin.post("/users", {"name": "Zoe", "email": "zoe@example.org"}).status == 201
        assert service.get("/nothing").status == 404
        found = samples(port.get("/metrics"))
        assert found["diptych_requests_total", "GET", "200", "rest"] == 1
        assert found["diptych_requests_total", "POST", "201", "rest"] == 1
        assert found["diptych_requests_total", "POST", "200", "graphql"] == 1
        assert found["diptych_refusals_total", "GRAPHQL_VALIDATION_FAILED", "graphql"] == 1
        assert found["diptych_refusals_total", "NOT_FOUND", "rest"] == 1
        assert found["diptych_price_objects_count",] == 2
        assert found["diptych_ready",] == found["diptych_database_writable",] == 1
        assert found["process_resident_memory_bytes",] > 10_000_000
        assert [port.get(path).status for path in ("/health/live", "/health/ready", "/users", "/")] == [
            200,
            200,
            404,
            404,
        ]
        assert port.post("/metrics", {}).status == 405
        assert port.request("HEAD", "/metrics").body == b""
        openmetrics = port.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
        assert openmetrics.body.endswith(b"# EOF\n")


def test_the_service_itself_has_no_metrics_but_for_a_role(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite(), "--metrics-address", "0") as service:
        unknown = service.get("/nothing")
        for client in (service, service.token_of("admin")):
            answer = client.get("/metrics")
            assert (answer.status, answer.body) == (404, unknown.body)
    with served(new_sqlite(), "--metrics-roles", "admin") as service:
        assert (service.get("/metrics").status, service.token_of("editor").get("/metrics").status) == (404, 404)
        assert ("diptych_ready",) in samples(service.token_of("admin").get("/metrics"))


def test_a_role_that_the_model_lacks_is_refused() -> None:
    app = Diptych(model, config=Config(database="sqlite:///:memory:", metrics_roles=("chief",)))
    with pytest.raises(Exception, match="metrics_roles has 'chief'"):
        asyncio.run(app.start())


def test_several_processes_are_counted_together_also_after_one_was_replaced(new_sqlite: NewDatabase) -> None:
    with running(
        "serve", "--workers", "2", "--metrics-address", "0", database=new_sqlite(), noise="Child process"
    ) as service:
        port = operators(service)

        requests = ("diptych_requests_total", "GET", "200", "rest")

        def until(expected: float, name: tuple[str, ...] = requests) -> None:
            end = time.monotonic() + 20
            while (count := samples(port.get("/metrics")).get(name, 0)) != expected:
                assert time.monotonic() < end, count
                time.sleep(0.1)

        for _ in range(40):
            assert service.get("/users").status == 200
        until(40)
        until(8, ("diptych_pool_size",))  # of two processes
        service.process.send_signal(signal.SIGHUP)  # both are replaced
        before = time.monotonic()
        while samples(port.get("/metrics"))["diptych_ready",] != 1 or time.monotonic() < before + 3:
            time.sleep(0.1)
        for _ in range(10):
            assert service.get("/users").status == 200
        until(50)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool, of Debian's package prometheus, is not there")
def test_promtool_has_nothing_to_say(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite(), "--sample", "--metrics-address", "0") as service:
        service.get("/users")
        text = operators(service).get("/metrics").body
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_reference_lists_every_metric() -> None:
    app = Diptych(model, config=Config(database="sqlite:///:memory:"))
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    listed = re.findall(r"^\| `((?:diptych|process)_\w+)` \| (\w+) \| ([^|]*?) \| (.+?) \|$", page, re.MULTILINE)
    assert [(name, kind, labels, help) for name, kind, labels, help in listed] == [
        (one.name, one.kind, ", ".join(f"`{label}`" for label in one.labels), one.help)
        for one in app.metrics.registry.descriptions
    ]
