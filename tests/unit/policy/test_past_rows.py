"""Rules of rows that were deleted since, for good or to the trash."""

from __future__ import annotations

from diptych.model.rules.expr import FALSE, TRUE, And, Col, Has, IsNull, Not, and_
from diptych.policy.past_rows import certain
from tests.support.model_files import model_of

MODEL = model_of("""
class Page(Resource, trash=timedelta(days=1)):
    title: str
    locks: list[Lock] = inverse("page")

class Lock(Resource, trash=timedelta(days=1)):
    page: Annotated[Page | None, OnDelete("cascade")] = None
    notes: list[Note] = inverse("lock")

class Note(Resource, trash=timedelta(days=1)):
    lock: Annotated[Lock, OnDelete("cascade")]
""")
PRESENT = IsNull(Col(("deletedAt",)))


def test_a_list_of_a_deleted_row_is_unknown() -> None:
    rule, page = Not(Has("locks", TRUE)), MODEL.resources["Page"]
    assert certain(rule, page, MODEL.resources, there=True) == rule
    assert certain(rule, page, MODEL.resources, there=False) == FALSE


def test_a_list_of_a_related_row_is_known_while_that_is_not_in_the_trash() -> None:
    rule, note = Not(Has("lock", Has("notes", TRUE))), MODEL.resources["Note"]
    known = And((rule, Has("lock", TRUE), Has("lock", PRESENT)))
    assert certain(rule, note, MODEL.resources, there=True) == known
    found = Has("lock", Not(Has("page", Has("locks", TRUE))))
    assert certain(found, note, MODEL.resources, there=True) == and_(found, Has("lock", PRESENT))


def test_values_of_a_related_row_are_known_in_the_trash_too() -> None:
    rule, lock = Not(Has("page", Col(("title",)))), MODEL.resources["Lock"]
    assert "deletedAt" not in repr(certain(rule, lock, MODEL.resources, there=True))
