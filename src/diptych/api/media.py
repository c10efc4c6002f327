"""Media types: which of those on offer a client accepts (RFC 9110, §12.5.1), and that of a body."""

from __future__ import annotations

import re

from diptych.lru import memo

_RANGE = re.compile(r"\s*([\w!#$&^.+*-]+)/([\w!#$&^.+*-]+)\s*(.*)", re.ASCII)
_QUALITY = re.compile(r";\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)", re.ASCII | re.IGNORECASE)


@memo("Accept headers", 256)
def negotiate(accept: bytes, offers: tuple[str, ...]) -> str | None:
    """The offer with the highest quality, the first of equals; None if none is acceptable."""
    if not accept.strip():
        return offers[0]
    ranges = [_range(part) for part in accept.decode("latin-1").split(",")[:64]]
    best, chosen = 0.0, None
    for offer in offers:
        quality = _quality(offer, ranges)
        if quality > best:
            best, chosen = quality, offer
    return chosen


def _range(part: str) -> tuple[str, str, float]:
    match = _RANGE.fullmatch(part)
    if match is None:
        return "", "", 0.0
    quality = _QUALITY.search(match[3])
    return match[1].lower(), match[2].lower(), float(quality[1]) if quality else 1.0


def _quality(offer: str, ranges: list[tuple[str, str, float]]) -> float:
    """The quality that the most specific matching range gives an offer."""
    kind, _, subtype = offer.partition("/")
    for wanted in ((kind, subtype), (kind, "*"), ("*", "*")):
        for first, second, quality in ranges:
            if (first, second) == wanted:
                return quality
    return 0.0


@memo("Content-Type headers", 256)
def content_type(header: bytes) -> tuple[str, str]:
    """The media type and charset of a body."""
    kind, _, parameters = header.decode("latin-1").partition(";")
    match = re.search(r"charset\s*=\s*\"?([\w-]+)", parameters, re.IGNORECASE)
    return kind.strip().lower(), match[1].lower() if match else "utf-8"
