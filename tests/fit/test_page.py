"""docs/reference/clients.md says what `make fit` has found, with the versions that are pinned."""

from __future__ import annotations

from tests.fit import page
from tests.fit.scenario import _npm, _pypi


def test_the_page_is_made_of_what_was_found() -> None:
    assert page.PAGE.read_text("utf-8") == page.page(page.load()), "make fit"


def test_the_versions_are_those_of_the_locks() -> None:
    locked = {**_npm(), **_pypi()}
    for name, row in page.load().items():
        for package, version in row["versions"].items():
            assert locked.get(package, version) == version, f"{name} was tried with another {package}: make fit"
