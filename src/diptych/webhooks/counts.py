"""Counts the messages of webhooks that this process has sent, by what became of them, for the metrics."""

from __future__ import annotations

MESSAGES = {"delivered": 0, "failed": 0, "dead": 0}
"""`failed` is every try that failed, `dead` are the changes that were given up."""
