"""Tables that commands print."""

from __future__ import annotations

import pytest

from diptych.cli.records import print_table


def test_a_cell_is_one_line_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "ERROR"), [("a", "Zoë: \x1b[2J\x1b]0;owned\x07 no\nb     fine"), ("b", "-")])
    assert capsys.readouterr().out == ("NAME  ERROR\na     Zoë: \\x1b[2J\\x1b]0;owned\\x07 no\\nb     fine\nb     -\n")
