"""Whatever clients send, memory has an end: every cache is bounded by bytes, and nothing else grows.

The caches of a service are made small, and storms of requests go over it of which no two are alike. The first fills the
caches; another one of the same length must leave memory as it was.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from graphql.type import definition
from graphql.type.assert_name import assert_name

from diptych import lru
from diptych.api.graphql.schema import build_schema
from diptych.demo.model import model
from diptych.serve.endpoint import graphql_planner as planner
from tests.contract.http.data import ROWS
from tests.support.effort import long_where
from tests.support.in_process import Service, in_process
from tests.support.running import ROOT, NewDatabase
from tests.system.overload import storm
from tests.system.overload.heap import holders, lengths, lru_wrappers, of_program, owned

SENT = 16
"""Requests of each kind in a storm; together they send about 20 MB."""
FLAT = 1_000_000
"""Bytes by which memory wavers, in a process that has run other tests; without eviction it grows by 4 MB."""
SMALL = 5
"""Entries of a cache that was made small."""


@pytest.fixture(autouse=True)
def own_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each service makes its own GraphQL schemas: what tests share is no cache of the service."""
    monkeypatch.setattr(planner, "build_schema", build_schema)
    monkeypatch.setattr(definition, "assert_name", assert_name)


@pytest.fixture
def service(new_database: NewDatabase) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(model, new_database(), runner, ROWS) as found:
        yield found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    """Little room in every cache, so that a short storm fills it."""
    storm.blow(service, range(3 * SENT, 3 * SENT + 1))  # modules that are imported on first use have caches too
    monkeypatch.setattr(planner, "_SHAPES", SMALL)
    for cache in list(lru._caches):
        monkeypatch.setattr(cache, "entries", SMALL)


def held() -> int:
    """The bytes of every object."""
    gc.collect()
    return owned(gc.get_objects(), set())


@long_where(new_database="postgres")
def test_storms_of_requests_that_are_never_alike_leave_memory_flat(service: Service, small: None) -> None:
    storm.blow(service, range(SENT))
    before, found = held(), lengths()
    storm.blow(service, range(SENT, 2 * SENT))
    bounded = {id(each) for _, wrapper in lru._declared for each in gc.get_referents(wrapper)}
    bounded |= {id(each) for cache in list(lru._caches) for each in (cache._kept, cache._seen)}
    grown = [each for each, length in found if len(each) >= length + SENT // 2 and id(each) not in bounded]
    # asyncio removes cancelled timers when there are more than a hundred
    grown = [each for each in grown if not all(isinstance(part, asyncio.TimerHandle) for part in each)]
    assert not [f"{type(each).__name__} in {holders(each)}" for each in grown]
    del found, grown
    assert held() - before < FLAT


def test_caches_hold_no_more_than_they_count(new_sqlite: NewDatabase) -> None:
    """The sizes of what is kept are estimated, from above."""
    others = list(lru._caches)
    with asyncio.Runner() as runner, in_process(model, new_sqlite(), runner, ROWS) as service:
        shared = of_program(("diptych", "graphql", "tests"))
        owned(service.handler.context, shared)
        storm.blow(service, range(SENT))
        gc.collect()
        held: dict[str, tuple[int, int]] = {}
        for cache in (each for each in list(lru._caches) if each not in others):
            assert cache.used <= cache.max_bytes and len(cache) <= cache.entries
            if len(cache):
                held[cache.name] = owned(list(cache.items()), shared.copy()), cache.used
        assert not {name: sizes for name, sizes in held.items() if sizes[0] > sizes[1]}
        assert len(held) > 10


def test_every_function_that_remembers_is_declared(service: Service) -> None:
    declared = {id(each) for _, each in lru._declared}
    found = [each for each in lru_wrappers() if id(each) not in declared and each.cache_parameters()["maxsize"] != 2]
    assert {each.__qualname__ for each in found} <= BY_THE_MODEL


BY_THE_MODEL = {
    "Model._trusted",
    "decimal",
    "enumeration",
    "_trust",
    "_rules",
    "public",
    "_second",
    "_documentation",
    "_sources",
    "_json_scalar",
    "style",
    "warn_once",
    "users",
    "posts",
    "comments",
    "orders",
    "lines_of",
}
"""Functions of what a model declares, or of what there are few values of."""
_LIST = """
import asyncio
from types import SimpleNamespace
from diptych import Diptych, lru
from diptych.demo.model import model
from diptych.db.postgres.link import Link
from diptych.db.postgres.read_batches import ReadBatches
from diptych.db.postgres.write_batches import WriteBatches
from diptych.serve.http.proxies import Proxies
from diptych.serve.on_demand import warm_up
async def main():
    app = Diptych(model, database="sqlite:///:memory:")
    handler = await app.start()
    warm_up()
    handler.graphql, handler.oauth
    link, proxies = Link(SimpleNamespace(_protocol=None), ""), Proxies("127.0.0.1")
    batches = ReadBatches(SimpleNamespace()), WriteBatches(SimpleNamespace())
    for each in lru.bounds():
        print(each.name, each.entries, each.bytes, sep="|")
    await app.stop()
asyncio.run(main())
"""


def test_the_table_of_caches_is_what_there_is(tmp_path: Path) -> None:
    """docs/reference/limits.md lists every cache with its bound, and their sum."""
    told = subprocess.run(
        [sys.executable, "-c", _LIST], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    found = [line.split("|") for line in told.splitlines()]
    page = (ROOT / "docs" / "reference" / "limits.md").read_text("utf-8")
    missing = [
        row for name, entries, size in found if (row := f"| {name} | {int(entries):,} | {mib(int(size))} |") not in page
    ]
    assert not missing, "\n".join(missing)
    whole = sum(int(size) for *_, size in found)
    assert f"**{mib(whole)} MiB**" in page, mib(whole)


def mib(size: int) -> str:
    return f"{size / (1 << 20):.1f}"
