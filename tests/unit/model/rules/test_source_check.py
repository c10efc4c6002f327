"""Two nets under a rule: what Python would decide before SQL sees the row is refused, and says how to write it."""

from __future__ import annotations

import sys

import pytest

from diptych.errors import ModelError
from tests.support.cases import cases
from tests.support.model_files import declare, model_of
from tests.support.tracing import refusal

BY_SOURCE = [
    ("self.published and self.hidden", "'and' cannot be traced to SQL; write &"),
    ("self.published or self.hidden", "'or' cannot be traced to SQL; write |"),
    ("not self.published", "'not' cannot be traced to SQL; write not_(x)"),
    ("self.body is None", "'is' cannot be traced to SQL; write is_null(x)"),
    ("self.body is not None", "'is not' cannot be traced to SQL; write not_(is_null(x))"),
    ("self.status in (Status.new, Status.old)", "'in' cannot be traced to SQL; write one_of(x, …)"),
    ("self.status not in (Status.new,)", "'not in' cannot be traced to SQL; write not_(one_of(x, …))"),
    ("self.hidden if self.published else self.published", "'if' cannot be traced to SQL; write either("),
    ("if self.published:\n    return self.hidden\nreturn self.published", "'if' cannot be traced to SQL"),
    ("while self.published:\n    pass\nreturn self.hidden", "'while' cannot be traced to SQL"),
    ("for each in self.title:\n    pass\nreturn self.hidden", "'for' cannot be traced to SQL"),
    ("any([part == 'x' for part in self.title])", "'for' cannot be traced to SQL"),
    ("any(part == 'x' for part in self.title)", "'for' cannot be traced to SQL"),
    ("self.title == f'{self.body}'", "'f-string' cannot be traced to SQL; write a + b"),
    ("try:\n    return self.hidden\nexcept TypeError:\n    return self.published", "'try' cannot be traced"),
    ("(it := self.hidden)", "':=' cannot be traced to SQL"),
    ("match self.title:\n    case 'x':\n        return self.hidden\nreturn self.published", "'match' cannot"),
    ("assert self.published\nreturn self.hidden", "'assert' cannot be traced to SQL"),
    ("with open('x'):\n    return self.hidden\nreturn self.published", "'with' cannot be traced to SQL"),
    ("(lambda row: row.hidden or row.published)(self)", "'or' cannot be traced to SQL"),
    ("some(self.author.posts, lambda post: post.body is None)", "'is' cannot be traced to SQL"),
    ("some(self.author.posts, lambda post: not post.hidden)", "'not' cannot be traced to SQL"),
    ("some(self.author.posts, careless)", "it calls careless(), where 'if' cannot be traced"),
    ("every(self.author.posts, Tools.either_of)", "it calls either_of(), where 'or' cannot be traced"),
    ("check = careless\nreturn some(self.author.posts, check)", "it calls careless(), where 'if' cannot be traced"),
    ("yield self.hidden\nreturn", "'yield' cannot be traced to SQL"),
    ("1 < self.size < 3", "a chained comparison cannot be traced to SQL; write (a < b) & (b < c)"),
    ("self.published == (self.body is not None)", "'is not' cannot be traced"),
    ("def inner():\n    return self.published or self.hidden\nreturn inner()", "'or' cannot be traced"),
    ("self.placed_at < datetime.now(UTC)", "'now()' would be the moment of the start"),
    ("self.day < date.today()", "'today()' would be the moment of the start"),
    ("careless(self)", "it calls careless(), where 'if' cannot be traced"),
    ("deeper(self)", "it calls deeper(), where it calls careless(), where 'if' cannot be traced"),
    ("Tools.either_of(self)", "it calls either_of(), where 'or' cannot be traced"),
]

_OTHER = "the condition on one of many rows asks about another row"

UNHASHABLE = "cannot use" if sys.version_info >= (3, 14) else "unhashable"
"""How Python begins to say that a value cannot be a key."""
BY_VALUE = [
    ("bool(self.published)", "a traced value has no truth in Python; write & | not_()"),
    ("all([self.published, self.hidden])", "a traced value has no truth in Python"),
    ("max(self.size, 3) == 3", "a traced value has no truth in Python"),
    ("bool(self.author)", "a row has no truth in Python; write is_null(self.author.id)"),
    ("True", "True was decided in Python before SQL saw the row"),
    ("False", "False was decided in Python"),
    ("None", "it gives nothing; write return before the condition"),
    ("pass", "it gives nothing; write return before the condition"),
    ("1 == 1", "True was decided in Python"),
    ("'x'", "'x' was decided in Python"),
    ("self.published | True", "True was decided in Python"),
    ("True & self.published", "True was decided in Python"),
    ("self.published & isinstance(self.body, str)", "False was decided in Python"),
    ("self.published == True", "True was decided in Python"),
    ("self.published == isinstance(self.body, str)", "False was decided in Python"),
    ("self.size == True", "True was decided in Python"),
    ("one_of(self.published, True)", "True was decided in Python"),
    ("not_(True)", "True was decided in Python"),
    ("either(self.published, True, self.hidden)", "True was decided in Python"),
    ("either(True, self.published, self.hidden)", "True was decided in Python"),
    ("self.body == None", "a comparison with None is never true; write is_null(x)"),
    ("None != self.body", "a comparison with None is never true"),
    ("self.author == viewer", "a row cannot be compared; compare its id"),
    ("self.author != self.editor", "a row cannot be compared; compare its id"),
    ("self.title == self.author", "a row cannot be compared; compare its id"),
    ("self.author", "was decided in Python"),
    ("self.title", "a condition is wanted, and this is of type String; compare it"),
    ("self.title & self.published", "a condition is wanted, and this is of type String"),
    ("self.published | self.size", "a condition is wanted, and this is of type Int"),
    ("not_(self.title)", "a condition is wanted, and this is of type String"),
    ("len(self.title) > 3", "len() cannot be traced to SQL"),
    ("str(self.size) == '3'", "str() cannot be traced to SQL; join text by +"),
    ("'{}'.format(self.title) == 'x'", "formatting cannot be traced to SQL; join text by +"),
    ("'%s' % self.title == 'x'", "str() cannot be traced to SQL"),
    ("format(self.title, '>3') == 'x'", "formatting cannot be traced"),
    ("list(self.title) == []", "a traced value cannot be looped over"),
    ("self.title.lower() == 'x'", "'.lower' of a String cannot be traced to SQL"),
    ("self.title.__contains__('x')", "'in' cannot be traced to SQL; write contains(text, part)"),
    ("self.size + 1 == 2", "only text can be joined by +; other arithmetic cannot be traced"),
    ("1 + self.size == 2", "only text can be joined by +"),
    ("self.title + 3 == 'x'", "3 is not valid here: expected a string"),
    ("self.size - 1 == 2", "Int cannot be subtracted from Int"),
    ("-self.size == 2", "it failed while it was traced: bad operand"),
    ("{self.size: 1}", f"it failed while it was traced: {UNHASHABLE}"),
    ("int(self.score) == 1", "it failed while it was traced: int() argument"),
    ("math.floor(self.score) == 1", "it failed while it was traced"),
    ("self.title[0] == 'x'", "only text can be cut, and only as text[a:b] or text[:b]"),
    ("self.title[::2] == 'x'", "only text can be cut"),
    ("self.size[:2] == 'x'", "only text can be cut"),
    ("self.title[:-1] == 'x'", "the bounds of a cut are constants, zero or greater, in order"),
    ("self.title[3:1] == 'x'", "the bounds of a cut are constants"),
    ("self.title[:self.size] == 'x'", "the bounds of a cut are constants"),
    ("self.title[:10**30] == 'x'", "the bounds of a cut are constants"),
    ("self.title == 3", "3 is not valid here: expected a string"),
    ("self.size == 'x'", "'x' is not valid here: expected an integer"),
    ("self.size == 2**40", "is not valid here: expected an integer of 32 bits"),
    ("self.price == 1.5", "1.5 is not valid here: expected a decimal number"),
    ("self.price == Decimal('0.001')", "expected at most 2 digits after the point"),
    ("self.placed_at < datetime(2024, 1, 1)", "expected a moment with a zone"),
    ("self.day == '2023-02-29'", "expected a date that exists"),
    ("self.status == 'newish'", "expected one of new, old"),
    ("self.status == Other.new", "expected a value of type Status"),
    ("self.id == 'me'", "'me' is not valid here: expected an id"),
    ("self.id != 'me'", "'me' is not valid here: expected an id"),
    ("self.ticket.id == 'x'", "'x' is not valid here: expected an id"),
    ("self.title == self.size", "String and Int cannot be compared"),
    ("self.size == self.views", "Int and BigInt cannot be compared"),
    ("self.price == self.cost", "Decimal(8,2) and Decimal(8,3) cannot be compared"),
    ("self.ticket.id == self.author.id", "IntegerID and ID cannot be compared"),
    ("self.title == viewer.id", "String and ID cannot be compared"),
    ("self.id < viewer.id", "values of type ID cannot be compared so"),
    ("self.published < self.hidden", "values of type Boolean cannot be compared so"),
    ("self.extra == 3", "values of type JSON cannot be compared so"),
    ("is_null(self.body) == is_null(self.title)", "two conditions cannot be compared; write (a & b) |"),
    ("is_null('x')", "is_null() takes a field"),
    ("is_null(self.author)", "is_null() takes a field; write is_null(self.author.id)"),
    ("one_of('x', self.title)", "one_of() takes a field first, then the values"),
    ("contains('x', self.title)", "contains() takes a text field first, then the text to find"),
    ("contains(self.size, 'x')", "contains() takes a text field first"),
    ("contains(self.title, self.size)", "contains() takes a text field first"),
    ("contains(self.title, 3)", "3 is not valid here: expected a string"),
    ("given('x')", "given() takes a field or a to-one relation"),
    ("either(self.published, self.title, self.size) == 'x'", "either() has the types String and Int; both sides need"),
    ("either(self.published, Decimal(1), Decimal(2)) == 1", "the type of either() is not clear"),
    ("may_read(self)", "may_read() takes a to-one relation, such as may_read(self.post)"),
    ("may_read(self.title)", "may_read() takes a to-one relation"),
    ("viewer.has('admin')", "viewer.has() takes a Role"),
    ("viewer.name == self.title", "a viewer has `id` and `has(role)`, and no 'name'; declare it: class Member"),
    ("viewer.roles", "a viewer has `id` and `has(role)`, and no 'roles'"),
    ("self.titel == 'x'", "Post has no field 'titel'; there is 'title'"),
    ("self.author.titel == 'x'", "Author has no field 'titel'"),
    ("self.author.posts.title == 'x'", "it leads to many rows; write some(self.members, lambda member: …)"),
    ("self.author.posts", "it leads to many rows; write some("),
    ("self.author.posts == 'x'", "it leads to many rows; write some("),
    ("bool(self.author.posts)", "it leads to many rows; write some("),
    ("len(self.author.posts) > 1", "it leads to many rows; write some("),
    ("self.title == self.author.posts", "it leads to many rows; write some("),
    ("self.published & self.author.posts", "it leads to many rows; write some("),
    ("some(self.author)", "some(), every() and none() take a to-many relation first"),
    ("some(self.title, lambda each: each == 'x')", "some(), every() and none() take a to-many relation first"),
    ("none([])", "some(), every() and none() take a to-many relation first"),
    ("some(self.author.posts, self.hidden)", "the condition is no plain function"),
    ("every(self.author.posts, functools.partial(helper, viewer=viewer))", "the condition is no plain function"),
    ("some(self.author.posts, lambda post: True)", "True was decided in Python"),
    ("some(self.author.posts, lambda post: None)", "it gives nothing; write return"),
    ("some(self.author.posts, lambda post: post.title)", "a condition is wanted, and this is of type String"),
    ("some(self.author.posts, lambda post: self.hidden)", _OTHER),
    ("some(self.author.posts, lambda post: post.title == self.title)", _OTHER),
    ("some(self.author.posts, lambda post: may_read(self.author))", _OTHER),
    ("some(self.author.posts, lambda post: some(self.author.posts))", _OTHER),
    ("some(self.author.posts, lambda a: some(a.author.posts, lambda b: a.hidden))", _OTHER),
    ("mine = self.hidden\nreturn some(self.author.posts, lambda post: post.hidden & mine)", _OTHER),
    (
        "kept = []\nsome(self.author.posts, lambda post: (kept.append(post.hidden), post.hidden)[1])\nreturn kept[0]",
        "one of many rows is asked about outside",
    ),
    (
        "kept = []\nsome(self.author.posts, lambda post: (kept.append(post), post.hidden)[1])\nreturn may_read(kept[0])",
        "one of many rows is asked about outside",
    ),
    (
        "kept = []\nsome(self.author.posts, lambda post: (kept.append(post), post.hidden)[1])\nreturn some(kept[0].author.posts)",
        "one of many rows is asked about outside",
    ),
    ("self.rule(viewer)", "Post has no field 'rule'"),
    ("self.published = True\nreturn self.hidden", "it failed while it was traced"),
    ("1 / 0", "it failed while it was traced: division by zero"),
    ("raise RuntimeError('no')", "it failed while it was traced: no"),
    ("undefined_name", "it failed while it was traced: name 'undefined_name' is not defined"),
]

IN_A_COMPUTED_FIELD = [
    ("str", "self.size", "it gives Int and is declared as String"),
    ("int", "self.published", "it gives Boolean and is declared as Int"),
    ("str", "self.title or 'x'", "'or' cannot be traced to SQL"),
    ("str", "f'{self.title}!'", "'f-string' cannot be traced to SQL; write a + b"),
    ("int", "len(self.title)", "len() cannot be traced to SQL"),
    ("bool", "True", "True was decided in Python"),
    ("bool", "may_read(self.author)", "may_read() belongs in a rule, and a computed field is the same for everyone"),
    ("bool", "some(self.author.posts)", "some(), every() and none() belong in a rule"),
    ("str", "None", "it gives no value; write return before a field"),
    ("str", "self.author", "it gives no value"),
    ("int", "1 / 0", "it failed while it was traced: division by zero"),
    ("str", "self.body", "it can be null and is not declared so"),
    ("str", "self.editor.name", "it can be null and is not declared so"),
    ("str", "self.title + given(self.body)", "it can be null and is not declared so"),
    ("Json", "{'a': 1}", "{'a': 1} is not valid here: expected a value of type JSON"),
    ("Status", "'gone'", "'gone' is not valid here: expected one of new, old"),
    ("str", "self.made", "it is made of itself"),
    ("str", "self.made + '!'", "it is made of itself"),
]


@pytest.mark.slow
@cases(("text", "cause"), BY_SOURCE)
def test_a_word_that_cannot_be_traced_is_refused_by_the_source(text: str, cause: str) -> None:
    assert cause in refusal(text)


@pytest.mark.slow
@cases(("text", "cause"), BY_VALUE)
def test_a_value_that_python_would_decide_is_refused_while_tracing(text: str, cause: str) -> None:
    assert cause in refusal(text)


@cases(("kind", "text", "cause"), IN_A_COMPUTED_FIELD)
def test_a_computed_field_falls_into_the_same_nets(kind: str, text: str, cause: str) -> None:
    assert cause in refusal(text, kind)


WRITTEN = """
import functools

def loudly(function):
    @functools.wraps(function)
    def outer(self, viewer):
        {body}
    return outer

class Post(Resource):
    published: bool
    hidden: bool

{member}
"""


@pytest.mark.parametrize(
    ("member", "cause"),
    [
        ("    @allow('read')\n    async def rule(self, viewer): return self.hidden", "'async' cannot be traced"),
        ("    rule = allow('read')(lambda self, viewer: self.hidden or 1)", "'or' cannot be traced"),
        ("    @allow('read')\n    @classmethod\n    def rule(cls, viewer): ...", "it is no plain function"),
        ("    @allow('read')\n    @staticmethod\n    def rule(self, viewer): ...", "it is no plain function"),
        ("    @allow('read')\n    def rule(self): return self.hidden", "its arguments must be (self, viewer: Viewer)"),
        ("    rule = allow('read')(eval('lambda self, viewer: self.hidden'))", "its source cannot be read"),
        ("    @allow('read')\n    @loudly\n    def rule(self, viewer): return self.hidden", "'or' cannot be traced"),
    ],
)
def test_a_rule_that_is_no_plain_function_is_refused(member: str, cause: str) -> None:
    body = "return function(self, viewer) or self.hidden"
    built = declare(WRITTEN.format(body=body, member=member)).built
    assert isinstance(built, ModelError)
    assert cause in built.mistakes[0].cause


def test_a_decorated_rule_is_traced_through_its_decorator() -> None:
    member = "    @allow('read')\n    @loudly\n    def rule(self, viewer): return self.hidden"
    body = "return function(self, viewer) | self.published"
    found = model_of(WRITTEN.format(body=body, member=member)).resources["Post"]
    assert len(found.rules) == 1


def test_words_in_decorators_defaults_and_texts_are_no_rule() -> None:
    member = """
    @allow("read", to=staff if staff else None)
    def rule(self, viewer: Viewer | None) -> bool:
        "This and that, if not in."
        return self.hidden
"""
    found = model_of(WRITTEN.format(body="pass", member=member)).resources["Post"]
    assert found.rules[0].role == "staff"


def test_a_rule_with_a_text_of_many_lines_can_be_read() -> None:
    member = '''
    @allow("read")
    def rule(self, viewer):
        """One
two.
        """
        return self.hidden
'''
    assert model_of(WRITTEN.format(body="pass", member=member)).resources["Post"].rules
