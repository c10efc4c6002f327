"""Starts what runs jobs: it is imported only where the model has some."""

from __future__ import annotations

import importlib

from diptych.serve.handler import Handler
from diptych.serve.on_demand import JOBS


async def start_jobs(handler: Handler) -> None:
    """Begin to run jobs, if the model has some."""
    if handler.engine.model.job is not None:
        handler.jobs = importlib.import_module(JOBS).JobService(
            handler.rest.calls.calls, handler.config, lambda: handler.readiness.is_draining
        )
        await handler.jobs.start()
