"""Texts that are nearly right, for tests that read them in this process."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st

from tests.proof.fuzz import odd
from tests.proof.fuzz.effort import FUZZ, SEED

Test = TypeVar("Test", bound=Callable[..., None])


def thorough(examples: int, more: int) -> Callable[[Test], Test]:
    """A test of so many examples, in a long run `FUZZ` times `more` of them, drawn anew from the seed."""
    chosen = settings(
        max_examples=examples if FUZZ == 1 else more * FUZZ,
        derandomize=FUZZ == 1,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[phase for phase in Phase if phase is not Phase.explain],
    )
    return lambda test: chosen(test if FUZZ == 1 else seed(SEED)(test))


THOROUGH = thorough(30, 200)
ODD = (
    *odd.ADDRESS,
    *odd.GRAPHQL,
    *odd.JSON_TEXTS,
    "\u2028",
    "\x85",
    "\x1f",
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\udc00",
    "W/",
    "q=",
    "\\",
    "\\u",
)


@st.composite
def spoiled(draw: st.DrawFn, good: tuple[str, ...], words: tuple[str, ...] = ODD) -> str:
    """A good text with some of it cut out, doubled, or replaced by something odd."""
    text = draw(st.sampled_from(good))
    for _ in range(draw(st.integers(0, 4))):
        random = Random(draw(st.integers(0, 2**32)))
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((0, 0, 1, 1, 2, 5, 20)))
        new = random.choice((random.choice(words), random.choice(words), text[start:end] * 2, ""))
        text = text[:start] + new + text[end:]
    return text


def jumbled(words: tuple[str, ...] = ODD) -> st.SearchStrategy[str]:
    """Odd words in a row, some of them by no means words."""
    return st.lists(st.sampled_from(words) | st.text(max_size=3), max_size=12).map("".join)
