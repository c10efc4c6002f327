"""The secrets of webhooks, derived from the secret of the service: nothing is stored.

secret_text(secret_of(secret, "wh_5f0c…", 1))          "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD9qLm3pXb6aU="
"""

from __future__ import annotations

import base64

from diptych.ask.cursor import derive

PREFIX = "whsec_"


def webhook_id(row: str) -> str:
    """The id of the webhook that is a row with this id."""
    return "wh_" + row.replace("-", "")


def secret_of(secret: bytes, webhook: str, generation: int) -> bytes:
    """The secret of a webhook with this id; `generation` counts how often it was rotated."""
    return derive(secret, b"webhook", webhook.encode(), generation.to_bytes(8, "big"))


def secret_text(secret: bytes) -> str:
    """A secret as its receiver is given it."""
    return PREFIX + base64.b64encode(secret).decode()
