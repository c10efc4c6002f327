"""Counts the jobs that this process has run, for the metrics."""

from __future__ import annotations

ENDED = {"succeeded": 0, "failed": 0, "retried": 0, "lost": 0}
"""Runs by what became of them: `retried` are tried again, `lost` were cancelled, or taken over."""
SECONDS = [0.0]
"""The time of all runs."""
RUNNING = [0]
"""Jobs that run now."""
DELAY = [0.0]
"""Seconds for which the first job that waited then has been due, or queued."""
QUEUED = [0]
"""Jobs that waited at the last look at the queue, at most as many as one look finds."""
