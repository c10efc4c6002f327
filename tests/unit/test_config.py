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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SMTP", "smpt://shop:geheim@mail.example.org"),
        ("DIRECT_DATABASE", "postgresq://shop:ge/he@im@db/shop"),
        ("REPLICAS", "postgresq://shop:geheim@a/shop,postgresq://shop:geheim@b/shop"),
        ("REPLICAS", "postgresq://a/shop?user=shop&password=geheim"),
        ("REPLICAS", "postgresq://a/shop?user=shop&password=x@im geheim,im@"),
        ("SMTP", "smpt://shop:abcd geheim@mail.example.org"),
        ("SMTP", "shop:geheim@mail.example.org:587"),
        ("SMTP", "smtp:/shop:geheim@mail.example.org"),
    ],
)
def test_an_error_does_not_show_the_password_of_an_address(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=f"DIPTYCH_{name} cannot be ") as caught:
        load({}, tmp_path / "diptych.toml", {f"DIPTYCH_{name}": text})
    assert not [part for part in ("geheim", "ge/he", "im@") if part in str(caught.value)]
