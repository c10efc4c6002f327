"""Names of GraphQL that others need before graphql-core is imported."""

from __future__ import annotations

NODE = "Node"
"""The interface of all types whose ids are UUIDs."""
