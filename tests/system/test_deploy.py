"""The recipes in deploy/: each is checked by its own tool, and every metric and setting that they name exists."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from diptych import Diptych
from diptych.config import SETTINGS, Config, load
from diptych.demo.model import model
from tests.support.running import PATIENCE, ROOT

DEPLOY = ROOT / "deploy"
NAME = re.compile(r"\b((?:diptych|process)_\w+)")
SUFFIXES = re.compile(r"_(?:bucket|sum|count)$")


def tool(*command: str) -> str:
    """What a tool says about a recipe; skipped where it is not there."""
    program = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"{command[0]} is not on this machine")
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=PATIENCE, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def metrics() -> dict[str, str]:
    app = Diptych(model, config=Config(database="sqlite:///:memory:"))
    return {description.name: description.kind for description in app.metrics.registry.descriptions}


def expressions() -> Iterator[tuple[str, str]]:
    """The expressions of the dashboard and of the alerts, as Prometheus gets them."""
    dashboard = json.loads((DEPLOY / "grafana" / "diptych.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            shown = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".+")
            yield f"the panel {panel['title']}", shown
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield f"the alert {rule['alert']}", rule["expr"]


def test_the_dashboard_and_the_alerts_name_metrics_that_exist() -> None:
    known = metrics()
    for where, expression in expressions():
        names = NAME.findall(expression)
        assert names, where
        for name in names:
            is_histogram = known.get(SUFFIXES.sub("", name)) == "histogram"
            assert name in known or (is_histogram and SUFFIXES.search(name)), f"{where}: {name}"


def test_the_dashboard_shows_every_metric() -> None:
    shown = {SUFFIXES.sub("", name) for _, expression in expressions() for name in NAME.findall(expression)}
    assert shown == set(metrics())


def test_counters_are_read_as_rates_and_gauges_are_not() -> None:
    known = metrics()
    for where, expression in expressions():
        for name in NAME.findall(expression):
            kind = known[name if name in known else SUFFIXES.sub("", name)]
            is_rate = re.search(rf"(?:rate|increase)\({name}\b", expression) is not None
            assert is_rate == (kind != "gauge"), f"{where}: {name}"


def test_promtool_accepts_rules_configuration_and_every_expression(tmp_path: Path) -> None:
    alerts = DEPLOY / "prometheus" / "alerts.yml"
    count = alerts.read_text().count("- alert:")
    assert f"{count} rules found" in tool("promtool", "check", "rules", str(alerts))
    tool("promtool", "check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))
    rules = [{"record": f"panel:{number}", "expr": shown} for number, (_, shown) in enumerate(expressions())]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    tool("promtool", "check", "rules", str(tmp_path / "panels.yml"))


def test_an_alert_fires_when_it_should(tmp_path: Path) -> None:
    """Prometheus itself evaluates them, on series that are made up."""
    series = [
        ('diptych_ready{instance="one"}', "1 1 0 0 0 0 0 0"),
        ('diptych_ready{instance="two"}', "1x20"),
        ('diptych_requests_total{instance="two",status="200"}', "0+60x30"),
        ('diptych_requests_total{instance="two",status="500"}', "0+3x30"),
        ('diptych_database_writable{instance="two"}', "1x4 0x20"),
        ('diptych_webhook_behind{instance="two"}', "20000x60"),
        ('diptych_webhook_messages_total{instance="two",outcome="dead"}', "0x5 1x20"),
        ('diptych_rates_shared{instance="two"}', "1x4 0x20"),
    ]
    firing = {
        "DiptychNotReady": ("6m", "one"),
        "DiptychErrors": ("15m", "two"),
        "DiptychDatabaseTakesNoChanges": ("9m", "two"),
        "DiptychWebhooksAreBehind": ("40m", "two"),
        "DiptychGivesUpMessages": ("15m", "two"),
        "DiptychRatesAreNotShared": ("15m", "two"),
    }
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series],
            "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": [_expected(alert, instance)]}],
        }
        for alert, (at, instance) in firing.items()
    ]
    quiet = {"eval_time": "1m", "alertname": "DiptychNotReady", "exp_alerts": []}
    tests.append({"interval": "1m", "input_series": tests[0]["input_series"], "alert_rule_test": [quiet]})
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(DEPLOY / "prometheus" / "alerts.yml")], "tests": tests}))
    assert "SUCCESS" in tool("promtool", "test", "rules", str(file))


def _expected(alert: str, instance: str) -> dict[str, Any]:
    (rule,) = (
        rule
        for rule in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
        if rule["alert"] == alert
    )
    summary = rule["annotations"]["summary"].replace("{{ $labels.instance }}", instance)
    return {"exp_labels": {**rule["labels"], "instance": instance}, "exp_annotations": {"summary": summary}}


def test_nginx_haproxy_and_caddy_accept_their_configurations(tmp_path: Path) -> None:
    for command in (
        ("nginx", "-t", "-c", str(DEPLOY / "nginx.conf"), "-g", f"pid {tmp_path}/nginx.pid;"),
        ("haproxy", "-c", "-f", str(DEPLOY / "haproxy.cfg")),
        ("caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")),
    ):
        tool(*command)


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in ("tasks.service", "tasks.socket"):
        text = (DEPLOY / "systemd" / unit).read_text()
        (tmp_path / unit).write_text(text.replace("/opt/tasks/.venv/bin/diptych", "/bin/true"))
    said = tool("systemd-analyze", "verify", str(tmp_path / "tasks.service"), str(tmp_path / "tasks.socket"))
    assert "tasks" not in said, said


def test_kubernetes_accepts_the_manifests() -> None:
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tasks.yaml").read_text()))
    kinds = ["Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"]
    assert [manifest["kind"] for manifest in manifests] == kinds
    for manifest in manifests:
        kubernetes_validate.validate(manifest, "1.37", strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**manifests[0], "spec": {"replica": 2}}, "1.37", strict=True)


def test_the_schema_of_compose_accepts_the_recipe(tmp_path: Path) -> None:
    assert compose_says(DEPLOY / "compose.yaml") == (0, "")
    text = (DEPLOY / "compose.yaml").read_text()
    for right, wrong in (("stop_grace_period:", "grace_period:"), ("cap_drop: [ALL]", "cap_drop: ALL")):
        assert right in text
        (tmp_path / "compose.yaml").write_text(text.replace(right, wrong))
        status, said = compose_says(tmp_path / "compose.yaml")
        assert status == 1 and wrong.partition(":")[0] in said, said


def compose_says(file: Path) -> tuple[int, str]:
    """What the Compose Specification says about a file, by its JSON Schema."""
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema, which has the schema of Compose files, is not installed")
    command = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_service_ends_before_kubernetes_and_compose_kill_it() -> None:
    pod = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "tasks.yaml").read_text()))["spec"]["template"]["spec"]
    settings = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    longest = float(settings["DIPTYCH_DRAIN"]) + Config().request_timeout + 2
    assert longest < pod["terminationGracePeriodSeconds"]
    node = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["x-node"]
    assert float(node["environment"]["DIPTYCH_DRAIN"]) + Config().request_timeout + 2 < int(
        node["stop_grace_period"][:-1]
    )


def settings_of(file: Path) -> dict[str, str]:
    """The settings that a recipe has, as environment variables."""
    pattern = r"\b(DIPTYCH_[A-Z_]+)(?:=|: |, value: )\"?([^\"\s}\\]+)"
    return dict(re.findall(pattern, file.read_text()))


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "kubernetes/tasks.yaml", "systemd/tasks.service"])
def test_every_setting_of_a_recipe_exists_and_is_accepted(name: str) -> None:
    found = settings_of(DEPLOY / name)
    assert len(found) >= 4
    assert {name.removeprefix("DIPTYCH_").lower() for name in found} <= {setting.name for setting in SETTINGS}
    plain = {name: value for name, value in found.items() if "$" not in value}
    load({}, Path("none.toml"), plain)


def test_containers_are_not_root_and_read_only() -> None:
    image = (DEPLOY / "Containerfile").read_text()
    assert "\nUSER 10001:10001\n" in image and image.rindex("USER") > image.rindex("RUN")
    assert not re.search(r"^ADD |curl|wget|sudo|:latest", image, re.MULTILINE)
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    node = compose["x-node"]
    assert node["read_only"] and node["cap_drop"] == ["ALL"]
    assert (DEPLOY.parent / node["build"]["dockerfile"]).exists()
    for service in compose["services"].values():
        assert {entry["source"] for entry in service.get("configs", ())} <= set(compose["configs"])
        assert set(service.get("depends_on", ())) <= set(compose["services"])
    pod = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "tasks.yaml").read_text()))["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]


def test_nginx_inside_compose_is_accepted_by_nginx(tmp_path: Path) -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    text = compose["configs"]["nginx"]["content"].replace("$$", "$")
    for name in ("one:8000 resolve", "two:8000 resolve"):  # names of containers, and a word of nginx 1.27.3
        text = text.replace(name, "127.0.0.1:8000")
    (tmp_path / "nginx.conf").write_text(text)
    tool("nginx", "-t", "-c", str(tmp_path / "nginx.conf"), "-g", f"pid {tmp_path}/nginx.pid;")


def test_the_readme_lists_every_recipe() -> None:
    listed = set(re.findall(r"`([\w./]+?)/?`", (DEPLOY / "README.md").read_text()))
    assert {path.name for path in DEPLOY.iterdir() if path.name != "README.md"} <= listed


def test_the_guide_shows_the_recipe_for_patroni_as_it_is_run() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "how-to" / "failover.md").read_text(), re.DOTALL)
    assert shown == (DEPLOY / "patroni" / "db1.yml").read_text()
    timing = yaml.safe_load(shown)["bootstrap"]["dcs"]
    assert timing["ttl"] >= timing["loop_wait"] + 2 * timing["retry_timeout"], "a lock must outlast retries"
    assert timing["synchronous_mode"] is True
