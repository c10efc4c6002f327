"""How tests name documents."""

from __future__ import annotations

import hashlib
import json
from typing import Any

NAMES = "query Names($first: Int = 2) { users(first: $first, orderBy: [{name: ASC}]) { name } }"
ANSWER = {"data": {"users": [{"name": "Ann"}, {"name": "Ben"}]}}
ORDERS = "{ orders(first: 2, orderBy: [{id: ASC}]) { status internalNote } }"
CREATE = "mutation Create($input: UserCreate!) { createUser(input: $input) { name } }"
FOLLOW = "subscription Follow { userChanged { kind user { name } } }"


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def apollo(text: str, **others: Any) -> dict[str, Any]:
    """The extensions that name a document, as Apollo's protocol has them."""
    return {"persistedQuery": {"version": 1, "sha256Hash": hashed(text), **others}}


def document_id(text: str) -> str:
    return f"sha256:{hashed(text)}"


def by_apollo(text: str) -> dict[str, str]:
    """The parameters of a GET."""
    return {"extensions": json.dumps(apollo(text))}


def by_id(text: str) -> dict[str, str]:
    return {"documentId": document_id(text)}
