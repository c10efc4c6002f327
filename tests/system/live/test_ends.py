"""How streams end: readers that are too slow, sockets where nobody is, and a server that goes away.

A slow reader is one whose system takes little (`window`) and that does not read; the changes are large, so that a few of
them are too many.
"""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.contract.live.clients import Connection, EventStream, WebSocket
from tests.support.running import Client, NewDatabase, Service, running, served

LARGE = "\U0001d54f" * 20_000
"""80 kB on the wire, and the most that a post takes."""
POSTS = "subscription($after: String) { postChanged(after: $after) { cursor rowId post { title body } } }"


@pytest.fixture(scope="module")
def service(new_sqlite: NewDatabase) -> Iterator[Service]:
    """A service in which little may wait, but long."""
    with served(new_sqlite(), "--sample", DIPTYCH_STREAM_BUFFER="20000", DIPTYCH_STREAM_TIMEOUT="60") as service:
        yield service


@pytest.fixture(scope="module")
def hasty(new_sqlite: NewDatabase) -> Iterator[Service]:
    """A service in which nothing may wait for long."""
    with served(
        new_sqlite(), "--sample", DIPTYCH_STREAM_BUFFER="100000", DIPTYCH_STREAM_TIMEOUT="0.5", DIPTYCH_HEARTBEAT="0.4"
    ) as service:
        yield service


def writer(service: Service) -> tuple[Client, str]:
    """A client that may publish, and as whom."""
    author = service.get("/users?first=1").json()["data"][0]["id"]
    return service.token_of("admin", user=author), author


def publish(client: Client, author: str, title: str, body: str = LARGE) -> None:
    value = {"title": title, "body": body, "published": True, "authorId": author}
    answer = client.post("/posts", value)
    assert answer.status == 201, answer.body


def now(service: Client) -> str:
    return service.get("/users?first=1", prefer="change-cursor").headers["change-cursor"]


def gone(connection: Connection) -> bool:
    """Did the server end the connection? It is looked at without reading."""
    poll = select.poll()
    poll.register(connection.socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(30_000))


def titles_after(service: Client, cursor: str) -> list[str]:
    """What the log says came after a cursor."""
    page = service.get(f"/posts/changes?first=100&after={cursor}").json()
    return [each["post"]["title"] for each in page["data"]]


def events(service: Service, style: str) -> EventStream:
    """A stream of one that takes little, from now on."""
    if style == "rest":
        return EventStream(service.port, f"/posts/changes?after={now(service)}", window=4096)
    body = json.dumps({"query": POSTS, "variables": {"after": now(service)}}).encode()
    return EventStream(service.port, "/graphql", method="POST", body=body, window=4096)


def post(told: Any) -> Any:
    """The row of a change, in either style."""
    return told["post"] if "post" in told else told["data"]["postChanged"]["post"]


# slow readers


def test_a_socket_that_reads_late_is_told_everything(service: Service) -> None:
    client, author = writer(service)
    with WebSocket(service.port, window=4096) as socket:
        socket.begin()
        socket.subscribe("1", POSTS, after=now(service))
        for number in range(8):  # many times what may wait
            publish(client, author, f"w{number}")
        told = [socket.receive()["payload"]["data"]["postChanged"]["post"]["title"] for _ in range(8)]
        publish(client, author, "w8")  # and goes on
        told.append(socket.receive()["payload"]["data"]["postChanged"]["post"]["title"])
    assert told == [f"w{number}" for number in range(9)]


@pytest.mark.parametrize("style", ["rest", "graphql"])
def test_an_event_stream_that_is_read_late_tells_everything(service: Service, style: str) -> None:
    client, author = writer(service)
    with events(service, style) as stream:
        for number in range(8):
            publish(client, author, f"{style}{number}")
        told = [post(stream.change())["title"] for _ in range(8)]
        publish(client, author, f"{style}8")
        told.append(post(stream.change())["title"])
    assert told == [f"{style}{number}" for number in range(9)]


# one that is cut has a moment to take its last word: a busy machine may let that pass, so there are several tries

TRIES = 10
HEART_BEAT = {"type": "ping"}


def publish_until_cut(client: Client, author: str, titles: Sequence[str]) -> None:
    """Until one that reads nothing is cut off, but not for much longer. Half of the posts are more than it has room for."""
    for title in titles[:4]:
        publish(client, author, title)
    full = time.monotonic()
    for title in titles[4:]:
        publish(client, author, title)
    time.sleep(max(0.0, full + 1 - time.monotonic()))


def test_a_socket_that_reads_nothing_is_closed_with_a_cursor_that_leads_on(hasty: Service) -> None:
    client, author = writer(hasty)
    for attempt in range(TRIES):
        with WebSocket(hasty.port, window=4096) as socket, suppress(OSError, EOFError):
            socket.begin()
            socket.subscribe("1", POSTS, after=now(hasty))
            titles = [f"w{attempt}.{number}" for number in range(8)]
            publish_until_cut(client, author, titles)
            told: list[Any] = []
            while (message := socket.receive(pings=True))["type"] == "next" or not told or message == HEART_BEAT:
                told += [message["payload"]["data"]["postChanged"]] if message["type"] == "next" else []
            last = told[-1]["cursor"]
            assert message == {"type": "ping", "payload": {"cursor": last, "cursors": {"1": last}}}
            code, reason = socket.closed()
            if reason == "No pong came":  # it was not read in time: the machine is busy
                continue
            assert (code, json.loads(reason)) == (1013, {"code": "SLOW_READER", "cursor": last})
            shown = [each["post"]["title"] for each in told]
            assert 0 < len(shown) < 8
            assert shown + titles_after(hasty, last) == titles
            return
    pytest.fail("its last word never came through")


@pytest.mark.parametrize("style", ["rest", "graphql"])
def test_an_event_stream_that_nobody_reads_ends_with_a_cursor_that_leads_on(hasty: Service, style: str) -> None:
    client, author = writer(hasty)
    for attempt in range(TRIES):
        with events(hasty, style) as stream, suppress(OSError, EOFError):
            titles = [f"{style}{attempt}.{number}" for number in range(8)]
            publish_until_cut(client, author, titles)
            shown, last = [], ""
            while "post" in str(told := stream.change()):
                shown.append(post(told)["title"])
                last = (told if style == "rest" else told["data"]["postChanged"])["cursor"]
            error = told if style == "rest" else told["errors"][0]["extensions"]
            assert (error["code"], error["cursor"]) == ("SLOW_READER", last)
            with pytest.raises(EOFError):  # and no `complete`: a client comes again
                stream.next_event()
            assert 0 < len(shown) < 8
            assert shown + titles_after(hasty, last) == titles
            return
    pytest.fail("its last word never came through")


def test_one_who_reads_in_time_is_told_everything(service: Service) -> None:
    client, author = writer(service)
    cursor = now(service)
    for number in range(12):
        publish(client, author, f"all{number}")
    with WebSocket(service.port, window=4096) as socket:  # history, many times what may wait
        socket.begin()
        socket.subscribe("1", POSTS, after=cursor)
        told = [socket.receive()["payload"]["data"]["postChanged"]["post"]["title"] for _ in range(12)]
    assert told == [f"all{number}" for number in range(12)]
    with EventStream(service.port, f"/posts/changes?after={cursor}", window=4096) as stream:
        assert [stream.change()["post"]["title"] for _ in range(12)] == told


def test_one_who_reads_nothing_is_gone_after_a_while(hasty: Service) -> None:
    client, author = writer(hasty)
    after = now(hasty)
    with (
        WebSocket(hasty.port, window=4096) as socket,
        EventStream(hasty.port, f"/posts/changes?after={after}", window=4096) as stream,
        WebSocket(hasty.port) as reader,
    ):
        socket.begin()
        socket.subscribe("1", POSTS, after=after)
        reader.begin()
        reader.subscribe("1", POSTS, after=after)
        for _ in range(12):
            publish(client, author, "large")
        for _ in range(12):
            assert reader.receive()["payload"]["data"]["postChanged"]["post"]["title"] == "large"
        assert gone(socket)
        assert gone(stream)


# heart-beats


def test_heart_beats_of_a_socket_tell_the_cursor_of_each_subscription(hasty: Service) -> None:
    client, author = writer(hasty)
    with WebSocket(hasty.port) as socket:
        socket.begin()
        assert socket.receive(pings=True) == {"type": "ping"}  # nothing is followed yet
        socket.subscribe("a", POSTS)
        socket.subscribe("b", POSTS)
        while len((message := socket.receive(pings=True)).get("payload", {}).get("cursors", ())) < 2:
            assert message["type"] == "ping"
            socket.send(type="pong")
        cursor = message["payload"]["cursors"]["b"]
    publish(client, author, "after the beat", "")
    assert titles_after(hasty, cursor) == ["after the beat"]


def test_a_socket_where_nobody_answers_is_closed(hasty: Service) -> None:
    with WebSocket(hasty.port) as socket, WebSocket(hasty.port) as lively:
        socket.begin()
        lively.begin()
        begun = time.monotonic()
        code = None
        while code is None:
            assert lively.receive(pings=True) == {"type": "ping"}
            lively.send(type="pong")
            opcode, data = socket.next_frame()
            code = int.from_bytes(data[:2]) if opcode == 8 else None
        assert code == 1013
        assert time.monotonic() - begun >= 1.2  # two heart-beats, and the time that a writer has
        lively.send(type="ping")
        while lively.receive(pings=True)["type"] != "pong":
            pass


# the server goes away


@contextmanager
def leaving(kind: str, database: str) -> Iterator[Service]:
    if kind == "dev":
        with running("dev", database=database, noise="INFO", DIPTYCH_STREAM_TIMEOUT="2") as service:
            yield service
    else:
        with served(
            database, "--sample", *(["--workers", "2"] if kind == "workers" else []), DIPTYCH_STREAM_TIMEOUT="2"
        ) as service:
            yield service


@pytest.mark.parametrize("kind", ["serve", "workers", "dev"])
def test_every_stream_gets_its_cursor_when_the_server_goes_away(new_sqlite: NewDatabase, kind: str) -> None:
    with leaving(kind, new_sqlite()) as service:
        client, author = writer(service)
        after = now(service)
        body = json.dumps({"query": POSTS, "variables": {"after": after}}).encode()
        with (
            WebSocket(service.port) as socket,
            WebSocket(service.port) as idle,
            EventStream(service.port, f"/posts/changes?after={after}") as rest,
            EventStream(service.port, "/graphql", method="POST", body=body) as query,
            EventStream(service.port, f"/posts/changes?after={after}", window=4096) as stuck,
        ):
            socket.begin()
            idle.begin()
            socket.subscribe("1", POSTS, after=after)
            for number in range(12):
                publish(client, author, f"{number}")
                assert socket.receive()["type"] == "next"
                assert rest.change()["post"]["title"] == f"{number}"
                assert query.change()["data"]["postChanged"]["post"]["title"] == f"{number}"
            begun = time.monotonic()
            service.process.terminate()
            cursors = list(socket.receive(pings=True)["payload"]["cursors"].items())
            assert [name for name, _ in cursors] == ["1"]
            assert socket.closed() == (1012, "Service Restart")
            assert idle.closed() == (1012, "Service Restart")
            end = rest.next_event()
            assert (end["event"], json.loads(end["data"])["code"]) == ("end", "UNAVAILABLE")
            assert json.loads(end["data"])["cursor"] == end["id"]
            beat = query.next_event()
            assert beat.keys() == {"", "id"}
            for stream in (rest, query):
                with pytest.raises(EOFError):
                    stream.next_event()
            assert stuck.status == 200
            assert service.process.wait(30) == 0
            assert time.monotonic() - begun < 20
        database = service.database
    with served(database) as again:
        publish(again.token_of("admin", user=author), author, "first", "")
        for cursor in (cursors[0][1], end["id"], beat["id"]):
            assert titles_after(again, cursor) == ["first"]
