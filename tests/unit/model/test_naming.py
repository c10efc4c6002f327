"""Names: a class gives a type, a path, a table and root fields; a field has one name in both styles (B1)."""

from __future__ import annotations

import pytest

from diptych.model.naming import camel, kebab, plural, snake, upper_first
from tests.support.cases import cases
from tests.support.model_files import resource


def test_a_class_gives_a_type_a_path_a_table_and_root_fields() -> None:
    found = resource("class OrderLine(Resource):\n    name: str")
    assert (found.name, found.path, found.table) == ("OrderLine", "order-lines", "order_lines")
    assert (found.one, found.many, found.connection) == ("orderLine", "orderLines", "orderLinesConnection")


@cases(
    ("name", "one", "many", "path"),
    [
        ("User", "user", "users", "users"),
        ("Category", "category", "categories", "categories"),
        ("Day", "day", "days", "days"),
        ("Bus", "bus", "buses", "buses"),
        ("Box", "box", "boxes", "boxes"),
        ("Church", "church", "churches", "churches"),
        ("HTTPRequest", "httpRequest", "httpRequests", "http-requests"),
        ("Version2", "version2", "version2s", "version2s"),
        ("PDFFile", "pdfFile", "pdfFiles", "pdf-files"),
    ],
)
def test_the_regular_plural_is_made(name: str, one: str, many: str, path: str) -> None:
    found = resource(f"class {name}(Resource):\n    name: str")
    assert (found.one, found.many, found.path) == (one, many, path)


@pytest.mark.parametrize(
    ("given", "many", "path", "table"),
    [
        ("people", "people", "people", "people"),
        ("all-people", "allPeople", "all-people", "all_people"),
        ("all_people", "allPeople", "all-people", "all_people"),
    ],
)
def test_a_plural_can_be_given(given: str, many: str, path: str, table: str) -> None:
    found = resource(f"class Person(Resource, plural='{given}'):\n    name: str")
    assert (found.one, found.many, found.path, found.table) == ("person", many, path, table)


def test_a_field_has_one_name_on_the_wire_and_its_own_as_column() -> None:
    field = resource("class Order(Resource):\n    placed_at: datetime").fields["placedAt"]
    assert (field.name, field.attr, field.column) == ("placedAt", "placed_at", "placed_at")


def test_a_trailing_underscore_frees_a_word_of_python() -> None:
    field = resource("class Mail(Resource):\n    from_: str").fields["from"]
    assert (field.name, field.column) == ("from", "from_")


def test_a_relation_to_one_is_two_fields() -> None:
    found = resource("class Post(Resource):\n    lead_author: User\nclass User(Resource):\n    name: str")
    assert found.relations["leadAuthor"].column == "lead_author_id"
    assert found.fields["leadAuthorId"].column == "lead_author_id"
    assert found.fields["leadAuthorId"].relation == "leadAuthor"


def test_a_name_may_be_a_reserved_query_parameter() -> None:
    fields = resource("class Race(Resource):\n    first: int\n    sort: str\n    where: str").fields
    assert {"first", "sort", "where"} <= fields.keys()


def test_words_change_their_case() -> None:
    assert [camel(each) for each in ("a", "placed_at", "line_2", "a_b_c")] == ["a", "placedAt", "line2", "aBC"]
    assert [snake(each) for each in ("OrderLine", "HTTPRequest", "A")] == ["order_line", "http_request", "a"]
    assert [kebab("orderLines"), upper_first("orderLine"), upper_first("")] == ["order-lines", "OrderLine", ""]
    assert [plural(each) for each in ("key", "city", "glass", "wish")] == ["keys", "cities", "glasses", "wishes"]
