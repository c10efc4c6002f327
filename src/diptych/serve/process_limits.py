"""What the services of one server process share: its limits of requests and connections, and the count of requests."""

from __future__ import annotations

from diptych.config import Config
from diptych.serve.http.connection_limits import ConnectionLimits
from diptych.serve.http.deadlines import Deadlines
from diptych.serve.request_metrics import RequestMetrics


class ProcessLimits:
    """The requests under way and the connections of one process, and how many it has answered."""

    def __init__(self, config: Config) -> None:
        self.deadlines = Deadlines(config.request_timeout, config.max_requests)
        self.connections = ConnectionLimits(
            config.max_connections, config.head_timeout, config.stream_timeout, config.idle_timeout
        )

        self.requests = RequestMetrics()

    def stop(self) -> None:
        """End the timers."""
        self.deadlines.stop()
        self.connections.stop()
        self.connections.is_draining = False
