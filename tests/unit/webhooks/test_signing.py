"""Signatures of webhooks, as the official library of Standard Webhooks verifies them."""

from __future__ import annotations

import json
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from diptych.ask.webhook_secret import secret_of, secret_text
from diptych.webhooks.signing import OVERLAP, secrets_at, signed_headers

SERVICE = b"s" * 32
BODY = '{"type":"posts.created","timestamp":"2026-01-31T12:00:00.000000Z","data":{"title":"Zoë"}}'.encode()


def test_the_official_library_verifies_and_refuses_what_was_tampered_with() -> None:
    secret = secret_of(SERVICE, "wh_1", 1)
    headers = dict(signed_headers([secret], "wh_1_abc", int(time.time()), BODY))
    assert Webhook(secret_text(secret)).verify(BODY, headers) == json.loads(BODY)
    for body, changed in (
        (BODY + b" ", {}),
        (BODY, {"webhook-id": "wh_1_abd"}),
        (BODY, {"webhook-timestamp": str(int(time.time()) - 1)}),
        (BODY, {"webhook-signature": "v1,AAAA"}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret_text(secret)).verify(body, {**headers, **changed})


def test_while_a_secret_is_rotated_both_verify_and_later_only_the_new_one() -> None:
    now = int(time.time())
    old, new = (secret_text(secret_of(SERVICE, "wh_1", number)) for number in (1, 2))
    both = dict(signed_headers(secrets_at(SERVICE, "wh_1", 2, now - 60, now), "id", now, BODY))
    for text in (old, new):
        Webhook(text).verify(BODY, both)
    later = dict(signed_headers(secrets_at(SERVICE, "wh_1", 2, now - OVERLAP - 1, now), "id", now, BODY))
    Webhook(new).verify(BODY, later)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(BODY, later)


def test_secrets_differ_by_service_webhook_and_generation_and_have_the_form_of_the_standard() -> None:
    made = {
        secret_text(secret_of(service, webhook, number))
        for service in (SERVICE, b"t" * 32)
        for webhook in ("wh_1", "wh_2")
        for number in (1, 2)
    }
    assert len(made) == 8 and all(text.startswith("whsec_") and len(text) == 50 for text in made)
