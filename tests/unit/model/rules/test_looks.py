"""What rules look at in other rows, and what changes alter of it."""

from __future__ import annotations

import pytest

from diptych.demo.model import model as default
from diptych.model.rules.looks import altered
from tests.contract.rules import house
from tests.contract.writes import club


def test_what_any_rule_looks_at_from_another_row() -> None:
    assert club.model.looked_at == {
        ("Once", ""),
        ("Once", "ownerId"),
        ("User", "open"),
        ("Folder", "locked"),
    }


def test_the_default_model_looks_at_posts_and_no_set() -> None:
    assert default.looked_at == {("Post", "published"), ("Post", "authorId")}


def test_a_rule_about_who_may_read_a_row_looks_at_all_that_decides_it() -> None:
    looked = house.model.looked_at
    assert {("Project", "tenant"), ("Membership", ""), ("Membership", "projectId"), ("Membership", "userId")} <= looked
    assert ("Project", "name") not in looked and ("Project", "id") not in looked
    assert {("Folder", "locked"), ("Folder", "parentId"), ("Folder", "")} <= looked


@pytest.mark.parametrize(
    "verb, names, wanted",
    [
        ("create", ["name"], {("User", "")}),
        ("update", ["name"], {("User", "name"), ("User", "version"), ("User", "updatedAt")}),
        ("delete", [], {("User", ""), ("Post", ""), ("Comment", "")}),
    ],
)
def test_a_change_alters(verb: str, names: list[str], wanted: set[tuple[str, str]]) -> None:
    assert set(altered(verb, names, default.resources["User"], default.resources)) == wanted
