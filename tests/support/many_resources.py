"""A model with any number of resources, for what grows with it: documents, start-up, memory."""

from __future__ import annotations

import functools
import sys
import types

from diptych import Model

HEADER = """\
from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated

from diptych import Digits, MaxLen, Min, MinLen, Model, Resource, grant, inverse, signed_in

WRITES = grant("create", "update", "delete", to=signed_in)
"""
RESOURCE = '''

class Thing{0}(Resource):
    """Resource number {0}."""

    name: Annotated[str, MinLen(1), MaxLen(80)]
    note: Annotated[str | None, MaxLen(500)] = None
    total: Annotated[Decimal, Digits(12, 2), Min(0)]
    count: int = 0
    active: bool = True
    due: date | None = None
    parent: Thing{1} | None = None
    children: list[Thing{2}] = inverse("parent")
    access = (grant("read"), WRITES)
'''


def source(count: int) -> str:
    """The text of the module: each resource has seven fields, a parent and children."""
    resources = (RESOURCE.format(number, (number - 1) % count, (number + 1) % count) for number in range(count))
    names = ", ".join(f"Thing{number}" for number in range(count))
    return f"{HEADER}{''.join(resources)}\n\nmodel = Model({names}, title='Things')\n"


@functools.cache
def many(count: int) -> Model:
    """The model itself."""
    module = types.ModuleType(f"things{count}")
    sys.modules[module.__name__] = module
    exec(compile(source(count), module.__name__, "exec"), module.__dict__)
    model: Model = module.model
    return model
