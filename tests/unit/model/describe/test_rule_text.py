"""Rules told as text: every kind of expression has its words, and parentheses stand where the sense needs them."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from diptych import Model, Resource, Viewer, allow, inverse
from diptych.model.decimal_scalar import decimal
from diptych.model.describe.rule_text import in_words, render
from diptych.model.operators import Op
from diptych.model.rules.expr import (
    FALSE,
    NULL,
    TRUE,
    And,
    Choose,
    Col,
    Compare,
    Concat,
    Const,
    Expr,
    GroupKey,
    Has,
    HasRole,
    IsNull,
    KeyText,
    Mask,
    Matches,
    May,
    Measure,
    Moment,
    Not,
    Or,
    Part,
    RowDigest,
    Shift,
    Slice,
    Slot,
    Span,
    Via,
    ViewerId,
    ViewerValue,
)
from diptych.model.scalars import BOOLEAN, DATE, DATETIME, INT, STRING
from tests.support.cases import cases

FLAG, TITLE, OWN = Col(("flag",)), Col(("title",)), Compare("eq", Col(("authorId",)), ViewerId())


def text(value: str) -> Const:
    return Const(value, STRING)


def equals(value: str) -> Compare:
    return Compare("eq", TITLE, text(value))


TOLD: list[tuple[Expr, str]] = [
    (Moment(DATETIME), "now()"),
    (Moment(DATE), "today()"),
    (TRUE, "always"),
    (FALSE, "never"),
    (Or((Col(("published",)), OWN)), "published or author.id = viewer.id"),
    (And((FLAG, Or((FLAG, OWN)))), "flag and (flag or author.id = viewer.id)"),
    (Or((And((FLAG, OWN)), FLAG)), "flag and author.id = viewer.id or flag"),
    (Not(FLAG), "not flag"),
    (Not(And((FLAG, OWN))), "not (flag and author.id = viewer.id)"),
    (Not(Not(FLAG)), "not not flag"),
    (Not(Compare("lt", Col(("size",)), Const(5, INT))), "not size < 5"),
    (Col(("post", "author", "name")), "post.author.name"),
    (Col(("post", "authorId")), "post.author.id"),
    (Col(("id",)), "id"),
    (Not(OWN), "author.id != viewer.id"),
    (Compare("lte", Col(("size",)), Const(-5, INT)), "size <= -5"),
    (Compare("gt", Col(("total",)), Const(Decimal("1.00"), decimal(12, 2))), "total > 1.00"),
    (Compare("gte", Col(("size",)), Col(("least",))), "size >= least"),
    (Compare("contains", TITLE, text("it's")), 'title contains "it\'s"'),
    (Compare("startsWith", TITLE, text("a")), "title starts with 'a'"),
    (Compare("iendsWith", TITLE, text("a")), "title ends like 'a'"),
    (Matches((TITLE, Col(("body",))), Slot(0, STRING)), "title, body match ?"),
    (Compare("in", TITLE, Slot(0, STRING, many=True)), "title in (?)"),
    (Or((equals("a"), equals("b"))), "title in ('a', 'b')"),
    (Or((equals("a"), FLAG, equals("b"))), "title in ('a', 'b') or flag"),
    (Not(Or((equals("a"), equals("b")))), "not title in ('a', 'b')"),
    (And((FLAG, Or((equals("a"), equals("b"))))), "flag and title in ('a', 'b')"),
    (Or((FLAG, Compare("eq", FLAG, Const(True, BOOLEAN)))), "flag or flag = true"),
    (Compare("eq", FLAG, Const(False, BOOLEAN)), "flag = false"),
    (IsNull(TITLE), "title is null"),
    (Not(IsNull(TITLE)), "title is not null"),
    (IsNull(ViewerId()), "viewer.id is null"),
    (ViewerId(), "viewer.id"),
    (NULL, "null"),
    (Slot(3, INT), "?"),
    (Compare("eq", TITLE, ViewerValue("tenant", STRING)), "title = viewer.tenant"),
    (Compare("in", TITLE, ViewerValue("teams", STRING, many=True)), "title in viewer.teams"),
    (ViewerValue("tenant", STRING), "viewer.tenant"),
    (HasRole("staff"), "viewer is staff"),
    (Not(HasRole("staff")), "viewer is not staff"),
    (May(("post",)), "may read post"),
    (May(("about", "parent")), "may read about.parent"),
    (Has("works", May(())), "some works (may read it)"),
    (Not(May(("post",))), "may not read post"),
    (Has("members", Compare("eq", Col(("userId",)), ViewerId())), "some members (user.id = viewer.id)"),
    (Has("members", TRUE), "some members"),
    (Not(Has("members", FLAG)), "none members (flag)"),
    (Not(Has("members", TRUE)), "none members"),
    (Not(Has("members", Not(FLAG))), "every members (flag)"),
    (Has("tags", FLAG, Col(("public",))), "some tags (flag) through (public)"),
    (Has("tags", FLAG, TRUE), "some tags (flag)"),
    (Mask(Or((FLAG, OWN)), TITLE), "title where flag or author.id = viewer.id"),
    (Slice(TITLE, 1, 3), "title[1:4]"),
    (Slice(TITLE, 0, 3), "title[:3]"),
    (Slice(Concat((TITLE, text("!"))), 2, None), "(title + '!')[2:]"),
    (Concat((text("<"), Slice(TITLE, 0, 1), text(">"))), "'<' + title[:1] + '>'"),
    (Compare("eq", Concat((TITLE, text("!"))), TITLE), "title + '!' = title"),
    (
        Choose(FLAG, TITLE, Choose(OWN, text("a"), text("b"))),
        "title if flag else ('a' if author.id = viewer.id else 'b')",
    ),
    (Concat((TITLE, Choose(FLAG, text("a"), text("b")))), "title + ('a' if flag else 'b')"),
    (Part(TITLE, "city", STRING), "title.city"),
    (Shift(TITLE, timedelta(days=7)), "title + timedelta(days=7)"),
    (Compare("lt", Shift(TITLE, -timedelta(hours=1)), Moment(DATETIME)), "title - timedelta(seconds=3600) < now()"),
    (Moment(DATE, -timedelta(days=7)), "today() - timedelta(days=7)"),
    (Span(Moment(DATETIME), Shift(TITLE, timedelta(days=1))), "now() - (title + timedelta(days=1))"),
    (Or((FLAG, Mask(OWN, FLAG))), "flag or (flag where author.id = viewer.id)"),
    (Compare("gte", Measure("count", relation="works"), Slot(0, INT)), "works.count >= ?"),
    (Measure("sum", Col(("total",)), "works"), "works.total.sum"),
    (Via("author", Col(("name",))), "author.name"),
    (GroupKey(TITLE), "title"),
    (KeyText((TITLE, TITLE)), "(title, title)"),
    (RowDigest(), "version"),
]


@cases(("expr", "told"), TOLD, ids=[told for _, told in TOLD])
def test_an_expression_has_its_words(expr: Expr, told: str) -> None:
    assert render(expr) == told


def test_every_kind_of_expression_and_every_operator_is_told() -> None:
    assert {type(expr) for expr, _ in TOLD} == set(get_args(Expr))
    for op in get_args(Op):
        assert render(Compare(op, TITLE, text("a"))).startswith("title ")


def test_nothing_in_a_constant_passes_for_a_word_or_moves_a_cursor() -> None:
    told = render(equals("' or viewer is admin or '\n\x1b[2J\x9b\u202e\u2028"))
    assert told == "title = \"' or viewer is admin or '\\n\\x1b[2J\\x9b\\u202e\\u2028\""
    assert told.isprintable()


# the sense

_FLAGS = ("a", "b", "c")
_WORLDS = [dict(zip(_FLAGS, values, strict=True)) for values in itertools.product((False, True), repeat=3)]
_conditions = st.recursive(
    st.sampled_from([Col((name,)) for name in _FLAGS]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda of: And(tuple(of))),
        st.lists(inner, max_size=3).map(lambda of: Or(tuple(of))),
        inner.map(Not),
        st.tuples(inner, inner, inner).map(lambda of: Choose(*of)),
        inner.map(lambda of: Compare("eq", Choose(of, text("x"), text("y")), text("x"))),
    ),
    max_leaves=12,
)


def sense(expr: Any, world: dict[str, bool]) -> Any:
    """What an expression is in a world where each flag is true or false."""
    match expr:
        case Col((name,)):
            return world[name]
        case Const(value):
            return value
        case And(of):
            return all(sense(part, world) for part in of)
        case Or(of):
            return any(sense(part, world) for part in of)
        case Not(of):
            return not sense(of, world)
        case Choose(when, then, other):
            return sense(then if sense(when, world) else other, world)
        case Compare("eq", left, right):
            return sense(left, world) == sense(right, world)
    raise AssertionError(expr)


@given(_conditions)
def test_what_is_told_has_the_sense_of_the_expression(expr: Expr) -> None:
    """Told in these words a condition is one of Python's, which has the same precedence."""
    told = re.sub("(?<!!)=", "==", render(expr)).replace("always", "True").replace("never", "False")
    for world in _WORLDS:
        assert eval(told, {}, dict(world)) == sense(expr, world), told


# the words of a model file


class Writer(Resource):
    pen_name: str
    works: list[Work] = inverse("written_by")


class Work(Resource):
    written_by: Writer
    foreign_id: str

    @allow("read")
    def shown(self, viewer: Viewer) -> bool:
        return (self.written_by.id == viewer.id) | (self.foreign_id == self.written_by.pen_name)


MODEL = Model(Writer, Work)


def test_a_field_has_the_name_of_the_model_file_if_that_is_known() -> None:
    (rule,) = MODEL.resources["Work"].rules
    told = render(in_words(rule.expr, MODEL.resources, "Work"))
    assert told == "written_by.id = viewer.id or foreign_id = written_by.pen_name"


def test_the_rows_of_a_relation_have_the_names_of_their_own_class() -> None:
    has = Has("works", And((Col(("foreignId",)), May(("writtenBy",)))))
    assert render(in_words(has, MODEL.resources, "Writer")) == "some works (foreign_id and may read written_by)"


def test_the_many_rows_of_one_row_are_told_in_one_step() -> None:
    has = Has("writtenBy", Has("works", Col(("foreignId",))))
    assert render(in_words(has, MODEL.resources, "Work")) == "some written_by.works (foreign_id)"
    assert render(in_words(Not(has), MODEL.resources, "Work")) == "none written_by.works (foreign_id)"
    other = Has("works", Has("writtenBy", Col(("penName",))))
    assert render(in_words(other, MODEL.resources, "Writer")) == "some works (some written_by (pen_name))"
