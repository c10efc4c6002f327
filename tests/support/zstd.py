"""zstd, from the standard library or as its backport."""

from __future__ import annotations

import importlib
import sys


def unzstd(data: bytes) -> bytes:
    """The content of all frames."""
    module = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    content: bytes = module.decompress(data)
    return content
