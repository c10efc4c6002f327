"""Merges a JSON value into another (RFC 7396): what a patch of a Json field means, in both styles.

merge({"a": {"x": 1}, "b": 2}, {"a": {"y": 3}, "b": None})   →   {"a": {"x": 1, "y": 3}}
"""

from __future__ import annotations

from typing import Any

import msgspec

from diptych.errors import Code, Refusal

MAX_SIZE = 1_048_576
"""Bytes of JSON that a patch may make, unless there were more before."""


def merge(before: Any, patch: Any) -> Any:
    """The value after the patch (RFC 7396, §2), no deeper than the deeper of the two."""
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def merge_stored(stored: str | bytes, patch: Any) -> Any:
    """Merge a patch into stored JSON, which other writers may have nested too deeply, or with numbers out of range."""
    try:
        merged = merge(msgspec.json.decode(stored), patch)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise Refusal(Code.CONFLICT, "The stored JSON cannot be patched: send whole values.") from None
    if len(msgspec.json.encode(merged)) > max(MAX_SIZE, len(stored)):
        raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The patch makes more than {MAX_SIZE} bytes of JSON.")
    return merged
