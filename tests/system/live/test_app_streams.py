"""Streams behind any ASGI server: by messages alone, without anything that only uvicorn with our protocols can do."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from diptych import Diptych
from diptych.config import Config
from diptych.demo.data import FIRST_USER_ID, insert_sample
from diptych.demo.model import model
from tests.contract.live.clients import EventStream, WebSocket
from tests.support.running import ROOT, Client, Said, environment, stop

Message = MutableMapping[str, Any]
USERS = "subscription($after: String) { userChanged(after: $after) { cursor user { name } } }"
RENAME = "mutation($id: ID!, $name: String!) { updateUser(id: $id, patch: {name: $name}) { name } }"


class Door:
    """One connection to an application. What it sends is in `out`; while `stuck`, it cannot send."""

    def __init__(self, app: Diptych, **scope: Any) -> None:
        self.out: asyncio.Queue[Message] = asyncio.Queue()
        self.into: asyncio.Queue[Message] = asyncio.Queue()
        self.free = asyncio.Event()
        self.free.set()
        headers = [(name.encode(), value.encode()) for name, value in scope.pop("headers", {}).items()]
        full = {"headers": headers, "query_string": b"", "client": None, "root_path": "", **scope}
        self.task = asyncio.create_task(app(full, self.into.get, self._send))

    async def _send(self, message: Message) -> None:
        await self.free.wait()
        self.out.put_nowait(message)

    async def next(self) -> Message:
        return await asyncio.wait_for(self.out.get(), 20)

    async def events(self) -> str:
        """The next bytes of a stream that tell something."""
        message = await self.next()
        assert message["type"] == "http.response.body" and message["more_body"], message
        return str(message["body"].decode())

    async def told(self) -> Any:
        """The next message of a socket, pings aside."""
        while True:
            message = await self.next()
            assert message["type"] == "websocket.send", message
            told = json.loads(message["text"])
            if told["type"] != "ping":
                return told

    def say(self, **message: Any) -> None:
        self.into.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})


def rest(app: Diptych, target: str) -> Door:
    path, _, query = target.partition("?")
    headers = {"accept": "text/event-stream"}
    door = Door(app, type="http", method="GET", path=path, query_string=query.encode(), headers=headers)
    door.into.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    return door


async def begun(app: Diptych) -> Door:
    door = Door(app, type="websocket", path="/graphql", subprotocols=["graphql-transport-ws"])
    door.into.put_nowait({"type": "websocket.connect"})
    assert await door.next() == {"type": "websocket.accept", "subprotocol": "graphql-transport-ws"}
    door.say(type="connection_init")
    assert await door.told() == {"type": "connection_ack"}
    return door


async def rename(app: Diptych, name: str) -> None:
    handler = await app.start()
    token = handler.context.tokens.make(FIRST_USER_ID, ["admin"], None, 900)
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    door = Door(app, type="http", method="POST", path="/graphql", headers=headers)
    body = json.dumps({"query": RENAME, "variables": {"id": FIRST_USER_ID, "name": name}}).encode()
    door.into.put_nowait({"type": "http.request", "body": body})
    assert (await door.next())["status"] == 200
    assert json.loads((await door.next())["body"]) == {"data": {"updateUser": {"name": name}}}


Run = Callable[[Callable[[Diptych], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    def work(test: Callable[[Diptych], Awaitable[None]], **settings: Any) -> None:
        async def main() -> None:
            app = Diptych(model, config=Config(database=f"sqlite:///{tmp_path}/a.db", **settings))
            try:
                await app.start()
                await insert_sample(app.store, model)
                await asyncio.wait_for(test(app), 60)
            finally:
                await app.stop()

        asyncio.run(main())

    yield work


def members(app: Diptych) -> int:
    """How many follow changes."""
    handler = app._handler
    assert handler is not None
    return len(handler.live._members)


def test_an_event_stream_goes_out_in_messages(run: Run) -> None:
    async def test(app: Diptych) -> None:
        door = rest(app, "/users/changes?fields=name")
        start = await door.next()
        assert (start["type"], start["status"]) == ("http.response.start", 200)
        assert await door.events() == "retry: 1000\n\n"
        for name in ("One", "Two"):
            await rename(app, name)
            while "data" not in (event := await door.events()):
                pass
            assert f'"user":{{"name":"{name}"}}' in event
        assert members(app) == 1
        door.into.put_nowait({"type": "http.disconnect"})
        await door.task
        assert members(app) == 0

    run(test)


def test_the_end_of_an_event_stream_is_the_last_message(run: Run) -> None:
    async def test(app: Diptych) -> None:
        door = rest(app, "/users/changes")
        assert (await door.next())["status"] == 200
        assert await door.events() == "retry: 1000\n\n"
        await app.closing()
        last = await door.next()
        while last["more_body"]:
            last = await door.next()
        assert b"event: end\n" in last["body"]
        await door.task
        late = rest(app, "/users/changes")
        assert (await late.next())["status"] == 503

    run(test)


@pytest.mark.parametrize(
    "settings", [{"stream_timeout": 0.4}, {"stream_buffer": 2_000, "stream_timeout": 1.0}], ids=str
)
def test_a_stream_that_is_stuck_is_given_up(run: Any, settings: dict[str, Any]) -> None:
    async def test(app: Diptych) -> None:
        door, socket = rest(app, "/users/changes"), await begun(app)
        assert (await door.next())["status"] == 200
        socket.say(type="subscribe", id="1", payload={"query": USERS})
        while members(app) < 2:
            await asyncio.sleep(0)
        door.free.clear()
        socket.free.clear()
        for number in range(12):
            await rename(app, f"N{number}")
        await asyncio.wait_for(asyncio.gather(door.task, socket.task), 20)
        assert members(app) == 0

    run(test, **settings)


def test_a_socket_goes_out_in_messages(run: Run) -> None:
    async def test(app: Diptych) -> None:
        door = await begun(app)
        door.say(type="subscribe", id="1", payload={"query": USERS})
        while not members(app):
            await asyncio.sleep(0)
        await rename(app, "Three")
        told = await door.told()
        assert told["payload"]["data"]["userChanged"]["user"] == {"name": "Three"}
        await app.closing()
        ping = await door.next()
        assert list(json.loads(ping["text"])["payload"]["cursors"]) == ["1"]
        assert await door.next() == {"type": "websocket.close", "code": 1012, "reason": "Service Restart"}
        await door.task
        late = Door(app, type="websocket", path="/graphql", subprotocols=["graphql-transport-ws"])
        late.into.put_nowait({"type": "websocket.connect"})
        assert await late.next() == {"type": "websocket.close", "code": 1008}
        await late.task

    run(test)


def test_a_socket_whose_client_goes_leaves_nothing_behind(run: Run) -> None:
    async def test(app: Diptych) -> None:
        door = await begun(app)
        for name in "abc":
            door.say(type="subscribe", id=name, payload={"query": USERS})
        while members(app) < 3:
            await asyncio.sleep(0)
        door.into.put_nowait({"type": "websocket.disconnect", "code": 1005})
        await door.task
        assert members(app) == 0

    run(test)


def test_uvicorn_itself_can_serve_it(tmp_path: Path) -> None:
    """With protocols of its own, as people run applications that they mount it into."""
    (tmp_path / "served.py").write_text(
        "from diptych import Diptych\nfrom diptych.demo.model import model\n"
        f"app = Diptych(model, database='sqlite:///{tmp_path}/u.db')\n"
    )
    command = [sys.executable, "-m", "uvicorn", "served:app", "--port", "0", "--timeout-graceful-shutdown", "1"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(PYTHONPATH=f"{ROOT}/src:{tmp_path}"), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = Said()
    reader = said.follow(process.stderr)
    try:
        port = int(said.wait(r"running on http://127.0.0.1:(\d+)")[1])
        token = _token(tmp_path)
        client = Client(f"http://127.0.0.1:{port}", token)
        after = client.get("/users?first=1", prefer="change-cursor").headers["change-cursor"]
        plain = {"Sec-WebSocket-Extensions": "none"}
        with WebSocket(port, headers=plain) as socket, EventStream(port, f"/users/changes?after={after}") as stream:
            socket.begin()
            socket.subscribe("1", USERS, after=after)
            assert client.post("/users", {"name": "Una", "email": "u@example.com"}).status == 201
            assert stream.change()["user"]["name"] == "Una"
            assert socket.receive()["payload"]["data"]["userChanged"]["user"]["name"] == "Una"
        assert client.get("/health/ready").status == 200
    finally:
        stop(process)
        reader.join(20)
        process.stderr.close()
    assert "Traceback" not in said.text, said.text


def _token(folder: Path) -> str:
    command = [sys.executable, "-m", "diptych", "token", "--role", "admin", "--database", f"sqlite:///{folder}/u.db"]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout.strip()
