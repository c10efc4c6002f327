"""joserfc and what it needs of cryptography, imported on first use: together they would take a tenth of a start.

    jose("jwt").decode(token, key)

The server loads them right after it has started (`serve/on_demand.py`), so that no request waits for them.
"""

from __future__ import annotations

import importlib
from typing import Any


def jose(module: str) -> Any:
    """A module of joserfc."""
    return importlib.import_module(f"joserfc.{module}")
