"""Turns traces on where the setting says so: the package of OpenTelemetry is imported only then (`tracing.py`)."""

from __future__ import annotations

import importlib
from typing import Any

from diptych.errors import StartError
from diptych.serve.on_demand import TRACING


class Untraced:
    """Traces that are off."""

    def close(self) -> None:
        """There is nothing to send."""


def traced(handler: Any, *, is_on: bool) -> Any:
    """Trace the requests of a handler, if traces are on; what is to be closed at its end."""
    if not is_on:
        return Untraced()
    try:
        tracing = importlib.import_module(TRACING).Tracing()
    except ImportError:
        raise StartError("Traces need OpenTelemetry: pip install 'diptych[otel]'.") from None
    tracing.wrap(handler)
    return tracing
