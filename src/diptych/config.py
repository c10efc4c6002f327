"""Every setting, in one table: its flag, its environment variable, its key in `diptych.toml`, its default.

The order is flag, environment (`DIPTYCH_PORT`), file (`port = 8000`), default.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from diptych.errors import StartError

_SHOWN = 80
"""How much of a setting that is wrong is shown."""
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([a-z0-9._-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?")
_USUAL = {"http": 80, "https": 443}
"""The ports that browsers leave out."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its text is read, and what it means. What is no single value has no flag."""

    name: str
    read: Callable[[str], Any]
    help: str
    default: Any
    has_flag: bool = True


@dataclass(frozen=True, slots=True)
class Issuer:
    """Another issuer, whose tokens hold here too: which are meant for us, and what they say of their holder."""

    issuer: str
    audience: str
    roles_claim: str | None = None
    role_map: Mapping[str, str] | None = None
    subject_claim: str = "sub"


def _boolean(text: str) -> bool:
    if text.lower() not in ("1", "0", "true", "false", "yes", "no"):
        raise ValueError("expected true or false")
    return text.lower() in ("1", "true", "yes")


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError("expected a whole number")
    return int(text)


def _positive(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise ValueError("expected a number of 1 or more")
    return number


def _page(text: str) -> int:
    number = _whole(text)
    if number < 20:
        raise ValueError("expected 20 or more, since 20 is the page that no one asked for")
    return number


def _tokens(text: str) -> int:
    return _at_most(_positive(text), 20_000, "since all that comes after takes its time for each of them")


def _nesting(text: str) -> int:
    return _at_most(_positive(text), 150, "since what reads it is recursive")


def _at_most(number: int, most: int, why: str) -> int:
    if number > most:
        raise ValueError(f"expected {most} or less, {why}")
    return number


def _one_of(*names: str) -> Callable[[str], str]:
    """A reader that takes one of these words."""

    def read(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"expected {' or '.join(names)}")
        return text.lower()

    return read


def _share(text: str) -> float:
    return _number(text, lambda number: 0 <= number <= 1, "expected a number from 0 to 1")


def _seconds(text: str) -> float:
    told = "expected a number of seconds, above 0 and below a day"
    return _number(text, lambda number: 0 < number < 86_400, told)


def _age(text: str) -> float:
    told = "expected a number of seconds, above 0 and below a hundred years"
    return _number(text, lambda number: 0 < number < 3_153_600_000, told)


def _number(text: str, fits: Callable[[float], bool], told: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(told) from None
    if not fits(number):
        raise ValueError(told)
    return number


def _address(text: str) -> str:
    """An address without a slash at its end."""
    found = urlsplit(text)
    if text and (found.scheme not in ("http", "https") or not found.hostname or found.query or found.fragment):
        raise ValueError("expected an address such as https://api.example.org")
    return text.rstrip("/")


def _networks(text: str) -> str:
    """Addresses and networks with commas between them, or `*`."""
    try:
        if text.strip() != "*":
            for each in filter(None, map(str.strip, text.split(","))):
                ipaddress.ip_network(each)
    except ValueError:
        raise ValueError("expected addresses or networks such as 127.0.0.1,10.0.0.0/8, or *") from None
    return text


def _origins(text: str) -> tuple[str, ...]:
    """Origins with commas between them, or as a JSON list, in the form in which browsers send them; or `*`."""
    if text.startswith("["):
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = [None]
    else:
        given = [each.strip() for each in text.split(",")] if text.strip() else []
    if not all(isinstance(each, str) for each in given):
        raise ValueError("expected origins such as https://app.example.org, with commas between them")
    if "*" in given and len(given) > 1:
        raise ValueError("* is every origin; leave it alone, or leave it out")
    return tuple(given) if given == ["*"] else tuple(dict.fromkeys(map(_origin, given)))


def _origin(text: str) -> str:
    found = _ORIGIN.fullmatch(text.lower())
    if found is None or int(found[3] or 1) not in range(1, 65_536):
        raise ValueError(f"{text[:_SHOWN]!r} is no origin: expected https://app.example.org, without a path or a slash")
    scheme, host, port = found[1], found[2], int(found[3] or 0)
    return f"{scheme}://{host}" if port in (0, _USUAL.get(scheme)) else f"{scheme}://{host}:{port}"


def _port(text: str) -> int:
    number = _whole(text)
    if number > 65535:
        raise ValueError("expected a port from 0 to 65535")
    return number


def is_protected(address: str) -> bool:
    """Does nobody on the way see or change what comes from an address: by TLS, or since it is on this machine?"""
    try:
        found = urlsplit(address)
        sound = address.isascii() and address.isprintable() and " " not in address and "@" not in found.netloc
        if not sound or not found.hostname or found.port == 0:
            return False
        return found.scheme == "https" or (found.scheme == "http" and is_loopback(found.hostname))
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Is it an address that only this machine reaches?"""
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
    found = tuple(_issuer(table, f"issuer {number}") for number, table in enumerate(tables, 1))
    if len({each.issuer for each in found}) < len(found):
        raise ValueError("an issuer stands there twice")
    return found


def _issuer(table: Mapping[str, Any], which: str) -> Issuer:
    given = {name: value for name, value in table.items() if value is not None}
    known = [field.name for field in fields(Issuer)]
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise ValueError(f"{which} has no {unknown[0]}; there are {', '.join(known)}")
    roles = given.get("role_map", {})
    if not isinstance(roles, dict) or not all(isinstance(role, str) for role in roles.values()):
        raise ValueError(f"the role_map of {which} must give a role to each of their names")
    for name in ("issuer", "audience", *(name for name in given if name != "role_map")):
        if not isinstance(given.get(name), str) or not given[name]:
            raise ValueError(f"{which} needs a text as its {name}")
    if not is_protected(given["issuer"]) or "?" in given["issuer"] or "#" in given["issuer"]:
        raise ValueError(f"{which} must be an https address, or an http address of this machine")
    if "role_map" in given and "roles_claim" not in given:
        raise ValueError(f"{which} has a role_map, but no roles_claim that it could map")
    return Issuer(**given)


SETTINGS: tuple[Setting, ...] = (
    Setting("model", str, "The model, as MODULE:MODEL; the default one if left out", ""),
    Setting("database", str, "sqlite:///PATH or postgresql://… (a unix socket as ?host=/dir)", "sqlite:///diptych.db"),
    Setting("host", str, "The address to listen on", "127.0.0.1"),
    Setting("port", _port, "The port to listen on", 8000),
    Setting("workers", _positive, "How many server processes", 1),
    Setting("base_url", _address, "The public address of the service, and the issuer of its tokens", ""),
    Setting("trusted_proxies", _networks, "Peers whose Forwarded and X-Forwarded-* headers are believed", ""),
    Setting("cors_origins", _origins, "Origins whose pages may read answers: https://app.example.org,…, or *", ()),
    Setting("sample", _boolean, "Fill an empty database with sample data (default model only)", False),
    Setting("introspection", _boolean, "Answer introspection, the SDL and /openapi.json", True),
    Setting("max_depth", _positive, "How many levels of relations a request may have", 10),
    Setting("max_complexity", _positive, "How many objects a request may return at most", 5_000),
    Setting("max_page", _page, "The largest page", 100),
    Setting("max_offset", _whole, "The largest offset", 10_000),
    Setting("max_in", _positive, "How many values an `in` list may have", 250),
    Setting("max_terms", _positive, "How many comparisons a filter may make", 50),
    Setting("max_sort", _positive, "How many keys a sort may have", 5),
    Setting("max_aliases", _whole, "How many aliases a request may have", 30),
    Setting("max_roots", _positive, "How many root fields an operation may have", 20),
    Setting("max_directives", _whole, "How many directives a document may have", 50),
    Setting("max_selections", _positive, "How many fields one selection may have", 100),
    Setting("max_tokens", _tokens, "How many tokens a document may have", 2_000),
    Setting("max_string", _positive, "The longest string of a document, in bytes", 4_096),
    Setting("max_document", _positive, "The largest document, in bytes", 102_400),
    Setting("max_nesting", _nesting, "How deep documents and `fields` may be nested", 64),
    Setting("max_body", _positive, "The largest request body, in bytes", 1_048_576),
    Setting("replay_size", _positive, "The largest answer kept for an Idempotency-Key, in bytes", 1_048_576),
    Setting("replay_share", _positive, "Bytes of answers kept for the Idempotency-Keys of one caller", 268_435_456),
    Setting("plan_cache", _positive, "How many plans are kept", 1_000),
    Setting("planning_share", _share, "The part of all time that new requests of one caller may take; 0: any", 0.2),
    Setting("persisted_queries", _whole, "How many automatically persisted queries are kept; 0 keeps none", 1_000),
    Setting("persisted_bytes", _positive, "Bytes that automatically persisted queries may take", 8_388_608),
    Setting("trusted_only", _boolean, "Run only trusted documents at /graphql", False),
    Setting("statement_timeout", _seconds, "Seconds that one statement may take", 5.0),
    Setting("request_timeout", _seconds, "Seconds that one request may take", 10.0),
    Setting("head_timeout", _seconds, "Seconds in which the head of a request must arrive", 10.0),
    Setting("pool_size", _positive, "Connections to PostgreSQL of one server process", 10),
    Setting("max_waiting", _positive, "How many may wait for the database in one server process", 1_000),
    Setting("max_requests", _positive, "How many requests one server process may have under way", 2_000),
    Setting("max_connections", _positive, "How many connections one server process may have", 25_000),
    Setting("heartbeat", _seconds, "Seconds between two heart-beats of a stream", 15.0),
    Setting("max_streams", _positive, "How many streams of changes one server process may have", 20_000),
    Setting("stream_share", _share, "The part of the streams that are free that one caller may have; 0: any", 0.25),
    Setting("stream_memory", _positive, "Bytes that the values of the filters of all streams may take", 67_108_864),
    Setting("evaluation_share", _share, "The part of all time for evaluating one caller's streams; 0: any", 0.2),
    Setting("stream_buffer", _positive, "Bytes that may wait for a slow reader of a stream", 262_144),
    Setting("stream_timeout", _seconds, "Seconds after which a stream whose reader takes nothing is cut", 10.0),
    Setting("feed_keep", _age, "Seconds for which changes are kept", 604_800.0),
    Setting("feed_rows", _positive, "How many changes are kept at most", 1_000_000),
    Setting("access_log", _boolean, "Log one line for each request", False),
    Setting("log_format", _one_of("text", "json"), "How log lines are written: text or json", "text"),
    Setting("log_level", _one_of("debug", "info", "warning", "error"), "The least severe level that is logged",
            "warning"),
    Setting("issuers", _issuers, "Other issuers, whose tokens hold here too", (), has_flag=False),
)


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one service."""

    model: str = ""
    database: str = "sqlite:///diptych.db"
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    base_url: str = ""
    trusted_proxies: str = ""
    cors_origins: tuple[str, ...] = ()
    sample: bool = False
    introspection: bool = True
    max_depth: int = 10
    max_complexity: int = 5_000
    max_page: int = 100
    max_offset: int = 10_000
    max_in: int = 250
    max_terms: int = 50
    max_sort: int = 5
    max_aliases: int = 30
    max_roots: int = 20
    max_directives: int = 50
    max_selections: int = 100
    max_tokens: int = 2_000
    max_string: int = 4_096
    max_document: int = 102_400
    max_nesting: int = 64
    max_body: int = 1_048_576
    replay_size: int = 1_048_576
    replay_share: int = 268_435_456
    plan_cache: int = 1_000
    planning_share: float = 0.2
    persisted_queries: int = 1_000
    persisted_bytes: int = 8_388_608
    trusted_only: bool = False
    statement_timeout: float = 5.0
    request_timeout: float = 10.0
    head_timeout: float = 10.0
    pool_size: int = 10
    max_waiting: int = 1_000
    max_requests: int = 2_000
    max_connections: int = 25_000
    heartbeat: float = 15.0
    max_streams: int = 20_000
    stream_share: float = 0.25
    stream_memory: int = 67_108_864
    evaluation_share: float = 0.2
    stream_buffer: int = 262_144
    stream_timeout: float = 10.0
    feed_keep: float = 604_800.0
    feed_rows: int = 1_000_000
    access_log: bool = False
    log_format: str = "text"
    log_level: str = "warning"
    issuers: tuple[Issuer, ...] = ()


def load(
    flags: Mapping[str, Any],
    file: Path = Path("diptych.toml"),
    env: Mapping[str, str] = os.environ,
    defaults: Mapping[str, Any] | None = None,
) -> Config:
    """The settings that hold: those flags that are not None, then environment, then file, then defaults."""
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
    found = Config(**chosen)
    if any(each.issuer == found.base_url for each in found.issuers):
        raise StartError(f"The issuer {found.base_url} is this service itself: its base_url is no other issuer.")
    return found


def misspelt(env: Mapping[str, str] = os.environ) -> list[str]:
    """A sentence for each environment variable that begins as settings do, and is none."""
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
    """A value in the form in which a setting is read."""
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
