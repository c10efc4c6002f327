"""Changes of rows that are in the trash by now: what was deleted along with them says nothing of who could see them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diptych.testing import Api, Client, serve
from tests.support.model_files import model_of
from tests.support.running import NewDatabase

SOURCE = """
class Page(Resource, trash=timedelta(days=30)):
    title: str
    locks: list[Lock] = inverse("page")
    remarks: list[Remark] = inverse("page")
    access = (grant("read", "create", "update", "delete", to=staff),)

    @allow("read")
    def unlocked(self, viewer: Viewer) -> bool:
        return none(self.locks, lambda lock: lock.strict)

class Lock(Resource, trash=timedelta(days=30)):
    page: Annotated[Page, OnDelete("cascade")]
    strict: bool = True
    access = (grant("read", "create", "update", "delete", to=staff),)

class Remark(Resource, trash=timedelta(days=30)):
    page: Annotated[Page, OnDelete("cascade")]
    text: str
    access = (grant("read", "create", "update", "delete", to=staff),)

    @allow("read")
    def beside_no_lock(self, viewer: Viewer) -> bool:
        return none(self.page.locks, lambda lock: lock.strict)

class Note(Resource, trash=timedelta(days=30)):
    page: Annotated[Page, OnDelete("cascade")]
    text: str
    access = (grant("read", "create", "update", "delete", to=staff),)

    @allow("read")
    def of_a_page_without(self, viewer: Viewer) -> bool:
        return not_(some(self.page.locks, lambda lock: lock.strict) | (self.text == ""))
"""


@pytest.fixture(scope="module")
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(model_of(SOURCE), database=new_database()) as served:
        yield served


@pytest.fixture
def staff(api: Api) -> Client:
    return api.as_("staff")


def kinds(client: Client, path: str, after: str) -> list[str]:
    """The kinds of the changes since a cursor."""
    return [change["kind"] for change in client.get(f"/{path}/changes?after={after}").expect(200).data]


def test_what_nobody_could_see_before_it_was_deleted_is_no_change_afterwards(api: Api, staff: Client) -> None:
    after = api.anonymous.get("/pages", prefer="change-cursor").headers["change-cursor"]
    page = staff.post("/pages", {"title": "secret"}).expect(201).data["id"]
    staff.post("/locks", {"pageId": page}).expect(201)
    staff.patch(f"/pages/{page}", {"title": "more secret"}).expect(200)
    start = staff.get("/pages", prefer="change-cursor").headers["change-cursor"]
    for path in ("remarks", "notes"):
        staff.post(f"/{path}", {"pageId": page, "text": "secret"}).expect(201)
    staff.patch(f"/pages/{page}", {"title": "most secret"}).expect(200)
    assert [kinds(api.anonymous, path, start) for path in ("pages", "remarks", "notes")] == [[], [], []]
    staff.delete(f"/pages/{page}").expect(204)
    assert [kinds(api.anonymous, path, start) for path in ("pages", "remarks", "notes")] == [[], [], []]
    assert kinds(api.anonymous, "pages", f"{after}&title[startsWith]=m") == [], "no filter finds it either"
    assert kinds(staff, "pages", start) == ["UPDATED", "DELETED"]
    assert kinds(staff, "remarks", start) == kinds(staff, "notes", start) == ["CREATED", "DELETED"]


def test_a_row_that_is_restored_is_seen_by_the_rules_as_they_are(api: Api, staff: Client) -> None:
    page = staff.post("/pages", {"title": "open"}).expect(201).data["id"]
    start = staff.get("/pages", prefer="change-cursor").headers["change-cursor"]
    remark = staff.post("/remarks", {"pageId": page, "text": "open"}).expect(201).data["id"]
    staff.delete(f"/pages/{page}").expect(204)
    staff.post(f"/pages/{page}/restore").expect(200)
    assert kinds(api.anonymous, "pages", start) == ["DELETED", "UPDATED"]
    assert kinds(api.anonymous, "remarks", start) == ["CREATED", "DELETED", "UPDATED"]
    assert api.anonymous.get(f"/remarks/{remark}").expect(200).data["text"] == "open"
