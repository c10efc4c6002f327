"""The public address, however it is written in the settings: browsers send its origin in one way."""

from __future__ import annotations

import asyncio

import pytest

from diptych.demo.model import model
from diptych.identity.issuer import origin_of
from diptych.serve import handshake
from diptych.serve.endpoint.oauth_forms import BrowserForms
from diptych.serve.http.request import Request
from tests.support.in_process import in_process
from tests.support.running import NewDatabase

SENT = "https://api.example.org"
WRITTEN = [SENT, "https://API.example.org", "HTTPS://api.Example.org/", "https://api.example.org:443/Shop"]


async def nothing(_: int) -> bytes:
    return b""


@pytest.mark.parametrize("written", WRITTEN)
def test_an_origin_is_written_as_browsers_do(written: str) -> None:
    assert origin_of(written) == SENT


@pytest.mark.parametrize(
    "other", ["https://api.example.org:80", "http://api.example.org:443", "http://api.example.org"]
)
def test_other_ports_and_schemes_are_other_origins(other: str) -> None:
    assert origin_of(other) == other
    assert origin_of("http://[::1]:80/x") == "http://[::1]"


def test_a_name_of_other_letters_is_written_in_ascii() -> None:
    assert origin_of("https://Bücher.example:443/x") == "https://xn--bcher-kva.example"
    assert origin_of("https://bücher.example:8443") == "https://xn--bcher-kva.example:8443"
    assert origin_of("https://Пример.рф:8443") == "https://xn--e1afmkfd.xn--p1ai:8443"
    assert origin_of("https://straße.de") == "https://xn--strae-oqa.de"  # strasse.de is another's


@pytest.mark.parametrize("written", [*WRITTEN, "https://Bücher.example"])
def test_a_page_of_our_own_opens_a_socket_behind_a_proxy(written: str) -> None:
    for origin, own in ((origin_of(written), True), ("https://evil.example", False), ("null", False)):
        headers = {b"origin": origin.encode(), b"host": b"10.0.0.1:8000"}
        assert handshake._is_own(Request("GET", "/graphql", "", headers, nothing), written) is own


@pytest.mark.parametrize("written", WRITTEN)
def test_a_form_of_our_own_page_is_taken(written: str) -> None:
    forms = BrowserForms(written, b"secret")
    sent = {"token": forms.token("cookie")}
    for origin, taken in ((SENT, True), ("https://evil.example", False), ("http://api.example.org", False)):
        request = Request("POST", "/oauth/login", "", {b"origin": origin.encode()}, nothing)
        assert forms.is_own(request, sent, "cookie", written) is taken
    assert b"; Secure" in forms.set_cookie("x", 1)[1]


@pytest.mark.parametrize("written", WRITTEN)
def test_the_console_answers_its_own_page(new_sqlite: NewDatabase, written: str) -> None:
    base_url = written.rstrip("/")
    with (
        asyncio.Runner() as runner,
        in_process(model, new_sqlite(), runner, console=True, base_url=base_url) as service,
    ):
        statuses = [
            service.get("/console/api/boot", headers={"origin": origin}).status
            for origin in (SENT, "https://evil.example", "http://api.example.org")
        ]
    assert statuses == [200, 403, 403]
