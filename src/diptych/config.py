"""Every setting, in one table: its flag, its environment variable, its key in `diptych.toml`, its default.

The order is flag, environment (`DIPTYCH_PORT`), file (`port = 8000`), default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from diptych.errors import StartError


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its text is read, and what it means."""

    name: str
    read: Callable[[str], Any]
    help: str
    default: Any


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


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 86_400:
        raise ValueError("expected a number of seconds, above 0 and below a day")
    return number


def _address(text: str) -> str:
    """An address without a slash at its end."""
    found = urlsplit(text)
    if text and (found.scheme not in ("http", "https") or not found.hostname or found.query or found.fragment):
        raise ValueError("expected an address such as https://api.example.org")
    return text.rstrip("/")


def _port(text: str) -> int:
    number = _whole(text)
    if number > 65535:
        raise ValueError("expected a port from 0 to 65535")
    return number


SETTINGS: tuple[Setting, ...] = (
    Setting("database", str, "sqlite:///PATH or postgresql://… (a unix socket as ?host=/dir)", "sqlite:///diptych.db"),
    Setting("host", str, "The address to listen on", "127.0.0.1"),
    Setting("port", _port, "The port to listen on", 8000),
    Setting("workers", _positive, "How many server processes", 1),
    Setting("base_url", _address, "The public address of the service, and the issuer of its tokens", ""),
    Setting("trusted_proxies", str, "Peers whose Forwarded and X-Forwarded-* headers are believed", ""),
    Setting("sample", _boolean, "Fill an empty database with sample data (default model only)", False),
    Setting("introspection", _boolean, "Answer introspection, the SDL and /openapi.json", True),
    Setting("max_depth", _positive, "How many levels of relations a request may have", 10),
    Setting("max_complexity", _positive, "How many objects a request may return at most", 5_000),
    Setting("max_page", _page, "The largest page", 100),
    Setting("max_body", _positive, "The largest request body, in bytes", 1_048_576),
    Setting("plan_cache", _positive, "How many plans are kept", 1_000),
    Setting("statement_timeout", _seconds, "Seconds that one statement may take", 5.0),
    Setting("request_timeout", _seconds, "Seconds that one request may take", 10.0),
    Setting("pool_size", _positive, "Connections to PostgreSQL of one server process", 10),
)


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one service."""

    database: str = "sqlite:///diptych.db"
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    base_url: str = ""
    trusted_proxies: str = ""
    sample: bool = False
    introspection: bool = True
    max_depth: int = 10
    max_complexity: int = 5_000
    max_page: int = 100
    max_body: int = 1_048_576
    plan_cache: int = 1_000
    statement_timeout: float = 5.0
    request_timeout: float = 10.0
    pool_size: int = 10


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
            raw = written[setting.name]
            text = str(raw).lower() if isinstance(raw, bool) else str(raw)
            chosen[setting.name] = _read(setting, text, f"The setting {setting.name} in {file}")
    return Config(**chosen)


def _read(setting: Setting, text: str, where: str) -> Any:
    try:
        return setting.read(text)
    except ValueError as error:
        raise StartError(f"{where} cannot be {text!r}: {error}.") from None


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text()) if file.is_file() else {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartError(f"{file} cannot be read: {error}.") from None
