"""Backup and restore of a PostgreSQL database by `pg_dump` and `pg_restore`.

They get the password in the environment: other users of the machine can read the arguments of a process.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import asyncpg

from diptych.db.postgres.store import UNOPENED, unopened
from diptych.db.whole_file import whole_file
from diptych.errors import StartError

_TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"


def back_up(url: str, target: Path) -> int:
    """Write all of a database into an archive, and give its size in bytes. pg_dump reads one snapshot."""
    with whole_file(target) as part:
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={part}", url=url)
        _run("pg_restore", "--list", str(part))
        return part.stat().st_size


async def restore(source: Path, url: str) -> None:
    """Put all of an archive into an empty database, in one transaction."""
    try:
        connection = await asyncpg.connect(url)
        try:
            tables = await connection.fetchval(_TABLES)
        finally:
            await connection.close()
    except UNOPENED as error:
        raise unopened(error) from None
    if tables:
        raise StartError("The database has tables already; restore into an empty one, and serve that.")
    _run("pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", str(source), url=url)


def without_password(url: str) -> tuple[str, str | None]:
    """The address for the arguments of a process, and the password for its environment."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    query = dict(parse_qsl(parts.query))
    secret = unquote(password) if colon else query.pop("password", None)
    return f"{parts.scheme}://{name}{at}{hosts}{parts.path}" + (
        f"?{urlencode(query, quote_via=quote)}" if query else ""
    ), secret


def _run(program: str, *arguments: str, url: str | None = None) -> None:
    """Run one of PostgreSQL's programs; a StartError with its own words if it fails."""
    environment = dict(os.environ)
    if url is not None:
        address, password = without_password(url)
        arguments = (f"--dbname={address}", *arguments)
        environment |= {} if password is None else {"PGPASSWORD": password}
    try:
        done = subprocess.run((program, *arguments), env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        needs = "the client programs of PostgreSQL, in the version of the server or a newer one"
        raise StartError(f"There is no {program} on this machine; install {needs}.") from None
    if done.returncode:
        raise StartError(f"{program} failed: {' '.join(done.stderr.split())[:500]}")
