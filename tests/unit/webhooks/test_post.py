"""Messages over real connections: TLS for the name of the host, no redirects, bounded responses, kept connections."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from diptych.webhooks import post
from diptych.webhooks.address import Resolver, parts_of
from diptych.webhooks.post import PostOutcome, Sender
from tests.support.cases import cases

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.fixture(autouse=True, scope="module")
def quickly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(post, "TIMEOUT", 1.0)
        yield


def send(
    answer: bytes | Answer, *, times: int = 1, host: str = "", tls: ssl.SSLContext | None = None
) -> tuple[list[PostOutcome], int]:
    """What comes of messages to a server that answers so, and how many connections they took."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            if isinstance(answer, bytes):
                while head := await reader.readuntil(b"\r\n\r\n"):
                    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    await reader.readexactly(size)
                    writer.write(answer)
            else:
                await reader.readuntil(b"\r\n\r\n")
                await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def run() -> list[PostOutcome]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        url = f"https://{host}:{port}/x" if tls else f"http://{host or '127.0.0.1'}:{port}/x"
        sender = Sender(parts_of(url), Resolver("127.0.0.1", lambda host, port: ["127.0.0.1"]))
        try:
            return [await sender.post([("webhook-id", "a")], b"{}") for _ in range(times)]
        finally:
            sender.close()
            server.close()
            await asyncio.sleep(0)

    return asyncio.run(run()), connections


def test_a_connection_is_kept_for_the_next_message() -> None:
    outcomes, connections = send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", times=5)
    assert [outcome.status for outcome in outcomes] == [200] * 5 and connections == 1


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(5)


async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.1)


async def endless_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-A: " + b"a" * 1_000 + b"\r\n")
        await writer.drain()


@pytest.mark.slow
@cases(
    "answer, status, fault",
    [
        (OK, 204, ""),
        (b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n", 302, ""),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", 500, ""),
        (b"nonsense\r\n\r\n", 0, "it cannot be reached: HttpParser"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 0, "it cannot be reached: HttpParser"),
        (hang, 0, "there was no response within 1 seconds"),
        (close, 0, "it cannot be reached: OSError"),
        (drip, 0, "there was no response within 1 seconds"),
        (endless_head, 0, "it cannot be reached: "),
    ],
)
def test_what_comes_of_an_answer(answer: bytes | Answer, status: int, fault: str) -> None:
    (outcome,), _ = send(answer)
    assert outcome.status == status and outcome.fault.startswith(fault)
    assert outcome.is_delivered == (status == 204)


def test_a_body_without_end_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"ffff\r\n" + b"x" * 65_535 + b"\r\n")
            await writer.drain()
            sent += 65_535

    (outcome,), _ = send(endless)
    assert outcome.status == 200 and sent < 20_000_000


def test_a_retry_after_is_noted_and_bounded() -> None:
    for text, seconds in ((b"120", 120), (b"99999999", 3_600), (b"soon", 0), (b"-1", 0)):
        (outcome,), _ = send(b"HTTP/1.1 429 X\r\nRetry-After: %b\r\nContent-Length: 0\r\n\r\n" % text)
        assert outcome.retry_after == seconds


def certified(folder: Path, host: str, name: str) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context with a certificate for a host, and the file of its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, key_file = folder / f"{name}.pem", folder / f"{name}.key"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    return context, file


def test_tls_is_verified_for_the_name_and_the_name_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, authority = certified(tmp_path, "hooks.example.org", "right")
    names: list[str | None] = []
    context.sni_callback = lambda socket, name, context: names.append(name)
    trusting = ssl.create_default_context(cafile=authority)
    monkeypatch.setattr(post, "_trust", lambda: trusting)
    (outcome,), _ = send(OK, host="hooks.example.org", tls=context)
    assert (outcome.status, names) == (204, ["hooks.example.org"])
    (outcome,), _ = send(OK, host="other.example.org", tls=context)
    assert outcome.status == 0 and outcome.fault.startswith("TLS failed")
    monkeypatch.undo()
    (outcome,), _ = send(OK, host="hooks.example.org", tls=context)
    assert outcome.status == 0 and outcome.fault.startswith("TLS failed"), "nobody trusts this authority"
