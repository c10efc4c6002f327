"""Two services with a relay: what one commits, a stream of the other tells, with the relay, without it, and after it."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from diptych.config import Config
from diptych.db.connect import connect
from diptych.db.postgres import channel
from diptych.errors import StartError
from tests.support.nats import NatsServer
from tests.support.running import PATIENCE, Client, Postgres, Service, served, token


@contextmanager
def stream(service: Client) -> Iterator[list[str]]:
    """The data of the events of a stream of users, as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    headers = {"accept": "text/event-stream", "authorization": f"Bearer {service.token}"}
    connection.request("GET", "/users/changes", headers=headers)
    answer, events = connection.getresponse(), list[str]()
    assert answer.status == 200

    def read() -> None:
        for line in answer:
            if line.startswith(b"data: {"):
                events.append(line.decode())

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield events


def until(holds: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + PATIENCE
        time.sleep(0.005)
    return time.monotonic() - began


def metric(service: Service, name: str) -> float:
    """A number of the operators' port."""
    address = service.out.wait(r"Metrics  (http://\S+)/metrics\n")[1]
    text = Client(address).get("/metrics").body.decode()
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.mark.timeout(180)
def test_a_stream_tells_of_another_node_with_the_relay_and_without_it(postgres: Postgres) -> None:
    database = postgres.create()
    noise = "relay of notices"
    with (
        NatsServer() as relay,
        served(database, "--sample", "--relay", relay.url, noise=noise) as one,
        served(database, "--relay", relay.url, "--metrics-address", "127.0.0.1:0", noise=noise) as other,
    ):
        admin, reader = one.signed_in(token(database, "admin")), other.signed_in(token(database, "admin"))
        with stream(reader) as events:

            def tell(number: int) -> float:
                before = len(events)
                made = admin.post("/users", {"name": f"n{number}", "email": f"n{number}@example.org"})
                assert made.status == 201, made.body
                return until(lambda: len(events) > before)

            listening = (
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'diptych listens' AND query ~ '^LISTEN' "
                f"AND datname = '{urlsplit(database).path[1:]}'"
            )
            until(lambda: postgres.execute(listening)[0][0] == 0)
            delays = [tell(number) for number in range(5)]
            assert metric(other, "diptych_relay_up") == 1
            assert metric(other, 'diptych_relay_notices_total{direction="received"}') >= 5
            relay.kill()
            delays += [tell(5), tell(6)]
            until(lambda: postgres.execute(listening)[0][0] == 2)
            assert metric(other, "diptych_relay_up") == 0
            delays.append(tell(7))
            relay.start()
            until(lambda: postgres.execute(listening)[0][0] == 0)
            delays.append(tell(8))
        assert len(events) == 9
        assert max(delays) < 5.0


def test_a_relay_is_refused_for_sqlite_and_without_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StartError, match="SQLite"):
        connect(Config(database="sqlite:///:memory:", relay=("nats://127.0.0.1",)))

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(StartError, match=r"diptych\[nats\]"):
        channel.relay_to(["nats://127.0.0.1"])
    assert channel.relay_to([]) is None
