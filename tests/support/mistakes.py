"""Holds the mistakes of a model file against what its own comments say is told.

A line ends in what is told about it: `#! Post.title: the cause | the fix`. Several are parted by `#!`. What is told
may go on after the words that stand there.
"""

from __future__ import annotations

import re

from diptych.errors import Mistake, ModelError
from tests.support.model_files import HEADER, declare


def told_in(text: str) -> list[tuple[str, int, str, str]]:
    """What the comments of a file say is told: class and member, line, cause, fix."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for told in line.split("#!")[1:]:
            where, _, rest = told.strip().partition(": ")
            cause, _, fix = rest.rpartition(" | ") if " | " in rest else (rest, "", "")
            found.append((where, number, cause, fix))
    return found


def mistakes_in(source: str) -> tuple[Mistake, ...]:
    built = declare(source).built
    assert isinstance(built, ModelError), built
    return built.mistakes


def assert_reported(source: str) -> None:
    """Exactly what the comments say is told, in any order."""
    expected = sorted(told_in(HEADER + source))
    found = sorted(mistakes_in(source), key=lambda each: (each.where, each.line, each.cause))
    assert [(each.where, each.line) for each in found] == [(where, line) for where, line, _, _ in expected], found
    for mistake, (_, _, cause, fix) in zip(found, expected, strict=True):
        assert cause in mistake.cause
        assert fix in mistake.fix
        assert re.fullmatch(r"written_\d+\.py", mistake.file)
