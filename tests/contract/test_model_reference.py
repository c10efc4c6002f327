"""docs/reference/model.md cannot drift: every word has its heading, every example runs, every message is what is told."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import diptych
from diptych import Model
from diptych.errors import ModelError
from diptych.model.scalars import PLAIN
from tests.support.cases import cases
from tests.support.model_files import declare

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "model.md").read_text("utf-8")
HEADINGS = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
USER = "class User(Resource):\n    name: str\n    access = (grant('read'),)\n"
NOT_HERE = {"RequestMeasures", "Check", "Config", "Diptych", "Limits", "ModelError", "__version__"}
"""What serves a model, and limits what is asked of it, is no word of a model file."""


@cases("name", sorted(set(diptych.__all__) - NOT_HERE))
def test_every_word_of_a_model_file_has_its_heading(name: str) -> None:
    assert any(heading == f"`{name}`" or heading.endswith(f": `{name}`") for heading in HEADINGS)


@cases("name", [*(kind.__name__ for kind in PLAIN), "Decimal", "Enum"])
def test_every_type_has_its_heading(name: str) -> None:
    assert f"`{name}`" in HEADINGS


def test_every_heading_is_in_the_table_of_contents() -> None:
    linked = re.findall(r"\]\(#([^)]+)\)", TEXT.partition("\n## ")[0])
    anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADINGS[1:]]
    assert sorted(linked) == sorted(anchors)


@pytest.mark.slow
@cases("example", EXAMPLES)
def test_every_example_is_a_model(example: str) -> None:
    source = example if "class " in example else "class Thing(Resource):\n" + textwrap.indent(example, "    ")
    built = declare(source if "class User" in source else USER + source).built
    assert isinstance(built, Model), built


def rows_after(words: str) -> list[tuple[str, str]]:
    """The code and the message of each row of the table after these words."""
    rows = []
    table = TEXT.partition(f"\n{words}\n\n")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        wrote, said = re.split(r" (?<!\\)\| ", line.removeprefix("| ").removesuffix(" |"))
        if wrote.startswith("`") and wrote.endswith("`") and wrote.count("`") == 2:
            rows.append((wrote.strip("`").replace("\\|", "|"), said.replace("\\|", "|")))
    return rows


def causes(source: str) -> list[str]:
    built = declare(source).built
    assert isinstance(built, ModelError), source
    return [mistake.cause for mistake in built.mistakes]


@cases(("wrote", "said"), rows_after("In a class:"))
def test_a_mistake_in_a_class_says_what_is_told_here(wrote: str, said: str) -> None:
    (cause,) = causes(f"{USER}class Thing(Resource):\n    flag: bool\n    {wrote}")
    assert cause.startswith(said)


@cases(("wrote", "said"), rows_after("In a rule or a computed field:"))
def test_a_mistake_in_a_rule_says_what_is_told_here(wrote: str, said: str) -> None:
    fields = "    flag: bool\n    other: bool\n    name: str\n    size: int\n    owner: User\n"
    rule = f"    @allow('read')\n    def rule(self, viewer):\n        return {wrote}"
    (cause,) = causes(f"{USER}class Thing(Resource):\n{fields}{rule}")
    assert cause.startswith(said)


@cases(("wrote", "said"), rows_after("Below `@action`:"))
def test_a_mistake_in_an_action_says_what_is_told_here(wrote: str, said: str) -> None:
    user = USER + "    thing: Thing | None = None\n"
    fields = "    users: list[User] = inverse('thing')\n"
    (cause,) = causes(f"{user}class Thing(Resource):\n{fields}    @action\n    {wrote}: ...")
    assert cause.startswith(said.replace("\\<", "<"))


@pytest.mark.parametrize(("wrote", "said"), rows_after('Below `@computed(needs="name")`:'))
def test_a_mistake_in_a_field_that_python_computes_says_what_is_told_here(wrote: str, said: str) -> None:
    (cause,) = causes(f"{USER}class Thing(Resource):\n    name: str\n    @computed(needs='name')\n    {wrote}: ...")
    assert cause.startswith(said)


@pytest.mark.parametrize(("wrote", "said"), rows_after("Of names and of the whole:"))
def test_a_mistake_in_a_name_says_what_is_told_here(wrote: str, said: str) -> None:
    (cause,) = causes(f"{wrote}:\n    name: str")
    assert cause.startswith(said)


def test_the_tables_of_mistakes_are_found() -> None:
    tables = (
        "In a class:",
        "In a rule or a computed field:",
        "Below `@action`:",
        'Below `@computed(needs="name")`:',
        "Of names and of the whole:",
    )
    assert [len(rows_after(words)) for words in tables] == [41, 13, 10, 3, 6]
