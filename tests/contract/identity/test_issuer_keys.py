"""How the keys of another issuer are found, kept, read again, and done without."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import logging
import ssl
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import ECKey, Key

from diptych.identity.issuers import fetch as fetch_module
from diptych.identity.issuers.fetch import LARGEST
from diptych.identity.issuers.keys import discovery_addresses
from diptych.identity.issuers.trusted import Issuers
from diptych.model.declare.roles import Claims
from tests.contract.identity.issuer import EC_256, EC_384, KEYS, OPENID, RFC_8414, LocalIssuer, issuing, named

OLD, NEW = EC_256, named(ECKey.generate_key("P-256"), "new")


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Service:
    """What one process knows of an issuer."""

    def __init__(self, issuer: LocalIssuer, patience: float = 30) -> None:
        self.issuer = issuer
        self.clock = Clock()
        self.issuers = Issuers([issuer.settings], clock=self.clock, patience=patience)

    def takes(self, key: Key) -> bool:
        """Does it take a token by this key?"""
        return asyncio.run(self.issuers.verify(self.issuer.token(key))) is not None

    def after(self, seconds: float) -> Service:
        """The same, that much later."""
        self.clock.now += seconds
        return self


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with issuing() as issuer:
        issuer.publish(OLD)
        yield issuer


@pytest.fixture
def service(issuer: LocalIssuer) -> Service:
    return Service(issuer)


# discovery


def test_the_documents_of_an_issuer_are_where_the_specifications_say() -> None:
    openid, rfc = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
    for issuer, expected in {
        "https://a.org": (f"https://a.org{openid}", f"https://a.org{rfc}"),
        "https://a.org/": (f"https://a.org{openid}", f"https://a.org{rfc}"),
        "https://a.org/b/c": (f"https://a.org/b/c{openid}", f"https://a.org{rfc}/b/c"),
        "https://a.org:8443/b/": (f"https://a.org:8443/b{openid}", f"https://a.org:8443{rfc}/b"),
    }.items():
        assert discovery_addresses(issuer) == expected


def test_nothing_is_asked_before_a_token_needs_it(issuer: LocalIssuer) -> None:
    service = Service(issuer)
    assert issuer.asked == []
    assert service.takes(OLD)
    assert issuer.asked == [OPENID, KEYS]


@pytest.mark.parametrize("path", ["", "/", "/realms/one"])
@pytest.mark.parametrize("found", ["openid", "rfc"])
def test_an_issuer_is_found_by_either_document(path: str, found: str) -> None:
    with issuing(path) as issuer:
        issuer.answers.clear()
        issuer.publish(OLD)
        inner = path.rstrip("/")
        issuer.discover(inner + OPENID if found == "openid" else RFC_8414 + inner)
        assert Service(issuer).takes(OLD)
        assert issuer.asked == [inner + OPENID, *([RFC_8414 + inner] if found == "rfc" else []), KEYS]


@pytest.mark.parametrize("told", ["http://127.0.0.1", "https://evil.example.org", None, ["x"], "slash"])
def test_a_document_of_another_issuer_is_not_believed(told: object, issuer: LocalIssuer) -> None:
    issuer.discover(issuer=issuer.issuer + "/" if told == "slash" else told)
    assert not Service(issuer).takes(OLD)
    assert issuer.asked == [OPENID, RFC_8414]


@pytest.mark.parametrize(
    "address",
    [
        "http://login.example.org/keys",
        "http://127.0.0.1.example.org/keys",
        "file:///etc/passwd",
        "ftp://a.org/keys",
        "//127.0.0.1/keys",
        "/keys",
        "",
        None,
        5,
        "http://[::1/keys",
        "https://",
        "http://127.0.0.1:x/keys",
        "http://127.0.0.1/ HTTP/1.1\r\nX: y",
        "http://user:word@127.0.0.1/keys",
        "http://127.0.0.1:0/keys",
    ],
)
def test_keys_come_over_a_protected_way_or_not_at_all(address: object, issuer: LocalIssuer) -> None:
    issuer.discover(jwks_uri=address)
    assert not Service(issuer).takes(OLD)
    assert issuer.asked == [OPENID, RFC_8414]


@pytest.mark.parametrize("path", [OPENID, KEYS])
@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 308, 401, 404, 500, 503])
def test_nothing_but_200_is_an_answer(path: str, status: int, issuer: LocalIssuer) -> None:
    """A redirect is not followed, not even to where the right answer is."""
    right = issuer.answers[path].body
    issuer.tell("/elsewhere", right)
    body = b"" if status == 204 else right
    issuer.tell(path, body, status=status, headers={"location": issuer.address + "/elsewhere"})
    assert not Service(issuer).takes(OLD)
    assert "/elsewhere" not in issuer.asked


@pytest.mark.parametrize("path", [OPENID, KEYS])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"{}", b'{"keys":{}}', b'{"a":' * 100_000],
    ids=lambda body: body[:12],
)
def test_what_is_no_document_is_refused(path: str, body: bytes, issuer: LocalIssuer) -> None:
    issuer.tell(path, body)
    assert not Service(issuer).takes(OLD)


@pytest.mark.parametrize("path", [OPENID, KEYS])
@pytest.mark.parametrize("telling", ["length", "chunks"])
def test_a_huge_document_is_refused(path: str, telling: str, issuer: LocalIssuer) -> None:
    right = issuer.answers[path].body
    for size, taken in ((LARGEST - 1_000, True), (LARGEST, False), (40 * LARGEST, False)):
        body = right + b" " * (size - len(right))
        if telling == "chunks":
            chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            issuer.tell(path, chunked, headers={"transfer-encoding": "chunked"}, has_length=False)
        else:
            issuer.tell(path, body)
        assert Service(issuer).takes(OLD) == taken, size


def test_an_answer_without_a_length_ends_with_the_connection(issuer: LocalIssuer) -> None:
    issuer.tell(KEYS, issuer.answers[KEYS].body, headers={"connection": "close"}, has_length=False)
    assert Service(issuer).takes(OLD)
    issuer.tell(KEYS, issuer.answers[KEYS].body[:-1], headers={"connection": "close"}, has_length=False)
    assert not Service(issuer).takes(OLD)


def test_an_issuer_that_cannot_be_reached_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with issuing() as issuer:
        pass
    assert not Service(issuer).takes(OLD)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"the keys of the issuer {issuer.issuer} cannot be fetched, next attempt in 1 s: " in record.message
    assert "Connect call failed" in record.message


# keeping


def test_keys_are_read_once_while_they_are_fresh(service: Service, issuer: LocalIssuer) -> None:
    assert all(service.after(50).takes(OLD) for _ in range(12))
    assert issuer.reads() == 1
    assert service.after(50).takes(OLD)
    assert issuer.reads() == 2


def test_a_new_key_holds_at_once_and_an_old_one_until_the_keys_are_read_again(
    service: Service, issuer: LocalIssuer
) -> None:
    assert service.takes(OLD)
    issuer.publish(NEW)
    assert service.after(20).takes(NEW)
    assert issuer.reads() == 2
    assert not service.takes(OLD)


def test_a_key_that_was_taken_away_is_refused_once_the_keys_are_no_longer_fresh(
    service: Service, issuer: LocalIssuer
) -> None:
    assert service.takes(OLD)
    issuer.publish(NEW)
    assert service.after(599).takes(OLD)
    assert not service.after(1).takes(OLD)
    assert service.takes(NEW)
    assert issuer.reads() == 2


def test_tokens_of_unknown_keys_make_one_read_in_ten_seconds(service: Service, issuer: LocalIssuer) -> None:
    assert service.takes(OLD)
    for _ in range(30):
        assert not service.after(1).takes(NEW)
    assert issuer.reads() == 4
    assert service.takes(OLD)


def test_another_address_of_the_keys_is_followed(service: Service, issuer: LocalIssuer) -> None:
    assert service.takes(OLD)
    issuer.tell("/moved", issuer.answers.pop(KEYS).body)
    issuer.discover(jwks_uri=issuer.address + "/moved")
    assert service.after(700).takes(OLD)
    assert issuer.asked[-1] == "/moved"


# an issuer that is away


def test_known_keys_go_on_for_a_day_while_the_issuer_is_away(service: Service, issuer: LocalIssuer) -> None:
    assert service.takes(OLD)
    away, issuer.answers = issuer.answers, {}
    assert all(service.after(3_600).takes(OLD) for _ in range(23))
    assert not service.takes(NEW)
    assert not service.after(3_600).takes(OLD)
    issuer.answers = away
    assert not service.after(1).takes(OLD)  # it is too early to ask again
    assert service.after(300).takes(OLD)


@pytest.mark.slow
def test_an_issuer_that_is_away_is_asked_ever_more_seldom(service: Service, issuer: LocalIssuer) -> None:
    away, issuer.answers = issuer.answers, {}
    moments = []
    for _ in range(1_200):
        before = len(issuer.asked)
        assert not service.takes(OLD)
        if len(issuer.asked) > before:
            moments.append(service.clock.now)
        service.after(1)
    assert moments == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1_111]
    issuer.answers = away
    assert service.after(300).takes(OLD)
    issuer.answers = {}
    assert not service.after(10).takes(NEW)
    assert len(issuer.asked) == 2 * len(moments) + 2 + 2
    issuer.answers = away
    assert not service.takes(NEW)  # one failure after a success: it is asked again a second later, and not before
    issuer.publish(NEW)
    assert service.after(1).takes(NEW)


def test_a_set_of_keys_that_is_broken_takes_none_away(service: Service, issuer: LocalIssuer) -> None:
    assert service.takes(OLD)
    issuer.tell(KEYS, {"keys": "none"})
    assert service.after(700).takes(OLD)


def test_a_slow_issuer_is_not_waited_for_longer_than_the_patience(
    issuer: LocalIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    gate = issuer.answers[KEYS].gate = threading.Event()
    service = Service(issuer, patience=0.3)
    assert not service.takes(OLD)
    assert "it took more than 0.3 s" in caplog.text
    assert not service.takes(OLD)
    assert issuer.reads() == 1
    gate.set()
    service.issuers = Issuers([issuer.settings], clock=service.clock)
    assert service.takes(OLD)


def test_all_who_need_the_keys_wait_for_one_read(issuer: LocalIssuer) -> None:
    gate = issuer.answers[KEYS].gate = threading.Event()
    service = Service(issuer)

    async def work() -> list[bool]:
        waiting = [asyncio.create_task(service.issuers.verify(issuer.token(OLD))) for _ in range(50)]
        gone = asyncio.create_task(service.issuers.verify(issuer.token(OLD)))
        while not issuer.reads():
            await asyncio.sleep(0)
        waiting[0].cancel()  # it began the read, and the others must not lose it
        gone.cancel()
        gate.set()
        found = await asyncio.gather(*waiting, gone, return_exceptions=True)
        assert [type(each) for each in (found[0], found[-1])] == [asyncio.CancelledError] * 2
        return [isinstance(each, Claims) for each in found[1:-1]]

    assert asyncio.run(work()) == [True] * 49
    assert issuer.asked == [OPENID, KEYS]


def test_issuers_do_not_wait_for_each_other(issuer: LocalIssuer) -> None:
    with issuing() as other:
        other.publish(EC_384)
        gate = issuer.answers[KEYS].gate = threading.Event()
        issuers = Issuers([issuer.settings, other.settings])

        async def work() -> list[bool]:
            slow = asyncio.create_task(issuers.verify(issuer.token(OLD)))
            while not issuer.reads():
                await asyncio.sleep(0)
            quick = await issuers.verify(other.token(EC_384))
            assert not slow.done()
            gate.set()
            return [quick is not None, await slow is not None]

        assert asyncio.run(work()) == [True, True]


def test_a_key_of_one_issuer_verifies_no_token_of_another(issuer: LocalIssuer) -> None:
    with issuing() as other:
        other.publish(EC_384)
        issuers = Issuers([issuer.settings, other.settings])
        for one, key in ((issuer, EC_384), (other, OLD)):
            assert asyncio.run(issuers.verify(one.token(key))) is None
        for one, key in ((issuer, OLD), (other, EC_384)):
            assert asyncio.run(issuers.verify(one.token(key))) is not None


# TLS


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 that no one else signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


def test_an_issuer_is_believed_only_if_this_machine_trusts_its_certificate(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def wrap(server: ThreadingHTTPServer) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a spy
        return "https"

    with issuing(wrap=wrap) as issuer:
        issuer.publish(OLD)
        fetch_module._trust.cache_clear()
        assert not Service(issuer).takes(OLD)
        assert "certificate verify failed" in caplog.text and issuer.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        fetch_module._trust.cache_clear()
        assert Service(issuer).takes(OLD)
    fetch_module._trust.cache_clear()


def test_no_proxy_stands_between(issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert Service(issuer).takes(OLD)
