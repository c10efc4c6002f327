"""All attacks, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.proof.attacks import (
    bodies,
    bombs,
    deep,
    documents,
    introspection,
    most,
    nests,
    numbers,
    published,
    resources,
)
from tests.proof.attacks.case import Case

_MODULES = (bombs, documents, bodies, introspection, deep, most, resources, published, nests, numbers)
CASES: Mapping[str, Case] = {name: case for module in _MODULES for name, case in module.CASES.items()}
ANSWERED: Mapping[str, Case] = {name: case for name, case in CASES.items() if case.where == "answered"}
REFUSED: Mapping[str, Case] = {name: case for name, case in CASES.items() if case.where != "answered"}
