"""Who may do what with tasks, asked of a real service: `python -m pytest`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

DIPTYCH = [sys.executable, "-m", "diptych"]


class Service:
    """A service with an empty database of its own."""

    def __init__(self, address: str, database: str) -> None:
        self.address = address
        self.database = database

    def token(self, *options: str) -> str:
        command = [*DIPTYCH, "token", "--database", self.database, *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def send(self, method: str, path: str, token: str = "", body: object = None) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            headers["content-type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            with urlopen(Request(self.address + path, data, headers, method=method), timeout=30) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read() or "null")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    database = f"sqlite:///{tmp_path_factory.mktemp('database') / 'test.db'}"
    command = [*DIPTYCH, "serve", "--database", database, "--port", "0"]
    with subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()  # GraphQL  http://127.0.0.1:PORT/graphql
        assert first, "the service did not start"
        yield Service(first.split()[-1].removesuffix("/graphql"), database)
        process.terminate()


@pytest.fixture(scope="module")
def admin(service: Service) -> str:
    return service.token("--role", "admin")


@pytest.fixture(scope="module")
def ann(service: Service, admin: str) -> tuple[str, str]:
    return add_person(service, admin, "Ann")


@pytest.fixture(scope="module")
def ben(service: Service, admin: str) -> tuple[str, str]:
    return add_person(service, admin, "Ben")


def add_person(service: Service, admin: str, name: str) -> tuple[str, str]:
    """The id and a token of a new person."""
    status, person = service.send("POST", "/people", admin, {"name": name, "email": f"{name.lower()}@example.org"})
    assert status == 201, person
    return person["id"], service.token("--user", person["id"])


def add_task(service: Service, who: tuple[str, str], title: str, shared: bool = False) -> str:
    owner, token = who
    status, task = service.send("POST", "/tasks", token, {"ownerId": owner, "title": title, "shared": shared})
    assert status == 201, task
    return str(task["id"])


def test_only_the_owner_sees_a_task_until_it_is_shared(
    service: Service, ann: tuple[str, str], ben: tuple[str, str]
) -> None:
    task = add_task(service, ann, "Buy a present for Ben")
    assert service.send("GET", f"/tasks/{task}", ann[1])[0] == 200
    assert service.send("GET", f"/tasks/{task}", ben[1])[0] == 404
    assert service.send("PATCH", f"/tasks/{task}", ann[1], {"shared": True})[0] == 200
    assert service.send("GET", f"/tasks/{task}", ben[1])[0] == 200
    assert service.send("GET", f"/tasks/{task}")[0] == 200, "also without a token"


def test_nobody_makes_a_task_for_somebody_else(service: Service, ann: tuple[str, str], ben: tuple[str, str]) -> None:
    task = {"ownerId": ann[0], "title": "Wash the dishes", "shared": True}
    assert service.send("POST", "/tasks", ben[1], task)[0] == 403


def test_only_the_owner_finishes_a_task_and_only_once(
    service: Service, ann: tuple[str, str], ben: tuple[str, str]
) -> None:
    task = add_task(service, ann, "Write the first test", shared=True)
    assert service.send("POST", f"/tasks/{task}/finish", ben[1])[0] == 403
    status, finished = service.send("POST", f"/tasks/{task}/finish", ann[1])
    assert (status, finished["done"]) == (200, True)
    assert service.send("POST", f"/tasks/{task}/finish", ann[1])[0] == 409


def test_an_address_is_known_to_admins_only(service: Service, admin: str, ann: tuple[str, str]) -> None:
    assert service.send("GET", f"/people/{ann[0]}", admin)[1]["email"] == "ann@example.org"
    assert "email" not in service.send("GET", f"/people/{ann[0]}", ann[1])[1]
    question = {"query": "{ people { email } }"}
    assert service.send("POST", "/graphql", ann[1], question)[1]["errors"]
    assert service.send("POST", "/graphql", admin, question)[1]["data"]["people"]
