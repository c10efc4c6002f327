"""The parsers of settings: text of a flag, a variable or the file → a value, or ValueError "expected …"."""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

SHOWN = 80
"""Characters of an invalid value that an error shows."""
_PASSWORD = re.compile(r"(?<=password=)[^&]*", re.IGNORECASE)
_USER = re.compile(r":(/*).*", re.DOTALL)
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([a-z0-9._-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?")
LOCALHOST = "localhost"
"""In `cors_origins`: pages of this machine, from any port."""
_USUAL = {"http": 80, "https": 443}
"""Default ports, which browsers leave out of an origin."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """A trusted external issuer: the audience that its tokens must have, and the claims to read from them."""

    issuer: str
    audience: str
    roles_claim: str | None = None
    role_map: Mapping[str, str] | None = None
    subject_claim: str = "sub"
    required: Mapping[str, str] | None = None
    """Claims that a token must have, with their values."""


def shown(text: str) -> str:
    """An invalid value, as an error shows it: without the passwords of addresses, as errors are logged. What is invalid
    may be the address itself, so whatever could be a password is left out."""
    before, at, after = _PASSWORD.sub("…", text).rpartition("@")
    text = _USER.sub(r":\1…", before, 1) + at + after
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}…"


def read_boolean(text: str) -> bool:
    if text.lower() not in ("1", "0", "true", "false", "yes", "no"):
        raise ValueError("expected true or false")
    return text.lower() in ("1", "true", "yes")


def _integer(expected: str, least: int = 0, most: int = 10**18) -> Callable[[str], int]:
    """A parser of whole numbers in a range."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise ValueError("expected a whole number")
        if not least <= int(text) <= most:
            raise ValueError(f"expected {expected}")
        return int(text)

    return read


read_whole = _integer("a whole number")
read_positive = _integer("a number of 1 or more", 1)
read_page_size = _integer("20 or more, since a page has 20 rows if the request does not say how many", 20)
read_port = _integer("a port from 0 to 65535", 0, 65_535)
read_tokens = _integer("1 to 20000, since each of them takes time", 1, 20_000)
read_nesting = _integer("1 to 150, since the parser is recursive", 1, 150)


def choice_parser(*names: str) -> Callable[[str], str]:
    """A parser that accepts one of these words."""

    def read(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"expected {' or '.join(names)}")
        return text.lower()

    return read


def _number(expected: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """A parser of numbers for which `fits` holds."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not fits(number):
            raise ValueError(f"expected {expected}")
        return number

    return read


read_share = _number("a number from 0 to 1", lambda number: 0 <= number <= 1)
read_seconds = _number("a number of seconds, above 0 and below a day", lambda number: 0 < number < 86_400)
read_delay = _number("a number of seconds, below an hour", lambda number: 0 <= number < 3_600)
read_age = _number("a number of seconds, above 0 and below a hundred years", lambda number: 0 < number < 3_153_600_000)


read_retention = _number("0 or a number of seconds below a hundred years", lambda number: 0 <= number < 3_153_600_000)


def read_address(text: str) -> str:
    """An address, without its trailing slash."""
    url = urlsplit(text)
    if text and (url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment):
        raise ValueError("expected an address such as https://api.example.org")
    return text.rstrip("/")


def read_listen(text: str) -> str:
    """An address to listen on, `HOST:PORT`; a port alone is one of the loopback interface."""
    if not text:
        return ""
    host, separator, port = text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535 or (separator and not host):
        raise ValueError("expected a port, or an address such as 0.0.0.0:9464 or [::1]:9464")
    return f"{host or '127.0.0.1'}:{port}"


def read_direct(text: str) -> str:
    """The address of a PostgreSQL database, or nothing."""
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("expected postgresql://…")
    return text


def read_smtp(text: str) -> str:
    """The address of a mail server."""
    if text and not re.fullmatch(r"smtps?://([^@/]+@)?[^@/?#]+/?(\?tls=(no|starttls))?", text):
        raise ValueError("expected smtp://user:password@host:587, smtps://host, or smtp://host?tls=no")
    return text


def read_networks(text: str) -> str:
    """Addresses and networks, comma-separated, or `*`."""
    try:
        if text.strip() != "*":
            for network in filter(None, map(str.strip, text.split(","))):
                ipaddress.ip_network(network)
    except ValueError:
        raise ValueError("expected addresses or networks such as 127.0.0.1,10.0.0.0/8, or *") from None
    return text


def _names(text: str, expected: str) -> list[str]:
    """A list of texts, comma-separated or as JSON."""
    if text.startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            names = None
    else:
        names = [name.strip() for name in text.split(",")] if text.strip() else []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected {expected}, with commas between them")
    return names


_BETWEEN_URLS = re.compile(r"\s*,\s*(?=postgres(?:ql)?://)")


def read_replicas(text: str) -> tuple[str, ...]:
    """Addresses of PostgreSQL, comma-separated or as JSON; the hosts of one have commas between them too."""
    listed = text if text.startswith("[") else json.dumps([url for url in _BETWEEN_URLS.split(text.strip()) if url])
    urls = _names(listed, "addresses such as postgresql://standby/tasks")
    return tuple(dict.fromkeys(map(read_direct, urls)))


def read_relay(text: str) -> tuple[str, ...]:
    """Addresses of NATS servers, comma-separated or as JSON."""
    urls = _names(text, "addresses such as nats://127.0.0.1:4222")
    for url in urls:
        if not re.fullmatch(r"(nats|tls)://([^@/?#]+@)?[^@/?#]+/?", url):
            raise ValueError("expected nats://host:4222 or tls://host:4222, with commas between several")
    return tuple(dict.fromkeys(urls))


def read_header_names(text: str) -> tuple[str, ...]:
    names = _names(text, "names of headers such as X-Tenant")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or name == "*":
            raise ValueError(f"{name[:SHOWN]!r} is no name of a header")
    return tuple(dict.fromkeys(names))


def read_role_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(text, "names of roles")))


def read_origins(text: str) -> tuple[str, ...]:
    """Origins in the form in which browsers send them, or `localhost`; or `*`."""
    origins = _names(text, "origins such as https://app.example.org")
    if "*" in origins and len(origins) > 1:
        raise ValueError("* is every origin; leave it alone, or leave it out")
    return tuple(origins) if origins == ["*"] else tuple(dict.fromkeys(map(_origin, origins)))


def read_redirect_origins(text: str) -> tuple[str, ...]:
    """Origins to which users may be led back: of https, or of this machine."""
    origins = read_origins(text)
    if not all(is_protected(origin) for origin in origins):
        raise ValueError("expected origins such as https://app.example.org or http://127.0.0.1, with commas between")
    return origins


def _origin(text: str) -> str:
    if text.lower() == LOCALHOST:
        return LOCALHOST
    match = _ORIGIN.fullmatch(text.lower())
    if match is None or int(match[3] or 1) not in range(1, 65_536):
        raise ValueError(f"{text[:SHOWN]!r} is no origin: expected https://app.example.org, without a path or a slash")
    scheme, host, port = match[1], match[2], int(match[3] or 0)
    return f"{scheme}://{host}" if port in (0, _USUAL.get(scheme)) else f"{scheme}://{host}:{port}"


def is_protected(address: str) -> bool:
    """Is traffic with an address safe from others: by TLS, or since it stays on this machine?"""
    try:
        url = urlsplit(address)
        sound = address.isascii() and address.isprintable() and " " not in address and "@" not in url.netloc
        if not sound or not url.hostname or url.port == 0:
            return False
        return url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Is it a loopback address?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_issuers(text: str) -> tuple[Issuer, ...]:
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("expected a JSON list of issuers") from None
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ValueError("expected a list of issuers")
    issuers = tuple(_issuer(table, f"issuer {number}") for number, table in enumerate(tables, 1))
    if len({issuer.issuer for issuer in issuers}) < len(issuers):
        raise ValueError("an issuer is listed twice")
    return issuers


_RATE = ("requests", "cost", "per", "each", "to", "on", "name")


def parse_rates(text: str) -> tuple[dict[str, Any], ...]:
    """Tables of rates; what they say is checked with the model."""
    try:
        tables = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("expected a JSON list of rates") from None
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ValueError("expected a list of rates")
    for number, table in enumerate(tables, 1):
        unknown = sorted(table.keys() - set(_RATE))
        if unknown:
            raise ValueError(f"rate {number} has no {unknown[0]}; there are {', '.join(_RATE)}")
    return tuple(tables)


def _issuer(table: Mapping[str, Any], which: str) -> Issuer:
    values = {name: value for name, value in table.items() if value is not None}
    known = [field.name for field in fields(Issuer)]
    unknown = sorted(values.keys() - set(known))
    if unknown:
        raise ValueError(f"{which} has no {unknown[0]}; there are {', '.join(known)}")
    roles = values.get("role_map", {})
    if not isinstance(roles, dict) or not all(isinstance(role, str) for role in roles.values()):
        raise ValueError(f"the role_map of {which} must give a role to each of their names")
    required = values.get("required", {})
    if not isinstance(required, dict) or not all(isinstance(value, str) for value in required.values()):
        raise ValueError(f"the required claims of {which} must each have a text")
    for name in ("issuer", "audience", *(name for name in values if name not in ("role_map", "required"))):
        if not isinstance(values.get(name), str) or not values[name]:
            raise ValueError(f"{which} needs a text as its {name}")
    if not is_protected(values["issuer"]) or "?" in values["issuer"] or "#" in values["issuer"]:
        raise ValueError(f"{which} must be an https address, or an http address of this machine")
    if "role_map" in values and "roles_claim" not in values:
        raise ValueError(f"{which} has a role_map, but no roles_claim that it could map")
    return Issuer(**values)
