"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from diptych.db.whole_file import whole_file
from diptych.errors import StartError


def test_a_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with whole_file(target) as part:
        part.write_text("whole")
        assert not target.exists()
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("whole", 0o600)
    with pytest.raises(ValueError, match="broken"), whole_file(target) as part:
        part.write_text("half")
        raise ValueError("broken")
    assert target.read_text() == "whole"
    assert [*tmp_path.iterdir()] == [target]


def test_one_at_a_time_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with whole_file(target) as part:
        with pytest.raises(StartError, match="is being written by another process"), whole_file(target):
            raise AssertionError
        part.write_text("first")
    assert target.read_text() == "first"


def test_what_a_killed_process_left_is_written_over(tmp_path: Path) -> None:
    target = tmp_path / "file"
    for name in ("file.part", "file.part-journal", "file.part-wal"):
        (tmp_path / name).write_text("left by another")
    with whole_file(target) as part:
        assert part.read_text() == ""
        part.write_text("new")
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o600)
    assert [*tmp_path.iterdir()] == [target]


def test_what_a_process_of_another_user_left_is_not_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, left = tmp_path / "file", tmp_path / "file.part"
    left.write_text("of another user")
    monkeypatch.setattr(os, "access", lambda path, mode: path != left)  # tests may run as root, who may open all
    with whole_file(target) as part:
        part.write_text("whole")
    assert target.read_text() == "whole"
    assert sorted(tmp_path.iterdir()) == [target, left] and left.read_text() == "of another user"
