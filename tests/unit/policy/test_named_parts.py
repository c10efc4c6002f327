"""What an Ask names is walked once, for the age of an answer and for what is deprecated alike."""

from __future__ import annotations

import pytest

from diptych.ask.nodes import Field, Read
from diptych.ask.wish import Wish
from diptych.model.rules.expr import Col, Expr, Has, IsNull, Measure, Via
from diptych.policy.cache_age import max_age
from diptych.policy.deprecations import uses_of
from tests.support.model_files import model_of

MODEL = model_of("""
class Author(Resource, public=60):
    name: str
    pages: list[Page] = inverse("author")
    access = (grant("read"),)

class Page(Resource, public=60):
    title: str
    rank: Annotated[int, Public(5), deprecated("Count them.", since="2026-01-01")] = 0
    author: Author
    access = (grant("read"),)
""")
RANK = Col(("rank",))
IN_PAGES: dict[str, Expr] = {
    "has": Has("pages", IsNull(RANK)),
    "measure": IsNull(Measure("sum", RANK, "pages")),
    "where of a measure": IsNull(Measure("count", relation="pages", where=IsNull(RANK))),
}
IN_AUTHOR: dict[str, Expr] = {
    "via": IsNull(Via("author", Has("pages", IsNull(RANK)))),
    "where of via": IsNull(Via("author", Col(("name",)), Has("pages", IsNull(RANK)))),
}


@pytest.mark.parametrize("name", [*IN_PAGES, *IN_AUTHOR])
def test_a_condition_on_other_rows_is_walked(name: str) -> None:
    resource, where = ("Author", IN_PAGES[name]) if name in IN_PAGES else ("Page", IN_AUTHOR[name])
    read = Read(resource, "list", (Field("id", "id"),), where)
    assert max_age([read], MODEL.view_as("anonymous")) == (5, "Page.rank says so")
    uses = uses_of(Wish((read,), (), ()), MODEL.resources)
    assert uses is not None and [each.name for each in uses.always] == ["Page.rank"]


def test_what_is_not_named_counts_for_nothing() -> None:
    read = Read("Author", "list", (Field("id", "id"),))
    assert max_age([read], MODEL.view_as("anonymous")).seconds == 60
    assert uses_of(Wish((read,), (), ()), MODEL.resources) is None
