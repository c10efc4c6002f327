"""The metrics of a process that serves cells: its requests, connections and cells. No label names a tenant."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from diptych.api.reply import NO_STORE, Reply
from diptych.cells.pool import CellPool
from diptych.errors import Code, Refusal
from diptych.metrics.registry import Registry
from diptych.serve.on_demand import EXPOSITION
from diptych.serve.process_limits import ProcessLimits
from diptych.serve.service_metrics import register_caches, register_process


class CellMetrics:
    """What operators read of all cells together."""

    def __init__(self, pool: CellPool, limits: ProcessLimits, declared: Callable[[], int]) -> None:
        self.registry = Registry()
        self._connections = limits.connections
        limits.requests.register(self.registry)
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "diptych_cells": ("Tenants that the cells file lists.", declared),
            "diptych_cells_open": ("Cells that are open.", lambda: len(pool)),
            "diptych_requests_running": ("Requests that run now.", lambda: len(limits.deadlines)),
            "diptych_connections": ("Open connections, WebSockets included.", lambda: limits.connections.count),
        }
        for name, (text, read) in gauges.items():
            self.registry.gauge(name, text, read)
        self.registry.counter(
            "diptych_cell_events_total",
            "Cells that were opened, closed, or could not be opened.",
            lambda: {(event,): pool.counts[event] for event in ("opened", "closed", "failed")},
            ("event",),
        )
        register_caches(self.registry)
        register_process(self.registry)

    def reply(self, accept: bytes) -> Reply:
        """All metrics, as text for Prometheus."""
        text, kind = importlib.import_module(EXPOSITION).render_metrics(
            self.registry.collect(), accept.decode("latin-1")
        )
        return Reply(200, ((b"content-type", kind.encode()), *NO_STORE), text)

    async def check_ready(self) -> None:
        """Raise a Refusal while the process shuts down. A cell that is down makes no other unready."""
        if self._connections.is_draining:
            raise Refusal(Code.UNAVAILABLE, "The service is shutting down.")
