"""The console of real processes: the link of `dev`, `serve --console` below a prefix, and what another origin gets."""

from __future__ import annotations

import json

from tests.support.running import NewDatabase, running, served

JSON = {"content-type": "application/json"}


def test_dev_prints_a_link_that_signs_in_once(new_sqlite: NewDatabase) -> None:
    with running("dev", database=new_sqlite()) as service:
        address, code = service.out.wait(r"Console +(\S+)/console/#code=(\S+)\n").groups()
        assert address == service.url
        home = service.get("/", accept="text/html")
        assert (home.status, home.headers["location"]) == (303, "/console/")
        assert service.get("/console/").status == 200
        body = json.dumps({"code": code}).encode()
        evil = {**JSON, "origin": "http://localhost:3000"}
        stolen = service.request("POST", "/console/api/code", evil, body)
        assert stolen.status == 403 and "access-control-allow-origin" not in stolen.headers
        head = "POST /console/api/code HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        assert service.exchange(head.encode() + body).startswith(b"HTTP/1.1 503 "), "DNS rebinding"
        first = service.request("POST", "/console/api/code", JSON, body)
        assert first.status == 200, "those who were refused have not used it"
        token = {"authorization": f"Bearer {first.json()['accessToken']}"}
        assert service.get("/console/api/model", **token).json()["admin"] is True
        assert service.request("POST", "/console/api/code", JSON, body).status == 400
        requests = service.get("/console/api/recent", **token).json()["requests"]
        assert [each["path"] for each in requests] == ["/"]


def test_serve_has_it_on_request_below_a_prefix(new_sqlite: NewDatabase) -> None:
    with served(new_sqlite(), "--console", "--base-url", "https://api.example.org/v1") as service:
        page = service.get("/v1/console/")
        assert page.status == 200 and b'content="/v1"' in page.body and b"/v1/console/assets/" in page.body
        boot = service.get("/v1/console/api/boot").json()
        assert (boot["mode"], boot["version"]) == ("serve", None)
        assert boot["signIn"]["redirect"] == "https://api.example.org/v1/console/"
        assert service.get("/v1/console/api/boot", origin="https://api.example.org").status == 200
        assert service.get("/v1/console/api/boot", origin="https://evil.example").status == 403
        assert service.request("POST", "/v1/console/api/code", JSON, b"{}").status == 404
