"""Puts PgBouncer between the services of a test session and PostgreSQL: `POOLER=session` or `POOLER=transaction`.

    with behind_pooler(server):
        …                       # stores that are opened with a URL of that server connect through PgBouncer

Tests and their URLs stay as they are. What a test does itself, by a connection of its own, goes to PostgreSQL directly:
it is another program. In transaction mode each timeout of statements has a role whose sessions have the settings, and
the URL without the pooler is `direct_database`. Services in processes of their own are not put behind it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from diptych.db.postgres.sessions import Connector, PoolMode, session_settings
from tests.support.pooler import newer, pgbouncer
from tests.support.running import Postgres

MODE = os.environ.get("POOLER", "")
needs_own_session = partial(pytest.mark.skipif, MODE == "transaction")
"""Leaves out a test behind a pooler in transaction mode, with the reason why it can say nothing there."""
needs_no_pooler = partial(pytest.mark.skipif, bool(MODE))
"""The same for both modes."""
_SESSIONS = 60
"""Sessions of the pooler for a database and a role, at most."""
_HOW: dict[str, dict[str, object]] = {
    "session": {"user": "postgres"},
    "transaction": {
        "user": "",
        "max_prepared_statements": 200,
        "auth_user": "postgres",
        "auth_query": "SELECT usename, passwd FROM pg_shadow WHERE usename = $1",
    },
}


@contextmanager
def behind_pooler(server: Postgres, mode: str = MODE) -> Iterator[None]:
    """Stores of this process reach a server through PgBouncer, in a mode; "" leaves them as they are."""
    if not mode:
        yield
        return
    if mode not in _HOW:
        raise pytest.UsageError(f"POOLER is {mode!r}: use session or transaction")
    settings: dict[str, Any] = {
        "pool_mode": mode,
        "default_pool_size": _SESSIONS,
        "max_client_conn": 1_000,
        "server_idle_timeout": 2,  # there are hundreds of databases
        **_HOW[mode],
    }
    path = newer() if mode == "transaction" else ""
    with pgbouncer(server.url(), path, **settings) as pooler, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connector, "__init__", _Redirected(server, pooler, mode))
        yield


class _Redirected:
    """The constructor of a Connector, with the address of the pooler in the place of the server's."""

    def __init__(self, server: Postgres, pooler: str, mode: str) -> None:
        self._server = server
        self._pooler = urlsplit(pooler).netloc.rpartition("@")[2]
        self._mode = mode
        self._original = Connector.__init__
        self._roles: set[str] = set()

    def __get__(self, connector: Connector, kind: object) -> Any:
        def init(url: str, timeout: float, mode: PoolMode = "session", direct: str = "") -> None:
            self._original(connector, *self._address(url, timeout, mode, direct))

        return init

    def _address(self, url: str, timeout: float, mode: PoolMode, direct: str) -> tuple[str, float, PoolMode, str]:
        mine, given = urlsplit(self._server.url()), urlsplit(url)
        if given.query != mine.query or given.netloc != mine.netloc:  # another server, or another role
            return url, timeout, mode, direct
        if self._mode == "session":
            return f"postgresql://postgres@{self._pooler}{given.path}", timeout, mode, direct
        return f"postgresql://{self._role(timeout)}@{self._pooler}{given.path}", timeout, "transaction", direct or url

    def _role(self, timeout: float) -> str:
        """A role whose sessions have the settings for a timeout; a test may have set another one for locks."""
        settings = session_settings(timeout)
        role = f"pooled_{settings['statement_timeout']}_{settings['lock_timeout']}"
        if role not in self._roles:
            self._server.administer(f"CREATE ROLE {role} SUPERUSER LOGIN")
            for name, value in settings.items():
                self._server.administer(f"ALTER ROLE {role} SET {name} = '{value}'")
            self._roles.add(role)
        return role
