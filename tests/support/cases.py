"""Many cases of one test in a loop: they take no time of pytest's own, and the report names every case that failed.

    @cases("body", BODIES)                  # like pytest.mark.parametrize, in one test
    def test_it_is_refused(service: Service, body: bytes) -> None:

For tests whose fixtures last longer than a test: all cases get the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest
from _pytest.mark.structures import ParameterSet
from _pytest.outcomes import Skipped

SHOWN = 5
"""Failures that are shown with their traceback; the others are named."""

Name = Callable[[], str]
Case = tuple[tuple[Name, ...], dict[str, Any]]
"""How it is named, and what the test is given."""


def cases(
    names: str | tuple[str, ...], values: Iterable[Any], ids: Iterable[Any] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each of some values, in one test; decorators stack as those of parametrize do."""
    wanted = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    found = [*_read(wanted, list(values), ids)]
    assert found

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        inner: list[Case] = getattr(test, "cases", [((), {})])
        bare = getattr(test, "bare", test)
        all_cases = [((*outer, *names), {**given, **more}) for outer, more in found for names, given in inner]

        @functools.wraps(bare)
        def run(**fixtures: Any) -> None:
            _run(bare, all_cases, fixtures)

        signature = inspect.signature(bare)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in all_cases[0][1]]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # attributes for pytest
        run.bare, run.cases = bare, all_cases  # type: ignore[attr-defined]  # attributes for pytest
        run.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]  # attributes for pytest
        return cast(Callable[..., None], run)

    return decorate


def _read(names: tuple[str, ...], values: list[Any], ids: Any) -> Iterable[Case]:
    told = [ids] * len(values) if ids is None or callable(ids) else list(ids)
    for value, name in zip(values, told, strict=True):
        if isinstance(value, ParameterSet):
            assert not value.marks, "a case of a loop has no marks"
            parts, own = tuple(value.values), value.id or name
        else:
            parts, own = (value,) if len(names) == 1 else tuple(value), name
        yield (functools.partial(_name, parts, own),), dict(zip(names, parts, strict=True))


def _name(parts: tuple[Any, ...], name: Any) -> str:
    if name is not None and not callable(name):
        return str(name)
    return "-".join(str((name and name(part)) or _text(part)) for part in parts)


def _text(part: Any) -> str:
    return part if isinstance(part, str) else getattr(part, "__name__", None) or ascii(part)


def _run(test: Callable[..., None], all_cases: list[Case], fixtures: dict[str, Any]) -> None:
    failed: list[Exception] = []
    named: list[str] = []
    skipped = 0
    for names, given in all_cases:
        try:
            test(**fixtures, **given)
        except Skipped:
            skipped += 1
        except Exception as error:
            named.append("-".join(name() for name in names)[:200])
            if len(failed) < SHOWN:
                error.add_note(f"in the case {named[-1]!r}")
                failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(named)} of {len(all_cases)} cases failed: {named}", failed)
    if skipped == len(all_cases):
        pytest.skip("all cases are skipped")
