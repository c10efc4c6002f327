"""docs/reference/caching.md tells the truth: its model is one, and each request of its table may be kept as long as it says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from diptych.model.model import Model
from tests.support.cases import cases
from tests.support.in_process import Service, in_process
from tests.support.model_files import HEADER, model_of
from tests.support.running import ROOT, Command

TEXT = (ROOT / "docs" / "reference" / "caching.md").read_text("utf-8")
(SOURCE,) = re.findall(r"```python\n(.+?)```", TEXT, re.DOTALL)
TABLE = [tuple(row) for row in re.findall(r"^\| `(\S+)` \| (\d+|never)", TEXT, re.MULTILINE)]
_HEADER = HEADER + "from datetime import timedelta\n"


@pytest.fixture(scope="module")
def declared() -> Model:
    return model_of(SOURCE, _HEADER)


@pytest.fixture(scope="module")
def service(declared: Model) -> Iterator[Service]:
    with asyncio.Runner() as runner, in_process(declared, "sqlite:///:memory:", runner) as found:
        yield found


@cases(("url", "seconds"), TABLE)
def test_what_the_table_says_is_sent(service: Service, url: str, seconds: str) -> None:
    answer = service.get(url)
    assert answer.status == 200, answer.body
    told = "private, no-cache" if seconds == "never" else f"public, max-age={seconds}"
    assert answer.headers["cache-control"] == told


def test_the_headers_that_are_shown_are_sent(service: Service) -> None:
    shown = re.findall(r"    Cache-Control: (.+)\n    Vary: (.+)\n", TEXT)
    sent = [service.get(url).headers for url in ("/drafts", "/posts?fields=title")]
    assert shown == [(each["cache-control"], each["vary"]) for each in sent]
    assert len(TABLE) > 5


def test_explain_says_what_is_shown(command: Command) -> None:
    Path("shown.py").write_text(f"{_HEADER}{SOURCE}\nmodel = Model(Author, Post, Draft)\n", "utf-8")
    for url, line in zip(
        ("GET /posts", "GET /drafts"), re.findall(r"^    (Cache  .+)$", TEXT, re.MULTILINE), strict=True
    ):
        done = command("explain", url, "--model", "shown:model", "--as", "anonymous")
        assert line in done.stdout.splitlines(), done.stderr
