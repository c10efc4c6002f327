"""A primary that hangs is found, and one whose answer this process has not read yet is not taken for one."""

from __future__ import annotations

import asyncio
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest

from diptych.db.postgres.stall import StallWatch


def stalled(*, answers: bool) -> bool:
    """Is a server found to hang that answers while the event loop is blocked, or that never answers?"""

    async def work() -> bool:
        found: list[str] = []
        pool: Any = SimpleNamespace(
            is_busy=True, answered=0.0, stall=lambda: found.append("stalled"), go_on=lambda run: None
        )
        ours, server = socket.socketpair()
        with ours, server:
            ours.setblocking(False)

            async def probe() -> None:
                asyncio.get_running_loop().call_soon(block)
                await asyncio.get_running_loop().sock_recv(ours, 1)

            def block() -> None:
                time.sleep(0.6)
                if answers:
                    server.send(b"1")

            async def connect() -> Any:
                await asyncio.Event().wait()

            watch = StallWatch(pool, probe, connect, found.append)
            await asyncio.sleep(0.25)
            for _ in range(20):
                await asyncio.sleep(0)
            await watch.close()
        return bool(found)

    return asyncio.run(work())


@pytest.mark.parametrize("answers", [True, False])
def test_what_was_answered_while_the_loop_was_blocked_is_read_first(answers: bool) -> None:
    assert stalled(answers=answers) is not answers
