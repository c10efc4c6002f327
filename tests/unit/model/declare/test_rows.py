"""Rows as plain Python objects: made, read, assigned, and what is to be written of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from diptych.model.decimal_scalar import decimal
from diptych.model.declare import rows
from diptych.model.scalar_values import from_json, to_json
from diptych.model.scalars import BIGINT, BOOLEAN, DATE, DATETIME, FLOAT, ID, INT, INTEGER_ID, JSON, STRING, Scalar
from diptych.model.transfer import input_of, row_of
from tests.support.cases import cases
from tests.support.model_files import HEADER, declare

MODEL = """
class Color(StrEnum):
    red = "red"
    blue = "blue"

class Named:
    name: str = "nameless"

class Author(Named, Resource, ids="integer"):
    posts: list[Post] = inverse("author")

class Post(Resource):
    KINDS: ClassVar[tuple[str, ...]] = ("a", "b")
    title: str
    author: Author
    editor: Author | None = None
    color: Color = Color.red
    price: Annotated[Decimal, Digits(8, 2)] = Decimal("0.00")
    views: BigInt = 0
    day: date | None = None
    extra: Json = [1, {"a": 2}]

    @computed
    def teaser(self) -> str:
        return self.title[:3]

    def helper(self) -> str:
        return self.title.upper()
"""
GIVEN = {
    "id": "00000000-0000-7000-8000-00000000000a",
    "version": 3,
    "createdAt": "2026-01-31T12:00:00.000000Z",
    "updatedAt": "2026-01-31T12:00:00.000000Z",
    "title": "one",
    "authorId": "7",
    "editorId": None,
    "color": "blue",
    "price": "1.50",
    "views": "12345678901",
    "day": "2026-01-31",
    "extra": {"n": [1]},
    "teaser": "one",
}


@pytest.fixture(scope="module")
def blog() -> ModuleType:
    return declare(MODEL)


@pytest.fixture
def ann(blog: ModuleType) -> Any:
    return rows.reference(blog.Author, "7")


@pytest.fixture
def post(blog: ModuleType) -> Any:
    """A row as it is loaded."""
    return row_of(blog.built.resources, "Post", GIVEN)


def test_a_new_row_has_what_it_is_given_and_the_defaults_of_its_class(blog: ModuleType, ann: Any) -> None:
    post = blog.Post(title="x", author=ann, views=3)
    assert (post.title, post.author, post.views, post.color, post.editor) == ("x", ann, 3, blog.Color.red, None)
    assert (post.helper(), post.KINDS) == ("X", ("a", "b"))
    assert rows.is_new(post)
    assert repr(post) == "<Post new>"


def test_a_base_that_is_no_resource_gives_its_defaults_too(blog: ModuleType) -> None:
    assert blog.Author().name == "nameless"
    assert blog.Author(name="Ann").name == "Ann"


def test_a_default_that_can_be_changed_belongs_to_each_row(blog: ModuleType, ann: Any) -> None:
    one, two = blog.Post(title="x", author=ann), blog.Post(title="y", author=ann)
    one.extra.append(3)
    assert (one.extra, two.extra, blog.Post.extra) == ([1, {"a": 2}, 3], [1, {"a": 2}], [1, {"a": 2}])


@cases(
    ("call", "told"),
    [
        ("Post()", r"Post\(\) needs title, author"),
        ("Post(title='x')", r"Post\(\) needs author"),
        ("Post('x')", r"Post\(\) takes its fields by their names"),
        ("Post(title='x', author=None, titel='y')", "Post has no field 'titel'"),
        ("Post(title='x', author=None, author_id='7')", "Post has no field 'author_id'"),
        ("Post(title='x', author=None, id='7')", "Post.id is filled by the server, and cannot be given"),
        ("Post(title='x', author=None, teaser='y')", "Post.teaser is no field that can be given"),
        ("Post(title='x', author=None, KINDS=())", "Post.KINDS is no field that can be given"),
        ("Author(posts=[])", "Author.posts leads to many rows, and cannot be given"),
    ],
)
def test_a_row_that_cannot_be_made_says_why(blog: ModuleType, call: str, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        eval(call, vars(blog))


def test_what_is_not_known_of_a_row_is_not_there(blog: ModuleType, ann: Any) -> None:
    new = blog.Post(title="x", author=ann)
    part = rows.load_row(blog.Post, {"id": "1", "title": "x"})
    for row, attr, told in (
        (new, "id", "Post.id is not known before the row is saved"),
        (new, "teaser", "Post.teaser is computed by the database"),
        (ann, "posts", "Author.posts leads to many rows: ask for them by tx.select()"),
        (ann, "name", "only the id of this Author is known: load it by await tx.get(Author, …id)"),
        (part, "color", "Post.color was not loaded"),
        (part, "nope", "'Post' object has no attribute 'nope'"),
    ):
        with pytest.raises(AttributeError) as raised:
            getattr(row, attr)
        assert str(raised.value).startswith(told)
        assert not hasattr(row, attr)


@pytest.mark.parametrize(
    ("attr", "told"),
    [
        ("id", "Post.id is filled by the server"),
        ("version", "Post.version is filled by the server"),
        ("teaser", "Post.teaser is no field"),
        ("helper", "Post.helper is no field"),
        ("titel", "Post has no field 'titel'"),
    ],
)
def test_what_is_no_field_cannot_be_assigned(post: Any, attr: str, told: str) -> None:
    with pytest.raises(AttributeError, match=told):
        setattr(post, attr, "x")


def test_a_loaded_row_has_values_of_python(blog: ModuleType, post: Any) -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert (post.id, post.version, post.created_at, post.updated_at) == (GIVEN["id"], 3, noon, noon)
    assert (post.color, post.price, post.views) == (blog.Color.blue, Decimal("1.50"), 12345678901)
    assert (post.day, post.extra, post.editor, post.teaser) == (date(2026, 1, 31), {"n": [1]}, None, "one")
    assert type(post.color) is blog.Color
    assert (type(post.author), post.author.id, repr(post.author)) == (blog.Author, "7", "<Author 7>")
    assert (rows.is_new(post), rows.is_reference(post), rows.is_reference(post.author)) == (False, False, True)


def test_a_loaded_row_has_no_changes(post: Any) -> None:
    assert rows.changes(post) == {}


def test_changes_are_what_was_assigned_and_differs(blog: ModuleType, post: Any, ann: Any) -> None:
    post.title = "two"
    post.color = blog.Color.blue
    post.price = Decimal("1.5")
    post.author = ann
    assert rows.changes(post) == {"title": "two"}
    post.editor = ann
    post.day = None
    assert rows.changes(post) == {"title": "two", "editor": ann, "day": None}
    post.title = "one"
    assert rows.changes(post) == {"editor": ann, "day": None}


def test_json_that_was_changed_in_place_is_a_change(post: Any) -> None:
    post.extra["n"].append(2)
    assert rows.changes(post) == {"extra": {"n": [1, 2]}}


def test_a_new_row_writes_what_it_was_given_and_leaves_defaults_to_the_database(blog: ModuleType, ann: Any) -> None:
    post = blog.Post(title="x", author=ann, color=blog.Color.red)
    post.views = 3
    assert rows.changes(post) == {"title": "x", "author": ann, "color": blog.Color.red, "views": 3}


def test_what_the_database_computed_ends_with_an_assignment(post: Any) -> None:
    post.title = "two"
    with pytest.raises(AttributeError, match=r"Post\.teaser is computed by the database"):
        _ = post.teaser


def test_a_saved_row_is_as_the_database_has_it(blog: ModuleType, ann: Any) -> None:
    post = blog.Post(title="x", author=ann)
    post._note = "kept"
    rows.refresh(post, {"id": "1", "title": "X", "author": ann, "teaser": "X"})
    assert (post.id, post.title, post.teaser, post._note) == ("1", "X", "X", "kept")
    assert (rows.is_new(post), rows.changes(post)) == (False, {})
    assert not hasattr(post, "color")


def test_rows_are_what_they_are(post: Any) -> None:
    assert rows.is_row(post)
    assert not any(rows.is_row(each) for each in (None, "x", 3, {}, [], object()))
    assert post == post
    assert post != row_of_same(post)


def row_of_same(post: Any) -> Any:
    return rows.load_row(type(post), {"id": post.id})


def test_the_input_of_a_row_is_what_a_client_would_send(blog: ModuleType, post: Any, ann: Any) -> None:
    found = blog.built.resources["Post"]
    assert input_of(found, post) == {}
    post.author = rows.reference(blog.Author, "8")
    post.editor = ann
    post.color = blog.Color.red
    post.price = Decimal("2")
    post.day = date(2026, 2, 1)
    assert input_of(found, post) == {
        "authorId": "8",
        "editorId": "7",
        "color": "red",
        "price": "2",
        "day": "2026-02-01",
    }
    post.editor = None
    assert "editorId" not in input_of(found, post)
    new = blog.Post(title="x", author=ann)
    assert input_of(found, new) == {"title": "x", "authorId": "7"}


def test_a_relation_leads_to_a_row_that_is_saved(blog: ModuleType, post: Any) -> None:
    found = blog.built.resources["Post"]
    post.author = blog.Author(name="new")
    with pytest.raises(ValueError, match=r"Post\.author is not saved yet: await tx\.save\(\) it first"):
        input_of(found, post)
    post.author = "7"
    with pytest.raises(TypeError, match=r"Post\.author takes a row, not '7'"):
        input_of(found, post)


def test_rows_need_no_future_import(ann: Any) -> None:
    source = """
class A(Resource):
    LIMIT: ClassVar[int] = 3
    MOST: ClassVar = 4
    name: str
    b: "B | None" = None
class B(Resource):
    a: A
"""
    module = declare(source, HEADER.replace("from __future__ import annotations", ""))
    assert rows.changes(module.B(a=ann)) == {"a": ann}
    with pytest.raises(TypeError, match=r"A\(\) needs name"):
        module.A()


CENTS = decimal(8, 2)


@cases(
    ("scalar", "wire", "value"),
    [
        (STRING, "x", "x"),
        (INT, 3, 3),
        (BOOLEAN, True, True),
        (FLOAT, 1.5, 1.5),
        (BIGINT, "12345678901", 12345678901),
        (ID, "00000000-0000-7000-8000-00000000000a", "00000000-0000-7000-8000-00000000000a"),
        (INTEGER_ID, "7", "7"),
        (CENTS, "1.50", Decimal("1.50")),
        (DATE, "2026-01-31", date(2026, 1, 31)),
        (DATETIME, "2026-01-31T12:00:00.000001Z", datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)),
        (DATETIME, "0001-01-01T00:00:00.000000Z", datetime(1, 1, 1, tzinfo=UTC)),
        (JSON, {"a": [None]}, {"a": [None]}),
        (STRING, None, None),
        (DATETIME, None, None),
    ],
)
def test_values_travel_both_ways(scalar: Scalar, wire: Any, value: Any) -> None:
    found = from_json(scalar, wire)
    assert (found, type(found)) == (value, type(value))
    assert to_json(scalar, value) == wire


def test_canonical_values_become_values_of_python() -> None:
    assert from_json(FLOAT, 1) == 1.0
    assert type(from_json(FLOAT, 1)) is float
    assert from_json(INTEGER_ID, 7) == "7"
    assert from_json(BIGINT, 7) == 7
    assert from_json(CENTS, Decimal("1.50")) == Decimal("1.50")


def test_an_enum_is_its_member_in_python(blog: ModuleType) -> None:
    scalar = blog.built.resources["Post"].fields["color"].scalar
    assert from_json(scalar, "red") is blog.Color.red
    assert to_json(scalar, blog.Color.red) == "red"
    assert type(to_json(scalar, blog.Color.red)) is str


@pytest.mark.parametrize(
    ("scalar", "value", "told"),
    [
        (STRING, 3, "expected a string"),
        (INT, 2**31, "expected an integer of 32 bits"),
        (CENTS, Decimal("1.234"), "expected at most 2 digits after the point"),
        (DATETIME, datetime(2026, 1, 31), "expected a moment with a zone"),
        (JSON, object(), "expected JSON"),
        (FLOAT, float("nan"), "expected a finite number"),
    ],
)
def test_a_value_that_does_not_fit_says_what_was_expected(scalar: Scalar, value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        to_json(scalar, value)
