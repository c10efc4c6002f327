"""A service below a path of its public address, behind nginx: every path that it tells leads back to it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.contract.live.clients import WebSocket
from tests.support.running import ROOT, NewDatabase, Service, diptych, served
from tests.system.caching.nginx import Front, nginx

PREFIX = "/helpdesk"


def recipe(upstream: str) -> str:
    """What docs/reference/proxies.md shows to whoever runs nginx."""
    found: str
    (found,) = re.findall(
        r"```nginx\n(.+?)```", (ROOT / "docs" / "reference" / "proxies.md").read_text("utf-8"), re.DOTALL
    )
    return found.replace("listen 80;", "listen LISTEN;").replace("http://127.0.0.1:8000;", f"{upstream};")


@pytest.fixture(scope="module")
def behind(new_sqlite: NewDatabase) -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = ("--sample", "--base-url", f"http://127.0.0.1:{port}{PREFIX}", "--trusted-proxies", "127.0.0.1")
    with served(new_sqlite(), *options) as service:
        yield service


def admin_token(service: Service) -> str:
    issuer = service.get("/.well-known/oauth-authorization-server").json()["issuer"]
    done = diptych("token", "--database", service.database, "--base-url", issuer, "--role", "admin")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(params=["kept", "taken away"])
def front(behind: Service, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Front]:
    """nginx that passes on the path, or takes it away."""
    config = recipe(behind.url)
    if request.param == "taken away":
        config = config.replace(f"{behind.url};", f"{behind.url}/;", 1)
    with nginx(config, tmp_path) as found:
        yield found


def test_every_path_that_is_told_leads_back(behind: Service, front: Front) -> None:
    first = front.get(f"{PREFIX}/users?first=2")
    links = re.findall(r"<([^>]+)>", first.headers["link"])
    assert links and all(each.startswith(f"{PREFIX}/users?") for each in links)
    assert front.get(links[0]).status == 200


def test_a_created_row_is_found_where_its_location_says(behind: Service, front: Front) -> None:
    admin = front.signed_in(admin_token(behind))
    body = {"name": "Zoe", "email": f"zoe{front.port}@example.org"}
    made = admin.post(f"{PREFIX}/users", body)
    assert made.status == 201
    assert made.headers["location"] == f"{PREFIX}/users/{made.json()['id']}"
    assert admin.get(made.headers["location"]).json()["name"] == "Zoe"


def test_documents_name_the_public_address(behind: Service, front: Front) -> None:
    document = front.get(f"{PREFIX}/openapi.json").json()
    (server,) = document["servers"]
    assert urlsplit(server["url"]).path == PREFIX
    metadata = front.get(f"{PREFIX}/.well-known/oauth-authorization-server").json()
    assert metadata["issuer"] == server["url"]
    assert metadata["token_endpoint"] == f"{server['url']}/oauth/token"
    assert front.get(f"/.well-known/oauth-authorization-server{PREFIX}").json() == metadata
    assert front.get(f"{PREFIX}/health/live").status == 200


def test_a_websocket_opens_below_the_path(behind: Service, front: Front) -> None:
    with WebSocket(front.port, f"{PREFIX}/graphql") as socket_:
        assert socket_.status == 101
        socket_.begin()
