"""The page for people at / and /graphql: for browsers only, safe whatever a model is named, and true."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import re
import shlex
from collections.abc import Iterator

import pytest

from diptych import Model, Resource, grant
from diptych.api.reply import Reply
from diptych.serve.http.direct import CompleteRequest
from tests.contract.http.conftest import Fresh
from tests.contract.http.data import ANN
from tests.support.cases import cases
from tests.support.in_process import Answer, Service, in_process

BROWSER = {
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
    "host": "127.0.0.1:8000",
}
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)> \" ' & {{7*7}} \\u2028"


def page(service: Service, path: str = "/", token: str | None = None, **headers: str) -> Answer:
    return service.send("GET", path, headers={**BROWSER, **headers}, token=token)


def commands(answer: Answer) -> list[list[str]]:
    """The words of the commands of a page, as a shell reads them."""
    found = re.findall(r"<pre><code>(.*?)</code></pre>", answer.body.decode(), re.DOTALL)
    return [shlex.split(html.unescape(text).replace("\\\n", "")) for text in found]


def test_both_addresses_show_it_to_a_browser(shop: Service) -> None:
    answer, other = page(shop), page(shop, "/graphql")
    assert answer.status == other.status == 200 and answer.body == other.body
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["vary"] == "Authorization, Accept, Accept-Encoding"
    text = answer.body.decode()
    for part in (
        "<h1>Diptych</h1>",
        'href="/users"',
        'href="/openapi.json"',
        "/graphql",
        'href="/oauth/account"',
        "/.well-known/openid",
    ):
        assert part in text


def test_it_has_no_script_and_loads_nothing(shop: Service) -> None:
    answer = page(shop)
    text = answer.body.decode()
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert answer.headers["content-security-policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    )
    assert answer.headers["x-frame-options"] == "DENY" and answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    for word in ("<script", "<img", "<link", "<iframe", " style=", " on", "url(", "@import", "src="):
        assert word not in text.replace(style, "").replace(" on ", " ").replace(" one", " ").lower(), word
    assert "url(" not in style and "@import" not in style


@cases(
    ("path", "accept", "status"),
    [
        ("/", "", 200),
        ("/", "*/*", 200),
        ("/", "application/json", 200),
        ("/", "text/html;q=0.1, application/json", 200),
        ("/", "text/html;q=0", 404),
        ("/graphql", "", 400),
        ("/graphql", "*/*", 400),
        ("/graphql", "application/graphql-response+json, text/html;q=0.9", 400),
        ("/graphql?query={__typename}", BROWSER["accept"], 200),
        ("/users", BROWSER["accept"], 200),
        ("/?x=1", BROWSER["accept"], 404),
        ("/nothing", BROWSER["accept"], 404),
    ],
)
def test_data_is_for_those_who_ask_for_it(shop: Service, path: str, accept: str, status: int) -> None:
    answer = shop.send("GET", path, headers={"accept": accept} if accept else {})
    assert (answer.status, "json" in answer.kind) == (status, True)


def test_programs_get_the_addresses_of_the_documents(shop: Service) -> None:
    answer = shop.get("/")
    assert answer.json() == {"title": "Diptych", "graphql": "/graphql", "openapi": "/openapi.json"}
    assert answer.headers["link"] == '</openapi.json>; rel="service-desc"; type="application/json"'


@cases("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_is_read_only(shop: Service, method: str) -> None:
    for path in ("/", "/graphql"):
        assert shop.send(method, path, headers=BROWSER).kind != "text/html"


def test_it_is_not_sent_again(shop: Service) -> None:
    first = page(shop, **{"accept-encoding": "gzip, zstd"})
    assert "content-encoding" not in first.headers and first.headers["etag"] == page(shop).headers["etag"]
    again = page(shop, **{"if-none-match": first.headers["etag"]})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])


def test_it_shows_what_the_caller_may_read(shop: Service) -> None:
    assert 'href="/orders"' not in page(shop).body.decode()
    assert 'href="/orders"' in page(shop, token=shop.token(ANN, "staff")).body.decode()
    assert page(shop, token="nonsense").status == 401


def test_its_commands_work(shop: Service) -> None:
    graphql, rest = commands(page(shop))
    assert graphql[:2] == ["curl", "http://127.0.0.1:8000/graphql"] and graphql[-2] == "-d"
    name, value = graphql[3].split(": ")
    sent = shop.send("POST", "/graphql", headers={name: value}, body=graphql[-1].encode())
    assert "errors" not in sent.json() and sent.json()["data"]["users"]
    assert rest[0] == "curl" and shop.get(rest[1].removeprefix("http://127.0.0.1:8000")).status == 200


@cases("host", ["evil.example'; rm -rf ~ #", "$(id)", "a<b>", "`id`", "x y", "a@b", 'a"onclick="b', "", "[::1"])
def test_a_host_that_is_none_is_not_repeated(shop: Service, host: str) -> None:
    answer = page(shop, host=host)
    graphql, _ = commands(answer)
    assert graphql[1] == "https://your-service/graphql"
    assert not host or html.escape(host) not in answer.body.decode()


def test_another_host_is_that_of_the_commands(shop: Service) -> None:
    assert commands(page(shop, host="api.example.org"))[0][1] == "https://api.example.org/graphql"


def test_who_may_not_introspect_is_not_sent_there(fresh: Fresh) -> None:
    for settings in ({"introspection": False}, {"introspection_roles": ("admin",)}):
        assert "openapi.json" not in page(fresh(**settings)).body.decode()


def test_the_address_is_the_public_one(fresh: Fresh) -> None:
    text = page(fresh(base_url="https://api.example.org/v1")).body.decode()
    assert "https://api.example.org/v1/graphql" in text


def test_it_is_at_the_prefix_of_the_public_address_too(fresh: Fresh) -> None:
    service = fresh(base_url="https://api.example.org/v1")
    sent = {name.encode(): value.encode() for name, value in BROWSER.items()}

    async def status(path: bytes) -> tuple[int, bytes]:
        reply = service.app.respond(CompleteRequest("GET", path, dict(sent), None))
        found = reply if isinstance(reply, Reply) else await reply
        return found.status, found.body

    for path in (b"/v1", b"/v1/", b"/", b"/v1/graphql"):
        found, body = service.runner.run(status(path))
        assert found == 200 and b'href="/v1/users"' in body
    assert service.runner.run(status(b"/v2"))[0] == 404


class Secret(Resource):
    """<script>alert(2)</script>"""

    note: str

    access = ()


class Street(Resource):
    """</section><script>alert(3)</script>"""

    name: str

    access = (grant("read"),)


@pytest.fixture
def hostile() -> Iterator[Service]:
    model = Model(Street, Secret, title=HOSTILE)
    with asyncio.Runner() as runner, in_process(model, "sqlite:///:memory:", runner) as found:
        yield found


def test_names_and_descriptions_are_text(hostile: Service) -> None:
    answer = page(hostile)
    text = answer.body.decode()
    assert answer.status == 200 and "<script" not in text and "<img" not in text
    assert f"<h1>{html.escape(HOSTILE)}</h1>" in text and "ecret" not in text


def test_a_model_that_nobody_may_read_has_a_page_too() -> None:
    with asyncio.Runner() as runner, in_process(Model(Secret), "sqlite:///:memory:", runner) as closed:
        answer = page(closed)
        assert answer.status == 200 and "secret" not in answer.body.decode().replace("Secret</", "")
        assert "You may read no collection without a token." in answer.body.decode()
