"""Pages of other origins: none may read an answer, unless the setting names its origin; and what those may send is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from diptych import Diptych
from diptych.config import Config, as_environment, load
from diptych.errors import StartError
from diptych.serve.http.cors import ALLOWED_HEADERS, Cors
from diptych.setting_parsers import read_origins
from tests.contract.caching.kiosk import ANN, ARTICLES, model
from tests.contract.live.clients import EventStream, WebSocket
from tests.support.cases import cases
from tests.support.running import Answer, Service
from tests.system.oauth.browsing import Site

ONE = f"/articles/{ARTICLES[0]}"
APP = "https://app.example.org"
EVERYTHING = [
    ("GET", ONE, 200),
    ("HEAD", ONE, 200),
    ("GET", "/articles", 200),
    ("GET", "/articles?first=0", 400),
    ("GET", "/nothing", 404),
    ("PUT", "/articles", 405),
    ("DELETE", "/articles", 401),
    ("DELETE", ONE, 401),
    ("OPTIONS", ONE, 204),
    ("GET", "/graphql?query={articles{title}}", 200),
    ("GET", "/graphql?query={nothing}", 200),
    ("GET", "/graphql", 400),
    ("PUT", "/graphql", 405),
    ("GET", "/openapi.json", 200),
    ("GET", "/articles/changes", 200),
    ("GET", "/.well-known/jwks.json", 200),
    ("GET", "/.well-known/oauth-authorization-server", 200),
    ("POST", "/oauth/token", 400),
    ("POST", "/oauth/revoke", 400),
    ("GET", "/health/live", 200),
    ("POST", ONE, 405),
]
APART = [
    ("GET", "/oauth/authorize"),
    ("OPTIONS", "/oauth/authorize"),
    ("POST", "/oauth/login"),
    ("POST", "/oauth/logout"),
    ("POST", "/oauth/introspect"),
    ("GET", "/oauth/account"),
    ("POST", "/oauth/account"),
    ("GET", "/oauth/device"),
    ("GET", "/oauth/end_session"),
    ("OPTIONS", "/oauth/a-page-to-come"),
]


def cors_of(answer: Answer) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@cases(("method", "url", "status"), EVERYTHING)
def test_an_origin_of_the_list_may_read_everything(listed: Service, method: str, url: str, status: int) -> None:
    answer = listed.request(method, url, {"origin": APP})
    assert answer.status == status, answer.body
    told = cors_of(answer)
    assert told.pop("access-control-allow-origin") == APP
    (exposed,) = told.values()
    assert {"ETag", "Link", "Location", "Retry-After", "WWW-Authenticate", "Change-Cursor", "Allow"} <= set(
        exposed.split(", ")
    )
    assert answer.headers["vary"].split(", ")[-1] == "Origin"


@cases(("method", "url", "status"), EVERYTHING)
def test_every_answer_says_that_it_depends_on_the_origin(listed: Service, method: str, url: str, status: int) -> None:
    for headers in ({}, {"origin": "https://evil.example"}):
        answer = listed.request(method, url, headers)
        assert (answer.status, cors_of(answer)) == (status, {})
        assert answer.headers["vary"].split(", ")[-1] == "Origin"


@cases(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "https://app.example.org.evil.example",
        "https://evil.example/https://app.example.org",
        "https://xapp.example.org",
        "https://x.app.example.org",
        "https://app.example.org:444",
        "https://app.example.org:443",
        "http://app.example.org",
        "https://app.example.org/",
        "https://app.example.org, https://evil.example",
        "HTTPS://app.example.org",
        "https://APP.example.org",
        "https://app.example.org.",
        "https://user@app.example.org",
        "https://app.example.orgx",
        "app.example.org",
        "https://app_example.org",
        "*",
        "file://",
        "https://app.example.org https://evil.example",
        "https://app.example.org\t",
    ],
)
def test_no_other_origin_may(listed: Service, origin: str) -> None:
    answer = listed.request("GET", ONE, {"origin": origin})
    if origin.strip() == APP:
        return  # space around the value of a header is none of it
    assert (answer.status, cors_of(answer)) == (200, {})
    with WebSocket(listed.port, headers={"Origin": origin}) as socket:
        assert socket.status == 403


def test_two_origins_are_none(listed: Service) -> None:
    head = (
        f"GET {ONE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: {APP}\r\nOrigin: https://evil.example\r\n\r\n"
    )
    assert b"access-control" not in listed.exchange(head.encode()).lower()


def test_what_is_not_modified_may_be_read_too(listed: Service) -> None:
    first = listed.request("GET", ONE, {"origin": APP})
    again = listed.request("GET", ONE, {"origin": APP, "if-none-match": first.headers["etag"]})
    assert (again.status, cors_of(again), again.headers["vary"]) == (304, cors_of(first), first.headers["vary"])


def test_a_bad_token_is_told_to_the_page(listed: Service) -> None:
    answer = listed.signed_in("nonsense").request("GET", ONE, {"origin": APP})
    assert (answer.status, cors_of(answer)["access-control-allow-origin"]) == (401, APP)


def test_streams_may_be_read_and_sockets_opened(listed: Service, site: Site) -> None:
    with EventStream(listed.port, "/articles/changes", headers={"Origin": APP}) as stream:
        assert (stream.status, stream.headers["access-control-allow-origin"]) == (200, APP)
        assert stream.headers["vary"] == "Authorization, Accept, Origin"
    for origin in (APP, site.url, f"http://127.0.0.1:{listed.port}"):
        with WebSocket(listed.port, headers={"Origin": origin}) as socket:
            assert socket.status == 101


@cases(
    ("url", "methods"),
    [
        (ONE, "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"),
        ("/articles", "GET, HEAD, OPTIONS, QUERY, POST, PATCH, DELETE"),
        (f"/authors/{ANN}/articles", "GET, HEAD, OPTIONS, QUERY"),
        ("/graphql", "GET, HEAD, POST, QUERY, OPTIONS"),
        (f"{ONE}/like", "POST, OPTIONS"),
        ("/articles/newest", "GET, HEAD, OPTIONS"),
        ("/articles/changes", "GET, HEAD, OPTIONS"),
        ("/oauth/token", "POST, OPTIONS"),
        ("/openapi.json", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_browser_that_asks_first_is_told_what_it_may_send(listed: Service, url: str, methods: str) -> None:
    asks = {"access-control-request-method": "PATCH", "access-control-request-headers": "authorization,if-match"}
    answer = listed.request("OPTIONS", url, {"origin": APP, **asks})
    told = cors_of(answer)
    assert (answer.status, answer.body) == (204, b"")
    assert told["access-control-allow-origin"] == APP
    assert told["access-control-allow-methods"] == methods == answer.headers["allow"]
    assert told["access-control-allow-headers"] == ", ".join(ALLOWED_HEADERS)
    assert "*" not in told["access-control-allow-headers"]
    assert int(told["access-control-max-age"]) > 0
    foreign = listed.request("OPTIONS", url, {"origin": "https://evil.example", **asks})
    assert (foreign.status, cors_of(foreign)) == (204, {})


@cases(
    "header",
    [
        "Authorization Content-Type If-Match If-None-Match Idempotency-Key Prefer Last-Event-ID Accept",
        "X-Requested-With Cache-Control Pragma",
        "Apollo-Require-Preflight X-Apollo-Operation-Name ApolloGraphQL-Client-Name ApolloGraphQL-Client-Version",
        "traceparent tracestate baggage sentry-trace x-request-id b3 x-b3-traceid x-datadog-trace-id newrelic",
    ],
)
def test_what_real_clients_send_is_allowed(header: str) -> None:
    allowed = {name.lower() for name in ", ".join(ALLOWED_HEADERS).split(", ")}
    assert not {name.lower() for name in header.split()} - allowed
    risky = {"cookie", "host", "x-forwarded-for", "x-forwarded-host", "forwarded", "x-http-method-override"}
    assert not risky & allowed


def test_who_asks_first_for_a_path_that_is_not_there_can_read_the_answer(listed: Service) -> None:
    asks = {"access-control-request-method": "PUT", "access-control-request-headers": "authorization"}
    answer = listed.request("OPTIONS", "/nothing", {"origin": APP, **asks})
    assert (answer.status, answer.body, answer.headers["cache-control"]) == (204, b"", "no-store")
    assert cors_of(answer)["access-control-allow-methods"] == "GET, HEAD, QUERY, POST, PUT, PATCH, DELETE"
    assert listed.request("OPTIONS", "/nothing", {"origin": APP}).status == 404  # nobody asks first
    foreign = listed.request("OPTIONS", "/nothing", {"origin": "https://evil.example", **asks})
    assert (foreign.status, cors_of(foreign)) == (404, {})


LOCAL = ["http://localhost:5173", "https://localhost", "http://127.0.0.1:3000", "http://[::1]:8080"]
NOT_LOCAL = [
    "localhost",
    "null",
    "http://localhost.evil.example",
    "http://localhost:1@evil.example",
    "http://evil.example#localhost",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.1:80:80",
    "http://xlocalhost:1",
    "file://localhost",
    "http://localhost:5173/",
    "http://localhost:5173\n",
]


def test_pages_of_this_machine_are_let_in_from_any_port() -> None:
    cors = Cors(("localhost", APP), ("X-Tenant",))
    for origin in (*LOCAL, APP):
        assert cors.allows(origin.encode())
    for origin in NOT_LOCAL:
        assert not cors.allows(origin.encode()), origin
    none, only = Cors((APP,)), Cors(("*",))
    assert not any(none.allows(origin.encode()) for origin in LOCAL)
    assert only.allows(b"http://localhost:1")


def test_the_headers_of_the_setting_are_allowed_too() -> None:
    config = load({}, env={"DIPTYCH_CORS_ORIGINS": "localhost", "DIPTYCH_CORS_HEADERS": "X-Tenant, x-shop"})
    assert (config.cors_origins, config.cors_headers) == (("localhost",), ("X-Tenant", "x-shop"))
    app = Diptych(model, config=Config(database="sqlite:///:memory:", **settings(config)))
    asked = {"origin": "http://localhost:5173", "access-control-request-method": "GET"}
    ((told),) = in_process(app, ("OPTIONS", "/articles", asked))
    assert told["access-control-allow-headers"] == ", ".join((*ALLOWED_HEADERS, "X-Tenant", "x-shop"))
    for wrong in ("*", "a b", "a\r\nb", "[1]"):
        with pytest.raises(StartError):
            load({}, env={"DIPTYCH_CORS_HEADERS": wrong})


def settings(config: Config) -> dict[str, Any]:
    return {"cors_origins": config.cors_origins, "cors_headers": config.cors_headers}


@pytest.mark.parametrize(("method", "url"), APART)
def test_the_pages_that_have_a_cookie_are_apart(listed: Service, method: str, url: str) -> None:
    assert cors_of(listed.request(method, url, {"origin": APP, "access-control-request-method": "POST"})) == {}


@cases(("method", "url", "status"), EVERYTHING)
def test_off_nothing_is_said_to_browsers(kiosk: Service, method: str, url: str, status: int) -> None:
    for more in ({}, {"origin": APP, "access-control-request-method": "GET"}):
        answer = kiosk.request(method, url, more)
        assert (answer.status, cors_of(answer)) == (status, {})
        assert "Origin" not in answer.headers.get("vary", "")


# every origin


def in_process(app: Diptych, *requests: tuple[str, str, dict[str, str]]) -> list[dict[str, str]]:
    """The headers of the answers of an application."""

    async def one(method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        sent: list[Any] = []
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return {name.decode(): value.decode() for name, value in sent[0]["headers"]}

    async def work() -> list[dict[str, str]]:
        try:
            return [await one(*request) for request in requests]
        finally:
            await app.stop()

    return asyncio.run(work())


def test_a_star_lets_every_origin_in_and_depends_on_none() -> None:
    app = Diptych(model, config=Config(database="sqlite:///:memory:", cors_origins=("*",)))
    asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    without, null, preflight, apart = in_process(
        app,
        ("GET", "/articles", {}),
        ("GET", "/articles", {"origin": "null"}),
        ("OPTIONS", "/graphql", asks),
        ("OPTIONS", "/oauth/login", asks),
    )
    for told in (without, null, preflight):
        assert told["access-control-allow-origin"] == "*", (
            "also without an origin, since a cache may keep it for another"
        )
        assert told["vary"] == "Authorization, Accept, Accept-Encoding"
        assert "access-control-allow-credentials" not in told
    assert preflight["access-control-allow-methods"] == "GET, HEAD, POST, QUERY, OPTIONS"
    assert "Authorization" in preflight["access-control-allow-headers"], "a star would not stand for it"
    assert not any(name.startswith("access-control") for name in apart)


# the setting


@cases(
    ("text", "origins"),
    [
        ("", ()),
        ("[]", ()),
        ("*", ("*",)),
        ('["*"]', ("*",)),
        (APP, (APP,)),
        (f" {APP} , http://localhost:3000 ", (APP, "http://localhost:3000")),
        (f'["{APP}"]', (APP,)),
        ("HTTPS://App.Example.Org", (APP,)),
        (f"{APP}:443", (APP,)),
        ("http://a:80", ("http://a",)),
        ("https://a:80", ("https://a:80",)),
        ("http://[::1]:8080", ("http://[::1]:8080",)),
        ("capacitor://localhost", ("capacitor://localhost",)),
        (f"{APP},{APP}", (APP,)),
        ("http://a:0080", ("http://a",)),
    ],
)
def test_origins_are_read_as_browsers_send_them(text: str, origins: tuple[str, ...]) -> None:
    assert read_origins(text) == origins
    config = Config(cors_origins=origins)
    assert (
        load({}, env={"DIPTYCH_CORS_ORIGINS": as_environment(config)["DIPTYCH_CORS_ORIGINS"]}).cors_origins == origins
    )


@cases(
    "text",
    [
        f"{APP}/",
        f"{APP}/path",
        "null",
        "app.example.org",
        "https://",
        "https://*.example.org",
        "*.example.org",
        f"*,{APP}",
        f"{APP},",
        ",",
        "https://user@a",
        "https://a?b",
        "https://a#b",
        "https://a b",
        "https://bücher.example",
        "https://a:0",
        "https://a:65536",
        "https://a:x",
        "[1]",
        "[",
        '["*", "https://a"]',
        "//a",
        "https:a",
        "https:///a",
    ],
)
def test_what_is_no_origin_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(StartError, match="DIPTYCH_CORS_ORIGINS cannot be"):
        load({}, env={"DIPTYCH_CORS_ORIGINS": text})
