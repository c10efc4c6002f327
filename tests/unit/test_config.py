"""A worker gets its settings as environment variables: whatever holds in one process can be read in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from diptych.config import Config, as_environment, load
from diptych.errors import StartError


def test_all_defaults_can_be_given_to_another_process(tmp_path: Path) -> None:
    assert load({}, tmp_path / "diptych.toml", as_environment(Config())) == Config()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "a week", "1e11"])
def test_changes_are_kept_for_a_time_that_is_one(text: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="DIPTYCH_FEED_KEEP"):
        load({}, tmp_path / "diptych.toml", {"DIPTYCH_FEED_KEEP": text})
