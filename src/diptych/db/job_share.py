"""The share of a job in the fair queue (`job_queue.py`): who asked for it."""

from __future__ import annotations

import hashlib
import json


def share_of(owner: str) -> str:
    """Among whom the queue is shared, of an owner: all tokens of an account, key, client or user have one share."""
    named = {name: value for name, value in json.loads(owner).items() if name not in ("scopes", "claims")}
    return hashlib.blake2b(json.dumps(named, sort_keys=True).encode(), digest_size=12).hexdigest()
