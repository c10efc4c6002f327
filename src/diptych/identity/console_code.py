"""The code that `diptych dev` prints with the address of the console: the first who opens it is signed in as the admin.

It is in the fragment of the address, which browsers do not send; the page exchanges it for a token. The database keeps
its hash, and forgets it when it is used: so it works once, in whatever process, and also after a reload.
"""

from __future__ import annotations

import json
import secrets

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.identity.records import SETTINGS, ServiceSetting, hashed, new_secret, unix_time

_NAME = "console_code"
_LIFETIME = 43_200


async def new_console_code(store: Store, user: str | None) -> str:
    """A new code, for a token of this user; the one before works no more."""
    code = new_secret()
    value = json.dumps({"hash": hashed(code), "user": user, "expires": unix_time() + _LIFETIME})

    def script() -> Script[None]:
        yield from SETTINGS.remove(store.dialect, name=_NAME)
        yield from SETTINGS.add(store.dialect, ServiceSetting(_NAME, value))

    await store.write(script)
    return code


async def use_console_code(store: Store, code: str) -> tuple[str | None] | None:
    """The user of a code, which is used up by that; None if it is not valid."""

    def script() -> Script[ServiceSetting | None]:
        setting = yield from SETTINGS.find(store.dialect, name=_NAME)
        if setting is None or not secrets.compare_digest(json.loads(setting.value)["hash"], hashed(code)):
            return None
        return (yield from SETTINGS.remove(store.dialect, name=_NAME, value=setting.value))

    used = await store.write(script)
    if used is None:
        return None
    kept = json.loads(used.value)
    return (kept["user"],) if kept["expires"] > unix_time() else None
