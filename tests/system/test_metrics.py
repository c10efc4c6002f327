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
import yaml
from prometheus_client.parser import text_string_to_metric_families

from diptych import Diptych
from diptych.config import Config
from diptych.demo.model import model
from tests.support.running import Answer, Client, NewDatabase, Service, free_port, running, served

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


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not there")
def test_prometheus_scrapes_it_with_the_recipe(new_sqlite: NewDatabase, tmp_path: Path) -> None:
    with served(new_sqlite(), "--sample", "--metrics-address", "0") as service:
        port = operators(service).port
        recipe = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
        recipe["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (job,) = recipe["scrape_configs"]
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
        for name in ("scrape_interval", "scrape_timeout"):
            job.pop(name, None)
        recipe["rule_files"] = [str(ROOT / "deploy" / "prometheus" / "alerts.yml")]
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(recipe))
        address = f"127.0.0.1:{free_port()}"
        command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address={address}"]
        command += [f"--storage.tsdb.path={tmp_path}/data", "--log.level=error"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                collected(service, Client(f"http://{address}"), process)
            finally:
                process.terminate()


def collected(service: Service, prometheus: Client, process: subprocess.Popen[bytes]) -> None:
    """Ask the service until Prometheus has counted it; and no alert fires."""
    end = time.monotonic() + 60
    while True:
        assert service.get("/users").status == 200
        try:
            found = prometheus.get("/api/v1/query?query=sum(diptych_requests_total{style=%22rest%22})").json()
        except (OSError, ValueError):
            found = {}
        if found.get("status") == "success" and any(float(one["value"][1]) >= 3 for one in found["data"]["result"]):
            break
        assert time.monotonic() < end and process.poll() is None, found
        time.sleep(0.2)
    rules = prometheus.get("/api/v1/rules").json()["data"]["groups"][0]["rules"]
    assert len(rules) > 8 and {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert not [alert for alert in prometheus.get("/api/v1/alerts").json()["data"]["alerts"]]


def test_the_reference_lists_every_metric() -> None:
    app = Diptych(model, config=Config(database="sqlite:///:memory:"))
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    listed = re.findall(r"^\| `((?:diptych|process)_\w+)` \| (\w+) \| ([^|]*?) \| (.+?) \|$", page, re.MULTILINE)
    assert [(name, kind, labels, help) for name, kind, labels, help in listed] == [
        (one.name, one.kind, ", ".join(f"`{label}`" for label in one.labels), one.help)
        for one in app.metrics.registry.descriptions
    ]
