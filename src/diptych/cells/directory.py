"""The cells file: which tenants there are, how a request names one, and the database of each.

    address = "https://{tenant}.example.com"       # or https://example.com/t/{tenant}
    claim = "org.id"                               # of the tokens of other issuers

    [cells]
    acme = "sqlite:///cells/acme.db"
    globex = "postgresql://db.example.com/globex"

Without `{tenant}` in the address, the claim of the bearer token names the tenant. A tenant that is not listed does not
exist: no request makes a database.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from diptych.config import Config, for_database
from diptych.errors import StartError
from diptych.identity.issuers.trusted import claim_of
from diptych.identity.signed import parse_token
from diptych.setting_parsers import is_protected

_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PLACE = "{tenant}"
_PORT = re.compile(rb":[0-9]{1,5}\Z")
_KEYS = ("address", "claim", "cells")


class Directory(Struct, frozen=True, eq=False):
    """The cells of a file."""

    address: str
    """The public address of a cell, with `{tenant}` in its host or its path, or of all of them."""
    claim: str
    """The claim of another issuer's token that names the tenant; "" if there is none."""
    databases: Mapping[str, str]
    """The database of each tenant."""
    host: tuple[bytes, bytes] | None
    """What comes before and after the tenant in the Host header."""
    path: bytes | None
    """What comes before the tenant in the path."""

    def tenant_of(self, url: bytes, headers: Mapping[bytes, bytes], host: bytes) -> str | None:
        """The tenant that a request names, if there is such a cell."""
        if self.host is not None:
            named = _between(_PORT.sub(b"", host).lower(), *self.host)
        elif self.path is not None:
            named = _segment(url.partition(b"?")[0], self.path)
        else:
            named = _claimed(headers.get(b"authorization", b""), self.claim)
        return named if named in self.databases else None

    def config_of(self, tenant: str, config: Config) -> Config:
        """The settings of one cell. A token of another issuer is valid there only if its claim names this tenant."""
        issuers = tuple(
            replace(issuer, required={**(issuer.required or {}), self.claim: tenant}) for issuer in config.issuers
        )
        address = self.address.replace(_PLACE, tenant)
        one = for_database(config, self.databases[tenant])
        return replace(one, cells="", base_url=address, issuers=issuers, metrics_folder="")


def read_directory(file: Path, config: Config) -> Directory:
    """Read a cells file; a StartError in one sentence if it is wrong."""
    try:
        written = tomllib.loads(file.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartError(f"{file} cannot be read: {error}.") from None
    unknown = sorted(written.keys() - set(_KEYS))
    if unknown:
        raise StartError(f"{file} has no {unknown[0]}; there are {', '.join(_KEYS)}.")
    address, claim = (_text(written.get(name, ""), name, file) for name in ("address", "claim"))
    host, path = _places(address, file)
    if host is None and path is None and not claim:
        raise StartError(f"{file} does not say how a request names its tenant: {_PLACE} in the address, or a claim.")
    if config.issuers and not claim:
        raise StartError(f"{file} needs a claim: without one, tokens of {config.issuers[0].issuer} hold in every cell.")
    return Directory(address.rstrip("/"), claim, _databases(written.get("cells", {}), file), host, path)


def check_tenant(name: str) -> None:
    """Raise a StartError unless a tenant may have this name, which is a label of a host name."""
    if not _TENANT.fullmatch(name):
        raise StartError(f"{name!r} is no name of a tenant: letters a to z, digits, and - between them.")


def _text(value: Any, name: str, file: Path) -> str:
    if not isinstance(value, str):
        raise StartError(f"The {name} in {file} must be a text.")
    return value


def _databases(table: Any, file: Path) -> dict[str, str]:
    if not isinstance(table, dict):
        raise StartError(f"The cells in {file} must be a table of tenants and their databases.")
    tenants: dict[str, str] = {}
    """By the place of their database."""
    for tenant, database in table.items():
        check_tenant(tenant)
        if not isinstance(database, str) or not database.startswith(("sqlite:///", "postgresql://", "postgres://")):
            raise StartError(f"The tenant {tenant} in {file} needs a database: sqlite:///PATH or postgresql://….")
        other = tenants.setdefault(_place_of(database), tenant)
        if other != tenant:
            raise StartError(f"The tenants {other} and {tenant} in {file} have the same database.")
    return dict(table)


def _place_of(database: str) -> str:
    """Where a database is, however its URL is written."""
    kind, _, rest = database.partition("://")
    if kind == "sqlite":
        return str(Path(rest[1:]).resolve())
    parts = urlsplit(database)
    return f"{parts.hostname}:{parts.port or 5432}{parts.path}?{parts.query}"


def _places(address: str, file: Path) -> tuple[tuple[bytes, bytes] | None, bytes | None]:
    """Where the address has the tenant: around it in the host, or before it in the path."""
    parts = urlsplit(address)
    if not is_protected(address.replace(_PLACE, "tenant")) or parts.query or parts.fragment or parts.username:
        raise StartError(f"The address in {file} must be an https address, or an http address of this machine.")
    if address.count(_PLACE) > 1:
        raise StartError(f"The address in {file} names the tenant twice.")
    if _PLACE in parts.netloc:
        before, _, after = _PORT.sub(b"", parts.netloc.lower().encode()).partition(_PLACE.encode())
        if before or not after.startswith(b"."):
            raise StartError(f"The tenant in the address in {file} must be the whole first label of its host.")
        return (before, after), None
    if _PLACE not in parts.path:
        return None, None
    before, _, after = parts.path.encode().partition(_PLACE.encode())
    if not before.endswith(b"/") or after.rstrip(b"/"):
        raise StartError(f"The tenant in the address in {file} must be the whole last segment of its path.")
    return None, before


def _between(text: bytes, before: bytes, after: bytes) -> str | None:
    if len(text) <= len(before) + len(after) or not (text.startswith(before) and text.endswith(after)):
        return None
    return text[len(before) : len(text) - len(after)].decode("latin-1")


def _segment(path: bytes, before: bytes) -> str | None:
    """The segment after a prefix; the metadata path of an issuer comes before it (RFC 8414, §3.1)."""
    if path.startswith(b"/.well-known/"):
        _, _, tenant = path.rpartition(before)
        return tenant.decode("latin-1")
    if not path.startswith(before):
        return None
    return path[len(before) :].partition(b"/")[0].decode("latin-1")


def _claimed(authorization: bytes, claim: str) -> str | None:
    """What a token claims; its signature is verified by the cell, which refuses the claim of another tenant."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    try:
        value = claim_of(parse_token(token.strip().decode("ascii")).claims, claim)
    except (ValueError, UnicodeDecodeError):
        return None
    return value if isinstance(value, str) else None
