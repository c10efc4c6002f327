"""Load by wrk: one thread, 32 connections, random requests of a case.

All requests are written into a Lua script beforehand, complete; under load wrk only picks one. At the end the
script prints what happened as JSON, so that nothing has to be read out of prose.

Where a case creates something, the script looks at every answer: it must have the status of the case and an id.

When wrk stops, each connection has a request on its way that the server still works off; it costs CPU, so it
counts as worked (a slow server would else look slower still), and the next round waits until it is done.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cases import Case, Request
from bench.home import DATA
from bench.servers import BenchError, Server, tree_cpu_seconds
from bench.wording import status

CONNECTIONS = 32
SETTLE_SECONDS = 0.2
SETTLE_POLLS = 100
IDLE_SHARE = 0.1
MARK = "BENCH "

SCRIPT = """\
local raw = {
%s
}
local requests = {}
function init(args)
  for i, r in ipairs(raw) do requests[i] = wrk.format(r[1], r[2], nil, r[3]) end
end
function request() return requests[math.random(#requests)] end
wrong = 0
local threads = {}
function setup(thread) table.insert(threads, thread) end
function done(summary, latency, _)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.status + e.timeout
  for _, thread in ipairs(threads) do failed = failed + thread:get("wrong") end
  print(string.format(
    '%s{"requests":%%d,"seconds":%%f,"bytes":%%d,"failed":%%d,"p50":%%f,"p99":%%f}',
    summary.requests, summary.duration / 1e6, summary.bytes, failed,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""

# Only where it is asked for: wrk then hands every answer to Lua, which costs it time.
LOOK = """\
function response(status, _, body)
  if status ~= %d or not body:find('"id":"', 1, true) then wrong = wrong + 1 end
end
"""

# Each connection waits this long on the average (milliseconds) before its next request, as independent callers do.
WAIT = """\
function delay() return math.floor(-math.log(1 - math.random()) * %f + 0.5) end
"""


@dataclass(frozen=True)
class Sample:
    """One round of load on one server. Times are milliseconds, CPU is microseconds per request."""

    requests: int
    rate: float
    p50: float
    p99: float
    cpu: float
    postgres_cpu: float | None
    size: float
    megabytes: float = 0.0


def ensure_wrk() -> None:
    """wrk, installed if that can be done without asking."""
    if shutil.which("wrk"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        for step in (["update"], ["install", "-y", "wrk"]):
            subprocess.run(["apt-get", "-qq", *step], check=False, stdout=subprocess.DEVNULL)
    if not shutil.which("wrk"):
        raise BenchError("the bench needs wrk on PATH: install it (Debian: apt-get install wrk) and try again")


def write_script(server: Server, case: Case, requests: Sequence[Request]) -> Path:
    """The Lua script of a case, in the words of a server. The requests of a case differ in no header."""
    look = LOOK % status(server.name, case) if case.creates else ""
    return write_requests(server, case.name, requests, look)


def write_requests(server: Server, name: str, requests: Sequence[Request], more: str = "") -> Path:
    """The Lua script of some requests; `more` is more Lua."""
    rows = ",\n".join(_lua_row(request) for request in requests)
    common = server.headers(requests[0]).items()
    headers = "".join(f"wrk.headers[{_lua(header)}] = {_lua(text)}\n" for header, text in common)
    path = DATA / f"{server.name}-{name}.lua"
    path.write_text(headers + SCRIPT % (rows, MARK) + more)
    return path


def _lua_row(request: Request) -> str:
    body = "nil" if request.body is None else _lua(request.body)
    return f"  {{{_lua(request.method)}, {_lua(request.path)}, {body}}}"


def _lua(text: str) -> str:
    """A Lua string; bytes outside plain ASCII as decimal escapes."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03d}" for byte in text.encode())
    return '"' + "".join(plain) + '"'


def warm(server: Server, script: Path, seconds: int, connections: int = CONNECTIONS) -> float:
    """Loads a server without measuring it; the requests/s that it served."""
    result = _wrk(server, script, seconds, connections)
    settle(server)
    return result["requests"] / seconds


def load(server: Server, script: Path, seconds: int, postgres: int | None, connections: int = CONNECTIONS) -> Sample:
    """Loads a server; `postgres` is the process whose CPU is reported beside."""
    before, before_postgres = server.cpu_seconds(), _cpu(postgres)
    result = _wrk(server, script, seconds, connections)
    settle(server)
    cpu, cpu_postgres = server.cpu_seconds() - before, _cpu(postgres) - before_postgres
    count = int(result["requests"])
    if not count:
        raise BenchError(f"{script.stem}: no answer in {seconds} s; give more --seconds, or fewer --rounds")
    worked = count + connections
    return Sample(
        requests=count,
        rate=count / result["seconds"],
        p50=result["p50"],
        p99=result["p99"],
        cpu=cpu / worked * 1e6,
        postgres_cpu=None if postgres is None else cpu_postgres / worked * 1e6,
        size=result["bytes"] / count,
        megabytes=server.megabytes(),
    )


def settle(server: Server) -> None:
    """Waits until a server has worked off what wrk left behind, so that it does not disturb the next one."""
    last = server.cpu_seconds()
    for _ in range(SETTLE_POLLS):
        time.sleep(SETTLE_SECONDS)
        now = server.cpu_seconds()
        if now - last <= IDLE_SHARE * SETTLE_SECONDS:
            return
        last = now


def _cpu(pid: int | None) -> float:
    return 0.0 if pid is None else tree_cpu_seconds(pid)


def _wrk(server: Server, script: Path, seconds: int, connections: int) -> dict[str, float]:
    call = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    call.append(f"http://127.0.0.1:{server.port}")
    done = subprocess.run(call, capture_output=True, text=True, timeout=seconds + 90, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            result: dict[str, float] = json.loads(line.removeprefix(MARK))
            if result["failed"]:
                raise BenchError(f"{script.stem}: {result['failed']:.0f} requests failed")
            return result
    raise BenchError(f"wrk said nothing usable: {done.stdout} {done.stderr}")
