"""Versions are replaced under load, and no request fails: by socket hand-over, and behind nginx and HAProxy."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.effort import LONG, long_where
from tests.support.running import PATIENCE, ROOT, Client, NewDatabase, environment, free_port, make_tables, stop, token

DEPLOY = ROOT / "deploy"
CLIENTS = 6
PAUSE = 0 if LONG else 0.03
"""Seconds between two requests of a client."""
NOTICED = 1.5
"""Seconds after which a proxy has noticed that a node is ready: three of its health checks."""


class Load:
    """Clients with connections of their own, which they keep as long as the server does."""

    def __init__(self, port: int, bearer: str, *, writes: bool = True) -> None:
        self._port, self._bearer, self._writes = port, bearer, writes
        self.answered = 0
        self.failures: list[str] = []
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        self.wait(50)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def wait(self, more: int) -> None:
        """Wait for so many more answers."""
        end, target = time.monotonic() + PATIENCE, self.answered + more
        while self.answered < target:
            assert time.monotonic() < end, self.failures
            time.sleep(0.01)

    def _ask(self, client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        count = 0
        while not self._ends.is_set():
            count += 1
            try:
                self._one(connection, f"{client}.{count}", count)
                self.answered += 1
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                connection.close()
            time.sleep(PAUSE)
        connection.close()

    def _one(self, connection: http.client.HTTPConnection, name: str, count: int) -> None:
        headers = {"authorization": f"Bearer {self._bearer}", "content-type": "application/json"}
        if count % 3 == 0 and self._writes:
            body = {"name": name, "email": f"{name}@example.org"}
            connection.request("POST", "/users", json.dumps(body), headers)
            expected = 201
        elif count % 3 == 1:
            connection.request("POST", "/graphql", json.dumps({"query": "{ users(first: 2) { name } }"}), headers)
            expected = 200
        else:
            connection.request("GET", "/users?first=2", headers=headers)
            expected = 200
        response = connection.getresponse()
        text = response.read()
        assert response.status == expected, (response.status, text)


class Node:
    """A process that serves; without a port, on the socket that is handed over to it."""

    def __init__(self, database: str, *options: str, port: int = 0, listener: socket.socket | None = None) -> None:
        command = [sys.executable, "-m", "diptych", "serve", "--database", database, "--port", str(port), *options]
        given = environment()
        if listener is not None:  # as a service manager does it: the socket is descriptor 3
            command = [
                "bash",
                "-c",
                f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"',
                "bash",
                *command,
            ]
        self.process = subprocess.Popen(
            command,
            env=given,
            pass_fds=() if listener is None else (listener.fileno(),),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.match(r"GraphQL  http://127\.0\.0\.1:(\d+)/", line)
        assert match, (line, self.process.stderr and self.process.stderr.read())
        self.port = int(match[1])

    def ready(self) -> None:
        client, end = Client(f"http://127.0.0.1:{self.port}"), time.monotonic() + PATIENCE
        while True:
            with suppress(OSError, http.client.HTTPException):
                if client.get("/health/ready").status == 200:
                    return
            assert time.monotonic() < end
            time.sleep(0.02)

    def end(self) -> str:
        """End it gracefully; what it said on stderr."""
        stop(self.process)
        assert self.process.stdout is not None and self.process.stderr is not None
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert self.process.returncode in (0, -signal.SIGTERM), said
        return said


def test_a_socket_is_handed_over_under_load(new_sqlite: NewDatabase) -> None:
    """One after the other, as systemd restarts a service: connections wait in the backlog meanwhile."""
    database = make_tables(new_sqlite())
    bearer = token(database, "admin")
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        node = Node(database, "--drain", "0.5", listener=listener)
        assert node.port == listener.getsockname()[1]
        with Load(node.port, bearer) as load:
            for _ in range(2):
                said = node.end()
                assert not re.search("ERROR|Traceback", said), said
                node = Node(database, "--drain", "0.5", listener=listener)
                load.wait(100)
        node.end()
    assert (load.failures[:3], load.answered > 250) == ([], True)


def test_a_node_is_replaced_by_another_that_runs_beside_it(new_sqlite: NewDatabase) -> None:
    """Both have the socket: the new one serves before the old one ends."""
    database = make_tables(new_sqlite())
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        old = Node(database, "--drain", "0.5", listener=listener)
        with Load(old.port, token(database, "admin")) as load:
            for _ in range(2):
                new = Node(database, "--drain", "0.5", listener=listener)
                new.ready()
                old.end()
                old = new
                load.wait(100)
        old.end()
    assert (load.failures[:3], load.answered > 250) == ([], True)


@contextmanager
def front(name: str, ports: tuple[int, int], folder: Path) -> Iterator[Client]:
    """A proxy with its recipe, in front of two nodes."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"there is no {name} on this machine")
    port, file = free_port(), {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}[name]
    text = (DEPLOY / file).read_text()
    listens = {
        "nginx": ("listen 8080;", f"listen 127.0.0.1:{port};"),
        "haproxy": (":8080", f":{port}"),
        "caddy": ("\n:8080 {", f"\nhttp://127.0.0.1:{port} {{"),
    }[name]
    for shown, real in (
        listens,
        ("127.0.0.1:8001", f"127.0.0.1:{ports[0]}"),
        ("127.0.0.1:8002", f"127.0.0.1:{ports[1]}"),
    ):
        assert text.count(shown) == 1, shown
        text = text.replace(shown, real)
    if name == "nginx":
        text = text.replace(
            "http {", f"http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;", 1
        )
    (folder / file).write_text(text)
    more = {
        "nginx": ["-e", "/dev/null", "-g", f"daemon off; user root; pid {folder}/pid;", "-c"],
        "haproxy": ["-f"],
        "caddy": ["run", "--adapter", "caddyfile", "--config"],
    }[name]
    places = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with subprocess.Popen(
        [program, *more, str(folder / file)], stderr=subprocess.DEVNULL, env={**os.environ, **places}
    ) as process:
        try:
            client, end = Client(f"http://127.0.0.1:{port}"), time.monotonic() + 20
            while True:
                with suppress(OSError):
                    if client.get("/health/live").status == 200:
                        break
                assert time.monotonic() < end and process.poll() is None
                time.sleep(0.02)
            yield client
        finally:
            process.terminate()


@long_where(proxy="caddy")
@pytest.mark.parametrize("proxy", ["nginx", "haproxy", "caddy"])
def test_nodes_are_replaced_behind_a_proxy_under_load(proxy: str, new_sqlite: NewDatabase, tmp_path: Path) -> None:
    """HAProxy and Caddy ask their nodes whether they are ready. nginx does not: there, the sockets stay open, and nobody waits."""
    drain = "0.5" if proxy == "nginx" else "3"
    database, options = make_tables(new_sqlite()), ("--drain", drain, "--idle-timeout", "10")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512)) for _ in range(2)]
        ports = (sockets[0].getsockname()[1], sockets[1].getsockname()[1])
        if proxy != "nginx":
            for listener in sockets:
                listener.close()

        def start(number: int) -> Node:
            node = Node(database, *options, port=ports[number], listener=sockets[number] if proxy == "nginx" else None)
            node.ready()
            return node

        nodes = [start(0), start(1)]
        stack.callback(lambda: [node.end() for node in nodes])
        client = stack.enter_context(front(proxy, ports, tmp_path))
        with Load(client.port, token(database, "admin")) as load:
            for number in range(2):
                nodes[number].end()
                nodes[number] = start(number)
                time.sleep(0 if proxy == "nginx" else NOTICED)
                load.wait(100)
    assert (load.failures[:3], load.answered > 250) == ([], True)


def test_a_node_that_drains_is_not_ready_and_serves_on(new_sqlite: NewDatabase) -> None:
    node = Node(make_tables(new_sqlite()), "--drain", "60")
    client = Client(f"http://127.0.0.1:{node.port}")
    node.ready()
    node.process.send_signal(signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    while (ready := client.get("/health/ready")).status == 200:
        assert time.monotonic() < end
    assert ready.json()["detail"] == "The service is shutting down."
    answer = client.get("/users")
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert client.get("/health/live").status == 200
    begun = time.monotonic()
    node.end()  # a second signal
    assert time.monotonic() - begun < 30


def test_streams_move_with_their_cursor_when_a_node_drains(new_sqlite: NewDatabase) -> None:
    database = make_tables(new_sqlite())
    node = Node(database, "--drain", "1")
    admin = Client(f"http://127.0.0.1:{node.port}", token(database, "admin"))
    node.ready()
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE)
    connection.request(
        "GET", "/users/changes", headers={"accept": "text/event-stream", "authorization": f"Bearer {admin.token}"}
    )
    stream = connection.getresponse()
    assert stream.status == 200
    node.process.send_signal(signal.SIGTERM)
    while (ready := admin.get("/health/ready")).status == 200:
        pass
    assert ready.status == 503
    assert admin.post("/users", {"name": "Zoe", "email": "zoe@example.org"}).status == 201  # while it drains
    text = stream.read().decode()  # until it ends
    connection.close()
    assert '"name":"Zoe"' in text.replace(" ", "") or "CREATED" in text
    end = text[text.rindex("event: end") :]
    assert re.search(r"^id: \S+$", end, re.MULTILINE) or '"cursor"' in end
    node.process.wait(PATIENCE)
    node.end()


def test_the_service_manager_is_told_when_it_is_ready_and_when_it_stops(
    new_sqlite: NewDatabase, tmp_path: Path
) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(PATIENCE)
        os.environ["NOTIFY_SOCKET"] = address
        try:
            node = Node(make_tables(new_sqlite()))
        finally:
            del os.environ["NOTIFY_SOCKET"]
        assert manager.recv(100) == b"READY=1"
        node.end()
        assert manager.recv(100) == b"STOPPING=1"


def test_what_is_no_listening_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket() as unbound:
        done = subprocess.run(
            [
                *("bash", "-c", f'exec 3<&{unbound.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "bash"),
                *(sys.executable, "-m", "diptych", "serve", "--database", f"sqlite:///{tmp_path}/a.db"),
            ],
            env=environment(),
            pass_fds=(unbound.fileno(),),
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "What was handed over is no listening socket of TCP.\n")
