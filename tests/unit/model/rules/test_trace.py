"""Rules and computed fields run once, on stand-ins, and leave an expression behind."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from diptych.model.decimal_scalar import decimal
from diptych.model.rules.expr import (
    FALSE,
    TRUE,
    And,
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    Has,
    HasRole,
    IsNull,
    May,
    Not,
    Or,
    Slice,
    ViewerId,
)
from diptych.model.scalars import BIGINT, DATE, DATETIME, FLOAT, INT, INTEGER_ID, STRING, Scalar
from tests.support.cases import cases
from tests.support.tracing import made, rule

TITLE, BODY, SIZE, PUBLISHED, HIDDEN = (Col((name,)) for name in ("title", "body", "size", "published", "hidden"))
MINE = Compare("eq", Col(("authorId",)), ViewerId())


def compare(op: Any, name: str, value: Any, scalar: Scalar) -> Expr:
    return Compare(op, Col((name,)), Const(value, scalar))


@cases(
    ("text", "expr"),
    [
        ("self.title == 'x'", compare("eq", "title", "x", STRING)),
        ("'x' == self.title", compare("eq", "title", "x", STRING)),
        ("self.title != 'x'", Not(compare("eq", "title", "x", STRING))),
        ("self.size < 3", compare("lt", "size", 3, INT)),
        ("self.size <= 3", compare("lte", "size", 3, INT)),
        ("self.size > 3", compare("gt", "size", 3, INT)),
        ("self.size >= 3", compare("gte", "size", 3, INT)),
        ("3 < self.size", compare("gt", "size", 3, INT)),
        ("self.size == self.LIMIT + 1", None),
        ("self.size == self.size", Compare("eq", SIZE, SIZE)),
        ("self.views > 2**40", compare("gt", "views", 2**40, BIGINT)),
        ("self.score > 1", compare("gt", "score", 1.0, FLOAT)),
        ("self.price > Decimal('9.9')", compare("gt", "price", Decimal("9.90"), decimal(8, 2))),
        ("self.price > 9", compare("gt", "price", Decimal("9.00"), decimal(8, 2))),
        ("self.day == date(2024, 2, 29)", compare("eq", "day", "2024-02-29", DATE)),
        (
            "self.placed_at < datetime(2024, 1, 1, tzinfo=UTC)",
            compare("lt", "placedAt", "2024-01-01T00:00:00.000000Z", DATETIME),
        ),
        (
            "self.created_at < datetime(2024, 1, 1, tzinfo=UTC)",
            compare("lt", "createdAt", "2024-01-01T00:00:00.000000Z", DATETIME),
        ),
        ("self.ticket.id == '7'", Compare("eq", Col(("ticketId",)), Const(7, INTEGER_ID))),
    ],
)
def test_a_comparison_with_a_constant(text: str, expr: Expr | None) -> None:
    if expr is None:
        text = text.replace("self.LIMIT + 1", "Post.LIMIT + 1")
        expr = compare("eq", "size", 4, INT)
    assert rule(text) == expr


def test_an_enum_is_compared_by_its_value() -> None:
    found = rule("self.status == Status.old")
    assert isinstance(found, Compare)
    assert isinstance(found.right, Const)
    assert (found.left, found.right.value, found.right.scalar.name) == (Col(("status",)), "old", "Status")


@cases(
    ("text", "expr"),
    [
        ("self.published", PUBLISHED),
        ("self.published | self.hidden", Or((PUBLISHED, HIDDEN))),
        ("self.published & self.hidden", And((PUBLISHED, HIDDEN))),
        ("~self.published", Not(PUBLISHED)),
        ("not_(self.published)", Not(PUBLISHED)),
        ("not_(not_(self.published))", PUBLISHED),
        ("self.published & self.published", PUBLISHED),
        ("(self.published & self.hidden) & (self.author.id == viewer.id)", And((PUBLISHED, HIDDEN, MINE))),
        ("self.published | (self.author.id == viewer.id)", Or((PUBLISHED, MINE))),
        ("is_null(self.body)", IsNull(BODY)),
        ("not_(is_null(self.body))", Not(IsNull(BODY))),
        ("is_null(self.editor.id)", IsNull(Col(("editorId",)))),
        ("is_null(viewer.id)", IsNull(ViewerId())),
        ("one_of(self.size, 1, 2)", Or((compare("eq", "size", 1, INT), compare("eq", "size", 2, INT)))),
        ("one_of(self.size, 1)", compare("eq", "size", 1, INT)),
        ("one_of(self.size)", FALSE),
        ("one_of(viewer.id, self.author.id)", Compare("eq", ViewerId(), Col(("authorId",)))),
        ("contains(self.title, 'x')", compare("contains", "title", "x", STRING)),
        ("contains(self.title, self.author.name)", Compare("contains", TITLE, Col(("author", "name")))),
        ("may_read(self.author)", May(("author",))),
        ("may_read(self.author.boss)", May(("author", "boss"))),
        ("some(self.author.posts)", Has("author", Has("posts", TRUE))),
        ("some(self.author.posts, lambda post: post.hidden)", Has("author", Has("posts", HIDDEN))),
        ("none(self.author.posts, lambda post: post.hidden)", Not(Has("author", Has("posts", HIDDEN)))),
        ("every(self.author.posts, lambda post: post.hidden)", Not(Has("author", Has("posts", Not(HIDDEN))))),
        (
            "some(self.author.boss.posts, lambda post: post.author.id == viewer.id)",
            Has("author", Has("boss", Has("posts", MINE))),
        ),
        (
            "some(self.author.posts, lambda post: post.id == viewer.id)",
            Has("author", Has("posts", Compare("eq", Col(("id",)), ViewerId()))),
        ),
        (
            "some(self.author.posts, lambda a: some(a.editor.posts, lambda b: b.hidden) & a.published)",
            Has("author", Has("posts", And((Has("editor", Has("posts", HIDDEN)), PUBLISHED)))),
        ),
        ("some(self.author.posts, may_read)", Has("author", Has("posts", May(())))),
        (
            "some(self.author.posts, lambda post: may_read(post.author.boss))",
            Has("author", Has("posts", May(("author", "boss")))),
        ),
        (
            "some(self.author.posts, lambda post: helper(post, viewer))",
            Has("author", Has("posts", And((PUBLISHED, MINE)))),
        ),
        ("viewer.has(admin)", HasRole("admin")),
        ("viewer.has(signed_in) & self.published", And((HasRole("signed_in"), PUBLISHED))),
        ("viewer.id == self.author.id", Compare("eq", ViewerId(), Col(("authorId",)))),
        ("self.author.id != viewer.id", Not(MINE)),
        ("self.ticket.id == viewer.id", Compare("eq", Col(("ticketId",)), ViewerId())),
        ("either(self.published, self.hidden, self.published)", Choose(PUBLISHED, HIDDEN, PUBLISHED)),
        (
            "either(self.published, self.title, 'x') == 'y'",
            Compare("eq", Choose(PUBLISHED, TITLE, Const("x", STRING)), Const("y", STRING)),
        ),
        ("self.title[:3] == 'abc'", Compare("eq", Slice(TITLE, 0, 3), Const("abc", STRING))),
        ("self.title + '!' == 'a!'", Compare("eq", Concat((TITLE, Const("!", STRING))), Const("a!", STRING))),
        ("helper(self, viewer)", And((PUBLISHED, MINE))),
    ],
)
def test_a_condition(text: str, expr: Expr) -> None:
    assert rule(text) == expr


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("self.author.name", ("author", "name")),
        ("self.author.boss.name", ("author", "boss", "name")),
        ("given(self.author.boss).name", ("author", "boss", "name")),
        ("self.author.short", ("author", "short")),
        ("given(self.body)", ("body",)),
    ],
)
def test_a_path_of_to_one_relations(text: str, path: tuple[str, ...]) -> None:
    assert rule(f"{text} == 'x'") == Compare("eq", Col(path), Const("x", STRING))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("self.author.id", ("authorId",)),
        ("self.author.boss.id", ("author", "bossId")),
        ("self.author_id", ("authorId",)),
        ("given(self.editor).id", ("editorId",)),
        ("self.id", ("id",)),
    ],
)
def test_the_id_of_a_related_row_stands_in_this_row(text: str, path: tuple[str, ...]) -> None:
    assert rule(f"{text} == viewer.id") == Compare("eq", Col(path), ViewerId())


def test_a_rule_may_take_steps() -> None:
    text = "mine = self.author.id == viewer.id\nopen = self.published & not_(self.hidden)\nreturn mine | open"
    assert rule(text) == Or((MINE, And((PUBLISHED, Not(HIDDEN)))))


@cases(
    ("kind", "text", "expr"),
    [
        ("str", "self.title[:200]", Slice(TITLE, 0, 200)),
        ("str", "self.title[2:5]", Slice(TITLE, 2, 3)),
        ("str", "self.title[2:]", Slice(TITLE, 2, None)),
        ("str", "self.title[:]", Slice(TITLE, 0, None)),
        ("str", "'<' + self.title + '>'", Concat((Concat((Const("<", STRING), TITLE)), Const(">", STRING)))),
        ("str", "self.author.name", Col(("author", "name"))),
        ("str", "self.author.short", Col(("author", "short"))),
        ("str", "'always'", Const("always", STRING)),
        ("str | None", "self.body", BODY),
        ("bool", "self.size > 3", compare("gt", "size", 3, INT)),
        ("int", "either(self.published, 1, 2)", Choose(PUBLISHED, Const(1, INT), Const(2, INT))),
        ("str", "either(is_null(self.body), 'none', self.title)", Choose(IsNull(BODY), Const("none", STRING), TITLE)),
        ("Annotated[Decimal, Digits(8, 2)]", "self.price", Col(("price",))),
        ("BigInt", "self.views", Col(("views",))),
        ("Id", "self.author.id", Col(("authorId",))),
        ("Json | None", "self.extra", Col(("extra",))),
    ],
)
def test_a_computed_field(kind: str, text: str, expr: Expr) -> None:
    assert made(kind, text).computed == expr


def test_a_computed_field_can_choose_between_members_of_an_enum() -> None:
    found = made("Status", "either(self.published, Status.new, Status.old)")
    assert isinstance(found.computed, Choose)
    assert found.scalar.name == "Status"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("str | None", "self.body[:3]"),
        ("str | None", "self.title + self.body"),
        ("str | None", "self.editor.name"),
        ("str | None", "self.author.boss.name"),
        ("str | None", "either(self.published, self.body, 'x')"),
    ],
)
def test_a_computed_field_that_can_be_null_is_declared_so(kind: str, text: str) -> None:
    assert made(kind, text).nullable


def test_equal_rules_are_equal_expressions() -> None:
    text = "self.published | (self.author.id == viewer.id)"
    assert rule(text) == rule(text)
    assert hash(rule(text)) == hash(rule(text))
