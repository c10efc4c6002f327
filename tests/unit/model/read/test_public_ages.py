"""`public` in a model file: what it takes, what is told about mistakes, and what a resource does not inherit.

A line ends in what is told about it, as `tests/unit/model/mistakes.py` says.
"""

from __future__ import annotations

import pytest

from diptych.demo import model as default
from tests.support.cases import cases
from tests.support.mistakes import assert_reported
from tests.support.model_files import model_of

CLASSES = [
    ("public=0", "public=0 is not public | Remove it"),
    ("public=-1", "public=-1 is no time of whole seconds, up to a year | Write public=60, or public=timedelta("),
    ("public=True", "public=True is no time | Write public=60"),
    ("public='60'", "public='60' is no time | Write public=60"),
    ("public=1.5", "public=1.5 is no time | Write public=60"),
    ("public=31_536_001", "public=31536001 is no time of whole seconds, up to a year | Write public=60"),
    ("public=dt.timedelta(0)", "public=0 is not public | Remove it"),
    ("public=dt.timedelta(milliseconds=1500)", "is no time of whole seconds | Write public=60"),
    ("public=dt.timedelta(days=-1)", "is no time of whole seconds | Write public=60"),
    ("public=dt.timedelta(days=366)", "is no time of whole seconds, up to a year | Write public=60"),
]


@cases(("written", "told"), CLASSES)
def test_a_mistake_in_the_line_of_a_class(written: str, told: str) -> None:
    assert_reported(f"class T(Resource, {written}):  #! T: {told}\n    it: str\n")


FIELDS = [
    (
        "it: Annotated[str, Public(-1)]",
        "Public(-1) is no time of whole seconds, up to a year | Write Public(5), in seconds; 0 is never",
    ),
    ("it: Annotated[str, Public('5')]", "Public('5') is no time | Write Public(5)"),
    ("it: Annotated[str, Public(True)]", "Public(True) is no time | Write Public(5)"),
    ("it: Annotated[str, Public]", "Public is not called | Write Public(…)"),
    ("it: Annotated[str, Public(5), Public(6)]", "Public is given 2 times | Leave one"),
    ("it: Annotated[str, Public(61)]", "anyone may keep it for longer than T | Write at most 60, or remove it"),
    ("it: Annotated[T | None, Public(61)] = None", "anyone may keep it for longer than T | Write at most 60"),
]


@pytest.mark.parametrize(("line", "told"), FIELDS)
def test_a_mistake_in_the_line_of_a_field(line: str, told: str) -> None:
    assert_reported(f"class T(Resource, public=60):\n    name: str\n    {line}  #! T.it: {told}\n")


def test_a_field_cannot_be_public_alone() -> None:
    assert_reported("""
class T(Resource):
    it: Annotated[str, Public(5)]  #! T.it: anyone may keep it, but T is not public | Write class T(Resource, public=5), or remove it
    never: Annotated[str, Public(0)]

    @computed(public=5)
    def made(self) -> str:  #! T.made: anyone may keep it, but T is not public | Write class T(Resource, public=5)
        return self.it
""")


COMPUTED = [
    (
        "@computed(public=-1)",
        "str",
        "public=-1 is no time of whole seconds | Write @computed(public=5), in seconds; 0 is never",
    ),
    ("@computed(needs='it', public='x')", "str", "public='x' is no time | Write @computed(public=5)"),
    ("@computed(public=61)", "str", "anyone may keep it for longer than T | Write at most 60"),
    (
        "@computed",
        "Annotated[str, Public(5)]",
        "Public is not allowed in the type of a computed field | Write @computed(public=5)",
    ),
]


@pytest.mark.parametrize(("above", "kind", "told"), COMPUTED)
def test_a_mistake_in_a_computed_field(above: str, kind: str, told: str) -> None:
    assert_reported(
        f"class T(Resource, public=60):\n    it: str\n\n    {above}\n    def made(self) -> {kind}:  #! T.made: {told}\n        return self.it\n"
    )


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("public=0", "public=0 is not public | Remove it"),
        ("public='x'", "public='x' is no time | Write public=60"),
    ],
)
def test_a_mistake_in_a_query(option: str, told: str) -> None:
    assert_reported(f"""
class T(Resource, public=60):
    it: str

    @query({option})
    @classmethod
    async def top(cls, tx: Tx) -> list[T]:  #! T.top: {told}
        return []
""")


def test_markers_mean_nothing_where_nothing_is_told() -> None:
    assert_reported("""
class T(Resource, public=60):
    others: Annotated[list[T], Public(5)] = inverse("t")  #! T.others: mean nothing on a to-many relation | Remove them
    t: T

    @action
    async def act(self, tx: Tx, it: Annotated[str, Public(5)]) -> None:  #! T.act: its argument 'it': Public means nothing on an argument | Remove
        pass
""")


def test_what_is_declared_is_kept_as_seconds() -> None:
    model = model_of("""
class Post(Resource, public=dt.timedelta(minutes=1)):
    title: Annotated[str, Public(5)]
    body: str
    never: Annotated[str, Public(dt.timedelta(0))]
    parent: Annotated[Post | None, Public(9)] = None

    @query(public=31_536_000)
    @classmethod
    async def top(cls, tx: Tx) -> int:
        return 1

class Note(Resource):
    text: str
""")
    post, note = model.resources["Post"], model.resources["Note"]
    assert (post.public, note.public) == (60, 0)
    ages = {name: field.public for name, field in post.fields.items() if field.public is not None}
    assert ages == {"title": 5, "never": 0, "parentId": 9}
    assert post.queries["top"].public == 31_536_000


def test_a_subclass_is_public_if_it_says_so_itself() -> None:
    model = model_of("""
class Post(Resource, public=60, ids="integer"):
    title: str

class Draft(Post):
    note: str

class Page(Post, public=5):
    note: str
""")
    assert {name: found.public for name, found in model.resources.items()} == {"Post": 60, "Draft": 0, "Page": 5}


def test_nothing_of_the_default_model_is_public() -> None:
    assert [found.public for found in default.model.resources.values()] == [0, 0, 0, 0]
