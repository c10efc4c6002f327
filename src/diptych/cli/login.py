"""`diptych login`: an access token for a user of a service, by the device flow (RFC 8628)."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import click

from diptych.cli.records import MANY
from diptych.errors import StartError
from diptych.setting_parsers import is_protected

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_PATIENCE = 30
_SLOWER = 5
"""Seconds that are added to the interval of polls where the service asks for it, or cannot answer (RFC 8628, §3.5)."""
_LARGEST = 1 << 20


class _NotNow(StartError):
    """The service cannot be reached, or cannot answer now."""


@click.command()
@click.argument("url", metavar="URL")
@click.option("--client", metavar="ID", required=True, help="The id of a client that was added with --device.")
@MANY("--scope", "scopes", metavar="SCOPE", help="What the token allows, as in users:read; may be repeated.")
def login(url: str, client: str, scopes: tuple[str, ...]) -> None:
    """Sign in by a browser on any machine; print an access token.

    URL is the address of the service. Needs a client that was added with --device.
    """
    issuer = url.rstrip("/")
    if not is_protected(issuer):
        raise StartError(f"{url} is no https address, nor an address of this machine.")
    metadata = _ask(f"{issuer}/.well-known/oauth-authorization-server")
    if metadata.get("issuer") != issuer:
        raise StartError(f"The service at {url} says that it is {metadata.get('issuer')}; use that address.")
    scope = {"scope": " ".join(scopes)} if scopes else {}
    begun = _ask(_address(metadata, "device_authorization_endpoint"), {"client_id": client, **scope})
    if "device_code" not in begun:
        raise StartError(f"The service refuses: {_reason(begun)}.")
    click.echo(f"Open {begun['verification_uri']} and type the code {begun['user_code']}", err=True)
    click.echo(_wait(_address(metadata, "token_endpoint"), client, begun))


def _wait(address: str, client: str, begun: dict[str, Any]) -> str:
    """Poll until the user has decided."""
    form = {"grant_type": _GRANT, "client_id": client, "device_code": str(begun["device_code"])}
    interval, ends = int(begun.get("interval", 5)), time.monotonic() + int(begun["expires_in"])
    while time.monotonic() < ends:
        time.sleep(interval)
        try:
            answer = _ask(address, form)
        except _NotNow:  # it may be starting anew; the code is in its database
            interval += _SLOWER
            continue
        if "access_token" in answer:
            return str(answer["access_token"])
        if answer.get("error") == "slow_down":
            interval += _SLOWER
        elif answer.get("error") != "authorization_pending":
            raise StartError(f"Nobody is signed in: {_reason(answer)}.")
    raise StartError("Nobody is signed in: the code has expired.")


def _address(metadata: dict[str, Any], name: str) -> str:
    address = metadata.get(name)
    if not isinstance(address, str) or not is_protected(address):
        raise StartError(f"The service has no {name}.")
    return address


def _reason(answer: dict[str, Any]) -> str:
    return str(answer.get("error_description") or answer.get("error") or "no reason is given").rstrip(".")


def _ask(address: str, form: dict[str, str] | None = None) -> dict[str, Any]:
    """The JSON object that an address answers, also with an error."""
    body = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(address, body, {"accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as response:
            text = response.read(_LARGEST)
    except urllib.error.HTTPError as error:
        if error.code >= 500:
            raise _NotNow(f"{address} cannot answer now: {error}.") from None
        text = error.read(_LARGEST)
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        why = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
        raise _NotNow(f"{address} cannot be reached: {why}.") from None
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise StartError(f"{address} does not answer as an authorization server does.")
    return answer
