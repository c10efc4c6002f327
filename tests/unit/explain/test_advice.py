"""What is advised about a request: the indexes that it lacks, and nothing where one serves it."""

from __future__ import annotations

from diptych.api.graphql.http import Parameters
from diptych.explain.advice import advice
from diptych.explain.understood import RestRequest, Sent, understand
from tests.support.cases import cases
from tests.support.model_files import model_of

MODEL = model_of("""
class Shelf(Resource):
    name: Annotated[str, Unique()]
    books: list[Book] = inverse("shelf")
    access = (grant("read"),)

class Book(Resource):
    shelf: Shelf
    title: str
    isbn: Annotated[str, Index()] = ""
    page_count: int = 0
    year: int = 0
    place: int = 0
    keys = (index("year", "place"),)
    search = Search("title")
    access = (grant("read"),)
""")
ID = "01900000-0000-7000-8000-0000000000a1"
FILTER = "No index serves the filter of books: declare one on Book."
SORT = "Sorting books by pageCount sorts all of them: declare an index on Book.page_count."
TOTAL = "totalCount counts all books that match: leave it out where nobody needs it."
SEARCH = "The filter of books reads all of them: no index can serve it. The search over title has an index."


def advised(sent: Sent) -> list[str]:
    view = MODEL.view(MODEL.signature(MODEL.anonymous))
    return advice(understand(sent, MODEL, view).reads[0].asks, MODEL.resources, view)


def books(query: str) -> list[str]:
    return advised(RestRequest("GET", "/books", query))


@cases(
    ("query", "expected"),
    [
        ("first=3", []),
        ("title=x", [FILTER + "title."]),
        ("pageCount[gt]=3", [FILTER + "page_count."]),
        ("title=x&pageCount[gt]=3", [FILTER + "title or Book.page_count."]),
        ("place=3", [FILTER + "place."]),
        ('where={"or":[{"isbn":{"eq":"x"}},{"title":{"eq":"y"}}]}', [FILTER + "title."]),
        ("sort=-pageCount", [SORT]),
        ("title[contains]=x", [SEARCH]),
        ("offset=3", ["An offset reads all rows before it: use cursors."]),
    ],
)
def test_a_filter_or_a_sort_without_an_index_is_named(query: str, expected: list[str]) -> None:
    assert books(query) == expected


@cases(
    "query",
    [
        f"id={ID}",
        "isbn=x",
        "isbn=x&title=y",
        f"shelfId={ID}&sort=title",
        "year=1999",
        'where={"or":[{"isbn":{"eq":"x"}},{"year":{"eq":3}}]}',
        "sort=isbn",
        "search=x",
    ],
)
def test_what_an_index_serves_needs_none(query: str) -> None:
    assert books(query) == []


def test_both_styles_get_the_same_advice() -> None:
    document = '{ books(where: {title: {eq: "x"}}) { title } }'
    assert advised(Parameters(document)) == books("title=x&fields=title") == [FILTER + "title."]
    assert TOTAL in advised(Parameters("{ booksConnection { totalCount } }"))
