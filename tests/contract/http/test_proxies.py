"""Who asks behind proxies, and below which path a service stands."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from diptych import Diptych
from diptych.config import Config, load
from diptych.demo.model import model
from diptych.errors import StartError
from diptych.serve.http.proxies import Proxies, read_forwarded
from diptych.serve.http.request import Request
from tests.support.cases import cases
from tests.support.running import NewDatabase

PEER = "10.0.0.1"
CASES: list[tuple[str, str]] = [
    ("for=192.0.2.43", "192.0.2.43"),
    ("For=192.0.2.43", "192.0.2.43"),
    ('for="192.0.2.43:47011"', "192.0.2.43"),
    ('for="[2001:db8:cafe::17]:4711"', "2001:db8:cafe::17"),
    ('for="[2001:db8:cafe::17]"', "2001:db8:cafe::17"),
    ('for="[::ffff:192.0.2.1]"', "192.0.2.1"),
    ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
    ("proto=http; for=192.0.2.60 ;by=203.0.113.43", "192.0.2.60"),
    ("for=192.0.2.1, for=198.51.100.17", "198.51.100.17"),
    ("for=192.0.2.1,for=198.51.100.17, for=10.0.0.7", "198.51.100.17"),
    ("for=10.0.0.9, for=10.0.0.7", "10.0.0.9"),
    ('for=192.0.2.1;host="a,b", for=198.51.100.17;x="for=1.2.3.4, for=5.6.7.8"', "198.51.100.17"),
    ('for="\\1\\9\\2.0.2.43"', "192.0.2.43"),
    ("for=unknown", PEER),
    ("for=_hidden, for=10.0.0.7", "10.0.0.7"),
    ('for="_gazonk"', PEER),
    ("for=192.0.2.1, proto=https", PEER),
    ("", PEER),
    # what has no form is as if it were not there
    ("for=[2001:db8::1]", PEER),
    ("for=192.0.2.43:80", PEER),
    ("for = 192.0.2.43", PEER),
    ("192.0.2.43", PEER),
    ("for=192.0.2.1;for=192.0.2.2", PEER),
    ('for="192.0.2.1', PEER),
    ("for=192.0.2.1 for=192.0.2.2", PEER),
    ('for=192.0.2.1, for="', PEER),
    ("for=192.0.2.1\x00", PEER),
]


@cases(("sent", "client"), CASES)
def test_forwarded_is_read_from_its_end(sent: str, client: str) -> None:
    assert Proxies("10.0.0.0/24").seen(PEER, {b"forwarded": sent.encode("latin-1")})[0] == client


@cases(
    ("sent", "client"),
    [
        ("192.0.2.43", "192.0.2.43"),
        ("192.0.2.43:80", "192.0.2.43"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("1.2.3.4, 192.0.2.43", "192.0.2.43"),
        ("x, 10.0.0.2", "10.0.0.2"),
        ("1.2.3.4, 192.0.2.43, 10.0.0.2,10.0.0.3", "192.0.2.43"),
        ("unknown", PEER),
        ("", PEER),
    ],
)
def test_x_forwarded_for_too(sent: str, client: str) -> None:
    assert Proxies("10.0.0.0/24").seen(PEER, {b"x-forwarded-for": sent.encode()})[0] == client


def test_only_of_proxies_that_are_trusted() -> None:
    headers = {b"forwarded": b"for=192.0.2.1;host=evil", b"x-forwarded-for": b"192.0.2.1"}
    for peer in ("10.0.1.1", "::1", "testclient", ""):
        assert Proxies("10.0.0.0/24, 127.0.0.1").seen(peer, headers) == (peer, "")
    assert Proxies("*").seen("10.0.1.1", headers) == ("192.0.2.1", "evil")
    assert Proxies("10.0.0.1").seen("::ffff:10.0.0.1", headers) == ("192.0.2.1", "evil")


def test_where_both_are_there_they_agree_or_neither_is_believed() -> None:
    proxies = Proxies("10.0.0.0/24")
    same = {b"forwarded": b"for=192.0.2.1;host=a", b"x-forwarded-for": b"192.0.2.1", b"x-forwarded-host": b"b"}
    assert proxies.seen(PEER, same) == ("192.0.2.1", "")
    assert proxies.seen(PEER, {**same, b"x-forwarded-host": b"a"}) == ("192.0.2.1", "a")
    assert proxies.seen(PEER, {**same, b"x-forwarded-for": b"192.0.2.2"}) == (PEER, "")


def test_a_long_header_is_read_in_no_time() -> None:
    for text in ("for=1.2.3.4," * 5_000, 'for="' + "\\a" * 30_000, ";" * 60_000, 'a="' * 20_000, " " * 60_000 + "x"):
        read_forwarded(text)


def asked(config: Config, path: str, headers: list[tuple[bytes, bytes]], client: str = "127.0.0.1") -> Request:
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": (client, 4711),
    }
    return Diptych(model, config=config)._request(scope, lambda: NotImplemented)


def test_the_application_reads_them() -> None:
    config = Config(database="sqlite:///:memory:", trusted_proxies="127.0.0.1")
    lines = [(b"host", b"inner"), (b"forwarded", b"for=192.0.2.1"), (b"forwarded", b"for=192.0.2.2;host=outer")]
    found = asked(config, "/users", lines)
    assert (found.peer, found.headers[b"host"]) == (("192.0.2.2", 0), b"outer")
    assert asked(Config(database="sqlite:///:memory:"), "/users", lines).peer == ("127.0.0.1", 4711)


@pytest.mark.parametrize("text", ["localhost", "10.0.0.1/8", "10.0.0", "x", "*,10.0.0.1", "10.0.0.1 10.0.0.2"])
def test_what_is_no_address_is_refused_at_start(text: str) -> None:
    with pytest.raises(StartError, match="expected addresses or networks"):
        load({}, env={"DIPTYCH_TRUSTED_PROXIES": text})


# below a path

BELOW = "https://example.org/help%20desk"
PATHS = {
    "/help%20desk/users": "/users",
    "/users": "/users",
    "/help%20desk/help%20desk/x": "/help%20desk/x",
    "/help%20desk": "/help%20desk",
    "/help%20deskusers": "/help%20deskusers",
    "/": "/",
    "/help%20desk/": "/",
    "/.well-known/oauth-authorization-server/help%20desk": "/.well-known/oauth-authorization-server",
}


@cases(("sent", "path"), PATHS.items())
def test_a_path_is_taken_with_the_prefix_and_without_it(sent: str, path: str) -> None:
    found = asked(Config(database="sqlite:///:memory:", base_url=BELOW), sent, [])
    assert (found.root, found.path) == ("/help%20desk", path)


def test_what_is_told_has_the_prefix_of_the_public_address(new_sqlite: NewDatabase) -> None:
    config = Config(database=new_sqlite(), base_url="https://example.org/a/b")
    app = Diptych(model, config=config)
    with TestClient(app) as client:
        assert app._handler is not None
        bearer = {"authorization": "Bearer " + app._handler.context.tokens.make(None, ["admin"], None, 60)}
        for name in ("ann", "ben"):
            made = client.post("/users", json={"name": name, "email": f"{name}@example.org"}, headers=bearer)
            assert made.status_code == 201, made.text
            assert made.headers["location"] == f"/a/b/users/{made.json()['id']}"
        for prefix in ("", "/a/b"):
            assert client.get(f"{prefix}/users?first=1").headers["link"].startswith("</a/b/users?")
            assert client.get(f"{prefix}/openapi.json").json()["servers"] == [{"url": "https://example.org/a/b"}]


@pytest.mark.parametrize("path", ["users", "graphql", "oauth/x", "health"])
def test_a_prefix_that_means_two_things_is_refused(path: str) -> None:
    with pytest.raises(StartError, match="is a path of the service itself"):
        Diptych(model, config=Config(database="sqlite:///:memory:", base_url=f"https://example.org/{path}"))
