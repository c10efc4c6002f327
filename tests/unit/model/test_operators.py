"""The table of filter operators has those of all scalars and of the client, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from diptych.model.operators import EQUALITY, FOLDED, OPERATORS, SETS, TEXTUAL

CLIENT = Path(__file__).parents[3] / "clients" / "rest" / "index.js"


def test_every_operator_is_one_of_some_scalar_and_of_the_client() -> None:
    assert {*EQUALITY, *TEXTUAL, *FOLDED, *SETS} == OPERATORS.keys()
    (known,) = re.findall(r"'(eq ne [\w ]+)'\.split", CLIENT.read_text())
    assert set(known.split()) == OPERATORS.keys()
