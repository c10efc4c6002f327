"""How commands change the cells file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from diptych.cli.cells import _rewrite
from diptych.config import Config
from diptych.errors import StartError


def test_no_command_loses_what_another_adds_to_the_cells_file(tmp_path: Path) -> None:
    file, config = tmp_path / "cells.toml", Config()
    begin = 'address = "http://127.0.0.1:8000/t/{tenant}"\n\n[cells]\n'
    file.write_text(begin)
    file.chmod(0o640)

    def add(text: str) -> str:
        with pytest.raises(StartError, match="is being written by another process"):
            _rewrite(file, config, lambda text: text + 'globex = "sqlite:///globex.db"\n')
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o640}, "it has passwords"
        return text + 'acme = "sqlite:///acme.db"\n'

    _rewrite(file, config, add)
    assert file.read_text() == begin + 'acme = "sqlite:///acme.db"\n'
    with pytest.raises(StartError, match="cannot be read"):
        _rewrite(file, config, lambda text: text + "acme =\n")
    assert file.read_text() == begin + 'acme = "sqlite:///acme.db"\n'
    assert [*tmp_path.iterdir()] == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
