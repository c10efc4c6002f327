"""The issuer of a database: the public address of its service, given once as `base_url` and remembered.

Every process of a database must know the same one: it is in the tokens that all of them make and verify, in the
metadata, and in the configuration of clients. So the first `base_url` is stored, later starts may leave it out, and
one that names another is refused with what to do. `diptych issuer set` changes it on purpose.

A service without a configured address answers on loopback addresses only, each of which is its own issuer there.
"""

from __future__ import annotations

import re
from unicodedata import normalize
from urllib.parse import quote, urlsplit

from diptych.db.script import Script
from diptych.db.store import Store
from diptych.errors import StartError
from diptych.identity.records import SETTINGS, ServiceSetting

_NAME = "issuer"
_LOCAL = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.ASCII)
_USUAL = {"http": ":80", "https": ":443"}


async def remembered_issuer(store: Store) -> str:
    """The issuer that a database has; "" if it has none."""
    settings = await SETTINGS.all(store, "name", name=_NAME)  # a read: the first write opens a connection of its own
    return settings[0].value if settings else ""


async def settled_issuer(store: Store, given: str) -> str:
    """The issuer of a database: the remembered one, or else the given one, which is remembered from now on."""
    known = await remembered_issuer(store)
    if known == given or not given:
        return known
    if not known:
        await store.write(lambda: SETTINGS.add(store.dialect, ServiceSetting(_NAME, given)))
        known = await remembered_issuer(store)
    if known != given:
        raise StartError(
            f"The issuer of this database is {known}, and base_url is {given}. Apps and tokens know the first: leave"
            f" out base_url, or set it to {known}. If the service has moved, run `diptych issuer set {given}`."
        )
    return known


async def set_issuer(store: Store, issuer: str) -> str:
    """Change the issuer; returns the one before. Access tokens of that one are refused by services that start now."""

    def script() -> Script[str]:
        before = yield from SETTINGS.remove(store.dialect, name=_NAME)
        if issuer:
            yield from SETTINGS.add(store.dialect, ServiceSetting(_NAME, issuer))
        return before.value if before else ""

    return await store.write(script)


def is_local_host(host: str) -> bool:
    """Does a Host header name this machine?"""
    return _LOCAL.fullmatch(host) is not None


def is_local_issuer(issuer: object) -> bool:
    """Is it the issuer of a service without a configured address?"""
    if not isinstance(issuer, str) or not issuer.startswith("http://"):
        return False
    return is_local_host(issuer.removeprefix("http://").partition("/")[0])


def origin_of(address: str) -> str:
    """The origin of an address as browsers send it: in lower case and ASCII, without the default port."""
    parts = urlsplit(address.lower())
    host, colon, port = parts.netloc.removesuffix(_USUAL.get(parts.scheme, "")).partition(":")
    labels = (
        label if label.isascii() else f"xn--{normalize('NFC', label).encode('punycode').decode()}"  # not as IDNA 2003
        for label in host.split(".")
    )
    return f"{parts.scheme}://{'.'.join(labels)}{colon}{port}"


def path_of(base_url: str) -> str:
    """The path of the public address as browsers send it: in ASCII."""
    return quote(urlsplit(base_url).path, safe="/%:@!$&'()*+,;=~")


def ascii_address(address: str) -> str:
    """An address as browsers send it."""
    return f"{origin_of(address)}{path_of(address)}"
