"""A service in several worlds: the same rows but for what is hidden. Whoever may not see it cannot tell them apart.

    worlds = [changed(data.ROWS, "User", BEN, email=each) for each in ("ben@example.com", "zed@example.com")]
    scene.told_apart(worlds, QUESTIONS, who="ann") == []               nothing gets another answer
    scene.told_apart(worlds, QUESTIONS, who="admin") == QUESTIONS      and every question is one that could tell

The second line is what makes the first one worth something: each question tells whoever may see the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.contract.writes.shop import Rows, Shop
from tests.support.in_process import Answer, encoded


@dataclass(frozen=True)
class Question:
    """A read in one of the styles; its text is what a failing test shows."""

    text: str

    def __call__(self, scene: Shop, who: str) -> Answer:
        if self.text.startswith("/"):
            return scene.rest("GET", self.text, who=who)
        return scene.ql(self.text, who=who)


def urls(path: str, parameters: Iterable[dict[str, Any]]) -> list[Question]:
    """A question to one path for each set of parameters."""
    return [Question(f"{path}?{encoded(**each)}") for each in parameters]


def documents(template: str, parts: Iterable[str]) -> list[Question]:
    """A question for each part that stands for `…` in a document."""
    return [Question(template.replace("…", each)) for each in parts]


class Scene(Shop):
    """A service whose rows can be exchanged."""

    def fill(self, rows: Rows) -> None:
        """These rows and no others."""
        self._rows = rows
        self.refill()

    def told_apart(self, worlds: Sequence[Rows], questions: Sequence[Question], who: str) -> list[Question]:
        """The questions that get another answer in one world than in another: status, headers or bytes."""
        answers: list[list[Any]] = []
        for world in worlds:
            self.fill(world)
            answers.append([_all_of(question(self, who)) for question in questions])
        return [
            question
            for question, *given in zip(questions, *answers, strict=True)
            if any(each != given[0] for each in given)
        ]

    @contextmanager
    def planted(self, owner: Any, name: str, fault: Any) -> Iterator[None]:
        """A fault in the product itself, for as long as this lasts. Nothing that was planned outside is remembered
        inside, nor the other way round."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, fault)
            self.forget()
            try:
                yield
            finally:
                patch.undo()
                self.forget()

    def forget(self) -> None:
        """Begin anew, with the same rows: no view, schema, document or plan is remembered."""
        self.model.views.clear()
        self.service.forget()


def _all_of(answer: Answer) -> Any:
    """What the caller gets; a question that is not understood would tell nothing by itself."""
    assert answer.status in (200, 404), answer.body
    return (answer.status, dict(answer.headers), answer.body)


def changed(rows: Rows, resource: str, id: str, **values: Any) -> Rows:
    """The same rows, with other values in one of them."""
    assert any(row["id"] == id for row in rows[resource])
    return {**rows, resource: [{**row, **values} if row["id"] == id else row for row in rows[resource]]}


def without(rows: Rows, resource: str, *ids: str) -> Rows:
    """The same rows but for some."""
    assert {row["id"] for row in rows[resource]} >= set(ids)
    return {**rows, resource: [row for row in rows[resource] if row["id"] not in ids]}
