"""Builds and encodes the OpenAPI document in steps, so that others are served between them.

steps = encode_steps(view, title="Blog")       each `next` takes about a millisecond at most; the last returns bytes
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from diptych.api.openapi.document import openapi_steps
from diptych.api.openapi.rated import add_rates
from diptych.model.view import View

_LEVELS = 3
"""Levels of objects whose members are encoded one by one: the document, its components, and those of one kind."""
_encode = msgspec.json.Encoder().encode


def encode_steps(view: View, *, rated: bool = False, **about: Any) -> Generator[None, None, bytes]:
    """The bytes of the document of one view, with rate limits if it is `rated`; `about` is as for `openapi_steps`."""
    document = yield from openapi_steps(view, **about)
    if rated:
        add_rates(document)
    return (yield from _encode_steps(document, _LEVELS))


def _encode_steps(value: Any, levels: int) -> Generator[None, None, bytes]:
    if not levels or not isinstance(value, dict):
        yield
        return _encode(value)
    members = []
    for name, member in value.items():
        encoded = yield from _encode_steps(member, levels - 1)
        members.append(b"%b:%b" % (_encode(name), encoded))
    return b"{%b}" % b",".join(members)
