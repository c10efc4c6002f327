"""The tokens of all pages, resolved for pages that the server renders."""

from __future__ import annotations

import re

from diptych.look.sheet import style, style_source, themed


def test_each_theme_takes_its_half_of_every_pair() -> None:
    shadow = "0 1px light-dark(rgb(1 2 3 / 6%), rgb(0 0 0 / 40%)), 0 4px light-dark(#fff, #000)"
    assert themed(shadow, 0) == "0 1px rgb(1 2 3 / 6%), 0 4px #fff"
    assert themed(shadow, 1) == "0 1px rgb(0 0 0 / 40%), 0 4px #000"
    assert themed("0.5rem", 0) == themed("0.5rem", 1) == "0.5rem"


def test_a_sheet_declares_the_tokens_that_it_uses_and_no_others() -> None:
    sheet = style("main { color: var(--warn); box-shadow: var(--shadow); }\n")
    light, dark = sheet.split("@media (prefers-color-scheme: dark)")
    used, declared = set(re.findall(r"var\((--[\w-]+)\)", sheet)), set(re.findall(r"(--[\w-]+):", light))
    assert used == declared
    assert "light-dark" not in sheet and "--warn: #f0bd62" in dark and "--warn: #875300" in light
    assert "--font" not in dark.split("} }")[0], "what is the same in both themes is declared once"


def test_the_source_of_a_sheet_is_its_hash() -> None:
    assert style_source("") == "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
