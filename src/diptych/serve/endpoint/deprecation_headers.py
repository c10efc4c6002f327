"""The headers of a response whose request uses what is deprecated, and the counts of such requests.

    Deprecation: @1767225600                                    RFC 9745: since when, the earliest of all
    Sunset: Thu, 31 Dec 2026 00:00:00 GMT                       RFC 8594: until when, the earliest of all
    Link: <https://example.com/old>; rel="deprecation"          a page about it

What a request uses is a part of its plan (`policy/deprecations.py`): others are not looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from datetime import UTC, date, datetime
from email.utils import format_datetime

from diptych.api.reply import Header, Reply
from diptych.engine.call import PreparedCall
from diptych.engine.read_plan import PreparedRead
from diptych.engine.usage import Usage
from diptych.engine.watch import PreparedWatch
from diptych.engine.write_op import PreparedWrite
from diptych.identity.viewer import Caller
from diptych.model.deprecation import Deprecated
from diptych.policy.values import Inputs

Parts = Iterable[tuple[PreparedRead | PreparedWrite | PreparedCall | PreparedWatch, Inputs]]


def with_deprecations(reply: Reply, usage: Usage | None, parts: Parts, caller: Caller) -> Reply:
    """The reply, with headers about what the parts of its request use; each such request is counted."""
    headers = () if usage is None else note_deprecations(usage, parts, caller)
    if not headers:
        return reply
    return Reply(reply.status, _with_one_link((*reply.headers, *headers)), reply.body, reply.stream)


def _with_one_link(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """The headers with all links, those of a page too, in one `Link`."""
    links = [value for name, value in headers if name == b"link"]
    if len(links) < 2:
        return headers
    return (*(header for header in headers if header[0] != b"link"), (b"link", b", ".join(links)))


def note_deprecations(usage: Usage, parts: Parts, caller: Caller) -> tuple[Header, ...]:
    """Count a request if it uses what is deprecated; returns the headers of its response."""
    used: dict[Deprecated, None] = {}
    for part, inputs in parts:
        if part.uses is not None:
            used |= dict.fromkeys(part.uses.of(part.binder(inputs) if part.uses.slots else ()))
    if not used:
        return ()
    usage.note(used, caller)
    return _headers(tuple(used))


@functools.lru_cache(maxsize=256)
def _headers(used: tuple[Deprecated, ...]) -> tuple[Header, ...]:
    every = [part.deprecation for part in used]
    since = min(deprecation.since for deprecation in every)
    headers: list[Header] = [(b"deprecation", b"@%d" % int(_moment(since).timestamp()))]
    sunsets = [deprecation.sunset for deprecation in every if deprecation.sunset is not None]
    if sunsets:
        headers.append((b"sunset", format_datetime(_moment(min(sunsets)), usegmt=True).encode()))
    links = dict.fromkeys(deprecation.link for deprecation in every if deprecation.link)
    if links:
        headers.append((b"link", ", ".join(f'<{link}>; rel="deprecation"' for link in links).encode()))
    return tuple(headers)


def _moment(day: date) -> datetime:
    """The begin of a day, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
