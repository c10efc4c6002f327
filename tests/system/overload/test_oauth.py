"""A flood at the authorization server from one address: others get their tokens all the same."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from urllib.parse import urlencode

from tests.proof.long_running.parts import tell
from tests.support.effort import scaled
from tests.support.machine import Machine
from tests.support.running import NewDatabase, Service, diptych, served

CROWD = scaled(800, 500)
TIMES = scaled(40, 15)
HOG, OTHER = "127.0.0.1", "127.0.0.2"


def request(path: str, form: dict[str, str], authorization: str = "") -> bytes:
    body = urlencode(form).encode()
    proof = f"Authorization: {authorization}\r\n" if authorization else ""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n{proof}"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, raw: bytes) -> int:
    writer.write(raw)
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head)
    assert found
    await reader.readexactly(int(found[1]))
    return int(head.split()[1])


async def flood(port: int, raw: bytes, statuses: list[int]) -> None:
    """One connection of many, which asks again as soon as it is answered."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(HOG, 0))
        try:
            while True:
                statuses.append(await ask(reader, writer, raw))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def times(port: int, raw: bytes) -> list[float]:
    """How long tokens take, in order."""
    found = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(OTHER, 0))
    for _ in range(TIMES):
        begun = time.monotonic()
        assert await ask(reader, writer, raw) == 200
        found.append(time.monotonic() - begun)
    writer.close()
    return sorted(found)


async def measured(service: Service, raw: bytes, hog: bytes) -> tuple[list[float], list[float], list[int]]:
    quiet = await times(service.port, raw)
    statuses: list[int] = []
    crowd = [asyncio.create_task(flood(service.port, hog, statuses)) for _ in range(CROWD)]
    while len(statuses) < CROWD:
        await asyncio.sleep(0.05)
    busy = await times(service.port, raw)
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    return quiet, busy, statuses


def test_a_flood_of_token_requests_from_one_address_delays_nobody_else(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite()) as service:
        made = diptych("client", "add", "Job", "--database", service.database, "--confidential", "--scope", "read")
        id, secret = re.findall(r"client_(?:id|secret) +(\S+)", made.stdout)
        basic = "Basic " + base64.b64encode(f"{id}:{secret}".encode()).decode()
        raw = request("/oauth/token", {"grant_type": "client_credentials"}, basic)
        hog = request("/oauth/token", {"grant_type": "refresh_token", "refresh_token": "x", "client_id": id})
        machine = Machine()
        quiet, busy, statuses = asyncio.run(measured(service, raw, hog))
    middle = TIMES // 2
    tell(
        f"{CROWD} connections: others' token {quiet[middle] * 1e3:.0f} → {busy[middle] * 1e3:.0f} ms, "
        f"last {quiet[-1] * 1e3:.0f} → {busy[-1] * 1e3:.0f} ms; {len(statuses)} answers to the crowd"
    )
    assert busy[middle] < 10 * quiet[middle] + machine.limit(0.25)
    assert set(statuses) <= {401, 503}
