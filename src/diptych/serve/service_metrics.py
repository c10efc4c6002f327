"""The metrics of a service: what its parts count, under the names that docs/reference/metrics.md lists.

A part that is new adds a line here, or calls `registry` itself; what it counts it keeps in a plain list:

    app.metrics.registry.gauge("diptych_webhooks_waiting", "Deliveries that wait.", lambda: len(waiting))

With several processes, and a folder that they share (`metrics/processes.py`), whichever process is asked answers for
all of them.
"""

from __future__ import annotations

import asyncio
import importlib
import resource
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from diptych.api.reply import NO_STORE, REFUSED, Reply
from diptych.db.store import Store, StoreLoad
from diptych.engine.rate_limiter import RateLimiter
from diptych.errors import Code, Refusal
from diptych.fair.admission import Admission
from diptych.fair.background import Background
from diptych.jobs import counts as jobs
from diptych.live.service import LiveService
from diptych.lru import misses, sizes
from diptych.metrics.processes import SharedMetrics
from diptych.metrics.registry import Histogram, Labels, Registry
from diptych.serve.http.connection_limits import ConnectionLimits
from diptych.serve.http.deadlines import Deadlines
from diptych.serve.on_demand import EXPOSITION
from diptych.serve.process_limits import ProcessLimits
from diptych.serve.readiness import Readiness
from diptych.serve.stream.send_queue import StreamLimits
from diptych.webhooks.counts import MESSAGES

if TYPE_CHECKING:
    from diptych.webhooks.dispatcher import Dispatcher
    from diptych.webhooks.service import WebhookService

_STARTED = time.time()
_PRICES = (1, 10, 50, 100, 500, 1_000, 5_000, 10_000)
CACHES = (
    "documents",
    "query strings of reads",
    "query strings of changes followed",
    "requests for changes",
    "plans of reads",
    "plans of changes",
    "plans of what follows changes",
    "prepared statements",
    "registered documents",
    "request heads",
    "schemas of roles",
    "tokens and their callers",
)
"""The caches whose look-ups are counted: plans, and what is made once for many requests."""
_EVERY = 1.0
"""Seconds between two times that a process tells the others what it has counted."""


class Started(Struct, frozen=True, eq=False):
    """The parts of a service that has started."""

    live: LiveService
    admission: Admission
    readiness: Readiness
    rates: RateLimiter | None
    webhooks: WebhookService | None


class ServiceMetrics:
    """The metrics of one application."""

    def __init__(self, store: Store, process: ProcessLimits, streams: StreamLimits, folder: str = "") -> None:
        self.registry = Registry()
        self.requests, limits = process.requests, process.connections
        self.prices = Histogram(_PRICES)
        self.started: Started | None = None
        """Its parts, once the service has started."""
        self._folder = folder
        self._shared: SharedMetrics | None = None
        self._publishing = Background()
        self.requests.register(self.registry)
        _register_server(self.registry, limits, process.deadlines, streams)
        _register_store(self.registry, store)
        _register_live(self.registry, self._of)
        self.registry.gauge(
            "diptych_ready",
            "1 if it accepts requests; 0 if it starts, shuts down, or waits for a migration.",
            lambda: self.started is not None and self.started.readiness.fits and not limits.is_draining,
            merge="min",
        )
        self.registry.gauge(
            "diptych_queue_length", "Those that wait, by queue.", lambda: self._queues(store.load), ("queue",)
        )
        self.registry.histogram("diptych_price_objects", "Prices of requests, in objects.", self.prices)
        _register_jobs(self.registry)
        _register_webhooks(self.registry, lambda: None if self.started is None else self.started.webhooks)
        _register_rates(self.registry, lambda: None if self.started is None else self.started.rates)
        register_caches(self.registry)
        register_process(self.registry)

    def start(self, parts: Started) -> None:
        self.started = parts
        if self._folder and self._shared is None:
            self._shared = SharedMetrics(Path(self._folder), self.registry)
            self._publishing.start(self._publish())

    async def stop(self) -> None:
        await self._publishing.stop()
        if self._shared is not None:
            self._shared.close()
            self._shared = None
        self.started = None

    async def check_ready(self) -> None:
        """Raise a Refusal if the service cannot serve requests."""
        if self.started is None:
            raise Refusal(Code.UNAVAILABLE, "The service is starting, or has ended.")
        await self.started.readiness.check()

    def _of(self, read: Callable[[LiveService], float]) -> Callable[[], float]:
        """Read a number of the live service; 0 before it has started."""
        return lambda: 0.0 if self.started is None else read(self.started.live)

    def _queues(self, load: StoreLoad) -> dict[Labels, float]:
        waiting: dict[Labels, float] = {("pool",): load.waiting, ("writer",): load.writes}
        if self.started is not None:
            waiting["admission",] = self.started.admission.waiting
            waiting["evaluations",] = self.started.live.shares.waiting
        return waiting

    async def _publish(self) -> None:
        assert self._shared is not None
        while True:
            with suppress(OSError):  # the folder goes with the service
                self._shared.publish()
            await asyncio.sleep(_EVERY)

    def reply(self, accept: bytes) -> Reply:
        """All metrics, as text for Prometheus."""
        metrics = self.registry.collect() if self._shared is None else self._shared.collect()
        text, kind = importlib.import_module(EXPOSITION).render_metrics(metrics, accept.decode("latin-1"))
        return Reply(200, ((b"content-type", kind.encode()), *NO_STORE), text)


def _register_server(registry: Registry, limits: ConnectionLimits, deadlines: Deadlines, streams: StreamLimits) -> None:
    registry.counter(
        "diptych_refusals_total",
        "Refused requests, by code.",
        lambda: {key: REFUSED[key] for key in REFUSED},
        ("style", "code"),
    )
    registry.gauge("diptych_requests_running", "Requests that run now.", lambda: len(deadlines))
    registry.gauge("diptych_connections", "Open connections, WebSockets included.", lambda: limits.count)
    registry.gauge("diptych_websockets", "Open WebSockets.", lambda: len(streams.members))
    registry.gauge("diptych_unsent_bytes", "Bytes that clients have not read.", lambda: streams.unsent + limits.unsent)


def _register_store(registry: Registry, store: Store) -> None:
    registry.gauge("diptych_pool_size", "Connections or threads for statements.", lambda: store.load.size)
    registry.gauge("diptych_pool_used", "Connections or threads in use.", lambda: store.load.used)
    registry.gauge(
        "diptych_replica_up",
        "1 if a replica answers and is a standby.",
        lambda: {(replica.name,): replica.is_up for replica in store.replicas},
        ("replica",),
        merge="min",
    )
    registry.gauge(
        "diptych_replica_lag_seconds",
        "Seconds for which a replica has not replayed what it has received.",
        lambda: {(replica.name,): replica.lag for replica in store.replicas},
        ("replica",),
        merge="max",
    )
    registry.gauge(
        "diptych_replica_position",
        "The newest change that a replica is known to have.",
        lambda: {(replica.name,): replica.position for replica in store.replicas},
        ("replica",),
        merge="max",
    )
    registry.counter(
        "diptych_reads_total", "Reads by server, where there are replicas.", lambda: _reads(store), ("server",)
    )
    registry.gauge(
        "diptych_relay_up",
        "1 if the relay carries the notices of changes.",
        lambda: {} if store.relay is None else {(): store.relay.is_up},
        (),
        merge="min",
    )
    registry.counter(
        "diptych_relay_notices_total",
        "Notices of changes that a relay took, brought, or brought in vain since they are not valid.",
        lambda: _relayed(store),
        ("direction",),
    )
    registry.gauge(
        "diptych_database_writable",
        "0 if the database is the reason why the last change failed.",
        lambda: store.load.writable,
        merge="min",
    )


def _relayed(store: Store) -> dict[Labels, float]:
    relay = store.relay
    return {} if relay is None else {("sent",): relay.sent, ("received",): relay.received, ("refused",): relay.refused}


def _reads(store: Store) -> dict[Labels, float]:
    by_server: dict[Labels, float] = {(replica.name,): replica.reads for replica in store.replicas}
    return {("primary",): store.primary_reads, **by_server} if by_server else {}


def _register_live(registry: Registry, of: Callable[[Callable[[LiveService], float]], Callable[[], float]]) -> None:
    registry.gauge("diptych_streams", "Open streams of changes.", of(lambda live: live.shares.taken))
    registry.gauge("diptych_stream_groups", "Groups of equal streams.", of(lambda live: live.group_count))
    registry.counter("diptych_changes_sent_total", "Changes that were sent to streams.", of(lambda live: live.sent))
    registry.gauge(
        "diptych_feed_position",
        "The newest change that this service knows.",
        of(lambda live: live.tail.head.position),
        merge="max",
    )
    registry.gauge(
        "diptych_feed_lag_seconds",
        "Seconds for which the oldest change has waited for its evaluation.",
        of(lambda live: live.shares.lag),
        merge="max",
    )


def _register_jobs(registry: Registry) -> None:
    """Jobs of this process, and what waited when it last looked at the queue."""
    registry.counter(
        "diptych_job_runs_total",
        "Runs of jobs, by what became of them.",
        lambda: {(outcome,): count for outcome, count in jobs.ENDED.items()},
        ("outcome",),
    )
    registry.counter("diptych_job_seconds_total", "Seconds that jobs have run.", lambda: jobs.SECONDS[0])
    registry.gauge("diptych_jobs_running", "Jobs that run now.", lambda: jobs.RUNNING[0])
    registry.gauge("diptych_jobs_queued", "Jobs that wait, 100 at most.", lambda: jobs.QUEUED[0], merge="max")
    registry.gauge(
        "diptych_job_delay_seconds",
        "Seconds for which the first of them has waited.",
        lambda: jobs.DELAY[0],
        merge="max",
    )


def _register_webhooks(registry: Registry, service: Callable[[], WebhookService | None]) -> None:
    def total(read: Callable[[Dispatcher], float]) -> Callable[[], float]:
        return lambda: sum(map(read, dispatchers)) if (dispatchers := _dispatchers(service())) else 0.0

    registry.counter(
        "diptych_webhook_messages_total",
        "Messages of webhooks, by what became of them.",
        lambda: {(outcome,): count for outcome, count in MESSAGES.items()},
        ("outcome",),
    )
    registry.gauge("diptych_webhooks", "Webhooks that this process delivers.", total(lambda _: 1))
    registry.gauge(
        "diptych_webhook_pending", "Changes that are to be sent again.", total(lambda dispatcher: dispatcher.pending)
    )
    registry.gauge(
        "diptych_webhook_behind",
        "Changes of the feed that the webhook that is furthest behind has not seen yet.",
        lambda: max([dispatcher.behind for dispatcher in _dispatchers(service())], default=0),
        merge="max",
    )


def _dispatchers(service: WebhookService | None) -> Collection[Dispatcher]:
    return () if service is None else service.dispatchers


def _register_rates(registry: Registry, limiter: Callable[[], RateLimiter | None]) -> None:
    registry.counter(
        "diptych_rate_refusals_total",
        "Requests that were refused since they exceed a rate, by rate.",
        lambda: {} if (rates := limiter()) is None else {(name,): count for name, count in rates.refused.items()},
        ("rate",),
    )
    registry.gauge(
        "diptych_rates_shared",
        "0 if rates are not shared with other processes, since the database takes no changes.",
        lambda: (rates := limiter()) is None or not rates.unshared.is_alone,
        merge="min",
    )


def register_caches(registry: Registry) -> None:
    """The caches of this process."""
    labels = ("cache",)
    registry.counter(
        "diptych_cache_misses_total", "Look-ups that found no entry.", lambda: _of_caches(misses()), labels
    )
    registry.gauge("diptych_cache_bytes", "Bytes of the entries of a cache.", lambda: _of_caches(sizes()), labels)


def _of_caches(by_name: Mapping[str, float]) -> dict[Labels, float]:
    return {(name,): by_name.get(name, 0) for name in CACHES}


def register_process(registry: Registry) -> None:
    """The process itself, under the names that are usual for Prometheus."""

    def seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    registry.counter("process_cpu_seconds_total", "Processor time, in seconds.", seconds)
    registry.gauge("process_resident_memory_bytes", "Resident memory, in bytes.", _resident)
    registry.gauge("process_open_fds", "Open file descriptors.", _files)
    registry.gauge(
        "process_start_time_seconds", "When it started, in seconds since 1970.", lambda: _STARTED, merge="min"
    )


def _resident() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # only Linux has it
        return 0


def _files() -> float:
    try:
        return len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return 0
