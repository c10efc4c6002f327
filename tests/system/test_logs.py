"""Logs: the id of a request in every line, slow requests with their statements, and no secret in any of them."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.support.running import Client, NewDatabase, Service, diptych, running

SECRET = "s3cr3t-planted"
DEBUG = ("--access-log", "--log-format", "json", "--log-level", "debug", "--slow-query", "0.000001")


@contextmanager
def logging(database: str, *options: str) -> Iterator[Service]:
    with running("serve", "--sample", *options, database=database, noise="diptych.slow|INFO|DEBUG|WARNING") as service:
        yield service


def lines(service: Service, logger: str, path: str) -> list[dict[str, Any]]:
    """The lines of a logger about a path, once there is one."""
    end = time.monotonic() + 20
    while True:
        entries = [json.loads(line) for line in service.err.lines if line.startswith("{")]
        found = [entry for entry in entries if entry["logger"] == logger and path in str(entry)]
        if found:
            return found
        assert time.monotonic() < end, service.err.text
        time.sleep(0.02)


@pytest.mark.parametrize("path", ["/users", "/graphql", "/nothing"])
def test_the_id_of_a_request_comes_back_and_is_in_the_log(path: str, new_sqlite: NewDatabase) -> None:
    with logging(new_sqlite(), *DEBUG) as service:
        body = json.dumps({"query": "{ users { nothing } }"}).encode() if path == "/graphql" else None
        headers = {"x-request-id": "abc-123", "content-type": "application/json"}
        answer = service.request("POST" if body else "GET", path, headers, body)
        assert answer.headers["x-request-id"] == "abc-123"
        assert lines(service, "diptych.access", path)[0]["request_id"] == "abc-123"


@pytest.mark.parametrize("sent", ["x" * 129, "a b", "a\x7f", "<script>", "é", ""])
def test_an_id_that_is_not_valid_is_replaced(sent: str, new_sqlite: NewDatabase) -> None:
    with logging(new_sqlite()) as service:
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        connection.putrequest("GET", "/users")
        connection.putheader("x-request-id", sent.encode("latin-1"))
        connection.endheaders()
        response = connection.getresponse()
        response.read()
        connection.close()
        got = response.headers["x-request-id"] or ""
        if response.status == 200:
            assert len(got) == 16 and int(got, 16) >= 0
        else:
            assert (response.status, sent not in got) == (400, True)


def test_a_response_to_a_request_without_an_id_has_none(new_sqlite: NewDatabase) -> None:
    with logging(new_sqlite(), *DEBUG) as service:
        assert "x-request-id" not in service.get("/users").headers
        assert len(lines(service, "diptych.access", "/users")[0]["request_id"]) == 16


def test_a_slow_request_is_logged_with_its_price_and_statement(new_database: NewDatabase) -> None:
    with logging(new_database(), *DEBUG) as service:
        path = f"/users?name={SECRET}&fields=name,posts[first=3](title)"
        assert service.get(path).status == 200
        (entry,) = lines(service, "diptych.slow", "/users")
        assert (entry["status"], entry["price of"]) == (200, "20 users × (1 + 3 posts × 1)")
        assert entry["statement"].startswith(("SELECT", "WITH")) and entry["milliseconds"] > 0
        assert entry["ask"] == "users where name = ?: name, posts (title)"
        assert entry["advice"] == "No index serves the filter of users: declare one on User.name."
        assert SECRET not in service.err.text


def test_a_slow_change_is_logged_with_its_ask_and_statement_in_both_styles(new_database: NewDatabase) -> None:
    with logging(new_database(), *DEBUG) as service:
        admin = service.token_of("admin")
        user = {"name": SECRET, "email": f"{SECRET}@example.org"}
        assert admin.post("/users", user).status == 201
        mutation = "mutation($i: UserCreate!) { createUser(input: $i) { id } }"
        admin.query(mutation, i={**user, "email": f"a{SECRET}@example.org"})
        for path in ("/users", "/graphql"):
            (entry,) = lines(service, "diptych.slow", path)
            assert entry["ask"] == "create user: name, email"
            assert "INSERT" in entry["statement"]
        assert SECRET not in service.err.text


def test_a_fast_request_is_not_logged_as_slow(new_sqlite: NewDatabase) -> None:
    with logging(new_sqlite(), "--access-log", "--log-format", "json", "--slow-query", "60") as service:
        assert service.get("/users").status == 200
        lines(service, "diptych.access", "/users")
        assert "diptych.slow" not in service.err.text


def plant(service: Service) -> None:
    """Send a secret wherever a request can have one."""
    admin = service.token_of("admin")
    bearer = {"authorization": f"Bearer {SECRET}", "cookie": f"session={SECRET}", "content-type": "application/json"}
    form = {"content-type": "application/x-www-form-urlencoded"}
    for client, extra in ((service, bearer), (service, {}), (admin, {})):
        client.request("GET", f"/users?name={SECRET}", extra)
        client.request(
            "POST", "/users", {**extra, "content-type": "application/json"}, json.dumps({"name": SECRET}).encode()
        )
        variables = {
            "query": "query($n: String) { users(where: {name: {eq: $n}}) { name } }",
            "variables": {"n": SECRET},
        }
        client.request(
            "POST", "/graphql", {**extra, "content-type": "application/json"}, json.dumps(variables).encode()
        )
        client.query('{ users(where: {name: {eq: "SECRET"}}) { name } }'.replace("SECRET", SECRET))
        client.query('mutation { createUser(input: {name: "SECRET", email: "no"}) { id } }'.replace("SECRET", SECRET))
    body = f"grant_type=client_credentials&client_id=x&client_secret={SECRET}".encode()
    service.request("POST", "/oauth/token", form, body)
    service.request("POST", "/oauth/token", {**form, "authorization": f"Basic {SECRET}"}, b"grant_type=refresh_token")
    service.request("POST", "/oauth/token", form, f"grant_type=refresh_token&refresh_token={SECRET}".encode())
    service.request("POST", "/oauth/login", form, f"email=a@example.org&password={SECRET}".encode())
    service.request("GET", f"/oauth/authorize?client_id=x&state={SECRET}&code_challenge={SECRET}")
    service.request("POST", "/users", {"idempotency-key": SECRET, "content-type": "application/json"}, b"{}")
    service.request("POST", "/graphql", {"content-type": "application/json"}, SECRET.encode())
    service.exchange(b"GET /users HTTP/1.1\r\nAuthorization: Bearer " + SECRET.encode() + b"\r\nBad\x00: x\r\n\r\n")
    url = service.url.replace("http", "ws") + "/graphql"
    with connect(url, subprotocols=["graphql-transport-ws"]) as socket:  # type: ignore[list-item]  # a str is one
        socket.send(json.dumps({"type": "connection_init", "payload": {"Authorization": f"Bearer {SECRET}"}}))
        with pytest.raises(Exception, match=r"4403|Forbidden"):
            socket.recv()


def test_no_secret_is_in_the_log(new_database: NewDatabase) -> None:
    with logging(new_database(), *DEBUG, "--metrics-address", "0") as service:
        token = service.token_of("admin").token
        plant(service)
        lines(service, "diptych.access", "/oauth/token")
        metrics = Client(service.out.wait(r"Metrics  (\S+)/metrics\n")[1]).get("/metrics").body.decode()
    for said in (service.err.text, service.out.text, metrics):
        assert SECRET not in said and token not in said
        assert len(service.err.lines) > 20


def test_the_password_of_a_database_is_in_no_message(tmp_path: Any) -> None:
    done = diptych("serve", "--database", f"postgresql://me:{SECRET}@127.0.0.1:1/none", cwd=tmp_path)
    assert done.returncode == 2 and SECRET not in done.stdout + done.stderr
