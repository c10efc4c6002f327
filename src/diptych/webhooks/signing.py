"""Signs messages as Standard Webhooks 1.0: HMAC-SHA256 over id, timestamp and body, in base64.

    webhook-id: wh_5f0c…_q3Zt…    webhook-timestamp: 1767225600    webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhn…

The secrets of a webhook are derived from the secret of the service, its id and a number, and so are stored nowhere.
Rotating raises the number. For a day both secrets sign, so that a receiver can change its own at any moment of it.
"""

from __future__ import annotations

import base64
import hmac

from diptych.ask.webhook_secret import secret_of

OVERLAP = 86_400
"""Seconds for which the previous secret signs too."""


def secrets_at(secret: bytes, webhook: str, generation: int, rotated_at: int | None, now: int) -> list[bytes]:
    """The secrets that sign now, the current one first."""
    both = rotated_at is not None and now < rotated_at + OVERLAP
    numbers = (generation, generation - 1) if both and generation > 1 else (generation,)
    return [secret_of(secret, webhook, number) for number in numbers]


def signed_headers(secrets: list[bytes], id: str, timestamp: int, body: bytes) -> list[tuple[str, str]]:
    """The headers of a message, with a signature for each secret."""
    content = f"{id}.{timestamp}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(secret, content, "sha256")).decode() for secret in secrets)
    return [
        ("webhook-id", id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(f"v1,{signature}" for signature in signatures)),
    ]
