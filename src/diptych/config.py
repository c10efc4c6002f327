"""Every setting, in one table: its flag, its environment variable, its key in `diptych.toml`, its default.

The order is flag, environment (`DIPTYCH_PORT`), file (`port = 8000`), default.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from diptych.errors import StartError

T = TypeVar("T")

_SHOWN = 80
"""Characters of an invalid value that an error shows."""
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([a-z0-9._-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?")
LOCALHOST = "localhost"
"""In `cors_origins`: pages of this machine, from any port."""
_USUAL = {"http": 80, "https": 443}
"""Default ports, which browsers leave out of an origin."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, parser, help and default. One that is not a single value has no flag."""

    name: str
    default: Any
    read: Callable[[str], Any]
    help: str
    has_flag: bool = True


def _setting(default: T, read: Callable[[str], Any], help: str, *, has_flag: bool = True) -> T:
    """A field of Config that is a setting."""
    return field(default=default, metadata={"read": read, "help": help, "has_flag": has_flag})


@dataclass(frozen=True, slots=True)
class Issuer:
    """A trusted external issuer: the audience that its tokens must have, and the claims to read from them."""

    issuer: str
    audience: str
    roles_claim: str | None = None
    role_map: Mapping[str, str] | None = None
    subject_claim: str = "sub"


def _boolean(text: str) -> bool:
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


_whole = _integer("a whole number")
_positive = _integer("a number of 1 or more", 1)
_page = _integer("20 or more, since 20 is the page that no one asked for", 20)
_port = _integer("a port from 0 to 65535", 0, 65_535)
_tokens = _integer("1 to 20000, since all that comes after takes its time for each of them", 1, 20_000)
_nesting = _integer("1 to 150, since what reads it is recursive", 1, 150)


def _one_of(*names: str) -> Callable[[str], str]:
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


_share = _number("a number from 0 to 1", lambda number: 0 <= number <= 1)
_seconds = _number("a number of seconds, above 0 and below a day", lambda number: 0 < number < 86_400)
_age = _number("a number of seconds, above 0 and below a hundred years", lambda number: 0 < number < 3_153_600_000)


def read_address(text: str) -> str:
    """An address, without its trailing slash."""
    url = urlsplit(text)
    if text and (url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment):
        raise ValueError("expected an address such as https://api.example.org")
    return text.rstrip("/")


def _smtp(text: str) -> str:
    """The address of a mail server."""
    if text and not re.fullmatch(r"smtps?://([^@/]+@)?[^@/?#]+/?(\?tls=(no|starttls))?", text):
        raise ValueError("expected smtp://user:password@host:587, smtps://host, or smtp://host?tls=no")
    return text


def _networks(text: str) -> str:
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


def _header_names(text: str) -> tuple[str, ...]:
    names = _names(text, "names of headers such as X-Tenant")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or name == "*":
            raise ValueError(f"{name[:_SHOWN]!r} is no name of a header")
    return tuple(dict.fromkeys(names))


def _role_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(text, "names of roles")))


def _origins(text: str) -> tuple[str, ...]:
    """Origins in the form in which browsers send them, or `localhost`; or `*`."""
    origins = _names(text, "origins such as https://app.example.org")
    if "*" in origins and len(origins) > 1:
        raise ValueError("* is every origin; leave it alone, or leave it out")
    return tuple(origins) if origins == ["*"] else tuple(dict.fromkeys(map(_origin, origins)))


def _redirect_origins(text: str) -> tuple[str, ...]:
    """Origins to which users may be led back: of https, or of this machine."""
    origins = _origins(text)
    if not all(is_protected(origin) for origin in origins):
        raise ValueError("expected origins such as https://app.example.org or http://127.0.0.1, with commas between")
    return origins


def _origin(text: str) -> str:
    if text.lower() == LOCALHOST:
        return LOCALHOST
    match = _ORIGIN.fullmatch(text.lower())
    if match is None or int(match[3] or 1) not in range(1, 65_536):
        raise ValueError(f"{text[:_SHOWN]!r} is no origin: expected https://app.example.org, without a path or a slash")
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


def _issuers(text: str) -> tuple[Issuer, ...]:
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


def _issuer(table: Mapping[str, Any], which: str) -> Issuer:
    values = {name: value for name, value in table.items() if value is not None}
    known = [field.name for field in fields(Issuer)]
    unknown = sorted(values.keys() - set(known))
    if unknown:
        raise ValueError(f"{which} has no {unknown[0]}; there are {', '.join(known)}")
    roles = values.get("role_map", {})
    if not isinstance(roles, dict) or not all(isinstance(role, str) for role in roles.values()):
        raise ValueError(f"the role_map of {which} must give a role to each of their names")
    for name in ("issuer", "audience", *(name for name in values if name != "role_map")):
        if not isinstance(values.get(name), str) or not values[name]:
            raise ValueError(f"{which} needs a text as its {name}")
    if not is_protected(values["issuer"]) or "?" in values["issuer"] or "#" in values["issuer"]:
        raise ValueError(f"{which} must be an https address, or an http address of this machine")
    if "role_map" in values and "roles_claim" not in values:
        raise ValueError(f"{which} has a role_map, but no roles_claim that it could map")
    return Issuer(**values)


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one service."""

    model: str = _setting("", str, "The model, as MODULE:MODEL; the default one if left out")
    database: str = _setting(
        "sqlite:///diptych.db", str, "sqlite:///PATH or postgresql://… (a unix socket as ?host=/dir)"
    )
    host: str = _setting("127.0.0.1", str, "The address to listen on")
    port: int = _setting(8000, _port, "The port to listen on")
    workers: int = _setting(1, _positive, "How many server processes")
    base_url: str = _setting("", read_address, "The public address of the service, and the issuer of its tokens")
    trusted_proxies: str = _setting("", _networks, "Peers whose Forwarded and X-Forwarded-* headers are believed")
    cors_origins: tuple[str, ...] = _setting(
        (), _origins, "Origins whose pages may read answers: https://app.example.org,…, localhost (any port), or *"
    )
    cors_headers: tuple[str, ...] = _setting((), _header_names, "Further headers that pages of these origins may send")
    compression: bool = _setting(True, _boolean, "Compress answers for clients that accept gzip or zstd")
    registration_origins: tuple[str, ...] = _setting(
        (), _redirect_origins, "Origins of the redirect URIs with which OAuth clients may register themselves"
    )
    sample: bool = _setting(False, _boolean, "Fill an empty database with sample data (default model only)")
    introspection: bool = _setting(True, _boolean, "Answer introspection, the SDL and /openapi.json")
    introspection_roles: tuple[str, ...] = _setting(
        (), _role_names, "Roles that these are for, or signed_in; everyone if left out"
    )
    max_depth: int = _setting(10, _positive, "How many levels of relations a request may have")
    max_complexity: int = _setting(5_000, _positive, "How many objects a request may return at most")
    max_page: int = _setting(100, _page, "The largest page")
    max_offset: int = _setting(10_000, _whole, "The largest offset")
    max_in: int = _setting(250, _positive, "How many values an `in` list may have")
    max_terms: int = _setting(50, _positive, "How many comparisons a filter may make")
    max_sort: int = _setting(5, _positive, "How many keys a sort may have")
    max_aliases: int = _setting(30, _whole, "How many aliases a request may have")
    max_roots: int = _setting(20, _positive, "How many root fields an operation may have")
    max_directives: int = _setting(50, _whole, "How many directives a document may have")
    max_selections: int = _setting(100, _positive, "How many fields one selection may have")
    max_tokens: int = _setting(2_000, _tokens, "How many tokens a document may have")
    max_string: int = _setting(4_096, _positive, "The longest string of a document, in bytes")
    max_document: int = _setting(102_400, _positive, "The largest document, in bytes")
    max_nesting: int = _setting(64, _nesting, "How deep documents and `fields` may be nested")
    max_body: int = _setting(1_048_576, _positive, "The largest request body, in bytes")
    replay_size: int = _setting(1_048_576, _positive, "The largest answer kept for an Idempotency-Key, in bytes")
    replay_share: int = _setting(268_435_456, _positive, "Bytes of answers kept for the Idempotency-Keys of one caller")
    plan_cache: int = _setting(1_000, _positive, "How many plans are kept")
    planning_share: float = _setting(
        0.2, _share, "The part of all time that new requests of one caller may take; 0: any"
    )
    persisted_queries: int = _setting(1_000, _whole, "How many automatically persisted queries are kept; 0 keeps none")
    persisted_bytes: int = _setting(8_388_608, _positive, "Bytes that automatically persisted queries may take")
    trusted_only: bool = _setting(False, _boolean, "Run only trusted documents at /graphql")
    statement_timeout: float = _setting(5.0, _seconds, "Seconds that one statement may take")
    request_timeout: float = _setting(10.0, _seconds, "Seconds that one request may take")
    head_timeout: float = _setting(10.0, _seconds, "Seconds in which the head of a request must arrive")
    idle_timeout: float = _setting(5.0, _seconds, "Seconds for which a connection may be idle between two requests")
    pool_size: int = _setting(10, _positive, "Connections to PostgreSQL of one server process")
    max_waiting: int = _setting(1_000, _positive, "How many may wait for the database in one server process")
    max_requests: int = _setting(2_000, _positive, "How many requests one server process may have under way")
    max_connections: int = _setting(25_000, _positive, "How many connections one server process may have")
    heartbeat: float = _setting(15.0, _seconds, "Seconds between two heart-beats of a stream")
    max_streams: int = _setting(20_000, _positive, "How many streams of changes one server process may have")
    stream_share: float = _setting(
        0.25, _share, "The part of the streams that are free that one caller may have; 0: any"
    )
    stream_memory: int = _setting(67_108_864, _positive, "Bytes that the values of the filters of all streams may take")
    evaluation_share: float = _setting(0.2, _share, "The part of all time for evaluating one caller's streams; 0: any")
    stream_buffer: int = _setting(262_144, _positive, "Bytes that may wait for a slow reader of a stream")
    stream_timeout: float = _setting(10.0, _seconds, "Seconds after which a stream whose reader takes nothing is cut")
    feed_keep: float = _setting(604_800.0, _age, "Seconds for which changes are kept")
    feed_rows: int = _setting(1_000_000, _positive, "How many changes are kept at most")
    access_log: bool = _setting(False, _boolean, "Log one line for each request")
    log_format: str = _setting("text", _one_of("text", "json"), "How log lines are written: text or json")
    log_level: str = _setting(
        "warning", _one_of("debug", "info", "warning", "error"), "The least severe level that is logged"
    )
    smtp: str = _setting("", _smtp, "The mail server: smtp://user:password@host:587, smtps://…", has_flag=False)
    mail_from: str = _setting("", str, "The sender of mails: no-reply@example.org, or Shop <no-reply@example.org>")
    mail_folder: str = _setting("", str, "A folder into which mails are written, instead of sending them")
    mail_templates: str = _setting("", str, "A folder of templates of mails, which replace those of Diptych")
    issuers: tuple[Issuer, ...] = _setting((), _issuers, "Other issuers, whose tokens hold here too", has_flag=False)


SETTINGS = tuple(Setting(field.name, default=field.default, **field.metadata) for field in fields(Config))


def load(
    flags: Mapping[str, Any],
    file: Path = Path("diptych.toml"),
    env: Mapping[str, str] = os.environ,
    defaults: Mapping[str, Any] | None = None,
) -> Config:
    """Load the settings: flags that are not None first, then environment, file, and defaults."""
    written = _read_file(file)
    known = {field.name for field in fields(Config)}
    unknown = sorted(set(written) - known)
    if unknown:
        raise StartError(f"{file} has no setting named {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    chosen: dict[str, Any] = dict(defaults or {})
    for setting in SETTINGS:
        variable = f"DIPTYCH_{setting.name.upper()}"
        if flags.get(setting.name) is not None:
            chosen[setting.name] = flags[setting.name]
        elif variable in env:
            chosen[setting.name] = _read(setting, env[variable], f"The environment variable {variable}")
        elif setting.name in written:
            text = _text(written[setting.name])
            chosen[setting.name] = _read(setting, text, f"The setting {setting.name} in {file}")
    config = Config(**chosen)
    if any(trusted.issuer == config.base_url for trusted in config.issuers):
        raise StartError(f"The issuer {config.base_url} is this service itself: its base_url is no other issuer.")
    return config


def misspelt(env: Mapping[str, str] = os.environ) -> list[str]:
    """A warning for each environment variable that begins with `DIPTYCH_` and is not a setting."""
    known = [f"DIPTYCH_{setting.name.upper()}" for setting in SETTINGS]
    return [_unknown(name, known) for name in sorted(env) if name.startswith("DIPTYCH_") and name not in known]


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"The environment variable {name} is no setting{hint}"


def as_environment(config: Config) -> dict[str, str]:
    """All settings as environment variables, for a process that reads them again."""
    return {f"DIPTYCH_{name.upper()}": _text(value) for name, value in asdict(config).items()}


def _text(value: Any) -> str:
    """A value as text that the parser of its setting reads."""
    if isinstance(value, bool | list | tuple | dict):
        return json.dumps(value, default=str)
    return str(value)


def _read(setting: Setting, text: str, where: str) -> Any:
    try:
        return setting.read(text)
    except ValueError as error:
        shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
        raise StartError(f"{where} cannot be {shown}: {error}.") from None


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text()) if file.is_file() else {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartError(f"{file} cannot be read: {error}.") from None
