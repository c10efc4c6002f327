"""Rules in the trash: what hides a row still hides it when both are deleted together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diptych.testing import Api, serve
from tests.support.model_files import model_of
from tests.support.running import NewDatabase

SOURCE = """
class Page(Resource, trash=timedelta(days=30)):
    title: str
    locks: list[Lock] = inverse("page")
    remarks: list[Remark] = inverse("page")
    access = (grant("read", "create", "update", "delete", to=staff), grant("delete"))

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
    access = (grant("read", "create", "update", "delete", to=staff), grant("delete"))

    @allow("read")
    def beside_no_lock(self, viewer: Viewer) -> bool:
        return none(self.page.locks, lambda lock: lock.strict)

class Plan(Resource, trash=timedelta(days=30)):
    draft: str
    title: str = "secret"
    seals: list[Seal] = inverse("plan")
    access = (grant("read", "create", "delete"),)

    @allow("read", field="draft")
    def unsealed(self, viewer: Viewer) -> bool:
        return none(self.seals)

    @allow("read", field="title")
    def titled(self, viewer: Viewer) -> bool:
        return either(some(self.seals), "sealed", either(self.draft == "secret", "open", "none")) == "open"

class Seal(Resource, trash=timedelta(days=30)):
    plan: Annotated[Plan, OnDelete("cascade")]
    access = (grant("read", "create"),)
"""


@pytest.fixture(scope="module")
def api(new_database: NewDatabase) -> Iterator[Api]:
    with serve(model_of(SOURCE), database=new_database()) as served:
        yield served


def deleted_page(api: Api, *, strict: bool) -> tuple[str, str]:
    """A page and a remark that were deleted with a lock."""
    staff = api.as_("staff")
    page = str(staff.post("/pages", {"title": "secret"}).expect(201).data["id"])
    staff.post("/locks", {"pageId": page, "strict": strict}).expect(201)
    remark = str(staff.post("/remarks", {"pageId": page, "text": "secret"}).expect(201).data["id"])
    staff.delete(f"/pages/{page}").expect(204)
    return page, remark


def test_what_a_related_row_hid_is_hidden_in_the_trash_too(api: Api) -> None:
    page, remark = deleted_page(api, strict=True)
    for path in (f"/pages/{page}", f"/remarks/{remark}"):
        api.anonymous.get(f"{path}?deleted=only").expect(404)
        api.anonymous.post(f"{path}/restore").expect(404)
        api.anonymous.delete(f"{path}?deleted=only").expect(404)
        api.as_("staff").get(f"{path}?deleted=only").expect(200)
    assert api.anonymous.get(f"/pages?deleted=only&id={page}").data == []
    document = (
        "query($id: ID!) { page(id: $id, deleted: ONLY) { title } pages(deleted: ONLY, where: {id: {eq: $id}}) { id } }"
    )
    assert api.anonymous.graphql(document, {"id": page}).data == {"page": None, "pages": []}
    api.as_("staff").post(f"/pages/{page}/restore").expect(200)


def test_what_nothing_hid_can_be_restored(api: Api) -> None:
    page, remark = deleted_page(api, strict=False)
    assert api.anonymous.get(f"/pages/{page}?deleted=only").expect(200).data["title"] == "secret"
    api.anonymous.post(f"/pages/{page}/restore").expect(200)
    api.anonymous.get(f"/remarks/{remark}").expect(200)


def test_a_field_that_a_related_row_hid_is_hidden_in_the_trash_too(api: Api) -> None:
    caller = api.anonymous
    ids = [str(caller.post("/plans", {"draft": "secret"}).expect(201).data["id"]) for _ in range(2)]
    caller.post("/seals", {"planId": ids[0]}).expect(201)
    for id, draft in zip(ids, (None, "secret"), strict=True):
        caller.delete(f"/plans/{id}").expect(204)
        seen = caller.get(f"/plans/{id}?deleted=only").expect(200).data
        assert (seen["draft"], seen["title"]) == (draft, draft)
    assert [plan["id"] for plan in caller.get("/plans?deleted=only&draft=secret").data] == ids[1:]
    purge = "mutation($id: ID!) { deletePlan(id: $id, deleted: ONLY) { draft } }"
    assert caller.graphql(purge, {"id": ids[0]}).data == {"deletePlan": {"draft": None}}
