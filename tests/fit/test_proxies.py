"""nginx, HAProxy, Caddy and Varnish in front of a service, as the documentation configures them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.caching.kiosk import model
from tests.fit.fronts import proxy, shown
from tests.fit.scenario import Scenarios, Tool
from tests.fit.through import check_cache, check_proxy
from tests.support.running import ROOT, NewDatabase, Service, served, token
from tests.system.caching.nginx import nginx, snippet

KIND = "Proxies"
NGINX = Tool("nginx", KIND, program=("nginx", "-v"))
HAPROXY = Tool("HAProxy", KIND, program=("haproxy", "-v"))
CADDY = Tool("Caddy", KIND, program=("caddy", "version"))
VARNISH = Tool("Varnish", KIND, program=("varnishd", "-V"))


@pytest.fixture(scope="module")
def kiosk(new_sqlite: NewDatabase) -> Iterator[Service]:
    """A service with public resources, whose tests are in tests/contract/caching."""
    with served(new_sqlite(), model="tests.contract.caching.kiosk:model", cwd=ROOT, DIPTYCH_HEARTBEAT="5") as service:
        yield service


@pytest.fixture(scope="module")
def editor(kiosk: Service) -> str:
    return token(kiosk.database, "admin", model=model)


@pytest.mark.tool(NGINX)
def test_nginx(kiosk: Service, editor: str, scenario: Scenarios, tmp_path: Path) -> None:
    config = snippet(kiosk.url).replace(
        'Connection "";', "Connection $http_connection; proxy_set_header Upgrade $http_upgrade;"
    )
    with nginx(config, tmp_path) as front:
        check_proxy(front, kiosk, scenario, editor)
        check_cache(front, kiosk, scenario, editor)


@pytest.mark.tool(HAPROXY)
def test_haproxy(kiosk: Service, editor: str, scenario: Scenarios, tmp_path: Path) -> None:
    def command(program: str, config: Path, address: str) -> list[str]:
        return [program, "-db", "-f", str(config)]

    with proxy("haproxy", shown("haproxy"), kiosk, tmp_path, command) as front:
        check_proxy(front, kiosk, scenario, editor)
    scenario.none("cache", "its cache stores nothing that varies by Authorization")


@pytest.mark.tool(CADDY)
def test_caddy(kiosk: Service, editor: str, scenario: Scenarios, tmp_path: Path) -> None:
    def command(program: str, config: Path, address: str) -> list[str]:
        return [program, "run", "--config", str(config), "--adapter", "caddyfile"]

    with proxy("caddy", shown("caddyfile"), kiosk, tmp_path, command) as front:
        check_proxy(front, kiosk, scenario, editor)
    scenario.none("cache", "it has none without a plugin")


@pytest.mark.tool(VARNISH)
def test_varnish(kiosk: Service, editor: str, scenario: Scenarios, tmp_path: Path) -> None:
    def command(program: str, config: Path, address: str) -> list[str]:
        return [
            program,
            "-F",
            "-j",
            "none",
            "-a",
            address,
            "-f",
            str(config),
            "-n",
            str(config.parent / "run"),
            "-T",
            "none",
        ]

    with proxy("varnishd", shown("vcl"), kiosk, tmp_path, command) as front:
        check_proxy(front, kiosk, scenario, editor)
        check_cache(front, kiosk, scenario, editor)
