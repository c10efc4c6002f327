"""Every setting, in one table: its flag, its environment variable, its key in `diptych.toml`, its default.

The order is flag, environment (`DIPTYCH_PORT`), file (`port = 8000`), default.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from diptych.errors import StartError
from diptych.setting_parsers import (
    Issuer,
    choice_parser,
    parse_rates,
    read_address,
    read_age,
    read_boolean,
    read_delay,
    read_direct,
    read_header_names,
    read_issuers,
    read_listen,
    read_nesting,
    read_networks,
    read_origins,
    read_page_size,
    read_port,
    read_positive,
    read_redirect_origins,
    read_relay,
    read_replicas,
    read_retention,
    read_role_names,
    read_seconds,
    read_share,
    read_smtp,
    read_tokens,
    read_whole,
    shown,
)

T = TypeVar("T")


class Setting(Struct, frozen=True):
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
class Config:
    """All settings of one service."""

    model: str = _setting("", str, "The model, as MODULE:MODEL; the default one if left out")
    database: str = _setting(
        "sqlite:///diptych.db", str, "sqlite:///PATH or postgresql://… (a unix socket as ?host=/dir)"
    )
    cells: str = _setting("", str, "A file of tenants, each with a database of its own, instead of one database")
    max_cells: int = _setting(100, read_positive, "How many cells one server process has open at most")
    cell_idle: float = _setting(300.0, read_seconds, "Seconds after which a cell that nobody uses is closed")
    cell_visit: float = _setting(
        600.0, read_delay, "Seconds between two visits of a cell that nobody uses, for its webhooks; 0: never"
    )
    host: str = _setting("127.0.0.1", str, "The address to listen on")
    port: int = _setting(8000, read_port, "The port to listen on")
    workers: int = _setting(1, read_positive, "How many server processes")
    base_url: str = _setting("", read_address, "The public address of the service, and the issuer of its tokens")
    trusted_proxies: str = _setting("", read_networks, "Peers whose Forwarded and X-Forwarded-* headers are believed")
    cors_origins: tuple[str, ...] = _setting(
        (), read_origins, "Origins whose pages may read answers: https://app.example.org,…, localhost (any port), or *"
    )
    cors_headers: tuple[str, ...] = _setting(
        (), read_header_names, "Further headers that pages of cors_origins may send"
    )
    compression: bool = _setting(True, read_boolean, "Compress answers for clients that accept gzip or zstd")
    registration_origins: tuple[str, ...] = _setting(
        (), read_redirect_origins, "Origins of the redirect URIs with which OAuth clients may register themselves"
    )
    sample: bool = _setting(False, read_boolean, "Fill an empty database with sample data (default model only)")
    introspection: bool = _setting(True, read_boolean, "Answer introspection, the SDL and /openapi.json")
    introspection_roles: tuple[str, ...] = _setting(
        (), read_role_names, "Roles that introspection is for, or signed_in; everyone if left out"
    )
    triggers: bool = _setting(True, read_boolean, "Log changes by triggers, so that clients can follow them")
    console: bool = _setting(False, read_boolean, "Serve the console, a page for people, at /console/")
    max_depth: int = _setting(10, read_positive, "How many levels of relations a request may have")
    max_complexity: int = _setting(5_000, read_positive, "How many objects a request may return at most")
    max_page: int = _setting(100, read_page_size, "The largest page")
    max_bulk: int = _setting(1_000, read_positive, "How many rows one change by a filter may reach at most")
    max_offset: int = _setting(10_000, read_whole, "The largest offset")
    max_in: int = _setting(250, read_positive, "How many values an `in` list may have")
    max_terms: int = _setting(50, read_positive, "How many comparisons a filter may make")
    max_sort: int = _setting(5, read_positive, "How many keys a sort may have")
    max_aliases: int = _setting(30, read_whole, "How many aliases a request may have")
    max_roots: int = _setting(20, read_positive, "How many root fields an operation may have")
    max_writes: int = _setting(100, read_positive, "How many rows a request may write")
    max_directives: int = _setting(50, read_whole, "How many directives a document may have")
    max_selections: int = _setting(100, read_positive, "How many fields one selection may have")
    max_tokens: int = _setting(2_000, read_tokens, "How many tokens a document may have")
    max_string: int = _setting(4_096, read_positive, "The longest string of a document, in bytes")
    max_document: int = _setting(102_400, read_positive, "The largest document, in bytes")
    max_nesting: int = _setting(64, read_nesting, "How deep documents and `fields` may be nested")
    max_export: int = _setting(100_000, read_positive, "The most rows of a list that is read at once, as CSV or NDJSON")
    max_body: int = _setting(1_048_576, read_positive, "The largest request body, in bytes")
    replay_size: int = _setting(1_048_576, read_positive, "The largest answer kept for an Idempotency-Key, in bytes")
    replay_share: int = _setting(
        268_435_456, read_positive, "Bytes of answers kept for the Idempotency-Keys of one caller"
    )
    plan_cache: int = _setting(1_000, read_positive, "How many plans are kept")
    planning_share: float = _setting(
        0.2, read_share, "The share of all time for planning new requests of one caller; 0: no limit"
    )
    persisted_queries: int = _setting(
        1_000, read_whole, "How many automatically persisted queries are kept; 0 keeps none"
    )
    persisted_bytes: int = _setting(8_388_608, read_positive, "Bytes that automatically persisted queries may take")
    trusted_only: bool = _setting(False, read_boolean, "Run only trusted documents at /graphql")
    statement_timeout: float = _setting(5.0, read_seconds, "Seconds that one statement may take")
    request_timeout: float = _setting(10.0, read_seconds, "Seconds that one request may take")
    head_timeout: float = _setting(10.0, read_seconds, "Seconds in which the head of a request must arrive")
    idle_timeout: float = _setting(5.0, read_seconds, "Seconds for which a connection may be idle between two requests")
    pool_size: int = _setting(10, read_positive, "Connections to PostgreSQL of one server process")
    pool_mode: str = _setting(
        "session", choice_parser("session", "transaction"), "How a pooler in front of PostgreSQL shares its sessions"
    )
    direct_database: str = _setting("", read_direct, "PostgreSQL without its pooler, for LISTEN and migrations")
    replicas: tuple[str, ...] = _setting(
        (), read_replicas, "Standbys of PostgreSQL that answer reads: postgresql://…,postgresql://…"
    )
    relay: tuple[str, ...] = _setting(
        (), read_relay, "NATS, which tells nodes of changes instead of PostgreSQL: nats://host:4222,…"
    )
    max_waiting: int = _setting(1_000, read_positive, "How many requests may wait for the database in a server process")
    max_requests: int = _setting(2_000, read_positive, "How many requests one server process may have under way")
    max_connections: int = _setting(25_000, read_positive, "How many connections one server process may have")
    heartbeat: float = _setting(15.0, read_seconds, "Seconds between two heartbeats of a stream")
    max_streams: int = _setting(20_000, read_positive, "How many streams of changes one server process may have")
    stream_share: float = _setting(
        0.25, read_share, "The share of the free streams that one caller may have; 0: no limit"
    )
    stream_memory: int = _setting(
        67_108_864, read_positive, "Bytes that the values of the filters of all streams may take"
    )
    evaluation_share: float = _setting(
        0.2, read_share, "The share of all time for evaluating one caller's streams; 0: no limit"
    )
    stream_buffer: int = _setting(262_144, read_positive, "Bytes that may wait for a slow reader of a stream")
    stream_timeout: float = _setting(
        10.0, read_seconds, "Seconds after which a stream whose reader takes nothing is cut"
    )
    feed_keep: float = _setting(604_800.0, read_age, "Seconds for which changes are kept")
    feed_rows: int = _setting(1_000_000, read_positive, "How many changes are kept at most")
    audit_keep: float = _setting(0.0, read_retention, "Seconds for which the audit log is kept; 0 is for ever")
    webhook_networks: str = _setting(
        "", read_networks, "Networks that webhooks may reach although they are not public, also without TLS"
    )
    job_concurrency: int = _setting(4, read_positive, "How many jobs one server process runs at a time")
    job_timeout: float = _setting(
        600.0, read_seconds, "Seconds that one attempt of a job may take, unless its function says otherwise"
    )
    job_retention: float = _setting(604_800.0, read_age, "Seconds for which jobs that ended are kept")
    job_drain: float = _setting(5.0, read_delay, "Seconds that running jobs have to end when the service stops")
    metrics_address: str = _setting(
        "", read_listen, "Where metrics and health are served to operators: 9464 (of loopback) or 0.0.0.0:9464"
    )
    metrics_roles: tuple[str, ...] = _setting(
        (), read_role_names, "Roles that may read /metrics of the service itself; nobody if left out"
    )
    metrics_folder: str = _setting("", str, "A folder in which several processes add up their metrics")
    drain: float = _setting(
        0.0, read_delay, "Seconds between SIGTERM and the end of the listener, in which /health/ready says 503"
    )
    traces: bool = _setting(False, read_boolean, "Send traces by OpenTelemetry, as its environment variables say")
    server_timing: bool = _setting(
        False, read_boolean, "Send the header Server-Timing: how long each stage of a request took"
    )
    slow_query: float = _setting(
        0.0, read_delay, "Seconds from which on a request is logged with its statement; 0 logs none"
    )
    access_log: bool = _setting(False, read_boolean, "Log one line for each request")
    log_format: str = _setting("text", choice_parser("text", "json"), "How log lines are written: text or json")
    log_level: str = _setting(
        "warning", choice_parser("debug", "info", "warning", "error"), "The least severe level that is logged"
    )
    smtp: str = _setting("", read_smtp, "The mail server: smtp://user:password@host:587, smtps://…", has_flag=False)
    mail_from: str = _setting("", str, "The sender of mails: no-reply@example.org, or Shop <no-reply@example.org>")
    mail_folder: str = _setting("", str, "A folder into which mails are written, instead of sending them")
    mail_templates: str = _setting("", str, "A folder of templates of mails, which replace those of Diptych")
    rates: tuple[dict[str, Any], ...] = _setting(
        (), parse_rates, "How much callers may ask for in a time, besides what the model says", has_flag=False
    )
    rate_slice: float = _setting(
        0.1, read_share, "The share of a rate that one server process may spend before others know"
    )
    issuers: tuple[Issuer, ...] = _setting(
        (), read_issuers, "Other issuers, whose tokens hold here too", has_flag=False
    )


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
        raise StartError(f"{file} has no setting named {', '.join(unknown)}{_suggestion(unknown[0], sorted(known))}")
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
    if flags.get("database") is not None:  # what belongs to another database does not hold for this one
        chosen |= {name: flags.get(name) or value for name, value in _OF_ONE_DATABASE.items()}
    config = Config(**chosen)
    if any(trusted.issuer == config.base_url for trusted in config.issuers):
        raise StartError(f"The issuer {config.base_url} is this service itself: its base_url is no other issuer.")
    return config


_OF_ONE_DATABASE: Mapping[str, Any] = {"direct_database": "", "replicas": (), "relay": ()}
"""The further addresses of a database, and their defaults."""


def for_database(config: Config, url: str) -> Config:
    """The same settings for another database, of which no further address is known."""
    return replace(config, database=url, **_OF_ONE_DATABASE)


def misspelt(env: Mapping[str, str] = os.environ) -> list[str]:
    """A warning for each environment variable that begins with `DIPTYCH_` and is not a setting."""
    known = [f"DIPTYCH_{setting.name.upper()}" for setting in SETTINGS]
    return [
        f"The environment variable {name} is no setting{_suggestion(name, known)}"
        for name in sorted(env)
        if name.startswith("DIPTYCH_") and name not in known
    ]


def _suggestion(name: str, known: list[str]) -> str:
    """The end of a sentence about an unknown name: the known one that is most like it, or where all are listed."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ". All settings are in docs/reference/settings.md."


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
        raise StartError(f"{where} cannot be {shown(text)}: {error}.") from None


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text()) if file.is_file() else {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartError(f"{file} cannot be read: {error}.") from None
