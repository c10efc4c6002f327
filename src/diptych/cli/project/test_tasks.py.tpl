"""Who may do what with tasks, asked of the whole service in this process: `python -m pytest`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diptych.testing import Api, Client, serve
from tasks import Person, Task, model


@pytest.fixture
def api() -> Iterator[Api]:
    """The service, with an empty database in memory."""
    with serve(model) as served:
        yield served


@pytest.fixture
def ann(api: Api) -> Person:
    return api.make(Person, name="Ann", email="ann@example.org")


@pytest.fixture
def ben(api: Api) -> Person:
    return api.make(Person, name="Ben", email="ben@example.org")


def acting(api: Api, person: Person) -> Client:
    """Sends requests with a token of this person."""
    return api.as_("signed_in", user=person.id)


def test_only_the_owner_sees_a_task_until_it_is_shared(api: Api, ann: Person, ben: Person) -> None:
    task = api.make(Task, owner=ann, title="Buy a present for Ben")
    acting(api, ann).get(f"/tasks/{task.id}").expect(200)
    acting(api, ben).get(f"/tasks/{task.id}").expect(404)
    acting(api, ann).patch(f"/tasks/{task.id}", {"shared": True}).expect(200)
    acting(api, ben).get(f"/tasks/{task.id}").expect(200)
    api.anonymous.get(f"/tasks/{task.id}").expect(200)


def test_nobody_makes_a_task_for_somebody_else(api: Api, ann: Person, ben: Person) -> None:
    task = {"ownerId": ann.id, "title": "Wash the dishes", "shared": True}
    acting(api, ben).post("/tasks", task).expect(403)
    acting(api, ann).post("/tasks", task).expect(201)


def test_only_the_owner_finishes_a_task_and_only_once(api: Api, ann: Person, ben: Person) -> None:
    task = api.make(Task, owner=ann, title="Write the first test", shared=True)
    acting(api, ben).post(f"/tasks/{task.id}/finish").expect(403)
    assert acting(api, ann).post(f"/tasks/{task.id}/finish").expect(200).json()["done"] is True
    acting(api, ann).post(f"/tasks/{task.id}/finish").expect(409)


def test_an_address_is_known_to_admins_only(api: Api, ann: Person) -> None:
    assert api.as_("admin").get(f"/people/{ann.id}").json()["email"] == "ann@example.org"
    assert "email" not in acting(api, ann).get(f"/people/{ann.id}").json()
    assert acting(api, ann).graphql("{ people { email } }").status == 400
    assert api.as_("admin").graphql("{ people { email } }").data == {"people": [{"email": "ann@example.org"}]}
