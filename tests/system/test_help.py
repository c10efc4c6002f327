"""The help of the command line: a sentence for each command, whole in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from diptych.cli import commands


def groups(group: click.Group, *names: str) -> Iterator[tuple[str, ...]]:
    """The words of each group of commands, from the outermost one on."""
    yield names
    context = click.Context(group)
    for name in group.list_commands(context):
        inner = group.get_command(context, name)
        if isinstance(inner, click.Group):
            yield from groups(inner, *names, name)


@pytest.mark.parametrize("words", list(groups(commands)), ids=" ".join)
def test_the_sentence_of_a_command_fits_a_line(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(commands, [*words, "--help"], terminal_width=80)
    assert shown.exit_code == 0
    assert not [line for line in shown.output.splitlines()[1:] if line.endswith("...")]
